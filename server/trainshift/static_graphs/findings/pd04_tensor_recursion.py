"""A function must not call itself where only a tensor stops it.

## Why it matters

The graph contains both branches of a condition, so the conversion follows the call repeatedly, and never
ends.

## What to do

Write a loop on the tensor instead: `while x.sum() > 1:`.
"""

from __future__ import annotations

import ast

from trainshift.core.rule import Findings
from trainshift.python.flow.traversal import reachable
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reporting import Judge


def check(judge: Judge) -> Findings:
    for function, statement, call in judge.calls():
        called = function.calls.get(call, ())
        if any(_reaches(each, function) for each in called) and _hangs_on_a_tensor(function, statement):
            yield from judge.say(
                statement,
                f"`{function.name}` calls itself here, and only a tensor stops the recursion",
                "Write a loop.",
                at=call,
            )


def _reaches(function: StaticFunction, wanted: StaticFunction) -> bool:
    return any(each is wanted for each in reachable([function], StaticFunction.callees))


def _hangs_on_a_tensor(function: StaticFunction, statement: Statement) -> bool:
    """Return whether a statement runs under a tensor condition, or after a `return` that does."""
    if function.graph_around(statement):
        return True
    if any(function.may_be_graph(node) for node in ast.walk(statement.node) if isinstance(node, ast.IfExp)):
        return True
    for each in function.statements:
        if each is statement:
            return False
        if isinstance(each.node, ast.Return) and function.graph_around(each):
            return True
    return False
