"""Origins: the calls that make what an expression stands for, to tell one model from another.

Followed through names, attributes, tuples, parameters, functions and the files of the workspace.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from trainshift.core.names.classes import class_around
from trainshift.core.names.values import Class, Display, Function, Library, Module, Unknown, UserInstance
from trainshift.core.program import Program
from trainshift.core.text.facts import (
    Binding,
    Scope,
    Statement,
    dotted,
)

# A model is not followed through more names than this to see whether it shares another's weights.
_MOST_PARTS = 400
_SUPER = Library("builtins.super")
# Neither is anything traced through more steps than this.
_DEEPEST = 40


@dataclass(frozen=True, slots=True)
class Place:
    """An expression where it is read: what it stands for depends on that."""

    node: ast.expr
    scope: Scope
    statement: Statement | None


class Origins:
    """Where the objects of one program come from."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._known: dict[tuple[int, int], frozenset[ast.AST | None]] = {}
        self._tracing = 0

    def creations(self, place: Place) -> frozenset[ast.AST]:
        """The calls that make what an expression stands for; empty if they cannot be seen."""
        return frozenset(node for node in self.of(place) if node is not None)

    def of(self, place: Place) -> frozenset[ast.AST | None]:
        """The calls that make what an expression stands for; None among them for what cannot be seen."""
        key = (id(place.node), id(place.scope))
        if key not in self._known:
            if self._tracing >= _DEEPEST:
                return frozenset({None})
            self._known[key] = frozenset()  # asked again while it is being answered: a cycle
            self._tracing += 1
            self._known[key] = frozenset(self._trace(place))
            self._tracing -= 1
        return self._known[key]

    def _trace(self, place: Place) -> Iterator[ast.AST | None]:
        node, names = place.node, self._names
        if isinstance(node, ast.Call):
            yield from self._trace_call(node, place)
        elif isinstance(node, ast.Name) and names.is_self(node, place.scope):
            yield from self._trace_self(place)
        elif isinstance(node, ast.Name):
            bindings = names.lookup(node.id, place.scope, place.statement)[1]
            for binding in bindings:
                yield from self._trace_binding(binding)
            if not bindings:
                yield None
        elif isinstance(node, ast.Attribute):
            yield from self._trace_attribute(node, place)
        elif isinstance(node, ast.IfExp):
            for part in (node.body, node.orelse):
                yield from self.of(Place(part, place.scope, place.statement))
        elif isinstance(node, ast.Subscript):
            yield from self._trace_elements(node.value, place)
        elif not (isinstance(node, ast.Constant) and node.value is None):
            yield None

    def _trace_call(self, node: ast.Call, place: Place) -> Iterator[ast.AST | None]:
        """A call makes an object of its own, unless its function gives what is made outside of it."""
        values = self._names.values(node.func, place.scope, place.statement)
        owner = class_around(place.scope)
        if owner is not None and _SUPER in values:
            yield from self._trace_class(owner)
            return
        functions = [value.scope for value in values if isinstance(value, Function)]
        if not values or any(isinstance(value, Unknown) for value in values):
            yield None
        outside: set[ast.AST | None] = set()
        inside = not functions
        for function in functions:
            for value, statement in function.returns:
                for made in self.of(Place(value, function, statement)):
                    site = self._script.site_of(made) if isinstance(made, ast.Call) else None
                    if site is not None and site.scope.function() is not function:
                        outside.add(made)
                    else:
                        inside = True
        if inside or not outside:
            yield node
        yield from outside

    def _trace_attribute(self, node: ast.Attribute, place: Place) -> Iterator[ast.AST | None]:
        names, found = self._names, 0
        for attribute in self._script.home(place.scope).attribute_bindings(node.attr):
            if dotted(attribute.base) == dotted(node.value):
                found += 1
                yield from self._trace_binding(attribute.binding)
        for value in names.values(node.value, place.scope, place.statement):
            if isinstance(value, UserInstance):
                heirs = names.heirs(value.scope) if value.node is None else []
                for cls in (*names.ancestry(value.scope), *heirs):
                    if not isinstance(cls, Scope):
                        continue
                    for attribute in self._script.home(cls).attribute_bindings(node.attr):
                        function = attribute.binding.scope.function()
                        if function is not None and function.owner() is cls:
                            found += 1
                            yield from self._trace_binding(attribute.binding)
            elif isinstance(value, Module) and self._script.workspace is not None:
                script = self._script.workspace.script(value.path)
                for binding in script.module_bindings.get(node.attr, ()) if script is not None else ():
                    found += 1
                    yield from self._trace_binding(binding)
        if not found:
            yield None

    def _trace_self(self, place: Place) -> Iterator[ast.AST | None]:
        for value in self._names.values(place.node, place.scope, place.statement):
            if isinstance(value, UserInstance):
                yield from self._trace_class(value.scope)

    def _trace_class(self, cls: Scope) -> Iterator[ast.AST | None]:
        """What makes the objects of a class of the script, or of one that derives from it."""
        names = self._names
        for each in (cls, *names.heirs(cls)):
            # The class itself stands for an object whose making is not seen.
            yield each.node
            for script in self._script.home(each).users:
                for site in script.sites_named(each.name):
                    if any(isinstance(v, Class) and v.scope is each for v in names.callee(site)):
                        yield site.node

    def _trace_elements(self, node: ast.expr, place: Place) -> Iterator[ast.AST | None]:
        """What the elements of a list or a comprehension are made by."""
        for value in self._names.values(node, place.scope, place.statement):
            parts: list[ast.expr] = []
            scope = place.scope
            if isinstance(value, Display):
                scope = value.scope
                if isinstance(value.node, ast.List | ast.Tuple | ast.Set):
                    parts = value.node.elts
                elif isinstance(value.node, ast.Dict):
                    parts = value.node.values
                elif isinstance(value.node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
                    parts, scope = [value.node.elt], scope.facts.scope_of[value.node]
            for part in parts:
                yield from self.of(Place(part, scope, getattr(value, "statement", None)))
            if not parts:
                yield None

    def _trace_binding(self, binding: Binding) -> Iterator[ast.AST | None]:
        if binding.kind == "parameter" and binding.inner is not None:
            assert isinstance(binding.target, ast.arg)
            names = self._names
            sites, elsewhere = names.callers(binding.inner)
            for site in sites:
                given = names.argument(site, binding.inner, binding.target.arg)
                if given is not None:
                    yield from self.of(Place(given, site.scope, site.statement))
                elif binding.value is None:
                    yield None
            if elsewhere:
                yield None
        elif binding.kind == "import":
            origins = list(self._imported(binding))
            for origin in origins:
                yield from self._trace_binding(origin)
            if not origins:
                yield None
        elif binding.value is None:
            yield None
        elif binding.kind == "element":
            yield from self._trace_elements(
                binding.value, Place(binding.value, binding.scope, binding.statement)
            )
        elif binding.path:
            yield from self._trace_path(
                binding.value, binding.path, Place(binding.value, binding.scope, binding.statement)
            )
        else:
            yield from self.of(Place(binding.value, binding.scope, binding.statement))

    def _trace_path(self, node: ast.expr, path: tuple[int, ...], place: Place) -> Iterator[ast.AST | None]:
        """What tuple unpacking takes, where the tuple is written out."""
        for value in self._names.values(node, place.scope, place.statement):
            elements = getattr(value.node, "elts", []) if isinstance(value, Display) else []
            if isinstance(value, Display) and len(path) == 1 and 0 <= path[0] < len(elements):
                yield from self.of(Place(elements[path[0]], value.scope, value.statement))
            else:
                yield None

    def built_from(self, place: Place, wanted: frozenset[ast.AST | None]) -> bool:
        """Whether a model is made of another one, whose weights it then shares."""
        seen: set[ast.AST] = set()
        sites = [self._script.site_of(made) for made in self.creations(place) if isinstance(made, ast.Call)]
        parts: list[tuple[ast.AST, Scope, Statement | None]] = []
        for site in sites:
            parts += [(part, site.scope, site.statement) for part in ast.walk(site.node)]
        while parts:
            part, scope, statement = parts.pop()
            if part in seen or not isinstance(part, ast.Name | ast.Attribute):
                continue
            seen.add(part)
            if len(seen) > _MOST_PARTS:
                return False
            if not (self.of(Place(part, scope, statement)) & wanted) <= {None}:
                return True
            if isinstance(part, ast.Name):
                for binding in self._names.lookup(part.id, scope, statement)[1]:
                    if binding.kind == "value" and binding.value is not None:
                        parts += [(p, binding.scope, binding.statement) for p in ast.walk(binding.value)]
        return False

    def _imported(self, binding: Binding) -> Iterator[Binding]:
        """What gives an imported name its value, in whatever file; files may import it from each other."""
        workspace = self._script.workspace
        seen: set[Binding] = set()
        waiting = [binding] if workspace is not None else []
        while waiting and workspace is not None:
            each = waiting.pop()
            if each in seen:
                continue
            seen.add(each)
            if each.kind != "import":
                yield each
                continue
            path, names = workspace.locate(workspace.home(each.scope), each.full_name)
            script = workspace.script(path) if path and len(names) == 1 else None
            if script is not None:
                waiting += script.module_bindings.get(names[0], [])
