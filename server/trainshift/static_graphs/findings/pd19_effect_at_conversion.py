"""Python objects must not be changed, counted or printed under a condition on a tensor.

## Why it matters

Python's own statements run once, when the graph is built, and in both branches. A counter, a list or a print
then does not reflect the computation.

## What to do

Keep it in a tensor, return it, or do it outside of the static function.
"""

from __future__ import annotations

from trainshift.core.rule import Findings
from trainshift.static_graphs.outer_mutations import changed, counted, is_made_inside, reported
from trainshift.static_graphs.reporting import Judge


def check(judge: Judge) -> Findings:
    for function, statement in judge.reached():
        name = counted(function, statement)
        if name:
            yield from judge.say(
                statement,
                f"`{name}` is incremented once, when the graph is built",
                "Count outside of the static function.",
            )
        if not function.graph_around(statement):
            continue
        for node, what, is_seen in changed(function, statement):
            if is_made_inside(function, statement, node):
                yield from judge.say(
                    statement,
                    f"`{what}` has no value before this branch or loop, and the conversion fails",
                    "Bind it before, or after.",
                    at=node,
                )
                continue
            yield from judge.say(
                statement,
                f"`{what}` is changed once, when the graph is built, in both branches",
                "Keep it in a tensor, or return it.",
                at=node,
                sure=is_seen,
            )
        for node, what in reported(function, statement):
            yield from judge.say(
                statement,
                f"This is {what} once, when the graph is built, in both branches",
                "Print a tensor, or do it outside of the static function.",
                at=node,
            )
