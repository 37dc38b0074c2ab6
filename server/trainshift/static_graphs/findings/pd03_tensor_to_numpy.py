"""A tensor must not be passed to NumPy.

## Why it matters

A graph has no values for NumPy: the call fails, or ends the interpreter. Paddle drops `.numpy()` from the
source, so that the following code works on the tensor itself.

## What to do

Use Paddle's function of that name: `paddle.sum(t)` for `np.sum(t)`.

## More of it

Some calls happen to work, such as `np.sum(t)`, which NumPy delegates to `t.sum()`: for these the verdict is
unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.finding import Finding
from trainshift.core.rule import Findings
from trainshift.python.source.edit import Change, Edit
from trainshift.python.syntax.chunk_syntax import Statement, own_parts, targets_of
from trainshift.static_graphs.domain.abstract_values import AbstractValue
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reporting import Judge, calls, reached
from trainshift.static_graphs.tables import api

_SAME = frozenset(
    {"sum", "mean", "max", "min", "clip", "where", "concatenate", "stack", "exp", "sqrt", "abs"}
)  # fmt: skip
# NumPy delegates these to the method of the same name, which a graph's tensors also have.
_HANDED_ON = frozenset(
    {"sum", "mean", "clip", "argmax", "round", "prod", "cumsum", "any", "all", "squeeze", "dot"}
)  # fmt: skip
_RENAMED = {"concatenate": "concat"}
# Calls that create a new tensor in a graph: no view shares memory there.
_MADE = ast.BinOp | ast.UnaryOp | ast.Compare | ast.Call
_LEAVING = ("tolist", "__array__")


def check(judge: Judge) -> Findings:
    for function in judge.functions:
        cut: set[str] = set()
        for statement in reached(function):
            for call in calls(statement):
                yield from _of_call(judge, function, statement, call)
            yield from _after_numpy(judge, function, statement, cut)


def _holds_tensors(value: AbstractValue) -> bool:
    element = value.whole_element
    counts = value.tensor is not None and value.tensor.counts
    return (value.is_tensor and not counts) or (element is not None and element.is_tensor and value.is_python)


def _of_call(
    judge: Judge, function: StaticFunction, statement: Statement, call: ast.Call
) -> Iterator[Finding]:
    names = sorted(each for each in function.named.get(call, ()) if each.startswith("numpy."))
    given = [each for each in call.args if _holds_tensors(function.kind(each))]
    if names and given:
        yield from judge.say(
            statement,
            (
                f"`{judge.code_of(call.func, statement)}` needs the value of "
                f"`{judge.code_of(given[0], statement)}`, which a graph does not have"
            ),
            "Use Paddle's function.",
            at=call,
            sure=names[0].removeprefix("numpy.") not in _HANDED_ON,
            fix=_fixed(judge, statement, call, names[0]),
        )
    elif isinstance(call.func, ast.Attribute) and call.func.attr in _LEAVING:
        if function.kind(call.func.value).is_tensor:
            yield from judge.say(
                statement,
                f"`{judge.code_of(call, statement)}` needs a value, which a graph does not have",
                "Keep it as a tensor.",
                at=call,
            )


def _fixed(judge: Judge, statement: Statement, call: ast.Call, name: str) -> Change | None:
    last = name.rpartition(".")[2]
    paddle = judge.paddle()
    if last not in _SAME or name.count(".") != 1 or len(call.args) > 1 or call.keywords or not paddle:
        return None
    span = judge.script.span(call.func, statement)
    other = _RENAMED.get(last, last)
    edit = Edit(span.start, span.end, f"{paddle}.{other}")
    return judge.fix(statement, f"Use paddle.{other}, which returns a tensor", [edit])


def _after_numpy(
    judge: Judge, function: StaticFunction, statement: Statement, cut: set[str]
) -> Iterator[Finding]:
    """Yield problems after the removal of a `.numpy()`: a write to the tensor itself, or a NumPy-only
    method.
    """
    node = statement.node
    for target in targets_of(node):
        held = target.value if isinstance(target, ast.Subscript) else target
        is_written = isinstance(target, ast.Subscript) or isinstance(node, ast.AugAssign)
        if is_written and ((isinstance(held, ast.Name) and held.id in cut) or _is_numpy(function, held)):
            yield from judge.say(
                statement,
                "Paddle drops `.numpy()`, so this writes to the tensor itself",
                "Write to a copy: `x.clone()`.",
            )
    for part in own_parts(node):
        if isinstance(part, ast.Attribute) and _is_numpy(function, part.value):
            if api.method(part.attr) is None and part.attr not in ("shape", "dtype", "ndim", "T", "size"):
                yield from judge.say(
                    statement,
                    f"Paddle drops `.numpy()`, and a tensor has no `{part.attr}`",
                    "Use the methods of tensors.",
                    at=part,
                )
    if isinstance(node, ast.Assign):
        names = [each.id for each in node.targets if isinstance(each, ast.Name)]
        is_shared = _is_numpy(function, node.value) and not _is_handed_over(function, node.value, names)
        (cut.update if is_shared else cut.difference_update)(names)


def _is_handed_over(function: StaticFunction, node: ast.expr, names: list[str]) -> bool:
    """Return whether nothing else references the tensor of a `.numpy()`: it is created there, or has no
    other name.
    """
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Attribute)
    given = node.func.value
    if isinstance(given, ast.Name) and given.id in names:
        bindings = function.scope.bindings.get(given.id, ())
        made = [each.value for each in bindings if each.value is not node]
        return bool(made) and all(isinstance(each, _MADE) for each in made)
    return isinstance(given, _MADE)


def _is_numpy(function: StaticFunction, node: ast.expr) -> bool:
    """Return whether an expression is ``t.numpy()`` of a tensor."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "numpy"
        and function.kind(node.func.value).is_tensor
    )
