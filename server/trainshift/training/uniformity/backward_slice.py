"""Backward slice: all sources of an expression's value, including the code of generators and classes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Function, UserInstance
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement
from trainshift.python.values.made_objects import MadeObjects
from trainshift.training.execution.graph_slice import occurrences_behind
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.horovod_api import SIZE

# Calls that make weights, and objects that only pass data through.
_WEIGHTS = frozenset({"Variable", "get_variable", "Adam", "SGD", "DistributedOptimizer", "placeholder"})
_PARTS = (*api.VARIABLE, *api.OPTIMIZERS, *api.METRIC, *api.CHECKPOINT)


class Trails:
    """The backward slices of values in one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._known: dict[tuple[ast.expr, Scope, bool, bool], list[Occurrence]] = {}
        self._methods_of: dict[Scope, tuple[Scope, ...]] = {}

    def behind(self, at: Occurrence, of_data: bool = False, whole: bool = False) -> list[Occurrence]:
        """The expressions that lead to an expression, itself first; `of_data` leaves out those that create
        weights.

        With objects taken as a `whole`, the entire contents of one lead to each of its attributes.
        """
        key = at.node, at.scope, of_data, whole
        if key not in self._known:
            self._known[key] = self._follow(at, self._of_weights if of_data else {}, whole)
        return self._known[key]

    def _follow(self, start: Occurrence, stops: dict[ast.Call, Site], whole: bool) -> list[Occurrence]:
        found: list[Occurrence] = []
        seen: set[tuple[int, int]] = set()
        entered: set[Scope] = set()

        def run_for(each: Occurrence) -> Iterator[Occurrence]:
            """Yield the reads and calls in functions that run while a value is computed, but are not its
            sources.
            """
            for at in occurrences_behind(self._script, *each[:3], stops, whole, seen):
                found.append(at)
                if at.node not in stops:
                    for scope in self._run_by(at):
                        if scope not in entered:
                            entered.add(scope)
                            yield from map(of_call, self.calls_in(scope))
                            yield from self._read_in(scope)

        for _ in reachable([start], run_for, _place):
            pass
        return found

    @cached_property
    def _of_weights(self) -> dict[ast.Call, Site]:
        """The calls that create variables, optimizers and other objects that are not data."""
        made = (
            site
            for site, values in self._program.fact(MadeObjects).all
            if self._names.may_be(values, *_PARTS) and not self._names.called_functions(site)
        )
        return {site.node: site for site in (*self._script.sites_named(*_WEIGHTS), *made)}

    def _run_by(self, at: Occurrence) -> Iterator[Scope]:
        """Yield the functions whose whole code affects a value: generators, methods, callbacks."""
        if not isinstance(at.node, ast.Name | ast.Attribute | ast.Lambda | ast.Call):
            return
        if isinstance(at.node, ast.Lambda):
            yield at.scope.facts.scope_of[at.node]
            return
        if isinstance(at.node, ast.Call):
            functions = self._names.called_functions(self._script.site_of(at.node))
            yield from (each for each in functions if each.is_generator)
        for value in self._names.values(at.node, at.scope, at.statement):
            if isinstance(value, Function):
                yield value.scope
            elif isinstance(value, UserInstance):
                yield from self._methods(value.scope)

    def _methods(self, cls: Scope) -> tuple[Scope, ...]:
        known = self._methods_of.get(cls)
        if known is None:
            known = self._methods_of[cls] = tuple(
                binding.inner
                for each in self._names.ancestry(cls)
                if isinstance(each, Scope)
                for bindings in each.bindings.values()
                for binding in bindings
                if binding.inner and binding.kind == "function"
            )
        return known

    def calls_in(self, function: Scope) -> list[Site]:
        """The calls in a function's own code, including nested functions."""
        return self._by_function.get(function, [])

    def _read_in(self, function: Scope) -> Iterator[Occurrence]:
        """Yield the values that a function yields, iterates over and slices."""
        for statement in self._statements.get(function, ()):
            node = statement.node
            value: ast.expr | None = None
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom):
                value = node.value.value
            elif isinstance(node, ast.For | ast.AsyncFor):
                value = node.iter
            elif isinstance(node, ast.Assign | ast.AugAssign | ast.Return):
                value = node.value
            if value is not None:
                yield Occurrence(value, statement.scope, statement)

    @cached_property
    def _around(self) -> dict[Scope, list[Scope]]:
        """The enclosing functions of each scope's code."""
        scopes = {
            *(each.scope for each in self._script.sites),
            *(each.scope for each in self._script.statements),
        }
        return {scope: list(scope.functions()) for scope in scopes}

    @cached_property
    def _by_function(self) -> dict[Scope, list[Site]]:
        found: dict[Scope, list[Site]] = {}
        for site in self._script.sites:
            for scope in self._around[site.scope]:
                found.setdefault(scope, []).append(site)
        return found

    @cached_property
    def _statements(self) -> dict[Scope, list[Statement]]:
        found: dict[Scope, list[Statement]] = {}
        for statement in self._script.statements:
            for scope in self._around[statement.scope]:
                found.setdefault(scope, []).append(statement)
        return found

    # The number of ranks in the code of functions

    @cached_property
    def _sizes(self) -> set[Site]:
        return set(self._horovod.calls(*SIZE))

    def mentions_size(self, cls: Scope) -> bool:
        """Return whether a method of a class reads the number of ranks."""
        return any(self._asks_size(method) for method in self._methods(cls))

    def function_mentions_size(self, at: Occurrence) -> bool:
        """Return whether the function of an expression depends on the number of ranks."""
        return any(self._asks_size(scope) for scope in self._run_by(at))

    def _asks_size(self, function: Scope) -> bool:
        if any(site in self._sizes for site in self.calls_in(function)):
            return True
        for read in self._read_in(function):
            if any(
                isinstance(each.node, ast.Call) and self._script.site_of(each.node) in self._sizes
                for each in self.behind(read)
            ):
                return True
        return False

    def calls(self, trail: Iterable[Occurrence]) -> list[Site]:
        """The calls of a trail."""
        return [self._script.site_of(each.node) for each in trail if isinstance(each.node, ast.Call)]


def _place(at: Occurrence) -> tuple[ast.expr, Scope]:
    return at.node, at.scope
