"""A function with tensor control flow must be called directly.

## Why it matters

Paddle converts functions called by name or as a method, but not those that `partial`, `map` or `filter` call.
Its conditions on tensors fail there.

## What to do

Call the function itself: in a comprehension instead of `map`, with all arguments instead of `partial`.

## More of it

A lambda that is bound outside, a generator, and a function below `paddle.jit.not_to_static` are not
converted either.
"""

from __future__ import annotations

import ast

from trainshift.core.layout import Layout
from trainshift.core.rule import Findings
from trainshift.python.source.edit import Change
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reporting import Judge


def check(judge: Judge) -> Findings:
    for function, statement, call in judge.calls():
        way = function.unconverted.get(call)
        if way:
            yield from judge.say(
                statement,
                f"Called through {way}, its conditions on tensors are not converted",
                "Call it directly.",
                at=call,
                fix=_fixed(judge, function, statement, call),
            )


def _fixed(judge: Judge, function: StaticFunction, statement: Statement, call: ast.Call) -> Change | None:
    """A comprehension that replaces ``list(map(f, values))``."""
    node = statement.node
    for outer in ast.walk(node):
        if isinstance(outer, ast.Call) and call in outer.args and len(call.args) == 2:
            is_list = "builtins.list" in function.named.get(outer, ())
            if (
                is_list
                and "builtins.map" in function.named.get(call, ())
                and isinstance(call.args[0], ast.Name)
            ):
                values = judge.script.text(call.args[1], statement)
                code = f"[{call.args[0].id}(each) for each in {values}]"
                edits = judge.program.fact(Layout).replace(outer, statement, code)
                return judge.fix(statement, "Write a comprehension", edits)
    return None
