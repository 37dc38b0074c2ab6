"""In tensor control flow a list must grow by `append` of tensors only, and a dict must keep its keys.

## Why it matters

A list that grows in a graph is a TensorArray: it takes tensors at its end, and cannot be returned. A dict's
new key, a string or None cannot be carried through a loop.

## What to do

Append tensors, and stack them to one tensor after the loop. Give a dict all its keys before.

## More of it

The graph changes a copy of a list or dict. A second name for it, or a container that holds it, does not show
the change. Use one name, and change it in the function itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.finding import Finding
from trainshift.core.rule import Findings
from trainshift.libraries.containers import METHODS, MUTATING
from trainshift.python.flow.def_use import names_bound
from trainshift.python.syntax.chunk_syntax import Statement, dotted, targets_of
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reading.stores import places_in
from trainshift.static_graphs.reporting import Judge, bound_in, calls, loops, may_be_unrolled, reached

_OTHER = frozenset(name for name, method in METHODS.items() if "list" in method.of) - {"append"}
_OTHER |= {"index", "count"}


def check(judge: Judge) -> Findings:
    for function in judge.functions:
        grown: dict[str, bool] = {}
        for statement in reached(function):
            if function.graph_around(statement):
                yield from _of_lists(judge, function, statement, grown)
                yield from _of_dicts(judge, function, statement)
                yield from _of_copies(judge, function, statement)
            if isinstance(statement.node, ast.Return) and statement.node.value is not None:
                value = statement.node.value
                parts = value.elts if isinstance(value, ast.Tuple) else [value]
                names = [each for each in parts if isinstance(each, ast.Name) and each.id in grown]
                returned = [each.id for each in names if not function.kind(each).is_tensor]
                if returned:
                    yield from judge.say(
                        statement,
                        f"`{returned[0]}` is a TensorArray in the graph, and cannot be returned",
                        "Return `paddle.stack` of it.",
                        sure=grown[returned[0]],
                    )
        for loop in loops(function):
            if function.may_be_graph(loop.node):
                yield from _carried(judge, function, loop)


def _of_lists(
    judge: Judge, function: StaticFunction, statement: Statement, grown: dict[str, bool]
) -> Iterator[Finding]:
    """Yield problems of method calls on lists; `grown` are lists with appended tensors, and whether that
    is certain.
    """
    is_sure = not all(may_be_unrolled(function, each) for each in function.graph_around(statement))
    for call in calls(statement):
        if not isinstance(call.func, ast.Attribute):
            continue
        base = function.kind(call.func.value)
        if "list" not in base.python or base.tensor is not None or base.unknown:
            continue
        name = dotted(call.func.value) or "the list"
        if call.func.attr == "append" and call.args:
            value = function.kind(call.args[0])
            if value.is_python and not value.python & {"list", "tuple"}:
                added = judge.code_of(call.args[0], statement)
                yield from judge.say(
                    statement,
                    f"`{name}` becomes a TensorArray here, and `{added}` is not a tensor",
                    "Append a tensor.",
                    at=call,
                    sure=is_sure,
                )
            else:
                grown[name] = grown.get(name, False) or is_sure
        elif call.func.attr in _OTHER:
            yield from judge.say(
                statement,
                f"`{name}` is a TensorArray here, which only grows at its end",
                "Append, or keep the list outside.",
                at=call,
                sure=is_sure,
            )


def _of_dicts(judge: Judge, function: StaticFunction, statement: Statement) -> Iterator[Finding]:
    node = statement.node
    for target in node.targets if isinstance(node, ast.Assign) else ():
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
            continue
        key = target.slice.value if isinstance(target.slice, ast.Constant) else None
        if function.kind(target.value).among("dict") and isinstance(key, str):
            if not _has_key(function, target.value.id, key, statement):
                yield from judge.say(
                    statement,
                    f"`{target.value.id}` gets a new key here, and a graph's dict keeps its keys",
                    f'Set "{key}" before.',
                )


def _of_copies(judge: Judge, function: StaticFunction, statement: Statement) -> Iterator[Finding]:
    """Yield changes of containers that other code reads by other names, or changes in a called function."""
    outermost = function.graph_around(statement)[-1]
    before, live = function.before.get(outermost, {}), function.live_after(outermost)
    for node, base in _changed_containers(statement):
        mine = function.kind(base).places
        shown = [each for each in sorted(live & before.keys()) if mine & {*places_in(before[each])}]
        others = [each for each in shown if each != dotted(base)]
        if others and isinstance(base, ast.Name):
            yield from judge.say(
                statement,
                f"the graph changes a copy of `{base.id}`, and `{others[0]}` keeps what it had",
                "Use one name for it.",
                at=node,
            )
    given = names_bound(*targets_of(statement.node))
    for call in calls(statement):
        for callee in function.calls.get(call, ()):
            for name, value in before.items():
                if name in live and name not in given and not callee.stored.keys().isdisjoint(value.places):
                    yield from judge.say(
                        statement,
                        f"`{callee.name}` changes `{name}` when the graph is built, whatever the condition,"
                        " and Paddle fails if it stores a tensor made here",
                        "Return the value, and store it here.",
                        at=call,
                    )


def _changed_containers(statement: Statement) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield the stores and calls of a statement that change a container, with the container."""
    for target in targets_of(statement.node):
        if isinstance(target, ast.Subscript):
            yield target, target.value
    for call in calls(statement):
        if isinstance(call.func, ast.Attribute) and call.func.attr in MUTATING:
            yield call, call.func.value


def _has_key(function: StaticFunction, name: str, key: str, statement: Statement) -> bool:
    """Return whether a dict has a key before a statement, as far as is known."""
    found = False
    if any(each.kind not in ("value", "parameter") for each in function.scope.bindings.get(name, ())):
        return True
    for each in function.statements:
        if each is statement:
            return found
        node = each.node
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == name:
                if not isinstance(node.value, ast.Dict):
                    return True
                found = any(isinstance(k, ast.Constant) and k.value == key for k in node.value.keys)
                found = found or None in node.value.keys
            elif isinstance(target, ast.Subscript) and getattr(target.value, "id", "") == name:
                found = found or getattr(target.slice, "value", None) == key
    return found


def _carried(judge: Judge, function: StaticFunction, loop: Statement) -> Iterator[Finding]:
    """Report strings and None that a loop on tensors carries from iteration to iteration."""
    before = function.before.get(loop, {})
    for name, binding in bound_in(loop.branches.get("body", [])).items():
        value = before.get(name)
        if value is None or not value.among("str", "None") or name not in function.live_after(loop):
            continue
        what = "None" if value.is_none else "a string"
        yield from judge.say(
            loop,
            f"`{name}` begins as {what}, which a loop on a tensor cannot carry",
            "Begin with a tensor.",
            at=judge.between(loop, binding),
            sure=not may_be_unrolled(function, loop),
        )
