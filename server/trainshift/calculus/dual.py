"""Dual numbers give the derivative of a run, without any transformation.

The machine runs the term as it is. Each real is a pair: its value, and its derivative along the direction
that was chosen.

    constant c            (c, 0)
    (a, a') + (b, b')     (a + b, a' + b')
    (a, a') * (b, b')     (a * b, a * b' + a' * b)

A function's derivative at x is the second of its result for (x, 1). All other rules are tested against it.
"""

from __future__ import annotations

from trainshift.calculus.machine import Run, evaluate
from trainshift.calculus.names import Names, names_in
from trainshift.calculus.syntax import App, Real, Term, Var
from trainshift.calculus.values import Dual, Value


def evaluate_dual(function: Term, at: Real) -> Run:
    """Run a function on a real, as a dual number; return the value with its derivative. Raises Stuck."""
    name = Names(names_in(function)).fresh("x")
    return evaluate(App(function, Var(name)), Duals(), {name: Dual(at, 1)})


class Duals:
    """Arithmetic of dual numbers."""

    def constant(self, value: Real) -> Value:
        """A number that does not change."""
        return Dual(value, 0)

    def add(self, left: Value, right: Value) -> Value:
        """The sum rule."""
        return Dual(left.primal + right.primal, left.tangent + right.tangent)

    def multiply(self, left: Value, right: Value) -> Value:
        """The product rule."""
        return Dual(left.primal * right.primal, left.primal * right.tangent + left.tangent * right.primal)
