"""Branches and loops on tensors must bind names of their function only.

## Why it matters

Paddle turns them into functions, which cannot contain a `global` name, a deleted name or a tensor attribute.
The conversion fails with "no binding for nonlocal", or ends the interpreter.

## What to do

Bind a local name in the branch, and the attribute or global after it.

## More of it

The default mode of `to_static` (SOT) loses what a function within binds by `nonlocal`, wherever a tensor
decides in the function around it. It does so once it makes a graph of the function within, which takes about
six operations there (the environment variable `MIN_GRAPH_SIZE`, 10 by default, counts them). A smaller one
runs as Python, and keeps the name: do not rely on it, since one more operation changes that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.rule import Findings
from trainshift.python.syntax.chunk_syntax import Statement, dotted, targets_of
from trainshift.static_graphs.reading.function import Mode, StaticFunction
from trainshift.static_graphs.reporting import Judge, calls


def check(judge: Judge) -> Findings:
    for function, statement in judge.reached():
        what = _outer(function, statement)
        if what and function.graph_around(statement):
            yield from judge.say(
                statement,
                f"{what} in a branch or loop on a tensor, and the conversion fails",
                "Bind a local name here, and the other one after it.",
            )
        called = next(_binding(function, statement), None)
        if called is not None:
            call, name, outer = called
            around = function.graph_around(statement)
            inside = bool(around) and outer in function.live_after(around[-1])
            if inside or (function.mode is Mode.SOT and any(map(function.may_be_graph, function.truths))):
                fails = "and the conversion fails; SOT loses it" if inside else "which SOT loses"
                yield from judge.say(
                    statement,
                    f"`{name}` binds `{outer}` of the function around it, {fails}",
                    "Return the value, and bind it where the call is.",
                    at=call,
                    always=True,
                )


def _binding(function: StaticFunction, statement: Statement) -> Iterator[tuple[ast.Call, str, str]]:
    """Yield the calls of functions within a static function that bind its names: with both names."""
    for call in calls(statement):
        for callee in function.calls.get(call, ()):
            for name in function.rebound_in(callee.scope):
                yield call, callee.name, name


def _outer(function: StaticFunction, statement: Statement) -> str:
    """The effect of a statement on an outer name, in words."""
    node = statement.node
    if isinstance(node, ast.Delete):
        names = [each.id for each in node.targets if isinstance(each, ast.Name)]
        return f"`{names[0]}` is deleted" if names else ""
    for target in targets_of(node):
        if isinstance(target, ast.Name) and target.id in function.scope.declared_global:
            return f"The global `{target.id}` is bound"
        if isinstance(target, ast.Attribute) and function.kind(target).may_be_tensor:
            return f"The tensor `{dotted(target) or target.attr}` is bound"
    return ""
