"""Tensors must be recognized by `is_tensor`, not by their class.

## Why it matters

A graph's tensors are of another class: `isinstance(t, paddle.Tensor)` and `type(t)` silently give a different
answer there.

## What to do

Use `paddle.is_tensor(t)`, which gives the same answer everywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.finding import Finding
from trainshift.core.rule import Findings
from trainshift.python.source.edit import Change, Edit
from trainshift.python.syntax.chunk_syntax import Statement, own_parts
from trainshift.static_graphs.domain.abstract_values import AbstractValue
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reporting import Judge, is_call_of, library_names

_TENSORS = frozenset({"paddle.Tensor", "paddle.fluid.core.eager.Tensor", "paddle.base.core.eager.Tensor"})
_NUMBERS = frozenset({"builtins.int", "builtins.float", "builtins.bool"})


def check(judge: Judge) -> Findings:
    for function, statement, call in judge.calls():
        yield from _of_call(judge, function, statement, call)


def _of_call(
    judge: Judge, function: StaticFunction, statement: Statement, call: ast.Call
) -> Iterator[Finding]:
    if not call.args:
        return
    value = function.kind(call.args[0])
    if not (value.may_be_tensor or value.unknown):
        return
    code = judge.code_of(call, statement)
    if is_call_of(function, call, "builtins.isinstance") and len(call.args) == 2:
        kinds = call.args[1].elts if isinstance(call.args[1], ast.Tuple) else [call.args[1]]
        names = set[str]().union(*(library_names(function, each) for each in kinds))
        if names & _TENSORS:
            whole = len(kinds) == 1
            yield from judge.say(
                statement,
                f"`{code}` is False in a graph, whose tensors have a different class",
                "Write `paddle.is_tensor`.",
                at=call,
                sure=value.is_tensor,
                fix=_fixed(judge, statement, call) if whole else None,
            )
        elif names and names <= _NUMBERS and value.is_tensor and _is_number_before(function, value):
            yield from judge.say(
                statement,
                f"`{code}` is False in a graph, where a cast number is a tensor",
                "Test before the cast, or leave the test out.",
                at=call,
            )
    elif len(call.args) == 1 and value.is_tensor and _asks_for_class(function, statement, call):
        yield from judge.say(
            statement,
            f"`{code}` is a different class in a graph",
            "Write `paddle.is_tensor`.",
            at=call,
        )


def _is_number_before(function: StaticFunction, value: AbstractValue) -> bool:
    """Return whether a tensor is a number in dygraph: a cast, an item or a size, or possibly computed
    from one.
    """
    if value.tensor is not None and value.tensor.counts is not None:
        return True
    made = [each for each in value.sources if isinstance(each, ast.Call)]
    named = [function.named.get(each, frozenset()) for each in made]
    return any(names & _NUMBERS or "paddle.Tensor.item" in names for names in named)


def _asks_for_class(function: StaticFunction, statement: Statement, call: ast.Call) -> bool:
    """Return whether a call is `type(t)`, used or compared with a possible tensor class."""
    if not is_call_of(function, call, "builtins.type"):
        return False
    for node in own_parts(statement.node):
        if isinstance(node, ast.Call) and node.func is call:
            return True
        if isinstance(node, ast.Compare) and call in (node.left, *node.comparators):
            others = [each for each in (node.left, *node.comparators) if each is not call]
            parts = [part for each in others for part in getattr(each, "elts", [each])]
            names = [library_names(function, each) for each in parts]
            return not all(name and all(map(_is_of_python, name)) for name in names)
    return False


def _is_of_python(name: str) -> bool:
    return name.startswith(("builtins.", "collections.", "numpy."))


def _fixed(judge: Judge, statement: Statement, call: ast.Call) -> Change | None:
    paddle = judge.paddle()
    if not paddle:
        return None
    span = judge.script.span(call, statement)
    given = judge.script.text(call.args[0], statement)
    edit = Edit(span.start, span.end, f"{paddle}.is_tensor({given})")
    return judge.fix(statement, "Use paddle.is_tensor", [edit])
