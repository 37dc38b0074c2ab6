"""The backward slice of an operation of a graph: the calls whose results reach it.

Names, containers and functions are read backwards from the expression.  A call that is neither wanted nor of
a function of the script passes its receiver and its arguments on; wanted calls are not followed further.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from operator import itemgetter
from typing import Generic, TypeVar

from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.occurrence import Keyed, Occurrence, Step
from trainshift.python.names.script import Script
from trainshift.python.names.values import UNKNOWN, Library
from trainshift.python.syntax.chunk_syntax import (
    COMPREHENSIONS,
    Scope,
    Statement,
    arguments,
    children,
    last_name,
)

T = TypeVar("T")
_FIRST = itemgetter(0)


def reaching_calls(
    script: Script,
    wanted: Mapping[ast.Call, T],
    node: ast.expr,
    scope: Scope,
    statement: Statement | None,
    through_objects: bool = True,
) -> list[T]:
    """The calls among `wanted` whose results reach `node`, in the order found.

    Without `through_objects`, the constructor arguments of a library's object do not count as reaching its
    attributes.
    """
    if not wanted:
        return []
    flow = _Slice(script, wanted, through_objects)
    flow.follow(Occurrence(node, scope, statement))
    return list(flow.found)


def is_reached(
    script: Script,
    wanted: Mapping[ast.Call, T],
    node: ast.expr,
    scope: Scope,
    statement: Statement | None,
    through_objects: bool = True,
) -> bool:
    """Return whether the result of one of the `wanted` calls reaches `node`, like `reaching_calls`."""
    flow = _Slice(script, wanted, through_objects)
    if wanted:
        flow.follow(Occurrence(node, scope, statement), is_first_enough=True)
    return bool(flow.found)


def calls_behind(script: Script, node: ast.expr, scope: Scope, statement: Statement | None) -> set[ast.Call]:
    """Every call whose result may reach `node`, including those in the script's functions."""
    flow: _Slice[None] = _Slice(script, {})
    flow.follow(Occurrence(node, scope, statement))
    return flow.calls


def occurrences_behind(
    script: Script,
    node: ast.expr,
    scope: Scope,
    statement: Statement | None,
    stops: Mapping[ast.Call, T],
    whole: bool = True,
    seen: set[tuple[int, int]] | None = None,
) -> list[Occurrence]:
    """Every expression whose value may reach `node`, where it is read, up to `stops`.

    Unless objects are taken as a `whole`, their other contents do not reach a known attribute. Expressions in
    `seen`, and everything behind them, are left out; the others are added to it.
    """
    flow = _Slice(script, stops, whole=whole, seen=seen)
    flow.follow(Occurrence(node, scope, statement))
    return flow.visited


def _keyed(at: Occurrence) -> Keyed:
    return (id(at.node), id(at.scope)), at


class _Slice(Generic[T]):
    def __init__(
        self,
        script: Script,
        wanted: Mapping[ast.Call, T],
        through_objects: bool = True,
        whole: bool = True,
        seen: set[tuple[int, int]] | None = None,
    ) -> None:
        self._script = script
        self._wanted = wanted
        self._through_objects = through_objects
        self._whole = whole
        self._memo = script.names.memo
        self._flows = self._memo.flows.setdefault((through_objects, whole), {})
        self._is_controlled = next(script.sites_named("control_dependencies"), None) is not None
        self._seen: set[tuple[int, int]] = set() if seen is None else seen
        # The successors of one visited occurrence, in order.
        self._next: list[Occurrence] = []
        self.found: dict[T, None] = {}
        self.calls: set[ast.Call] = set()
        self.visited: list[Occurrence] = []

    def follow(self, at: Occurrence, is_first_enough: bool = False) -> None:
        """Visit the occurrence and everything that leads to it, depth first, without a limit."""
        for _, each in reachable([_keyed(at)], self._before, _FIRST, self._seen):
            self.visited.append(each)
            if isinstance(each.node, ast.Call):
                self.calls.add(each.node)
                if each.node in self._wanted:
                    self.found[self._wanted[each.node]] = None
                    if is_first_enough:
                        return

    def _before(self, keyed: Keyed) -> tuple[Keyed, ...]:
        """The occurrences one step back from an occurrence, last first; cached, because a script has many
        slices.
        """
        key, at = keyed
        if isinstance(at.node, ast.Call) and at.node in self._wanted:
            return ()
        known = self._flows.get(key)
        if known is None:
            self._next = []
            self._visit(at)
            known = tuple(map(_keyed, reversed(self._next)))
            if self._memo.is_idle:
                self._flows[key] = known
        return known

    def _visit(self, at: Occurrence) -> None:
        node, names = at.node, self._script.names
        if isinstance(node, (ast.Name, ast.Attribute)):
            if names.member_of_library(node):
                return  # The other results of a library do not contain a value stored by `tf.assign(v, x)`.
            step = names.steps_back(at)
            self._step(step)
            for item in names.additions(at):
                self._step(names.source_of(item.binding))
            is_seen = step is not None and step.sources and not step.unseen
            if isinstance(node, ast.Attribute) and (self._whole or not is_seen):
                self._next.append(at.part(node.value))
        elif isinstance(node, ast.Call):
            self._call(node, at)
        elif isinstance(node, COMPREHENSIONS):
            inner = Occurrence(node, at.scope.facts.scope_of[node], at.statement)
            parts = [node.value] if isinstance(node, ast.DictComp) else [node.elt]
            self._next += map(inner.part, [*parts, *(generator.iter for generator in node.generators)])
        else:
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                self._step(names.item(at))  # Also values stored in a nested container.
            self._next += [at.part(each) for each in children(node) if isinstance(each, ast.expr)]

    def _call(self, node: ast.Call, at: Occurrence) -> None:
        names, site = self._script.names, self._script.site_of(node)
        functions = names.called_functions(site)
        for function in functions:
            for value, where in function.returns:
                self._next.append(Occurrence(value, function, where))
                self._conditions(where)
            for given, where in function.yields:
                if given.value is not None:
                    self._next.append(Occurrence(given.value, function, where))
        callee = names.callee(site)
        makes = any(isinstance(value, Library) and api.is_class(value.name) for value in callee)
        if makes and not self._through_objects:
            return
        if isinstance(node.func, ast.Attribute) and node.func.attr == "run" and self._is_session(node, at):
            return  # It returns values, which are no longer operations.
        if not functions or UNKNOWN in callee:
            called = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            self._next += map(at.part, [called, *arguments(node)])

    def _is_session(self, node: ast.Call, at: Occurrence) -> bool:
        """Return whether the method that is called is that of a TensorFlow 1 session."""
        assert isinstance(node.func, ast.Attribute)
        owner = self._script.names.values(node.func.value, at.scope, at.statement)
        return self._script.names.may_be(owner, *api.SESSION, *api.MONITORED_SESSION)

    def _step(self, step: Step | None) -> None:
        """Follow the source of a name's or attribute's value, or the object that contains it."""
        for each in (*step.sources, *step.within) if step is not None else ():
            self._next.append(each)
            if each.site is None:
                self._conditions(each.statement)

    def _conditions(self, statement: Statement | None) -> None:
        """Follow the operations that a graph runs before the statement's own."""
        if not self._is_controlled:
            return
        for above in statement.ancestors() if statement is not None else ():
            items = above.node.items if isinstance(above.node, ast.With) else []
            for item in items:
                call = item.context_expr
                if isinstance(call, ast.Call) and last_name(call.func) == "control_dependencies":
                    self._next += [Occurrence(given, above.scope, above) for given in arguments(call)]
