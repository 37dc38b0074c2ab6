"""Printer: show a term as text, with or without sugar, in either spelling."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

from trainshift.calculus.layout import LINE, WIDTH, Text, group, nested, set_in_lines, together
from trainshift.calculus.lexer import KEYWORDS, ascii_name, unicode_name
from trainshift.calculus.names import Names, is_hatted, names_in
from trainshift.calculus.sugar import Folding, increased, truth
from trainshift.calculus.syntax import (
    IGNORED,
    Add,
    App,
    Assign,
    Case,
    Const,
    Deref,
    Fst,
    Inl,
    Inr,
    Lam,
    Let,
    Mul,
    Pair,
    Real,
    Ref,
    Reset,
    Shift,
    Snd,
    Term,
    Var,
)
from trainshift.calculus.trampoline import Work, run

# Precedence levels: open-ended constructs, `:=`, `+`, `*`, calls, words before operands, and the rest.
_OPEN, _ASSIGN, _SUM, _PRODUCT, _CALL, _PREFIX, _ATOM = range(7)
_BINARY = {Assign: (" :=", _ASSIGN), Add: (" +", _SUM), Mul: (" *", _PRODUCT)}
_WORDS = {Fst: "fst ", Snd: "snd ", Ref: "ref ", Inl: "inl ", Inr: "inr "}
_ASCII = {"λ": "\\", "⇒": "=>", "⟨": "<", "⟩": ">"}

Shown: TypeAlias = tuple[Text, int]
Renamed: TypeAlias = Mapping[str, str]


def show(term: Term, ascii_only: bool = False, expand: bool = False, width: int = WIDTH) -> str:
    """The text of a term, which `parse` reads as the same term up to bound names.

    In ASCII, names in other letters are spelled out.  With `expand` there is no sugar.
    """
    printer = _Printer(term, ascii_only, expand)
    return set_in_lines(run(printer.show(term, MappingProxyType({})))[0], width)


def real(value: Real) -> str:
    """A number as it is written in a term: with an exponent if it is not exact."""
    if isinstance(value, float):
        text = repr(value)
        return text if "e" in text or "n" in text else f"{text.removesuffix('.0')}e0"
    try:
        return str(value)
    except ValueError:
        bits = (value.numerator if isinstance(value, Fraction) else value).bit_length()
        return f"a number of {bits} bits"


class _Printer:
    def __init__(self, term: Term, ascii_only: bool, expand: bool) -> None:
        self._fold = None if expand else Folding(term)
        self._expand, self._ascii = expand, ascii_only
        used = names_in(term)
        self._names = Names({*used, *KEYWORDS})
        self._spelled = {name: name if ascii_only else unicode_name(name) for name in used}
        if ascii_only:
            for name in sorted(used):
                if not name.isascii():
                    self._spelled[name] = self._names.fresh(ascii_name(name))

    def _sign(self, sign: str) -> str:
        return _ASCII[sign] if self._ascii else sign

    def _name(self, name: str, renamed: Renamed) -> str:
        name = renamed.get(name, name)
        return self._spelled.get(name) or (name if self._ascii else unicode_name(name))

    def put(self, term: Term, level: int, renamed: Renamed) -> Work[Text]:
        """Show the term, in parentheses if it binds less tight than `level`."""
        text, own = yield self.show(term, renamed)
        text = group(text)
        if own >= level:
            return text
        return together("(", text if isinstance(term, Lam) else nested(text), ")")

    def follow(self, term: Term, renamed: Renamed) -> Work[Text]:
        """Show the body of a let or `;`; another let or `;` is broken into lines if the one before is."""
        text, _ = yield self.show(term, renamed)
        return text if isinstance(term, Let) else group(text)

    def show(self, term: Term, renamed: Renamed) -> Work[Shown]:
        """The text of the term, and its precedence."""
        if isinstance(term, Const):
            if not term.is_real:
                return "()", _ATOM
            assert not isinstance(term.value, tuple)
            text = real(term.value)
            return text, _PREFIX if text.startswith("-") else _ATOM
        if isinstance(term, Var):
            return self._name(term.name, renamed), _ATOM
        kind = type(term)
        shown: Shown
        if kind in _WORDS:
            shown = yield self._word(term, renamed)
        elif isinstance(term, Add | Mul | Assign):
            shown = yield self._binary(term, renamed)
        else:
            shown = yield getattr(self, f"_{kind.__name__.lower()}")(term, renamed)
        return shown

    def _word(self, term: Term, renamed: Renamed) -> Work[Shown]:
        assert isinstance(term, Fst | Snd | Ref | Inl | Inr)
        if not self._expand and (text := truth(term)):
            return text, _ATOM
        of: Text = yield self.put(term.of, _ATOM, renamed)
        return together(_WORDS[type(term)], of), _PREFIX

    def _deref(self, term: Deref, renamed: Renamed) -> Work[Shown]:
        of: Text = yield self.put(term.of, _ATOM, renamed)
        return together("!", of), _ATOM

    def _binary(self, term: Add | Mul | Assign, renamed: Renamed) -> Work[Shown]:
        sign, level = _BINARY[type(term)]
        if isinstance(term, Assign):
            if not self._expand and (found := increased(term)):
                by: Text = yield self.put(found[1], _ASSIGN, renamed)
                return group(self._name(found[0], renamed), " +=", nested(LINE, by)), level
            left: Text = yield self.put(term.left, level + 1, renamed)
            right: Text = yield self.put(term.right, level, renamed)
        else:
            left = yield self.put(term.left, level, renamed)
            right = yield self.put(term.right, level + 1, renamed)
        return group(left, sign, nested(LINE, right)), level

    def _app(self, term: App, renamed: Renamed) -> Work[Shown]:
        function: Text = yield self.put(term.left, _CALL, renamed)
        argument: Text = yield self.put(term.right, _ATOM, renamed)
        return together(function, " ", argument), _CALL

    def _pair(self, term: Pair, renamed: Renamed) -> Work[Shown]:
        first: Text = yield self.put(term.left, _OPEN, renamed)
        second: Text = yield self.put(term.right, _OPEN, renamed)
        return group("(", nested(first, ",", LINE, second), ")"), _ATOM

    def _reset(self, term: Reset, renamed: Renamed) -> Work[Shown]:
        inside: Text = yield self.put(term.of, _OPEN, renamed)
        return together(self._sign("⟨"), nested(inside), self._sign("⟩")), _ATOM

    def _lam(self, term: Lam, renamed: Renamed) -> Work[Shown]:
        heads, inside = [], term
        while True:
            renamed = _without(renamed, inside.name)
            heads.append(f"{self._sign('λ')}{self._name(inside.name, renamed)}.")
            if not isinstance(inside.body, Lam):
                break
            inside = inside.body
        body: Text = yield self.put(inside.body, _OPEN, renamed)
        return group(" ".join(heads), nested(LINE, body)), _OPEN

    def _shift(self, term: Shift, renamed: Renamed) -> Work[Shown]:
        renamed = _without(renamed, term.name)
        body: Text = yield self.put(term.body, _OPEN, renamed)
        return group(f"shift {self._name(term.name, renamed)} in", LINE, body), _OPEN

    def _case(self, term: Case, renamed: Renamed) -> Work[Shown]:
        of: Text = yield self.put(term.of, _OPEN, renamed)
        left_scope, right_scope = _without(renamed, term.left_name), _without(renamed, term.right_name)
        left: Text = yield self.put(term.left, _OPEN, left_scope)
        right: Text = yield self.put(term.right, _OPEN, right_scope)
        if not self._expand and term.left_name == term.right_name == IGNORED:
            yes, no = group(" then", nested(LINE, left)), group("else", nested(LINE, right))
            return group("if ", of, yes, LINE, no), _OPEN
        arrow = self._sign("⇒")
        heads = [
            f"{self._name(name, scope)} {arrow}"
            for name, scope in ((term.left_name, left_scope), (term.right_name, right_scope))
        ]
        first = group(heads[0], nested(LINE, left))
        second = group(f"or {heads[1]}", nested(LINE, right))
        return group("case ", of, " of", nested(LINE, first, LINE, second)), _OPEN

    def _let(self, term: Let, renamed: Renamed) -> Work[Shown]:
        shown: Shown
        if self._fold and term.name == IGNORED:
            first: Text = yield self.put(term.value, _ASSIGN, renamed)
            rest: Text = yield self.follow(term.body, renamed)
            return together(first, ";", LINE, rest), _OPEN
        if self._fold and (pair := self._fold.pair_let(term)):
            scope = _without(renamed, pair.first, pair.second, term.name, *_parts(pair.first))
            names = [self._name(name, scope) for name in (pair.first, pair.second) if name]
            head = f"({', '.join(names)})" if pair.second else names[0]
            shown = yield self._bound(f"let {head} =", pair.value, pair.body, renamed, scope)
            return shown
        if self._fold and (found := self._fold.letrec(term)):
            scope = _called(renamed, found.outer, found.name)
            inside_scope = _without(_called(renamed, found.inner, found.name), found.parameter)
            head = f"letrec {self._name(found.outer, scope)} ="
            inside: Text = yield self.put(found.inside, _OPEN, inside_scope)
            parameter = f"{self._sign('λ')}{self._name(found.parameter, inside_scope)}."
            body: Text = yield self.follow(found.body, scope)
            function = group(parameter, nested(LINE, inside))
            return together(head, " ", function, " in", LINE, body), _OPEN
        scope = _without(renamed, term.name)
        if is_hatted(term.name):  # parsed unchanged, this would be sugar
            plain = self._names.fresh(term.name.replace("^", "~"))
            scope = MappingProxyType({**scope, term.name: plain})
        head = f"let {self._name(term.name, scope)} ="
        shown = yield self._bound(head, term.value, term.body, renamed, scope)
        return shown

    def _bound(self, head: str, value: Term, body: Term, outside: Renamed, scope: Renamed) -> Work[Shown]:
        first: Text = yield self.put(value, _OPEN, outside)
        rest: Text = yield self.follow(body, scope)
        return together(group(head, nested(LINE, first), " in"), LINE, rest), _OPEN


def _without(renamed: Renamed, *names: str) -> Renamed:
    if renamed.keys().isdisjoint(names):
        return renamed
    return MappingProxyType({name: to for name, to in renamed.items() if name not in names})


def _called(renamed: Renamed, name: str, new: str) -> Renamed:
    rest = _without(renamed, name, new)
    return rest if name == new else MappingProxyType({**rest, name: new})


def _parts(pair: str) -> tuple[str, ...]:
    if not is_hatted(pair):
        return ()
    first = pair.replace("^", "", 1)
    return first, f"{first}'"
