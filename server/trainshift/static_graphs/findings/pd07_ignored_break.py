"""A loop over the result of a call must not be left by `break`.

## Why it matters

Paddle silently drops the `break`, so that the body runs for all elements.

## What to do

Bind `list(...)` of the call to a name, loop over the name, and unpack its elements in the body.

## More of it

Paddle turns a `for` into a `while` only over `range`, `enumerate`, or a name. Over any other call
(`d.items()`, `zip(a, b)`, `sorted(c)`, a generator) the loop stays a `for`.
"""

from __future__ import annotations

import ast

from trainshift.core.rule import Findings
from trainshift.static_graphs.reporting import Judge, drops_break, exits


def check(judge: Judge) -> Findings:
    for function, loop in judge.loops():
        node = loop.node
        if not drops_break(function, node) or not isinstance(node, ast.For):
            continue
        if function.kind(node.iter).may_be_tensor:
            continue
        for leaving in exits(function, loop, ast.Break):
            if leaving in function.reached:
                yield from judge.say(
                    leaving,
                    f"Paddle drops this `break` of a loop over `{judge.code_of(node.iter, loop)}`",
                    "Bind a list of it to a name, loop over that, and unpack in the body.",
                    related=[(node.iter, "the iterable of the loop")],
                )
