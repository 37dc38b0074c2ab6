"""Flow: which calls' results reach an expression, through names, containers and functions.

Read backwards from the expression.  A call that is not wanted and not of a function of the script
passes its receiver and its arguments on; what is wanted is not looked behind.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Generic, TypeVar

from trainshift.core.names.occurrence import Occurrence, Step
from trainshift.core.names.script import Script
from trainshift.core.text.facts import COMPREHENSIONS, Scope, Statement, arguments, last_name

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
        if isinstance(node, ast.Name | ast.Attribute):
            self._step(self._script.names.steps_back(Occurrence(node, scope, statement)))
            for item in self._script.names.additions(node):
                self._step(self._script.names.source_of(item.binding))
            if isinstance(node, ast.Attribute):
                self._lead(node.value, scope, statement)
        elif isinstance(node, ast.Call):
            self._call(node, scope, statement)
        elif isinstance(node, COMPREHENSIONS):
            inner = scope.facts.scope_of[node]
            parts = [node.value] if isinstance(node, ast.DictComp) else [node.elt]
            for part in [*parts, *(generator.iter for generator in node.generators)]:
                self._lead(part, inner, statement)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self._lead(child, scope, statement)

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
            called = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            self._lead(called, scope, statement)
            for argument in arguments(node):
                self._lead(argument, scope, statement)

    def _step(self, step: Step | None) -> None:
        """Follow what gives a name or an attribute its value, or else all that this is taken out of."""
        for each in (*step.sources, *step.within) if step is not None else ():
            self._lead(each.node, each.scope, each.statement)
            if each.site is None:
                self._lead_conditions(each.statement)
