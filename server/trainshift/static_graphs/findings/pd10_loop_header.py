"""A `for` that is left early must have one `break`, a plain variable, and a literal step.

## Why it matters

The conversion of a `for` to a `while` stops at anything else, and the function cannot be made static.

## What to do

Join the conditions in one `break`, and unpack in the body. Move a loop that returns to a function of its
own.

## More of it

It stops at two `break`s, at a `break` with a tuple as the loop's variable (except the two names of
`enumerate`), at a step that is not a literal, and at a `return` that is a statement of the loop itself.
"""

from __future__ import annotations

import ast

from trainshift.core.rule import Findings
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reporting import Judge, drops_break, exits, is_call_of


def check(judge: Judge) -> Findings:
    for function, loop in judge.loops():
        node = loop.node
        if not isinstance(node, ast.For):
            continue
        breaks = exits(function, loop, ast.Break)
        returns = [each for each in loop.branches.get("body", []) if isinstance(each.node, ast.Return)]
        if len(breaks) > 1:
            problem, last = "two `break`s", breaks[1]
        elif breaks and _is_unpacked(function, node):
            problem, last = "a `break`, and unpacks its variable", breaks[0]
        elif breaks and _has_a_step(function, node):
            problem, last = "a `break`, and a step that is not a literal", breaks[0]
        elif returns:
            problem, last = "a `return` as a statement of its own", returns[0]
        else:
            continue
        yield from judge.say(
            loop,
            f"This loop has {problem}, which Paddle's conversion does not support",
            _advice(problem),
            at=judge.between(loop, last),
        )


def _advice(problem: str) -> str:
    if "two" in problem:
        return "Join the conditions in one `break`."
    if "unpacks" in problem:
        return "Unpack in the body."
    return "Give the step as a number." if "step" in problem else "Take it out of the loop."


def _is_unpacked(function: StaticFunction, node: ast.For) -> bool:
    if isinstance(node.target, ast.Name):
        return False
    is_pair = (
        isinstance(node.target, ast.Tuple)
        and len(node.target.elts) == 2
        and all(isinstance(each, ast.Name) for each in node.target.elts)
    )
    return not (is_pair and is_call_of(function, node.iter, "builtins.enumerate")) and not drops_break(
        function, node
    )


def _has_a_step(function: StaticFunction, node: ast.For) -> bool:
    if not isinstance(node.iter, ast.Call) or not is_call_of(function, node.iter, "builtins.range"):
        return False
    if len(node.iter.args) < 3:
        return False
    step = node.iter.args[2]
    inner = step.operand if isinstance(step, ast.UnaryOp) else step
    return not isinstance(inner, ast.Constant)
