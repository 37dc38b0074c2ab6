"""The result of a function that works in place must be kept.

## Why it matters

In a graph `add_` is `add`: the tensor stays unchanged, and the result is lost, in both modes of conversion.

## What to do

Write `y = y.add_(...)`, or use the function without the underscore. Take a view after the tensor was
written to.

## More of it

Likewise, a view (`x[0]`, `reshape`) does not see later writes to its tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.finding import Finding
from trainshift.core.rule import Findings
from trainshift.python.flow.def_use import names_bound
from trainshift.python.source.edit import Change, Edit
from trainshift.python.syntax.chunk_syntax import Statement, targets_of
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reporting import Judge, first_read
from trainshift.static_graphs.tables.api import is_in_place


def check(judge: Judge) -> Findings:
    for function, statement in judge.reached():
        written = _written(function, statement)
        if isinstance(statement.node, ast.Expr) and written is not None:
            yield from judge.say(
                statement,
                (
                    f"A graph loses the result of `{judge.code_of(statement.node.value, statement)}`, and "
                    f"`{judge.code_of(written, statement)}` stays unchanged"
                ),
                "Bind the result to the name.",
                always=True,
                fix=_kept(judge, statement, written),
            )
        target = written if written is not None else _set(statement)
        if target is not None:
            yield from _views(judge, function, statement, target)


def _written(function: StaticFunction, statement: Statement) -> ast.expr | None:
    """The tensor that the call of a statement writes to in place."""
    node = statement.node
    call = node.value if isinstance(node, ast.Expr | ast.Assign) else None
    if not isinstance(call, ast.Call):
        return None
    names = [
        each for each in function.named.get(call, ()) if each.startswith("paddle.") and is_in_place(each)
    ]
    if not names:
        return None
    if all(name.startswith("paddle.Tensor.") for name in names):
        target = call.func.value if isinstance(call.func, ast.Attribute) else None
    else:
        target = call.args[0] if call.args else None
    if target is None or not function.kind(target).is_tensor:
        return None
    return target


def _set(statement: Statement) -> ast.expr | None:
    """The value whose elements a statement sets."""
    return next((each.value for each in targets_of(statement.node) if isinstance(each, ast.Subscript)), None)


def _views(
    judge: Judge, function: StaticFunction, statement: Statement, written: ast.expr
) -> Iterator[Finding]:
    """The views of a tensor that are read after a write to it."""
    base = function.kind(written)
    if not base.is_tensor:
        return
    for name in sorted(function.live_after(statement)):
        found = first_read(function, statement, name)
        if found is None or (isinstance(written, ast.Name) and written.id == name):
            continue
        if isinstance(statement.node, ast.Assign) and name in names_bound(statement.node):
            continue  # It is the tensor that was written to.
        value = function.kind(found[1])
        if value.is_tensor and value.views & base.sources and _is_bound_before(function, name, statement):
            yield from judge.say(
                found[0],
                f"In a graph `{name}` does not see what was written to `{judge.code_of(written, statement)}`",
                "Take the view after that.",
                at=found[1],
                always=True,
                related=[(statement.node, "the written tensor")],
            )


def _is_bound_before(function: StaticFunction, name: str, statement: Statement) -> bool:
    order = {each: index for index, each in enumerate(function.statements)}
    bindings = function.scope.bindings.get(name, ())
    return any(
        each.statement is not None and order.get(each.statement, 0) < order[statement] for each in bindings
    )


def _kept(judge: Judge, statement: Statement, written: ast.expr) -> Change | None:
    if not isinstance(written, ast.Name):
        return None
    start = judge.script.statement_span(statement).start
    return judge.fix(statement, "Bind the result to the name", [Edit(start, start, f"{written.id} = ")])
