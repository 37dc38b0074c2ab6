"""Flow: which calls' results reach an expression, through names, containers and functions.

Read backwards from the expression.  A call that is not wanted and not of a function of the script
passes its receiver and its arguments on; what is wanted is not looked behind.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Generic, TypeVar

from trainshift.core.names.classes import is_property
from trainshift.core.names.script import Script
from trainshift.core.names.values import Display, UserInstance
from trainshift.core.text.facts import Binding, Scope, Statement, arguments, dotted, last_name

T = TypeVar("T")


def reaching_calls(
    script: Script,
    wanted: Mapping[ast.Call, T],
    node: ast.expr,
    scope: Scope,
    statement: Statement | None,
) -> list[T]:
    """Those of the `wanted` calls whose results reach `node`, in the order found."""
    flow = _Slice(script, wanted)
    flow.follow(node, scope, statement)
    return list(flow.found)


def calls_behind(script: Script, node: ast.expr, scope: Scope, statement: Statement | None) -> set[ast.Call]:
    """Every call whose result may reach `node`, those of the script's functions included."""
    flow: _Slice[None] = _Slice(script, {})
    flow.follow(node, scope, statement)
    return flow.calls


class _Slice(Generic[T]):
    def __init__(self, script: Script, wanted: Mapping[ast.Call, T]) -> None:
        self._script = script
        self._wanted = wanted
        self._seen: set[tuple[int, int]] = set()
        # What the visit of one expression leads to, in order.
        self._next: list[tuple[ast.expr, Scope, Statement | None]] = []
        self.found: dict[T, None] = {}
        self.calls: set[ast.Call] = set()

    def follow(self, node: ast.expr, scope: Scope, statement: Statement | None) -> None:
        """Visit the expression and all that leads to it, depth first, however long the way."""
        waiting = [(node, scope, statement)]
        while waiting:
            each = waiting.pop()
            key = (id(each[0]), id(each[1]))
            if key not in self._seen:
                self._seen.add(key)
                self._next = []
                self._visit(*each)
                waiting += reversed(self._next)

    def _visit(self, node: ast.expr, scope: Scope, statement: Statement | None) -> None:
        if isinstance(node, ast.Name):
            _, bindings = self._script.names.lookup(node.id, scope, statement)
            for binding in bindings:
                self._binding(binding)
            self._additions(node)
        elif isinstance(node, ast.Attribute):
            for attribute in self._script.attribute_bindings(node.attr):
                if dotted(attribute.base) == dotted(node.value):
                    self._binding(attribute.binding)
            self._own_attribute(node, scope, statement)
            self._additions(node)
            self._lead(node.value, scope, statement)
        elif isinstance(node, ast.Call):
            self._call(node, scope, statement)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            inner = scope.facts.scope_of[node]
            parts = [node.value] if isinstance(node, ast.DictComp) else [node.elt]
            for part in [*parts, *(generator.iter for generator in node.generators)]:
                self._lead(part, inner, statement)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self._lead(child, scope, statement)

    def _own_attribute(self, node: ast.Attribute, scope: Scope, statement: Statement | None) -> None:
        """What the methods of a class of the script set as an attribute of its objects, or give for it."""
        names = self._script.names
        for value in names.values(node.value, scope, statement):
            if not isinstance(value, UserInstance):
                continue
            family = names.ancestry(value.scope)
            for attribute in self._script.attribute_bindings(node.attr):
                function = attribute.binding.scope.function()
                if function is not None and function.owner() in family:
                    self._binding(attribute.binding)
            method = names.function_named(value.scope, node.attr)
            if method is not None and is_property(method):
                for returned, where in method.returns:
                    self._lead(returned, method, where)

    def _lead_conditions(self, statement: Statement | None) -> None:
        """The operations that a graph runs before those which the statement makes."""
        for above in statement.ancestors() if statement is not None else ():
            items = above.node.items if isinstance(above.node, ast.With) else []
            for item in items:
                call = item.context_expr
                if isinstance(call, ast.Call) and last_name(call.func) == "control_dependencies":
                    for given in arguments(call):
                        self._lead(given, above.scope, above)

    def _lead(self, node: ast.expr, scope: Scope, statement: Statement | None) -> None:
        self._next.append((node, scope, statement))

    def _call(self, node: ast.Call, scope: Scope, statement: Statement | None) -> None:
        self.calls.add(node)
        if node in self._wanted:
            self.found[self._wanted[node]] = None
            return
        functions = self._script.names.called_functions(self._script.site_of(node))
        for function in functions:
            for value, where in function.returns:
                self._lead(value, function, where)
                self._lead_conditions(where)
        if not functions:
            if isinstance(node.func, ast.Attribute):
                self._lead(node.func.value, scope, statement)
            for argument in arguments(node):
                self._lead(argument, scope, statement)

    def _binding(self, binding: Binding) -> None:
        if binding.kind == "parameter" and binding.inner is not None:
            assert isinstance(binding.target, ast.arg)
            for site in self._script.names.callers(binding.inner)[0]:
                given = self._script.names.argument(site, binding.inner, binding.target.arg)
                if given is not None:
                    self._lead(given, site.scope, site.statement)
        elif binding.value is not None:
            self._part(binding.value, binding.path, binding.scope, binding.statement)
            self._lead_conditions(binding.statement)

    def _part(self, node: ast.expr, path: tuple[int, ...], scope: Scope, statement: Statement | None) -> None:
        """The element that tuple unpacking takes, where the tuple is written out."""
        if path and path[0] >= 0:
            values = self._script.names.values(node, scope, statement)
            shown = [value for value in values if isinstance(value, Display)]
            if shown and len(shown) == len(values):
                for value in shown:
                    elements = getattr(value.node, "elts", None)
                    if elements is not None and path[0] < len(elements):
                        self._part(elements[path[0]], path[1:], value.scope, value.statement)
                    else:
                        self._lead(value.node, value.scope, value.statement)
                return
        self._lead(node, scope, statement)

    def _additions(self, node: ast.expr) -> None:
        for item in self._script.item_bindings(last_name(node)):
            if dotted(item.base) == dotted(node) != "":
                self._binding(item.binding)
