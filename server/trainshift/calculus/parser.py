"""Parser: turn a text into a term without sugar."""

from __future__ import annotations

from collections.abc import Callable

from trainshift.calculus import sugar
from trainshift.calculus.lexer import Token, number, tokens
from trainshift.calculus.names import Names, is_hatted
from trainshift.calculus.syntax import (
    IGNORED,
    UNIT,
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
    Ref,
    Reset,
    Shift,
    Snd,
    Term,
    Var,
)
from trainshift.calculus.trampoline import Work, run

# The operators by precedence, with their associativity.
_LEVELS = {";": (0, True), ":=": (1, True), "+=": (1, True), "+": (2, False), "*": (3, False)}
_PREFIXES: dict[str, Callable[[Term], Term]] = {
    "fst": Fst,
    "snd": Snd,
    "ref": Ref,
    "!": Deref,
    "inl": Inl,
    "inr": Inr,
}
_OPENERS = frozenset({"λ", "let", "letrec", "case", "if", "shift"})
_OPERANDS = frozenset({"name", "number", "true", "false", "(", "⟨", "@", *_PREFIXES, *_OPENERS})


def parse(text: str) -> Term:
    """Parse a text, in either spelling; raises CalculusSyntaxError."""
    return run(_Parser(text).whole())


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = [*tokens(text)]
        self._at = 0
        self._names = Names(each.text for each in self._tokens if each.kind == "name")

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _take(self, kind: str, after: str) -> Token:
        token = self._token
        if token.kind != kind:
            wanted = "A name" if kind == "name" else f"{kind!r}"
            raise token.error(f"{wanted} is missing {after}, before {_said(token)}.")
        self._at += 1
        return token

    def _binder(self, after: str) -> str:
        return self._take("name", after).text

    def whole(self) -> Work[Term]:
        term: Term = yield self._term(0)
        if self._token.kind == "-":
            raise self._token.error("There is no subtraction: write x + -1 * y.")
        if self._token.kind != "end":
            raise self._token.error(f"{_said(self._token)} does not belong here.".capitalize())
        return term

    def _term(self, lowest: int) -> Work[Term]:
        """Parse a term whose operators bind at least as tight as `lowest`."""
        left: Term = yield self._call()
        while self._token.kind in _LEVELS:
            operator = self._token
            level, to_the_right = _LEVELS[operator.kind]
            if level < lowest:
                break
            self._at += 1
            right: Term = yield self._term(level if to_the_right else level + 1)
            left = _operation(operator, left, right)
        return left

    def _call(self) -> Work[Term]:
        function: Term = yield self._operand()
        while self._token.kind in _OPERANDS:
            argument: Term = yield self._operand()
            function = App(function, argument)
        return function

    def _operand(self) -> Work[Term]:
        token = self._token
        kind = token.kind
        self._at += 1
        if kind == "name":
            if token.text == IGNORED:
                raise token.error("_ has no value: give it a name.")
            return Var(token.text)
        if kind == "number":
            return Const(number(token))
        if kind == "-" and self._token.kind == "number":
            self._at += 1
            return Const(number(self._tokens[self._at - 1], negative=True))
        if kind in _PREFIXES:
            of: Term = yield self._operand()
            return _PREFIXES[kind](of)
        if kind == "@":
            function: Term = yield self._operand()
            argument: Term = yield self._operand()
            return App(function, argument)
        if kind in ("true", "false"):
            return sugar.TRUE if kind == "true" else sugar.FALSE
        if kind in "(⟨":
            inside: Term = yield (self._in_parentheses() if kind == "(" else self._reset())
            return inside
        if kind in _OPENERS:
            opened: Term = yield getattr(self, _OPENED[kind])()
            return opened
        raise token.error(f"A term is missing before {_said(token)}.")

    def _in_parentheses(self) -> Work[Term]:
        if self._token.kind == ")":
            self._at += 1
            return Const(UNIT)
        first: Term = yield self._term(0)
        if self._token.kind == ",":
            self._at += 1
            second: Term = yield self._term(0)
            first = Pair(first, second)
        self._take(")", "after a term in parentheses")
        return first

    def _reset(self) -> Work[Term]:
        inside: Term = yield self._term(0)
        self._take("⟩", "after a term in ⟨ ⟩")
        return Reset(inside)

    def _function(self) -> Work[Term]:
        name = self._binder("after λ")
        self._take(".", "after the parameter")
        body: Term = yield self._term(0)
        return Lam(name, body)

    def _let(self) -> Work[Term]:
        if self._token.kind == "(":
            self._at += 1
            first = self._binder("in the pair after let")
            self._take(",", "between the names of a pair")
            second = self._binder("in the pair after let")
            self._take(")", "after the names of a pair")
            value, body = yield self._value_and_body()
            return sugar.let_pair(self._names.fresh("p"), first, second, value, body)
        name = self._binder("after let")
        value, body = yield self._value_and_body()
        if is_hatted(name):
            return sugar.let_hat(name.replace("^", "", 1), value, body)
        return Let(name, value, body)

    def _letrec(self) -> Work[Term]:
        name = self._binder("after letrec")
        start = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        value, body = yield self._value_and_body()
        if not isinstance(value, Lam):
            raise start.error("letrec defines a function: write λ here.")
        return sugar.letrec(name, value, body, self._names.fresh)

    def _value_and_body(self) -> Work[tuple[Term, Term]]:
        self._take("=", "after the name")
        value: Term = yield self._term(0)
        self._take("in", "after the value of let")
        body: Term = yield self._term(0)
        return value, body

    def _case(self) -> Work[Term]:
        of: Term = yield self._term(0)
        self._take("of", "after what case looks at")
        left_name = self._binder("after of")
        self._take("⇒", "after the name")
        left: Term = yield self._term(0)
        self._take("or", "after the first branch of case")
        right_name = self._binder("after or")
        self._take("⇒", "after the name")
        right: Term = yield self._term(0)
        return Case(of, left_name, left, right_name, right)

    def _if(self) -> Work[Term]:
        test: Term = yield self._term(0)
        self._take("then", "after the condition")
        yes: Term = yield self._term(0)
        self._take("else", "after the first branch of if")
        no: Term = yield self._term(0)
        return sugar.conditional(test, yes, no)

    def _shift(self) -> Work[Term]:
        name = self._binder("after shift")
        self._take("in", "after the name")
        body: Term = yield self._term(0)
        return Shift(name, body)


_OPENED = {
    "λ": "_function",
    "let": "_let",
    "letrec": "_letrec",
    "case": "_case",
    "if": "_if",
    "shift": "_shift",
}


def _operation(operator: Token, left: Term, right: Term) -> Term:
    if operator.kind == ";":
        return sugar.sequence(left, right)
    if operator.kind == ":=":
        return Assign(left, right)
    if operator.kind == "+=":
        if not isinstance(left, Var):
            raise operator.error("+= needs a name on its left.")
        return sugar.increase(left.name, right)
    return Add(left, right) if operator.kind == "+" else Mul(left, right)


def _said(token: Token) -> str:
    return "the end" if token.kind == "end" else f"{token.text!r}"
