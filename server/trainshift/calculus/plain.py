"""The identity transformation, construct by construct.

    ⟦c⟧ = c      ⟦x⟧ = x      ⟦e1 + e2⟧ = ⟦e1⟧ + ⟦e2⟧      ⟦λy. e⟧ = λy. ⟦e⟧

and so on. This one leaves all as it is. Forward mode, and reverse mode with shift and reset, are the same but
for constants, sums and products.
"""

from __future__ import annotations

from typing import Any

from trainshift.calculus.names import Names, apart, free_names
from trainshift.calculus.syntax import Add, Const, Mul, Reset, Shift, Term, Var, rebuilt
from trainshift.calculus.trampoline import Work, run


class Refused(Exception):
    """A term that cannot be transformed, and the reason."""


class Plain:
    """The transformation that changes nothing; others override a few constructs."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def translate(self, term: Term) -> Work[Term]:
        """The term, transformed."""
        if isinstance(term, Var):
            return term
        if isinstance(term, Const):
            return self.constant(term)
        if isinstance(term, Add | Mul):
            operation: Term = yield self.operation(term)
            return operation
        changed: dict[str, Any] = {}
        for field, _ in term.SCOPES:
            changed[field] = yield self.translate(getattr(term, field))
        return rebuilt(term, changed)

    def constant(self, term: Const) -> Term:
        """A real, or `()`."""
        return term

    def operation(self, term: Add | Mul) -> Work[Term]:
        """A sum or a product."""
        left: Term = yield self.translate(term.left)
        right: Term = yield self.translate(term.right)
        return type(term)(left, right)


def metacircular(term: Term) -> Term:
    """The term itself, with every name bound once."""
    term, names = apart(term)
    return run(Plain(names).translate(term))


def differentiable(function: Term) -> tuple[Term, Names]:
    """A differentiable function, with every name bound once, and its names; raises Refused."""
    if free := free_names(function):
        raise Refused(f"{free[0]} is free: its dependence on the argument is unknown. Bind it by let or λ.")
    waiting = [function]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Shift | Reset):
            word = "shift" if isinstance(each, Shift) else "⟨ ⟩"
            raise Refused(f"{word} cannot be differentiated: no rule says what its derivative is.")
        waiting += [getattr(each, field) for field, _ in each.SCOPES]
    return apart(function)
