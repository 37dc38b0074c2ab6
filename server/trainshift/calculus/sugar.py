"""Sugar is expanded when a term is read, and folded back when it is shown.

    true                         inl ()
    false                        inr ()
    if b then t else e           case b of _ ⇒ t or _ ⇒ e
    e1; e2                       let _ = e1 in e2
    y += e                       y := !y + e
    let (y, z) = e1 in e2        let p = e1 in let y = fst p in let z = snd p in e2
    let ŷ = e1 in e2             let (y, y') = e1 in e2, where ŷ is the pair
    letrec f = λx. e1 in e2      let g = λh. λx. let f = h h in e1 in let f = g g in e2

The names p, g and h are new ones: of other names, the terms inside may speak. In ASCII ŷ is `y^`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from trainshift.calculus.names import hatted, is_hatted, names_in, parts_of_pair, primed, variables
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
    Snd,
    Term,
    Var,
)

TRUE, FALSE = Inl(Const(UNIT)), Inr(Const(UNIT))


def sequence(first: Term, rest: Term) -> Term:
    """`first; rest`."""
    return Let(IGNORED, first, rest)


def conditional(test: Term, yes: Term, no: Term) -> Term:
    """`if test then yes else no`."""
    return Case(test, IGNORED, yes, IGNORED, no)


def increase(name: str, by: Term) -> Term:
    """`name += by`."""
    return Assign(Var(name), Add(Deref(Var(name)), by))


def let_pair(pair: str, first: str, second: str, value: Term, body: Term) -> Term:
    """`let (first, second) = value in body`, with a name for the pair."""
    return Let(pair, value, Let(first, Fst(Var(pair)), Let(second, Snd(Var(pair)), body)))


def let_hat(name: str, value: Term, body: Term) -> Term:
    """`let ŷ = value in body` for the name y."""
    return let_pair(hatted(name), name, primed(name), value, body)


def letrec(name: str, function: Lam, body: Term, fresh: Callable[[str], str]) -> Term:
    """`letrec name = function in body`."""
    outer, inner = fresh(name), fresh(name)
    within = Let(name, App(Var(inner), Var(inner)), function.body)
    after = Let(name, App(Var(outer), Var(outer)), body)
    return Let(outer, Lam(inner, Lam(function.name, within)), after)


@dataclass(frozen=True)
class PairLet:
    """`let (first, second) = value in body`; with a hat, `first` is the hatted name and `second` is empty."""

    first: str
    second: str
    value: Term
    body: Term


@dataclass(frozen=True)
class Letrec:
    """`letrec name = λparameter. inside in body`, called `inner` inside and `outer` in the body."""

    name: str
    inner: str
    outer: str
    parameter: str
    inside: Term
    body: Term


Binder = tuple[int, str]


class Folding:
    """Find the syntactic sugar in a term."""

    def __init__(self, term: Term) -> None:
        self._uses: dict[Binder | None, int] = {}
        for _, _, binder in variables(term):
            self._uses[binder] = self._uses.get(binder, 0) + 1

    def pair_let(self, term: Let) -> PairLet | None:
        """`let ŷ = ...` or `let (y, z) = ...`, if `term` is the expanded form of one."""
        if parts := parts_of_pair(term):
            return PairLet(term.name, "", term.value, parts[1].body)
        first = term.body
        if not (isinstance(first, Let) and isinstance(first.body, Let)):
            return None
        second = first.body
        taken = isinstance(first.value, Fst) and isinstance(second.value, Snd)
        if not taken or self._used(term) != 2 or is_hatted(term.name):
            return None
        both = (_one_of(first.value), _one_of(second.value))
        if first.name != term.name and all(_is_name(each, term.name) for each in both):
            return PairLet(first.name, second.name, term.value, second.body)
        return None

    def letrec(self, term: Let) -> Letrec | None:
        """`letrec ...`, if `term` is its expanded form."""
        maker, after = term.value, term.body
        if not (isinstance(maker, Lam) and isinstance(maker.body, Lam) and isinstance(after, Let)):
            return None
        function, within = maker.body, maker.body.body
        if not isinstance(within, Let) or function.name == maker.name or after.name == term.name:
            return None
        doubled = _calls_itself(within.value, maker.name) and _calls_itself(after.value, term.name)
        if not doubled or self._used(term) != 2 or self._used(maker) != 2:
            return None
        inner, outer = within.name, after.name
        names = [outer] if inner == outer or outer not in names_in(within.body) else []
        if inner == function.name:
            return None
        if inner not in names_in(after.body):
            names.append(inner)
        if not names or function.name in names:
            return None
        return Letrec(min(names, key=len), inner, outer, function.name, within.body, after.body)

    def _used(self, term: Let | Lam) -> int:
        return self._uses.get((id(term), "name"), 0)


def increased(term: Assign) -> tuple[str, Term] | None:
    """The name and the term of `name += term`."""
    target, value = term.left, term.right
    if isinstance(target, Var) and isinstance(value, Add) and isinstance(value.left, Deref):
        if _is_name(value.left.of, target.name):
            return target.name, value.right
    return None


def truth(term: Term) -> str:
    """`true`, `false`, or nothing."""
    if isinstance(term, Inl | Inr) and isinstance(term.of, Const) and not term.of.is_real:
        return "true" if isinstance(term, Inl) else "false"
    return ""


T = TypeVar("T", bound=Term)


def _one_of(term: Term) -> Term:
    assert isinstance(term, Fst | Snd)
    return term.of


def _is_name(term: Term, name: str) -> bool:
    return isinstance(term, Var) and term.name == name


def _calls_itself(term: Term, name: str) -> bool:
    return isinstance(term, App) and _is_name(term.left, name) and _is_name(term.right, name)
