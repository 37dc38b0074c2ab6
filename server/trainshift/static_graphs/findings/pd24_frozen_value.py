"""A static function must not read values, other than tensors, that change between calls.

## Why it matters

The graph keeps the value of its first call: a random number, a time, or a counter that the program changes.

## What to do

Pass it as an argument, or draw it with Paddle: `paddle.rand([])` for `random.random()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.finding import Finding
from trainshift.core.rule import Findings
from trainshift.python.names.values import UserInstance
from trainshift.python.syntax.chunk_syntax import Binding, Statement, dotted, own_parts
from trainshift.static_graphs.outer_mutations import changed_default
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reading.reading import Reading
from trainshift.static_graphs.reporting import Judge, calls

_DRAWING = ("random.", "numpy.random.", "secrets.", "uuid.")
_SEEDING = frozenset({"seed", "getstate", "setstate", "get_state", "set_state"})
_CLOCKS = frozenset(
    {
        "time.time", "time.perf_counter", "time.monotonic", "time.time_ns", "datetime.datetime.now",
        "datetime.datetime.today", "datetime.datetime.utcnow", "datetime.date.today",
    }
)  # fmt: skip
_DO = "Pass it as an argument."


def check(judge: Judge) -> Findings:
    for function, statement in judge.reached():
        for call in calls(statement):
            for name in sorted(function.named.get(call, ())):
                is_drawn = name.startswith(_DRAWING) and name.rpartition(".")[2] not in _SEEDING
                if is_drawn or name in _CLOCKS:
                    what = f"The graph keeps the first value of `{judge.code_of(call, statement)}`"
                    yield from judge.say(statement, what, "Use Paddle's, or pass it as an argument.", at=call)
        yield from _of_names(judge, function, statement)


def _of_names(judge: Judge, function: StaticFunction, statement: Statement) -> Iterator[Finding]:
    for node in own_parts(statement.node):
        if isinstance(node, ast.Name) and changed_default(function, node):
            what = f"The default of `{node.id}` is changed once, when the graph is built"
            yield from judge.say(statement, what, "Return the values to keep.", at=node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            change = _change_of_global(function, node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            change = _change_of_attribute(judge, function, node)
        else:
            continue
        if change is not None and change.statement is not None:
            code = judge.code_of(node, statement)
            yield from judge.say(
                statement,
                f"The graph keeps the first value of `{code}`, which the program changes",
                _DO,
                at=node,
            )


def _change_of_global(function: StaticFunction, node: ast.Name) -> Binding | None:
    """The binding by which a function changes a global number or string that is read."""
    if node.id in function.scope.bindings or not function.kind(node).among("int", "float", "bool", "str"):
        return None
    holder, bindings = function.script.names.lookup(node.id, function.scope, None)
    if holder is not None or len(bindings) < 2:
        return None
    return next((each for each in bindings if each.scope.function() is not None), None)


def _change_of_attribute(judge: Judge, function: StaticFunction, node: ast.Attribute) -> Binding | None:
    """The binding by which methods other than `__init__` change a number of an object repeatedly."""
    value = function.kind(node)
    is_number = value.tensor is None and bool(value.python) and value.python <= {"int", "float"}
    if not (is_number or value.among("int", "float", "bool", "str", "None")):
        return None
    names = function.script.names
    for thing in function.kind(node.value).things:
        if isinstance(thing, UserInstance):
            own = names.assigned_attributes[0].get((thing.scope, node.attr), ())
            changes = [each for each in own if _comes_later(judge, function, each, is_seen=not is_number)]
            if not _begins(thing, own, node.attr) and len({each.scope for each in changes}) < 2:
                continue  # The only method that binds it initializes the object.
            constants = {each.value.value for each in changes if isinstance(each.value, ast.Constant)}
            if len(constants) > 1 or any(not isinstance(each.value, ast.Constant) for each in changes):
                return changes[0]
    return None


def _begins(thing: UserInstance, own: Iterable[Binding], name: str) -> bool:
    """Return whether an attribute has a value from the start, or from itself."""
    functions = [each.scope.function() for each in own]
    is_counted = any(isinstance(each.statement.node, ast.AugAssign) for each in own if each.statement)
    return (
        is_counted
        or name in thing.scope.bindings
        or any(each and each.name == "__init__" for each in functions)
    )


def _comes_later(judge: Judge, function: StaticFunction, binding: Binding, *, is_seen: bool) -> bool:
    """Return whether a method binds an attribute that neither makes the object nor is static itself.

    A switch or text changes only if the method that changes it is called (`is_seen`); most never are.
    """
    inner = binding.scope.function()
    if inner is None or inner is function.scope or inner.name == "__init__":
        return False
    if judge.program.fact(Reading).of(inner) is not None:
        return False
    if _is_counted(binding):
        return True
    sites = function.script.sites_named(inner.name)
    callers = [each for each in (site.scope.function() for site in sites) if each is not inner]
    if is_seen:  # The switches that a class sets itself may still be changed by others.
        callers = [each for each in callers if each is None or each.owner() is not inner.owner()]
    if not callers:
        return not is_seen
    return any(each is None or each.name not in ("__init__", inner.name) for each in callers)


def _is_counted(binding: Binding) -> bool:
    """Return whether an attribute gets a value that is computed from its own."""
    if binding.statement is not None and isinstance(binding.statement.node, ast.AugAssign):
        return True
    own = dotted(binding.target) if isinstance(binding.target, ast.expr) else ""
    parts = ast.walk(binding.value) if binding.value is not None and own else ()
    return any(isinstance(each, ast.Attribute) and dotted(each) == own for each in parts)
