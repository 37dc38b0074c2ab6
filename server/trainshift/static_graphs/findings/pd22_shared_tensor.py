"""A branch or a loop on tensors must return tensors of its own.

## Why it matters

If another name still reads that tensor, both share its memory in the graph. A write to one then changes the
other: `y * 6` also changes `h`.

## What to do

Copy the tensor where it gets its second name: `y = paddle.assign(h)`.

## More of it

Paddle 3.0 introduced this. Without `full_graph=True` the function is right while it runs, and wrong once it
is saved.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.finding import Finding
from trainshift.core.layout import Layout
from trainshift.core.rule import Findings
from trainshift.python.flow.def_use import names_read
from trainshift.python.source.edit import Change
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.syntax.precedence import handed_to
from trainshift.static_graphs.domain.abstract_values import Env
from trainshift.static_graphs.reading.function import Mode, StaticFunction
from trainshift.static_graphs.reporting import Judge, bound_in, may_be_unrolled


def check(judge: Judge) -> Findings:
    for function, statement in judge.reached():
        if isinstance(statement.node, (ast.If, *LOOPS)) and function.may_be_graph(statement.node):
            check_one = _of_branches if isinstance(statement.node, ast.If) else _of_loop
            yield from check_one(judge, function, statement)


def _of_branches(judge: Judge, function: StaticFunction, statement: Statement) -> Iterator[Finding]:
    before = function.before.get(statement, {})
    ends = [each for each in function.ends.get(statement, ()) if each is not None]
    if len(ends) < 2:
        return
    live = function.live_after(statement)
    bound = bound_in(each for block in statement.branches.values() for each in block)
    for name in [each for each in bound if each in live]:
        for end in ends:
            other = _other(name, end, before, live)
            if other:
                yield from _shared(judge, function, statement, name, other, bound[name])
            elif _is_callers(function, name, end):
                yield from judge.say(
                    statement,
                    f"Where this `if` leaves `{name}` as it is, the graph may write to the caller's tensor",
                    f"Bind `paddle.assign({name})` to a name of its own if the caller reads it again.",
                    at=judge.between(statement, bound[name]),
                    sure=False,
                )


def _is_callers(function: StaticFunction, name: str, end: Env) -> bool:
    """Return whether a name still has the caller's argument."""
    value = end.get(name)
    return (
        function.is_entry
        and function.mode is Mode.FULL
        and value is not None
        and value.is_tensor
        and bool(value.sources & function.scope.bindings.keys() & function.parameters.keys())
    )


def _other(name: str, end: Env, before: Env, live: frozenset[str]) -> str:
    """Another name, read later, of the tensor to which a name remains bound."""
    value = end.get(name)
    if value is None or value.tensor is None:
        return ""
    for other in sorted(live & end.keys()):
        shared = end[other]
        if other == name or shared.tensor is None or not shared.sources & value.sources:
            continue
        old = before.get(other)
        if old is not None and old.sources & value.sources:
            return other
    return ""


def _of_loop(judge: Judge, function: StaticFunction, loop: Statement) -> Iterator[Finding]:
    before = function.before.get(loop, {})
    body = loop.branches.get("body", [])
    bound = bound_in(body)
    read = function.live_after(loop).union(*(names_read(each.node) for each in body))
    for name in bound:
        value = before.get(name)
        if value is None or value.tensor is None:
            continue
        for other in sorted((read & before.keys()) - bound.keys() - {name}):
            shared = before[other]
            if shared.tensor is not None and shared.sources & value.sources:
                yield from _shared(judge, function, loop, name, other, bound[name])
                break


def _shared(
    judge: Judge, function: StaticFunction, statement: Statement, name: str, other: str, binding: Statement
) -> Iterator[Finding]:
    alias = _alias(function, name, other)
    is_sure = isinstance(statement.node, ast.If) or not may_be_unrolled(function, statement)
    yield from judge.say(
        statement,
        f"`{name}` and `{other}` share memory in the graph: a change of one changes the other",
        f"Bind `{name}` to `paddle.assign({other})`.",
        at=judge.between(statement, binding) if isinstance(statement.node, ast.If) else None,
        sure=is_sure,
        related=[(alias[0].node, "the second name")] if alias is not None else [],
        fix=_copied(judge, *alias) if alias is not None else None,
    )


def _alias(function: StaticFunction, name: str, other: str) -> tuple[Statement, ast.Name] | None:
    """The assignment of a tensor's second name."""
    for one, another in ((name, other), (other, name)):
        for statement in function.statements:
            node = statement.node
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == another:
                if any(isinstance(each, ast.Name) and each.id == one for each in node.targets):
                    return statement, node.value
    return None


def _copied(judge: Judge, statement: Statement, node: ast.Name) -> Change | None:
    paddle = judge.paddle()
    if not paddle:
        return None
    edits = judge.program.fact(Layout).put(node, statement, handed_to(f"{paddle}.assign"))
    return judge.fix(statement, "Copy the tensor", edits)
