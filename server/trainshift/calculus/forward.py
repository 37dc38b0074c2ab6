"""Forward mode turns each real into a pair of its value and its derivative.

    D(c) = (c, 0) for a real, else c

    D(e1 + e2) = let ŷ1 = D(e1) in
                 let ŷ2 = D(e2) in
                 (y1 + y2, y1' + y2')

    D(e1 * e2) = let ŷ1 = D(e1) in
                 let ŷ2 = D(e2) in
                 (y1 * y2, y1 * y2' + y1' * y2)

All else is transformed construct by construct. The derivative of a function f is

    λx. let ŷ = D(f) (x, 1) in y'
"""

from __future__ import annotations

from trainshift.calculus.plain import Plain, differentiable
from trainshift.calculus.sugar import let_pair
from trainshift.calculus.syntax import Add, App, Const, Lam, Mul, Pair, Term, Var
from trainshift.calculus.trampoline import Work, run


class Forward(Plain):
    """The transformation D of forward mode."""

    def constant(self, term: Const) -> Term:
        """A real does not change."""
        return Pair(term, Const(0)) if term.is_real else term

    def operation(self, term: Add | Mul) -> Work[Term]:
        """The sum rule, or the product rule."""
        left: Term = yield self.translate(term.left)
        right: Term = yield self.translate(term.right)
        one, other = self.names.fresh_pair("y"), self.names.fresh_pair("y")
        y1, d1, y2, d2 = (Var(each) for each in (*one[1:], *other[1:]))
        if isinstance(term, Add):
            result = Pair(Add(y1, y2), Add(d1, d2))
        else:
            result = Pair(Mul(y1, y2), Add(Mul(y1, d2), Mul(d1, y2)))
        return let_pair(*one, left, let_pair(*other, right, result))


def forward(function: Term) -> Term:
    """The derivative of a function from reals to reals, as a function; raises Refused."""
    function, names = differentiable(function)
    dual: Term = run(Forward(names).translate(function))
    x, y = names.fresh("x"), names.fresh_pair("y")
    return Lam(x, let_pair(*y, App(dual, Pair(Var(x), Const(1))), Var(y[2])))
