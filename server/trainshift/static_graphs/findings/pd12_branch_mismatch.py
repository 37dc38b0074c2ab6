"""A name must get the same type, dtype and rank on both paths of an `if` on a tensor.

## Why it matters

The name is one result of the graph's `cond`, which has one type. If the branches differ, the conversion
fails, or changes the type of the value.

## What to do

Bind the same type: `1.0` beside `0.5`, and tensors of one dtype and rank. Choose functions and layers by
Python's own conditions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.finding import Finding
from trainshift.core.rule import Findings
from trainshift.python.source.edit import Change, Edit
from trainshift.python.syntax.chunk_syntax import Statement, own_parts
from trainshift.static_graphs.branch_merge import mixture
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reporting import Judge, merged


def check(judge: Judge) -> Findings:
    for function, statement in judge.reached():
        if isinstance(statement.node, ast.If) and function.may_be_graph(statement.node):
            yield from _of_branches(judge, function, statement)
        for node in own_parts(statement.node):
            if isinstance(node, ast.IfExp) and function.may_be_graph(node):
                how = mixture(function.kind(node.body), function.kind(node.orelse))
                if how:
                    yield from judge.say(
                        statement,
                        f"`{judge.code_of(node, statement)}` is {how}, and a graph has one type for it",
                        "Give both the same type.",
                        at=node,
                    )


def _of_branches(judge: Judge, function: StaticFunction, statement: Statement) -> Iterator[Finding]:
    for name, binding, one, other in merged(function, statement):
        how = mixture(one, other) if not (one.unbound or other.unbound) else ""
        if how:
            yield from judge.say(
                statement,
                f"`{name}` is {how} after this `if`, and a graph has one type for it",
                "Give it the same type on both paths.",
                at=judge.between(statement, binding),
                related=[(binding.node, f"`{name}` is bound here")],
                fix=_as_float(judge, function, name) if how == "an int or a float" else None,
            )


def _as_float(judge: Judge, function: StaticFunction, name: str) -> Change | None:
    """Turn the literal ints bound to a name into floats; None if it is bound to other ints."""
    edits = []
    first: Statement | None = None
    for statement in function.statements:
        node = statement.node
        if not isinstance(node, ast.Assign) or not any(
            getattr(each, "id", "") == name for each in node.targets
        ):
            continue
        if function.kind(node.value).among("float"):
            continue
        if not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, int):
            return None
        span = judge.script.span(node.value, statement)
        edits.append(Edit(span.start, span.end, f"{judge.script.text(node.value, statement)}.0"))
        first = first or statement
    return judge.fix(first, "Write a float", edits) if first is not None else None
