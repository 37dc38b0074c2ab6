"""Reverse mode: each real has a reference, to which the continuation adds its derivative.

There are three forms, which differ in who holds the continuation.
"""

from __future__ import annotations

from collections.abc import Callable

from trainshift.calculus import trampoline
from trainshift.calculus.cps import Context, Cps, Substitution, given
from trainshift.calculus.cps_meta import CpsMeta
from trainshift.calculus.names import Names, primed
from trainshift.calculus.plain import Plain, differentiable
from trainshift.calculus.sugar import increase, let_pair, sequence
from trainshift.calculus.syntax import (
    Add,
    App,
    Assign,
    Const,
    Deref,
    Fst,
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
from trainshift.calculus.trampoline import Resume, Work, run


def reverse_shift(function: Term) -> Term:
    """Reverse mode takes what follows a sum or a product by shift, and adds to the references after it.

        D(c) = (c, ref 0) for a real, else c

        D(e1 + e2) = let ŷ1 = D(e1) in let ŷ2 = D(e2) in
                     shift k in let ŷ = (y1 + y2, ref 0) in
                                k ŷ; y1' += !y'; y2' += !y'

        D(e1 * e2) is the same with y1 * y2, and with
                     y1' += !y' * y2; y2' += !y' * y1

    All else is transformed construct by construct. The derivative of a function f is

        λx0. let x̂ = (x0, ref 0) in ⟨let ẑ = D(f) x̂ in z' := 1⟩; !x'

    Raises Refused for a term that has shift, ⟨ ⟩ or a free name.
    """
    function, names = differentiable(function)
    dual: Term = run(ReverseShift(names).translate(function))
    z = names.fresh_pair("z")

    def swept(pair: Var) -> Term:
        return Reset(let_pair(*z, App(dual, pair), Assign(Var(z[2]), Const(1))))

    return _gradient(names, swept)


def reverse(function: Term) -> Term:
    """Reverse mode in continuation-passing style needs no shift, neither in the code nor to make it.

    It is AD11 to AD13, but for the constants, the sums and the products.

        D⟦c⟧κ = κ((c, ref 0)) for a real

        D⟦e1 + e2⟧κ = D⟦e1⟧(p1 ↦ D⟦e2⟧(p2 ↦
                        let! ŷ1 = p1 in let! ŷ2 = p2 in
                        let ŷ = (y1 + y2, ref 0) in
                        κ(ŷ); y1' += !y'; y2' += !y'))

        D⟦e1 * e2⟧κ is the same with y1 * y2, and with
                        y1' += !y' * y2; y2' += !y' * y1

    The derivative of a function f is

        λx0. let x̂ = (x0, ref 0) in
             D⟦f⟧(m ↦ m x̂ (λr. let ŷ = r in y' := 1)); !x'

    Raises Refused for a term that has shift, ⟨ ⟩ or a free name.
    """
    function, names = differentiable(function)

    def swept(pair: Var) -> Term:
        return run(
            Reverse(names).translate(function, lambda dual: trampoline.done(_seeded(names, dual, pair)))
        )

    return _gradient(names, swept)


def reverse_meta(function: Term) -> Term:
    """Reverse mode is written more shortly with shift and reset at the time of transformation.

    It is AD15, but for the constants, the sums and the products. `shift κ in` and ⟨ ⟩ run while the term is
    transformed.

        D⟦c⟧ = (c, ref 0) for a real

        D⟦e1 + e2⟧ = shift κ in let! ŷ1 = D⟦e1⟧ in let! ŷ2 = D⟦e2⟧ in
                                let ŷ = (y1 + y2, ref 0) in
                                ⟨κ ŷ⟩; y1' += !y'; y2' += !y'

    Products and the derivative of a function are as in AD19, and the result is the same up to bound names.
    Raises Refused for a term that has shift, ⟨ ⟩ or a free name.
    """
    function, names = differentiable(function)

    def seeded(pair: Var) -> Work[Term]:
        dual: Term = yield ReverseMeta(names).translate(function)
        return _seeded(names, dual, pair)

    return _gradient(names, lambda pair: run(seeded(pair)))


class ReverseShift(Plain):
    """The transformation D whose code has shift and reset."""

    def constant(self, term: Const) -> Term:
        """A real with a reference of its own."""
        return _with_reference(term)

    def operation(self, term: Add | Mul) -> Work[Term]:
        """A sum or a product."""
        left: Term = yield self.translate(term.left)
        right: Term = yield self.translate(term.right)
        one, other = self.names.fresh_pair("y"), self.names.fresh_pair("y")
        k = self.names.fresh("k")
        y, result = _computed(self.names, type(term), one[1], other[1])
        swept = _swept(type(term), one[1], other[1], y, App(Var(k), Var(y[0])))
        return let_pair(*one, left, let_pair(*other, right, Shift(k, let_pair(*y, result, swept))))


class Reverse(Cps):
    """The transformation D of a term within its context."""

    def constant(self, term: Const, context: Context) -> Work[Term]:
        """A real with a reference of its own."""
        return given(context, _with_reference(term))

    def operation(self, term: Add | Mul, context: Context) -> Work[Term]:
        """A sum or a product: first the continuation, then the additions to its operands' references."""

        def both(left: Term, right: Term) -> Work[Term]:
            return _operation(self, type(term), left, right, context)

        return self.operands(term, both)


class ReverseMeta(CpsMeta):
    """The transformation D, which captures the continuation where needed."""

    def constant(self, term: Const) -> Work[Term]:
        """A real with a reference of its own."""
        return trampoline.done(_with_reference(term))

    def operation(self, term: Add | Mul) -> Work[Term]:
        """A sum or a product: first the continuation, then the additions to its operands' references."""

        def body(resume: Resume) -> Work[Term]:
            left: Term = yield self.translate(term.left)
            right: Term = yield self.translate(term.right)
            code: Term = yield _operation(self, type(term), left, right, resume)
            return code

        return trampoline.shift(body)


_Triple = tuple[str, str, str]


def _with_reference(term: Const) -> Term:
    return Pair(term, Ref(Const(0))) if term.is_real else term


def _operation(
    within: Substitution,
    kind: type[Add | Mul],
    left: Term,
    right: Term,
    context: Callable[[Term], Work[Term]],
) -> Work[Term]:
    """`let! ŷ1 = left in let! ŷ2 = right in let ŷ = … in κ(ŷ); y1' += …; y2' += …`."""
    one, other = within.names.fresh_pair("y"), within.names.fresh_pair("y")
    y, result = _computed(within.names, kind, one[1], other[1])
    rest: Term = yield context(Var(y[0]))
    code = let_pair(*y, result, _swept(kind, one[1], other[1], y, rest))
    return _let_parts(one, left, _let_parts(other, right, code))


def _computed(names: Names, kind: type[Add | Mul], y1: str, y2: str) -> tuple[_Triple, Term]:
    """New names for the result and its reference, and the term of the result."""
    return names.fresh_pair("y"), Pair(kind(Var(y1), Var(y2)), Ref(Const(0)))


def _swept(kind: type[Add | Mul], y1: str, y2: str, y: _Triple, rest: Term) -> Term:
    """The continuation, and then the terms added to the operands' references."""
    bar = Deref(Var(y[2]))
    by1, by2 = (bar, bar) if kind is Add else (Mul(bar, Var(y2)), Mul(bar, Var(y1)))
    return sequence(rest, sequence(increase(primed(y1), by1), increase(primed(y2), by2)))


def _let_parts(pair: _Triple, value: Term, body: Term) -> Term:
    """`let! ŷ = value in body`."""
    if isinstance(value, Var):
        return Let(pair[1], Fst(value), Let(pair[2], Snd(value), body))
    return let_pair(*pair, value, body)


def _seeded(names: Names, dual: Term, pair: Var) -> Term:
    """The transformed function called with x̂ and a final continuation: the derivative by the result is 1."""
    r, y = names.fresh("r"), names.fresh_pair("y")
    return App(App(dual, pair), Lam(r, let_pair(*y, Var(r), Assign(Var(y[2]), Const(1)))))


def _gradient(names: Names, swept: Callable[[Var], Term]) -> Term:
    x0, x = names.fresh("x0"), names.fresh_pair("x")
    body = sequence(swept(Var(x[0])), Deref(Var(x[2])))
    return Lam(x0, let_pair(*x, Pair(Var(x0), Ref(Const(0))), body))
