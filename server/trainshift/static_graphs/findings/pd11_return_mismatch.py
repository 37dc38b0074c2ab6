"""All ways out of a function must return one structure where a tensor decides.

## Why it matters

Both ways are results of one `cond`, which needs the same number, nesting, dtype and rank. The conversion
fails where they differ, and for a `return` in a loop.

## What to do

Return the same structure everywhere. Of a loop, keep the result in a name, and return it after the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.finding import Finding
from trainshift.core.program import Program
from trainshift.core.text.facts import Statement
from trainshift.static_graphs.differences import difference
from trainshift.static_graphs.judging import Judge
from trainshift.static_graphs.reading.function import StaticFunction, Truth
from trainshift.static_graphs.reading.kinds import constant


def check(program: Program) -> Iterator[Finding]:
    judge = Judge(program, "PD11")
    for function in judge.functions:
        returns = [each for each in function.statements if each in function.returned]
        for statement in returns:
            around = function.graph_around(statement)
            if not around:
                continue
            if function.loops_around(statement):
                yield from judge.say(
                    function,
                    statement,
                    "A graph cannot return out of a loop by a tensor",
                    "Keep the result in a name, and return it after the loop.",
                )
                continue
            problem = _problem(function, statement, returns)
            if problem:
                other, how = problem
                place = returns.index(statement)
                is_next = place + 1 < len(returns) and other is returns[place + 1]
                yield from judge.say(
                    function,
                    statement,
                    f"Where a tensor decides, `{function.name}` returns {how}",
                    "Return the same structure everywhere.",
                    at=judge.between(around[-1], other if is_next and other else statement),
                    related=[(other.node, "the other way out")] if other is not None else [],
                )


def _problem(
    function: StaticFunction, statement: Statement, returns: list[Statement]
) -> tuple[Statement | None, str] | None:
    """What another way out returns that this one does not go with."""
    own = function.returned[statement]
    for other in returns:
        if other is statement or not _decided_by_tensors(function, other):
            continue
        how = difference(own, function.returned[other])
        if how:
            return other, how
    if function.falls_through and not own.is_none and not own.unknown:
        if difference(own, constant(None)):
            return None, "a value, or nothing at its end"
    return None


def _decided_by_tensors(function: StaticFunction, statement: Statement) -> bool:
    """Whether tensors alone decide that a statement is reached."""
    for each in statement.ancestors():
        if each.scope is not function.scope:
            break
        if isinstance(each.node, ast.If | ast.For | ast.While | ast.Match | ast.Try):
            if function.truth(each.node) is not Truth.GRAPH:
                return False
    return True
