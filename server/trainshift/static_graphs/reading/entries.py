"""Entry points: the functions that a script makes static, and the way in which it does."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec import Struct

from trainshift.python.flow.traversal import reachable
from trainshift.python.names.classes import is_decorated
from trainshift.python.names.script import Script
from trainshift.python.names.values import Function, Instance, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import Scope, Site, argument, imported_name, root_name
from trainshift.static_graphs.domain.abstract_values import ordered
from trainshift.static_graphs.reading.function import Mode
from trainshift.static_graphs.tables.api import is_layer_class

TO_STATIC = frozenset(
    {
        "paddle.jit.to_static", "paddle.jit.api.to_static", "paddle.jit.declarative",
        "paddle.jit.dy2static.to_static", "paddle.fluid.dygraph.jit.declarative",
        "paddle.fluid.dygraph.declarative",
    }
)  # fmt: skip
NOT_TO_STATIC = frozenset({"paddle.jit.not_to_static", "paddle.jit.api.not_to_static"})
SAVING = frozenset({"paddle.jit.save", "paddle.onnx.export", "paddle.jit.api.save"})
_NAMES = ("to_static", "declarative", "save", "export")


class Entry(Struct, frozen=True):
    """A function that is made static: by a decorator or a call `node` in `scope`.

    `spec` is its `input_spec` argument; with `is_saved`, it is static only once it is saved.
    """

    function: Scope
    mode: Mode
    node: ast.expr
    scope: Scope
    spec: ast.expr | None
    is_decorator: bool = False
    is_saved: bool = False


def is_layer(script: Script, cls: Scope) -> bool:
    """Return whether a class is a layer, through the classes of the workspace."""
    return any(is_layer_class(base) for base in script.names.library_bases(cls))


def no_place(script: Script, function: Scope, *, if_unseen: str) -> str:
    """Return the reason why Paddle raises for a static method; empty if it does not, `if_unseen` if
    unknown.
    """
    owner = function.owner()
    if owner is None:
        return ""
    if is_decorated(function, "classmethod"):
        return "Paddle cannot make a class method static"
    if is_decorated(function, "staticmethod") or is_layer(script, owner):
        return ""
    bases = script.names.ancestry(owner)
    node = owner.node
    if isinstance(node, ast.ClassDef) and node.bases and len(bases) == 1:
        return if_unseen
    known = all(not isinstance(each, str) or each.startswith("builtins.") for each in bases)
    return f"Paddle raises for a method of `{owner.name}`, which is not a layer" if known else if_unseen


def forward_of(script: Script, value: Value) -> Scope | None:
    """The function that runs when an object of the script is called: a layer's `forward`, or its
    `__call__`.
    """
    if isinstance(value, Function):
        return value.scope
    if isinstance(value, UserInstance):
        names = script.names
        return names.function_named(value.scope, "__call__") or names.function_named(value.scope, "forward")
    return None


def is_excluded(script: Script, function: Scope) -> bool:
    """Return whether a function is excluded from Paddle's conversion."""
    return any(True for _ in _decorating(script, function, NOT_TO_STATIC))


def entries(script: Script) -> Iterator[Entry]:
    """Yield the entries of a script, with the strongest mode of each."""
    for scope in script.scopes:
        if scope.kind == "function":
            for node in _decorating(script, scope, TO_STATIC):
                call = node if isinstance(node, ast.Call) else None
                if call is None or not _is_property(call):
                    spec = argument(call, 1, "input_spec") if call is not None else None
                    yield Entry(scope, _mode(call), node, scope.parent or scope, spec, is_decorator=True)
    for site in _calling(script, TO_STATIC | SAVING):
        names = script.names.full_names(site.node.func, site.scope, site.statement)
        is_saved = bool(names & SAVING)
        given = argument(site.node, 0, "function", "layer")
        if given is None or (not is_saved and _is_property(site.node)):
            continue
        spec = argument(site.node, 2 if is_saved else 1, "input_spec")
        mode = Mode.FULL if is_saved else _mode(site.node)
        for function in _given(script, given, site):
            yield Entry(function, mode, site.node, site.scope, spec, is_saved=is_saved)


def saves(script: Script) -> Iterator[Site]:
    """The calls that save or export a model."""
    yield from _calling(script, SAVING)


def _calling(script: Script, wanted: frozenset[str]) -> Iterator[Site]:
    spelled = {new for new, old in script.code.renamed_imports if old in _NAMES}
    imported = {imported_name(each) for each in script.imports}
    for site in script.sites_named(*_NAMES, *sorted(spelled)):
        root = root_name(site.node.func)
        if root is None or root.id not in imported:
            continue  # A method of an unknown object would be expensive to follow.
        if script.names.full_names(site.node.func, site.scope, site.statement) & wanted:
            yield site


def _given(script: Script, node: ast.expr, site: Site) -> Iterator[Scope]:
    """Yield the functions made static as an argument: for a layer, its `forward`."""

    def inside(value: Value) -> Iterable[Value]:
        first = argument(value.node, 0, "function", "layer") if isinstance(value, Instance) else None
        if first is None or not isinstance(value, Instance) or value.cls not in TO_STATIC:
            return ()
        inner = script.site_of(value.node)
        return script.names.values(first, inner.scope, inner.statement)

    for value in ordered(reachable(script.names.values(node, site.scope, site.statement), inside)):
        if isinstance(value, UserInstance):
            forward = script.names.function_named(value.scope, "forward")
            yield from [forward] if forward is not None else []
        elif isinstance(value, Function):
            yield value.scope


def _decorating(script: Script, function: Scope, wanted: frozenset[str]) -> Iterator[ast.expr]:
    """Yield a function's decorators that are one of some library functions."""
    home = script.home(function)
    for node in getattr(function.node, "decorator_list", ()):
        called = node.func if isinstance(node, ast.Call) else node
        if home.names.full_names(called, function.parent or function, function.statement) & wanted:
            yield node


def _mode(call: ast.Call | None) -> Mode:
    full = argument(call, None, "full_graph") if call is not None else None
    if full is None and call is not None and len(call.args) > 4:
        full = call.args[4]
    return Mode.FULL if isinstance(full, ast.Constant) and full.value is True else Mode.SOT


def _is_property(call: ast.Call) -> bool:
    given = argument(call, None, "property")
    return isinstance(given, ast.Constant) and given.value is True
