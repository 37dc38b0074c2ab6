"""The variable of a `for` that is left early must be read in its body only, and not be bound there.

## Why it matters

Paddle counts the iterations with this variable. After the loop it is one step further than in Python, and
binding it changes how often the body runs.

## What to do

Bind values that are needed after the loop to a name of their own, before the `break`. If the body changes the
iterable, loop over a copy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.finding import Finding
from trainshift.core.rule import Findings
from trainshift.python.flow.def_use import names_bound, names_read
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reporting import Judge, bound_in, exits, first_read, is_call_of


def check(judge: Judge) -> Findings:
    for function, loop in judge.loops():
        if isinstance(loop.node, ast.For) and exits(function, loop, ast.Break, ast.Return):
            yield from _read_after(judge, function, loop, loop.node)
            yield from _bound_inside(judge, function, loop, loop.node)


def _read_after(judge: Judge, function: StaticFunction, loop: Statement, node: ast.For) -> Iterator[Finding]:
    for name in sorted(set(names_bound(node.target)) & function.live_after(loop)):
        found = first_read(function, loop, name)
        if found is not None and exits(function, loop, ast.Break):
            yield from judge.say(
                found[0],
                f"After the loop with `break`, `{name}` is one step further than in Python",
                "Bind it to another name in the body, and read that.",
                at=found[1],
                related=[(node.target, "the loop's variable")],
            )


def _bound_inside(
    judge: Judge, function: StaticFunction, loop: Statement, node: ast.For
) -> Iterator[Finding]:
    bound = bound_in(loop.branches.get("body", []))
    ranged = is_call_of(function, node.iter, "builtins.range")
    watched = set(names_bound(node.target))
    if ranged:
        watched |= names_read(node.iter) - {"range"}
    for name in sorted(watched & bound.keys()):
        of = "the loop's variable" if name in set(names_bound(node.target)) else "an argument of its range"
        yield from judge.say(
            bound[name],
            f"`{name}` is {of}, and binding it in a loop with `break` changes how often that runs",
            "Bind another name here.",
            related=[(node.target, "the loop")],
        )
