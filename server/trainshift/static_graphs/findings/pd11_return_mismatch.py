"""All paths out of a function must return one structure where a tensor decides.

## Why it matters

Both paths are results of one `cond`, which needs the same number, nesting, dtype and rank. The conversion
fails where they differ, and for a `return` in a loop.

## What to do

Return the same structure everywhere. In a loop, keep the result in a name, and return it after the loop.
"""

from __future__ import annotations

import ast
from itertools import pairwise

from trainshift.core.rule import Findings
from trainshift.python.flow.exits import RETURN, completions
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.static_graphs.branch_merge import difference
from trainshift.static_graphs.domain.abstract_values import constant
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reporting import Judge


def check(judge: Judge) -> Findings:
    for function in judge.functions:
        returns = [each for each in function.statements if each in function.returned]
        for statement in returns:
            around = function.graph_around(statement)
            if not around:
                continue
            if function.loops_around(statement):
                yield from judge.say(
                    statement,
                    "In a graph, a tensor cannot decide on a `return` in a loop",
                    "Keep the result in a name, and return it after the loop.",
                )
                continue
            problem = _problem(function, statement, returns)
            if not problem and _goes_on_around(function, statement):
                yield from judge.say(
                    statement,
                    "This returns from a nested branch, but the function goes on after the outer statement, "
                    "so the conversion fails",
                    "Keep the result in a name, or write `else` for the rest.",
                )
            elif problem:
                other, how = problem
                place = returns.index(statement)
                is_next = place + 1 < len(returns) and other is returns[place + 1]
                yield from judge.say(
                    statement,
                    f"Where a tensor decides, `{function.name}` returns {how}",
                    "Return the same structure everywhere.",
                    at=judge.between(around[-1], other if is_next and other else statement),
                    related=[(other.node, "the other way out")] if other is not None else [],
                )


def _goes_on_around(function: StaticFunction, returned: Statement) -> bool:
    """Return whether other paths through a statement around a `return` continue to code after it.

    Paddle moves the following code only into the `else` of an `if` that returns at the end of its body.
    """
    is_graph = False
    for below, each in pairwise([returned, *returned.ancestors()]):
        if each.scope is not function.scope or not isinstance(each.node, ast.If | ast.With):
            return False
        is_graph = is_graph or function.may_be_graph(each.node)
        if (below is returned and below.branch == "body" and isinstance(each.node, ast.If)) or not is_graph:
            continue
        block = each.parent.branches[each.branch] if each.parent is not None else function.block
        own = each.branches.get(below.branch, [])
        others = [way for name, way in each.branches.items() if name != below.branch]
        is_python = not function.may_be_graph(each.node)
        if block[-1] is not each and not any(map(_returns, others)) and not (is_python and _returns(own)):
            return True
    return False


def _returns(block: list[Statement]) -> bool:
    """Return whether a block ends with a `return` on all paths."""
    return completions([each.node for each in block]) == {RETURN}


def _problem(
    function: StaticFunction, statement: Statement, returns: list[Statement]
) -> tuple[Statement | None, str] | None:
    """Another return that does not match this one, and the difference."""
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
    """Return whether tensors alone decide that a statement is reached."""
    deciding = (ast.If, ast.For, ast.While, ast.Match, ast.Try)
    around = (each.node for each in function.around(statement) if isinstance(each.node, deciding))
    return all(map(function.may_be_graph, around))
