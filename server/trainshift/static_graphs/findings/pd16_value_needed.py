"""Python must not need the value of a tensor.

## Why it matters

A graph has no values when it is built: `a < t < b`, `max(t, u)`, `t in [1, 2]` or `layers[t]` fail, or select
the wrong object.

## What to do

Write operations that Paddle can build: `a < t and t < b`, `paddle.maximum(t, u)`, `paddle.sqrt(t)`.

## More of it

Values are needed by chained comparisons, `in`, the `if` of a comprehension, `max`, `min`, `sorted`, `any`,
`all`, `round`, `math.*`, the index of a list, the key of a dict, `match`, a format and `str`.
"""

from __future__ import annotations

import ast

from trainshift.core.rule import Findings
from trainshift.python.source.edit import Change, Edit
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.static_graphs.concretization import Need, needs
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reporting import Judge, may_be_unrolled

# Functions of `math` that Paddle has by the same name, for tensors.
_MATH = frozenset({"sqrt", "exp", "log", "sin", "cos", "tanh"})
_OF_TWO = {"max": "maximum", "min": "minimum"}


def check(judge: Judge) -> Findings:
    for function, statement in judge.reached():
        for need in needs(function, statement):
            if need.counts is None:
                yield from judge.say(
                    statement,
                    (
                        f"{need.what[:1].upper()}{need.what[1:]} needs the value of "
                        f"`{judge.code_of(need.value, statement)}`, which a graph does not have"
                    ),
                    _advice(need.node),
                    at=need.node if hasattr(need.node, "lineno") else need.value,
                    sure=need.is_sure and not _may_be_counted(function, statement, need.value),
                    fix=_fixed(judge, function, statement, need),
                )


def _may_be_counted(function: StaticFunction, statement: Statement, node: ast.AST) -> bool:
    """Return whether a node is the counter of `enumerate` over rows whose number Paddle may know: then it
    is a number.
    """
    for loop in function.loops_around(statement):
        target = getattr(loop.node, "target", None)
        counter = target.elts[0] if isinstance(target, ast.Tuple) else None
        if isinstance(node, ast.Name) and isinstance(counter, ast.Name) and counter.id == node.id:
            return may_be_unrolled(function, loop)
    return False


def _advice(node: ast.AST) -> str:
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        return "Write two comparisons with `and`."
    return "Use a function of Paddle's." if isinstance(node, ast.Call) else "Compare tensors instead."


def _fixed(judge: Judge, function: StaticFunction, statement: Statement, need: Need) -> Change | None:
    node, paddle = need.node, judge.paddle()
    if isinstance(node, ast.Compare) and len(node.ops) == 2:
        middle = node.comparators[0]
        if not isinstance(middle, ast.Name) or getattr(statement.node, "test", None) is not node:
            return None
        end = judge.script.span(middle, statement).end
        return judge.fix(statement, "Write two comparisons", [Edit(end, end, f" and {middle.id}")])
    if not isinstance(node, ast.Call) or not paddle:
        return None
    span = judge.script.span(node.func, statement)
    for name in function.named.get(node, ()):
        root, _, last = name.rpartition(".")
        if root == "math" and last in _MATH and len(node.args) == 1:
            return judge.fix(
                statement,
                f"Use paddle.{last}, which returns a tensor",
                [Edit(span.start, span.end, f"{paddle}.{last}")],
            )
        are_tensors = len(node.args) == 2 and all(function.kind(each).is_tensor for each in node.args)
        if root == "builtins" and last in _OF_TWO and are_tensors and not node.keywords:
            return judge.fix(
                statement,
                f"Use paddle.{_OF_TWO[last]}",
                [Edit(span.start, span.end, f"{paddle}.{_OF_TWO[last]}")],
            )
    return None
