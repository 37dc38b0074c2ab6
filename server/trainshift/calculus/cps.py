"""Continuation-passing style makes the continuation explicit, so that shift and reset are not needed.

Below, κ is what follows as it is known when the term is transformed, and κ(t) is that code for the value t.
What a function is called with is known when it runs only, so that there it gets a second parameter, k.

    ⟦c⟧κ = κ(c)      ⟦x⟧κ = κ(x)
    ⟦e1 + e2⟧κ           = ⟦e1⟧(a ↦ ⟦e2⟧(b ↦ κ(a + b)))            and so for * and pairs
    ⟦fst e⟧κ             = ⟦e⟧(a ↦ κ(fst a))                       and so for snd, inl and inr
    ⟦λy. e⟧κ             = κ(λy. λk. ⟦e⟧(m ↦ k m))
    ⟦e1 e2⟧κ             = ⟦e1⟧(m ↦ ⟦e2⟧(n ↦ m n (ηa. κ(a))))
    ⟦let y = e1 in e2⟧κ  = ⟦e1⟧(a ↦ let! y = a in ⟦e2⟧κ)

ηa. t is `λa. t`, but only v where t is `v a` for another variable v. So a call that is the last one stays
the last one. `let!` is a let, but a variable is put in place of another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from trainshift.calculus.names import Names, apart
from trainshift.calculus.syntax import (
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
from trainshift.calculus.trampoline import Work, done, run

Context: TypeAlias = Callable[[Term], Work[Term]]


def identity(value: Term) -> Work[Term]:
    """The empty context: nothing follows."""
    return done(value)


def given(context: Context, value: Term) -> Work[Term]:
    """The rest of the program, applied to a value."""
    code: Term = yield context(value)
    return code


def eta(name: str, code: Term) -> Term:
    """`λname. code`, or the variable v where the code is `v name`."""
    if isinstance(code, App) and isinstance(code.left, Var) and isinstance(code.right, Var):
        if code.right.name == name != code.left.name:
            return code.left
    return Lam(name, code)


class Substitution:
    """Names that stand for other variables: the lets that `let!` leaves out."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._meant: dict[str, Var] = {}

    def meaning(self, term: Var) -> Var:
        """The variable that replaces this one."""
        return self._meant.get(term.name, term)

    def let(self, name: str, value: Term, body: Callable[[], Work[Term]]) -> Work[Term]:
        """`let! name = value in body`; the body is transformed once the meaning of the name is known."""
        if isinstance(value, Var):
            self._meant[name] = value
            rest: Term = yield body()
            return rest
        rest = yield body()
        return Let(name, value, rest)


class Cps(Substitution):
    """The transformation of a term within its context, which is known when it is transformed."""

    def translate(self, term: Term, context: Context) -> Work[Term]:
        """The code of the term and of the rest."""
        code: Term = yield getattr(self, _RULES[type(term)])(term, context)
        return code

    def constant(self, term: Const, context: Context) -> Work[Term]:
        """`()` or a real is itself."""
        return given(context, term)

    def variable(self, term: Var, context: Context) -> Work[Term]:
        """A variable is itself, or its replacement."""
        return given(context, self.meaning(term))

    def operation(self, term: Add | Mul, context: Context) -> Work[Term]:
        """Sums and products."""
        return self.two(term, context)

    def two(self, term: Add | Mul | Pair, context: Context) -> Work[Term]:
        """Constructs of two operands that neither read nor change a reference."""

        def both(left: Term, right: Term) -> Work[Term]:
            return given(context, type(term)(left, right))

        return self.operands(term, both)

    def operands(
        self, term: Add | Mul | Pair | App | Assign, both: Callable[[Term, Term], Work[Term]]
    ) -> Work[Term]:
        """Evaluate two operands, the left one first, and combine them."""

        def with_left(left: Term) -> Work[Term]:
            def with_right(right: Term) -> Work[Term]:
                return both(left, right)

            return self.translate(term.right, with_right)

        return self.translate(term.left, with_left)

    def one(self, term: Fst | Snd | Inl | Inr, context: Context) -> Work[Term]:
        """Constructs of one operand that neither read nor change a reference."""

        def with_operand(operand: Term) -> Work[Term]:
            return given(context, type(term)(operand))

        return self.translate(term.of, with_operand)

    def function(self, term: Lam, context: Context) -> Work[Term]:
        """A function takes the continuation of its calls."""
        k = Var(self.names.fresh("k"))

        def answer(value: Term) -> Work[Term]:
            return done(App(k, value))

        body: Term = yield self.translate(term.body, answer)
        code: Term = yield context(Lam(term.name, Lam(k.name, body)))
        return code

    def call(self, term: App, context: Context) -> Work[Term]:
        """A call passes the continuation to the function."""

        def both(function: Term, argument: Term) -> Work[Term]:
            a = self.names.fresh("a")
            rest: Term = yield context(Var(a))
            return App(App(function, argument), eta(a, rest))

        return self.operands(term, both)

    def named(self, term: Let, context: Context) -> Work[Term]:
        """A let stays a let, except for variables."""

        def with_value(value: Term) -> Work[Term]:
            return self.let(term.name, value, lambda: self.translate(term.body, context))

        return self.translate(term.value, with_value)

    def kept(self, code: Term, context: Context) -> Work[Term]:
        """A read or an update of a reference is bound by a let in place.

            ⟦ref e⟧κ    = ⟦e⟧(a ↦ let r = ref a in κ(r))
            ⟦!e⟧κ       = ⟦e⟧(a ↦ let r = !a in κ(r))
            ⟦e1 := e2⟧κ = ⟦e1⟧(a ↦ ⟦e2⟧(b ↦ let r = a := b in κ(r)))
            ⟦⟨e⟩⟧κ      = let r = ⟦e⟧(m ↦ m) in κ(r)

        Handed on as code, it would be evaluated after the operands that follow, and see what they changed.
        """
        r = self.names.fresh("r")
        rest: Term = yield context(Var(r))
        return Let(r, code, rest)

    def reference(self, term: Ref | Deref, context: Context) -> Work[Term]:
        """A new reference, or the contents of one."""

        def with_operand(operand: Term) -> Work[Term]:
            return self.kept(type(term)(operand), context)

        return self.translate(term.of, with_operand)

    def assignment(self, term: Assign, context: Context) -> Work[Term]:
        """A reference gets another content."""

        def both(left: Term, right: Term) -> Work[Term]:
            return self.kept(Assign(left, right), context)

        return self.operands(term, both)

    def reset(self, term: Reset, context: Context) -> Work[Term]:
        """Inside, nothing follows."""
        inside: Term = yield self.translate(term.of, identity)
        code: Term = yield self.kept(inside, context)
        return code

    def case(self, term: Case, context: Context) -> Work[Term]:
        """The branches of a case share the continuation, as one function.

            ⟦case e of y1 ⇒ e1 or y2 ⇒ e2⟧κ =
              ⟦e⟧(v ↦ let! k = (ηa. κ(a)) in
                      case v of y1 ⇒ ⟦e1⟧(m ↦ k m) or y2 ⇒ ⟦e2⟧(m ↦ k m))

        A copy of what follows in each branch would double the code with every case.
        """

        def with_value(value: Term) -> Work[Term]:
            a, k = self.names.fresh("a"), self.names.fresh("k")
            rest: Term = yield context(Var(a))
            code: Term = yield self.let(k, eta(a, rest), lambda: self.branches(term, value, Var(k)))
            return code

        return self.translate(term.of, with_value)

    def branches(self, term: Case, value: Term, k: Var) -> Work[Term]:
        """The case, both of whose branches pass their value to k."""
        k = self.meaning(k)

        def answer(value: Term) -> Work[Term]:
            return done(App(k, value))

        left: Term = yield self.translate(term.left, answer)
        right: Term = yield self.translate(term.right, answer)
        return Case(value, term.left_name, left, term.right_name, right)

    def shift(self, term: Shift, context: Context) -> Work[Term]:
        """Shift binds the continuation to a name, and its own term has no continuation.

            ⟦shift k in e⟧κ = let k = λa. λk1. k1 κ(a) in ⟦e⟧(m ↦ m)

        Wherever k is called, its result goes to what follows there, k1.
        """
        a, k1 = self.names.fresh("a"), self.names.fresh("k")
        rest: Term = yield context(Var(a))
        body: Term = yield self.translate(term.body, identity)
        return Let(term.name, Lam(a, Lam(k1, App(Var(k1), rest))), body)


_RULES: dict[type, str] = {
    Const: "constant",
    Var: "variable",
    Add: "operation",
    Mul: "operation",
    Pair: "two",
    App: "call",
    Lam: "function",
    Let: "named",
    Case: "case",
    Ref: "reference",
    Deref: "reference",
    Assign: "assignment",
    Shift: "shift",
    Reset: "reset",
    **dict.fromkeys((Fst, Snd, Inl, Inr), "one"),
}


def cps(term: Term) -> Term:
    """The term in continuation-passing style, without shift and reset."""
    term, names = apart(term)
    return run(Cps(names).translate(term, identity))
