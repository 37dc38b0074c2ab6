"""Rate places: the places of a script with a learning rate, and rates that are not scaled."""

from __future__ import annotations

import ast

from msgspec import Struct

from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement
from trainshift.python.values.effects import Effect
from trainshift.training.loops.call_effects import Effects

_ARITHMETIC = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp),
    *(ast.operator, ast.unaryop, ast.expr_context),
)


class Rate(Struct, frozen=True, eq=False):
    """One place for a factor.

    `node` is the expression to multiply; None for a default rate, which is then the text `default` of the
    argument `keyword` of the call `site`.  With `each`, `node` is a list whose elements are the rates; with
    `in_mapping`, a dictionary that may hold it as `keyword`.
    """

    statement: Statement
    scope: Scope
    node: ast.expr | None
    site: Site | None = None
    keyword: str = ""
    default: str = ""
    each: bool = False
    in_mapping: bool = False
    doubt: str = ""
    computed: bool = False  # inside a schedule or a function


def is_replaced(ignored: ast.expr, effects: Effects) -> bool:
    """Return whether the default of a rate replaces an ignored one, which does nothing but print."""
    if all(isinstance(part, _ARITHMETIC) for part in ast.walk(ignored)):
        return True
    found = effects.of_expression(ignored)
    return found is None or found.effect is Effect.FILES


class HiddenRate(Struct, frozen=True, eq=False):
    """A rate that is not scaled: the expression whose rate it is, and the reason."""

    node: ast.expr
    within: Site | Statement
    reason: str
