"""A loop inside another loop must not be left by `break` or `return`.

## Why it matters

From the second iteration of the outer loop on, the inner loop does not run at all. The saved model then gives
other numbers than the one that was trained.

## What to do

Move the inner loop to a function of its own: a `break` there belongs to the only loop.

## More of it

Paddle sets the flag of such a `break` once, before the outer loop. Paddle 3.0 introduced this. Without
`full_graph=True` the function is right while it runs, and wrong once it is saved.
"""

from __future__ import annotations

import ast

from trainshift.core.rule import Findings
from trainshift.static_graphs.reporting import Judge, exits


def check(judge: Judge) -> Findings:
    for function, loop in judge.loops():
        outer = function.loops_around(loop)
        for leaving in exits(function, loop, ast.Break, ast.Return) if outer else ():
            if leaving in function.reached and function.loops_around(leaving)[:1] == [loop]:
                word = "return" if isinstance(leaving.node, ast.Return) else "break"
                yield from judge.say(
                    leaving,
                    f"This `{word}` keeps the inner loop from running in later iterations of the outer loop",
                    "Move the inner loop to a function of its own.",
                    related=[(outer[0].node, "the outer loop")],
                )
