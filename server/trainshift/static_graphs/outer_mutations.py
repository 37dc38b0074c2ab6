"""Outer mutations: those by a statement in a static function, besides its own names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.libraries.containers import MUTATING, adding_to
from trainshift.python.flow.def_use import names_bound
from trainshift.python.names.values import Instance
from trainshift.python.syntax.chunk_syntax import Statement, dotted, targets_of
from trainshift.static_graphs.reading.function import StaticFunction
from trainshift.static_graphs.reporting import calls

_CONTAINERS = frozenset({"list", "dict", "set"})
# Other objects with such a method are mutated by it as well; tensors have none.
_OF_CONTAINERS_ALONE = adding_to("list") | adding_to("deque")
# Attributes of tensors that control how the graph is built.
_OF_BUILDING = frozenset({"stop_gradient", "persistable", "trainable", "name"})
_TELLING = ("logging.", "warnings.", "sys.stdout", "sys.stderr")
_LOGGERS = frozenset({"debug", "info", "warning", "error", "log", "exception"})


def is_own(function: StaticFunction, node: ast.expr) -> bool:
    """Return whether a name refers to an object that the function itself has created."""
    value = function.kind(node)
    made = value.places | value.sources
    return bool(made) and made <= function.own_nodes and not value.unknown


def changed(function: StaticFunction, statement: Statement) -> Iterator[tuple[ast.AST, str, bool]]:
    """Yield the containers, attributes and items mutated by a statement that the function has not created.

    Each is yielded as its node, its name, and whether it certainly is one.
    """
    for target in targets_of(statement.node):
        if isinstance(target, ast.Subscript):
            base = function.kind(target.value)
            is_held = bool(base.python & _CONTAINERS) or not base.unknown
            if base.tensor is None and is_held and not is_own(function, target.value):
                yield target, dotted(target.value) or "a container", True
        elif isinstance(target, ast.Attribute) and not function.kind(target).may_be_tensor:
            if target.attr in _OF_BUILDING and _is_known_before(function, statement, target.value):
                continue
            if not _is_carried(function, statement, target):
                yield target, dotted(target) or target.attr, True
        elif isinstance(target, ast.Name) and target.id in function.scope.declared_global:
            yield target, target.id, True
    for call in calls(statement):
        if isinstance(call.func, ast.Attribute) and call.func.attr in MUTATING:
            yield from _changed_by(function, call, call.func)


def _changed_by(
    function: StaticFunction, call: ast.Call, method: ast.Attribute
) -> Iterator[tuple[ast.AST, str, bool]]:
    """Yield the call of a method that mutates, or may mutate, a container that is not the function's own."""
    base = function.kind(method.value)
    is_held = bool(base.python & _CONTAINERS)
    may_be_held = base.unknown and not base.things and method.attr in _OF_CONTAINERS_ALONE
    if base.tensor is None and (is_held or may_be_held) and not is_own(function, method.value):
        yield call, dotted(method.value) or "a container", is_held and not base.unknown


def is_made_inside(function: StaticFunction, statement: Statement, node: ast.AST) -> bool:
    """Return whether an attribute belongs to an object created in the same control flow on tensors."""
    around = function.graph_around(statement)
    if not around or not isinstance(node, ast.Attribute) or not is_own(function, node.value):
        return False
    value = function.before.get(around[-1], {}).get(getattr(node.value, "id", ""))
    return value is None or value.is_nothing or value.unbound


def _is_carried(function: StaticFunction, statement: Statement, target: ast.Attribute) -> bool:
    """Return whether an object of the function's own had the attribute before: Paddle carries it like a
    name.
    """
    around = function.graph_around(statement)
    before = function.before.get(around[-1], {}) if around else {}
    return is_own(function, target.value) and dotted(target) in before


def _is_known_before(function: StaticFunction, statement: Statement, node: ast.expr) -> bool:
    """Return whether a name already has a tensor before the control flow on tensors around a statement."""
    around = function.graph_around(statement)
    before = function.before.get(around[-1], {}) if around else {}
    value = before.get(getattr(node, "id", ""))
    return value is not None and value.is_tensor and not value.unbound


def reported(function: StaticFunction, statement: Statement) -> Iterator[tuple[ast.AST, str]]:
    """The text that a statement prints, logs, warns or writes."""
    for call in calls(statement):
        names = function.named.get(call, frozenset())
        if "builtins.print" in names:
            if not any(function.kind(each).may_be_tensor for each in call.args):
                yield call, "printed"
        elif any(name.startswith(_TELLING) for name in names) and not any(
            "getLogger" in name for name in names
        ):
            yield call, "logged"
        elif isinstance(call.func, ast.Attribute) and call.func.attr in _LOGGERS:
            made = (each for each in function.kind(call.func.value).things if isinstance(each, Instance))
            is_made = any(each.cls == "logging.getLogger" for each in made)
            if is_made or "logger" in dotted(call.func.value).lower():
                yield call, "logged"


def changed_default(function: StaticFunction, node: ast.Name) -> bool:
    """Return whether a name is a parameter with a container as its default, which the function mutates."""
    bindings = function.scope.bindings.get(node.id, ())
    given = [each.value for each in bindings if each.kind == "parameter"]
    is_container = isinstance(given[0], ast.List | ast.Dict | ast.Set) if given else False
    return is_container and len(bindings) == 1 and node.id in _changed_names(function)


def _changed_names(function: StaticFunction) -> set[str]:
    """The names of the containers whose elements a function changes."""
    found: set[str] = set()
    for statement in function.statements:
        held = [each.value for each in targets_of(statement.node) if isinstance(each, ast.Subscript)]
        for call in calls(statement):
            if isinstance(call.func, ast.Attribute) and call.func.attr in MUTATING:
                held.append(call.func.value)
        found.update(each.id for each in held if isinstance(each, ast.Name))
    return found


def counted(function: StaticFunction, statement: Statement) -> str:
    """The attribute or global number that a statement increments; empty if none."""
    node = statement.node
    target: ast.expr | None = None
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
        target = node.target
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
        name = dotted(node.targets[0])
        if name and name in (dotted(node.value.left), dotted(node.value.right)):
            target = node.targets[0]
    if target is None:
        return ""
    value = function.kind(target)
    is_number = value.is_python and value.python <= {"int", "float", "bool"}
    if not is_number:
        return ""
    if isinstance(target, ast.Attribute) and dotted(target).startswith("self."):
        return dotted(target)
    names = set(names_bound(target)) & function.scope.declared_global
    return names.pop() if names else ""
