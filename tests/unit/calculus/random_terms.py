"""Random terms: closed, well typed, and such that they end.

Types are "real", "unit", and tuples: ("pair", a, b), ("sum", a, b), ("ref", a), ("fun", a, b). References
hold no functions, and recursion goes down a numeral, so every term has a value. What shift takes gives a
real.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from trainshift.calculus.names import Names
from trainshift.calculus.sugar import FALSE, TRUE, increase, let_pair, letrec, sequence
from trainshift.calculus.syntax import (
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
    Real,
    Ref,
    Reset,
    Shift,
    Snd,
    Term,
    Var,
)

Type = Any
REAL, BOOL = "real", ("sum", "unit", "unit")


class Maker:
    """Makes random terms of a seed; with `control` there are shift and reset in them."""

    def __init__(self, seed: int, control: bool) -> None:
        self._random = random.Random(seed)
        self._control = control
        self._names = Names()
        self._scope: list[tuple[str, Type]] = []
        self._fuel = self._random.randint(4, 26)

    def function(self) -> Term:
        """A function from reals to reals, or a term that returns one."""
        wanted = ("fun", REAL, REAL)
        return self._function(wanted) if self._random.random() < 0.7 else self.term(wanted)

    def term(self, wanted: Type) -> Term:
        """A term of a type."""
        self._fuel -= 1
        ways: list[Callable[[Type], Term]] = [self._least]
        if self._fuel > 0:
            ways = [self._own(wanted)] * 4 + [self._let, self._case, self._call, self._part, self._sequence]
            ways += [self._read, self._loop, self._unpack]
            ways += [self._shift] if self._control else []
            if wanted == REAL:
                ways += [self._arithmetic] * 6 + [self._reset] * (2 * self._control)
        if any(known == wanted for _, known in self._scope):
            ways += [self._variable] * 4
        return self._random.choice(ways)(wanted)

    def _within(self, name: str, known: Type, wanted: Type) -> Term:
        self._scope.append((name, known))
        term = self.term(wanted)
        self._scope.pop()
        return term

    def _type(self, functions: bool = True, depth: int = 1) -> Type:
        """A random type of values that are handed around."""
        kinds = ["real"] * 4 + ["unit", "bool"]
        if depth:
            kinds += ["pair", "sum", "ref"] + ["fun"] * (2 * functions)
        kind = self._random.choice(kinds)
        if kind == "bool":
            return BOOL
        if kind in ("real", "unit"):
            return kind
        if kind == "ref":
            return ("ref", self._type(False, 0))
        return (kind, self._type(functions, depth - 1), self._type(functions, depth - 1))

    def _fresh(self, wanted: str) -> str:
        # Names are reused now and then, so that one hides another.
        return wanted if self._random.random() < 0.3 else self._names.fresh(wanted)

    # A construct that makes a value of the type.

    def _own(self, wanted: Type) -> Callable[[Type], Term]:
        kind = wanted if isinstance(wanted, str) else wanted[0]
        makers: dict[str, Callable[[Type], Term]] = {
            "real": self._least,
            "unit": self._assignment,
            "pair": lambda wanted: Pair(self.term(wanted[1]), self.term(wanted[2])),
            "sum": self._injection,
            "ref": lambda wanted: Ref(self.term(wanted[1])),
            "fun": self._function,
        }
        return makers[kind]

    def _least(self, wanted: Type) -> Term:
        if wanted == REAL:
            values: list[Real] = [0, 1, 2, 3, -1, -2, Fraction(1, 2), Fraction(-7, 2)]
            return Const(self._random.choice(values))
        if wanted == "unit":
            return Const(UNIT)
        if wanted == BOOL:
            return self._random.choice([TRUE, FALSE])
        kind, *parts = wanted
        if kind == "pair":
            return Pair(self._least(parts[0]), self._least(parts[1]))
        if kind == "sum":
            return Inl(self._least(parts[0]))
        return Ref(self._least(parts[0])) if kind == "ref" else self._function(wanted, least=True)

    def _function(self, wanted: Type, least: bool = False) -> Term:
        name = self._fresh("x")
        return Lam(name, self._least(wanted[2]) if least else self._within(name, wanted[1], wanted[2]))

    def _injection(self, wanted: Type) -> Term:
        left = self._random.random() < 0.5
        of = self.term(wanted[1 if left else 2])
        return Inl(of) if left else Inr(of)

    def _assignment(self, _: Type) -> Term:
        known = [(name, each) for name, each in self._scope if each[0] == "ref" and self._is_seen(name, each)]
        if not known:
            return Const(UNIT)
        name, (_, content) = self._random.choice(known)
        if content == REAL and self._random.random() < 0.3:
            return increase(name, self.term(REAL))
        return Assign(Var(name), self.term(content))

    # Ways to a value of any type.

    def _variable(self, wanted: Type) -> Term:
        known = [name for name, each in self._scope if each == wanted and self._is_seen(name, each)]
        return Var(self._random.choice(known)) if known else self._least(wanted)

    def _is_seen(self, name: str, known: Type) -> bool:
        """Return whether the name still refers to this binding, and not to a later one."""
        return known is next(each for other, each in reversed(self._scope) if other == name)

    def _let(self, wanted: Type) -> Term:
        known, name = self._type(), self._fresh("v")
        value = self.term(known)
        return Let(name, value, self._within(name, known, wanted))

    def _case(self, wanted: Type) -> Term:
        known = self._random.choice([BOOL, ("sum", REAL, REAL), ("sum", REAL, "unit")])
        one, other = self._fresh("l"), self._fresh("r")
        of = self.term(known)
        left = self._within(one, known[1], wanted)
        return Case(of, one, left, other, self._within(other, known[2], wanted))

    def _call(self, wanted: Type) -> Term:
        given = self._type(functions=False)
        function = self.term(("fun", given, wanted))
        return App(function, self.term(given))

    def _part(self, wanted: Type) -> Term:
        other = self._type(functions=False, depth=0)
        if self._random.random() < 0.5:
            return Fst(self.term(("pair", wanted, other)))
        return Snd(self.term(("pair", other, wanted)))

    def _unpack(self, wanted: Type) -> Term:
        first, second, pair = self._fresh("a"), self._names.fresh("b"), self._names.fresh("p")
        value = self.term(("pair", REAL, REAL))
        self._scope.append((first, REAL))
        body = self._within(second, REAL, wanted)
        self._scope.pop()
        return let_pair(pair, first, second, value, body)

    def _sequence(self, wanted: Type) -> Term:
        first = self.term("unit")
        return sequence(first, self.term(wanted))

    def _read(self, wanted: Type) -> Term:
        if "fun" in str(wanted):
            return self._least(wanted)
        return Deref(self.term(("ref", wanted)))

    def _loop(self, wanted: Type) -> Term:
        """Recursion down a numeral, in which the result of the recursive call is used as any other value."""
        go, count, rest, result = (self._names.fresh(each) for each in ("go", "n", "m", "s"))
        end = self._names.fresh("e")
        base = self.term(wanted)
        step = self._within(result, wanted, wanted)
        numeral: Term = TRUE
        for _ in range(self._random.randint(0, 3)):
            numeral = Inr(numeral)
        inside = Case(Var(count), end, base, rest, Let(result, App(Var(go), Var(rest)), step))
        function = Lam(count, inside)
        return letrec(go, function, App(Var(go), numeral), self._names.fresh)

    # Reals.

    def _arithmetic(self, _: Type) -> Term:
        left = self.term(REAL)
        return self._random.choice([Add, Mul])(left, self.term(REAL))

    def _reset(self, _: Type) -> Term:
        return Reset(self.term(REAL))

    def _shift(self, wanted: Type) -> Term:
        k = self._names.fresh("k")
        return Shift(k, self._within(k, ("fun", wanted, REAL), REAL))


def random_program(seed: int) -> Term:
    """A closed term whose value is a real, with references, shift and reset."""
    return Maker(seed, control=True).term(REAL)


def random_function(seed: int) -> Term:
    """A closed function from reals to reals, with references, and without shift and reset."""
    return Maker(seed, control=False).function()


def parts_of(term: Term) -> list[Term]:
    """A term and all its subterms."""
    found, waiting = [], [term]
    while waiting:
        found.append(waiting.pop())
        waiting += [getattr(found[-1], field) for field, _ in found[-1].SCOPES]
    return found
