"""A name that is read after an `if` on a tensor must be bound on both paths, and never to None.

## Why it matters

Both branches are part of the graph. If one gives a name no value, Paddle passes a placeholder on.

## What to do

Bind the name before the `if`, to a tensor of the same dtype and rank.
"""

from __future__ import annotations

import ast

from trainshift.core.rule import Findings
from trainshift.static_graphs.domain.abstract_values import AbstractValue
from trainshift.static_graphs.reading.function import Truth
from trainshift.static_graphs.reporting import Judge, merged


def check(judge: Judge) -> Findings:
    for function, statement in judge.reached():
        if not isinstance(statement.node, ast.If) or function.truth(statement.node) is Truth.PYTHON:
            continue
        for name, binding, one, other in merged(function, statement):
            problem = _problem(one, other)
            if problem:
                yield from judge.say(
                    statement,
                    f"`{name}` {problem} after this `if`, and a graph reads a placeholder",
                    "Bind it to a tensor before the `if`.",
                    at=judge.between(statement, binding),
                    sure=function.truth(statement.node) is Truth.GRAPH,
                    related=[(binding.node, f"`{name}` is bound on one path")],
                )


def _problem(one: AbstractValue, other: AbstractValue) -> str:
    """The mismatch of a name's values at the ends of two branches."""
    if one.is_nothing != other.is_nothing and (one.unbound or other.unbound):
        return "may be unbound"
    if one.unbound != other.unbound:
        return "may be unbound"
    if one.is_none != other.is_none and not (one.unknown or other.unknown):
        return "may be None"
    return ""
