"""Members: what the lists of a script hold, such as the callbacks of a `fit`, and where that is written.

A list is followed from an expression through names, parameters, functions, sums and `append` to the
displays in which its elements stand.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from trainshift.core.names.script import Script
from trainshift.core.names.values import Display, Function, Instance, Literal, Module, UserInstance, Values
from trainshift.core.text.facts import Binding, Scope, Site, Statement, argument, dotted

_ADDING = ("append", "insert", "extend")
_COPYING = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted"})


@dataclass(frozen=True, eq=False, slots=True)
class Element:
    """One element: its expression, where it is read, and the `append` that adds it, if one does."""

    node: ast.expr
    scope: Scope
    statement: Statement | None
    added_by: Site | None = None


@dataclass(eq=False, slots=True)
class Members:
    """What an expression for a list may hold.

    `complete` is false where some of it cannot be seen, `may_be_none` tells that there may be no list at
    all, and `single` that the expression may be one object instead of a list.
    """

    elements: list[Element] = field(default_factory=list)
    complete: bool = True
    may_be_none: bool = False
    single: bool = False


def members(script: Script, node: ast.expr, scope: Scope, statement: Statement | None) -> Members:
    """What the list that `node` stands for may hold, read in `scope` at `statement`."""
    reader = _Reader(script)
    reader.read(node, scope, statement)
    reader.read_additions()
    return reader.found


class _Reader:
    def __init__(self, script: Script) -> None:
        self._script = script
        self._names = script.names
        self._seen: set[tuple[int, int]] = set()
        self._displays: set[ast.expr] = set()
        self._called: set[str] = set()
        self.found = Members()

    def read(self, node: ast.expr, scope: Scope, statement: Statement | None) -> None:
        key = (id(node), id(scope))
        if key in self._seen:
            return
        self._seen.add(key)
        if isinstance(node, ast.List | ast.Tuple):
            self._displays.add(node)
            for element in node.elts:
                if isinstance(element, ast.Starred):
                    self.read(element.value, scope, statement)
                else:
                    self.found.elements.append(Element(element, scope, statement))
        elif isinstance(node, ast.Constant) and node.value is None:
            self.found.may_be_none = True
        elif isinstance(node, ast.IfExp):
            self._read_all((node.body, node.orelse), scope, statement)
        elif isinstance(node, ast.BoolOp):
            self._read_all(node.values, scope, statement)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            self._read_all((node.left, node.right), scope, statement)
        elif isinstance(node, ast.Name):
            self._read_name(node, scope, statement)
        elif isinstance(node, ast.Attribute):
            self._read_attribute(node, scope, statement)
        elif isinstance(node, ast.Call):
            self._read_call(node, scope, statement)
        elif isinstance(node, ast.ListComp | ast.GeneratorExp):
            self._read_comprehension(node, scope, statement)
        else:
            self._read_values(self._names.values(node, scope, statement))

    def _read_all(self, nodes: Iterable[ast.expr], scope: Scope, statement: Statement | None) -> None:
        for node in nodes:
            self.read(node, scope, statement)

    def _read_comprehension(
        self, node: ast.ListComp | ast.GeneratorExp, scope: Scope, statement: Statement | None
    ) -> None:
        """Elements that are picked from another list, or made one by one."""
        inner, first = scope.facts.scope_of[node], node.generators[0]
        if (
            isinstance(node.elt, ast.Name)
            and dotted(first.target) == node.elt.id
            and len(node.generators) == 1
        ):
            self.read(first.iter, inner, statement)
        else:
            self.found.elements.append(Element(node.elt, inner, statement))

    def _read_name(self, node: ast.Name, scope: Scope, statement: Statement | None) -> None:
        self._called.add(node.id)
        _, bindings = self._names.lookup(node.id, scope, statement)
        self._read_bindings(bindings)

    def _read_attribute(self, node: ast.Attribute, scope: Scope, statement: Statement | None) -> None:
        self._called.add(dotted(node))
        bindings = [
            each.binding
            for each in self._script.attribute_bindings(node.attr)
            if dotted(each.base) == dotted(node.value)
        ]
        if bindings:
            self._read_bindings(bindings)
        else:
            self._read_values(self._names.values(node, scope, statement))

    def _read_bindings(self, bindings: list[Binding]) -> None:
        self.found.complete = self.found.complete and bool(bindings)
        for binding in bindings:
            if binding.kind == "value" and binding.value is not None and not binding.path:
                self.read(binding.value, binding.scope, binding.statement)
            elif binding.kind == "parameter" and binding.inner is not None:
                self._read_parameter(binding, binding.inner)
            elif binding.value is not None:
                self._read_values(self._names.bound(binding))
            else:
                self.found.complete = False

    def _read_parameter(self, binding: Binding, function: Scope) -> None:
        assert isinstance(binding.target, ast.arg)
        sites, elsewhere = self._names.callers(function)
        self.found.complete = self.found.complete and not elsewhere
        if binding.value is not None:
            self.read(binding.value, binding.scope, None)
        for site in sites:
            given = self._names.argument(site, function, binding.target.arg)
            if given is not None:
                self.read(given, site.scope, site.statement)
            elif binding.value is None:
                self.found.complete = False

    def _read_call(self, node: ast.Call, scope: Scope, statement: Statement | None) -> None:
        copied = self._names.full_names(node.func, scope, statement) & _COPYING
        if copied and node.args:
            self.read(node.args[0], scope, statement)
            return
        if copied:
            return
        for value in self._names.values(node.func, scope, statement):
            if isinstance(value, Function):
                for returned, where in value.scope.returns:
                    self.read(returned, value.scope, where)
            else:
                self._read_values(self._names.values(node, scope, statement))

    def _read_values(self, values: Values) -> None:
        for value in values:
            if isinstance(value, Display):
                self.read(value.node, value.scope, value.statement)
            elif isinstance(value, Instance | UserInstance):
                self.found.single = True
            elif isinstance(value, Literal) and value.value is None:
                self.found.may_be_none = True
            elif not isinstance(value, Module):
                self.found.complete = False

    def read_additions(self) -> None:
        """What `append` and its like add to the lists that have been found."""
        done: set[Site] = set()
        while True:  # A list that is added may be added to in turn.
            fresh = [site for site in self._additions() if site not in done]
            if not fresh:
                return
            for site in fresh:
                done.add(site)
                given = argument(site.node, 1 if site.name == "insert" else 0)
                if given is None:
                    self.found.complete = False
                elif site.name == "extend":
                    self.read(given, site.scope, site.statement)
                else:
                    self.found.elements += self._handed_on(given, site) or [
                        Element(given, site.scope, site.statement, site)
                    ]

    def _handed_on(self, given: ast.expr, site: Site) -> list[Element]:
        """What the callers of a function add whose whole body is to append its parameter."""
        function = site.scope.function()
        if not isinstance(given, ast.Name) or function is None or function.statement is None:
            return []
        body = [each for each in function.statement.branches.get("body", ()) if not _is_docstring(each)]
        if body != [site.statement] or given.id not in function.bindings:
            return []
        sites, elsewhere = self._names.callers(function)
        found = [(self._names.argument(caller, function, given.id), caller) for caller in sites]
        if elsewhere or not all(node is not None for node, _ in found):
            return []
        return [Element(node, at.scope, at.statement, at) for node, at in found if node is not None]

    def _additions(self) -> Iterator[Site]:
        for site in self._script.sites_named(*_ADDING):
            if isinstance(site.node.func, ast.Attribute) and dotted(site.node.func.value):
                values = self._names.site_values(site.node.func.value, site)
                held = {value.node for value in values if isinstance(value, Display)}
                if held & self._displays or (not held and dotted(site.node.func.value) in self._called):
                    yield site


def _is_docstring(statement: Statement) -> bool:
    return isinstance(statement.node, ast.Expr) and isinstance(statement.node.value, ast.Constant)
