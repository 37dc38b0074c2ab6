"""A condition must be a bool tensor of one element.

## Why it matters

A number means `> 0` in dygraph and `!= 0` in a graph. With several elements, a graph takes the first, but
dygraph raises.

## What to do

Write the comparison, `if t > 0:`. Of several elements, say which: `(t > 0).all()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.layout import Layout
from trainshift.core.rule import Findings
from trainshift.python.source.edit import Change
from trainshift.python.syntax.chunk_syntax import Statement, own_parts
from trainshift.python.syntax.precedence import Frame, Level
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reporting import Judge, is_call_of

_COMPARED = Frame("", " > 0", Level.BIT_OR, Level.COMPARISON)


def check(judge: Judge) -> Findings:
    for function, statement in judge.reached():
        for node in _tested(function, statement):
            value = function.kind(node)
            known = value.tensor
            if known is None or isinstance(node, ast.BoolOp):
                continue
            is_number = known.dtype not in ("", "bool") and not known.counts
            if known.has_one_element is False:
                yield from judge.say(
                    statement,
                    f"`{judge.code_of(node, statement)}` has several elements: a graph tests one",
                    "Say which are meant, with `.all()` or `.any()`.",
                    at=node,
                    sure=value.is_tensor,
                )
            elif is_number:
                yield from judge.say(
                    statement,
                    f"`{judge.code_of(node, statement)}` is a number: it means `> 0`, in a graph `!= 0`",
                    "Write `> 0`.",
                    at=node,
                    sure=value.is_tensor,
                    fix=_fixed(judge, statement, node),
                )


def _fixed(judge: Judge, statement: Statement, node: ast.expr) -> Change:
    edits = judge.program.fact(Layout).put(node, statement, _COMPARED)
    return judge.fix(statement, "Compare with 0", edits)


def _tested(function: StaticFunction, statement: Statement) -> Iterator[ast.expr]:
    """Yield the expressions of a statement used as conditions."""
    for node in own_parts(statement.node):
        if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
            yield node.test
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node.operand
        elif isinstance(node, ast.BoolOp):
            yield from node.values
        elif isinstance(node, ast.Call) and is_call_of(function, node, "builtins.bool"):
            yield from node.args[:1]
