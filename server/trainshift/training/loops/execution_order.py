"""Execution order: the calls of a program in execution order, as far as the text shows.

All branches are followed, and each function once, at its first call or where it is passed to its caller.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from trainshift.core.program import Program
from trainshift.python.flow.cfg import reached
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.script import Script
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    Scope,
    Site,
    Statement,
    arguments,
    behind_main_guard,
)
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.loops.loops import LAUNCHERS

_Run: TypeAlias = Script | Scope | Statement | Site
"""Code that runs: a file, a function, a statement, or a call."""


class Course:
    """The course of one program's run."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._flow = program.fact(ControlFlow)

    def calls(self) -> Iterator[Site]:
        """Yield every call in execution order; stop early if only the first ones are needed."""
        run: Iterator[_Run] = reachable(
            [self._script.scripts[0]], lambda each: reversed([*self._run_by(each)])
        )
        return (each for each in run if isinstance(each, Site))

    @cached_property
    def index(self) -> dict[Site, int]:
        """The place of each of these calls."""
        return {site: number for number, site in enumerate(self.calls())}

    def _run_by(self, code: _Run) -> Iterator[_Run]:
        """The code that some code runs directly, in order."""
        if isinstance(code, Script):
            return self._in_block(code.top, started=code is self._script.scripts[0])
        if isinstance(code, Scope):
            return self._of_function(code)
        return self._of_statement(code) if isinstance(code, Statement) else self._of_call(code)

    def _in_block(self, block: list[Statement], *, started: bool = True) -> Iterator[Statement]:
        """Yield the statements that run without failures; in an imported file, those before the ``__main__``
        guard.
        """
        if not block:
            return
        cfg = self._flow.graph(block[0])
        guarded = [
            edge
            for edge, test, holds in self._flow.decisions(cfg)
            if not started and holds and test.statement is not None and _is_guard(test.statement)
        ]
        passed = reached([cfg.entry], cut=guarded, implicit=False)
        yield from self._flow.statements(point for point in cfg.all if point in passed)

    def _of_function(self, function: Scope) -> Iterator[_Run]:
        yield from self._of_lambdas.get(function, ())
        if function.statement is not None and function.statement.node is function.node:
            yield from self._in_block(function.statement.branches.get("body", []))

    def _of_statement(self, statement: Statement) -> Iterator[_Run]:
        """The calls in a statement, those of a class's body, and the files that an import runs."""
        yield from self._sites.get(statement, ())
        if isinstance(statement.node, ast.ClassDef):
            yield from self._in_block(statement.branches.get("body", []))
        for binding in self._imports.get(statement, ()):
            for imported in self._script.home(statement.scope).run_by_import(binding):
                if imported in self._script.scripts:
                    yield imported

    def _of_call(self, site: Site) -> Iterator[Scope]:
        """Yield the functions that a call runs or passes on."""
        yield from self._names.called_functions(site)
        for given in arguments(site.node):
            if isinstance(given, ast.Name | ast.Attribute | ast.Lambda):
                values = self._names.site_values(given, site)
                yield from (each.scope for each in values if isinstance(each, Function))
        yield from started_mains(self._script, site)

    @cached_property
    def _sites(self) -> dict[Statement, list[Site]]:
        found: dict[Statement, list[Site]] = {}
        for site in self._script.sites:
            if _lambda_of(site) is None:
                found.setdefault(site.statement, []).append(site)
        for sites in found.values():
            sites.sort(key=_end)
        return found

    @cached_property
    def _of_lambdas(self) -> dict[Scope, list[Site]]:
        """The calls in each lambda, which run when the lambda is called."""
        found: dict[Scope, list[Site]] = {}
        for site in sorted(self._script.sites, key=_end):
            function = _lambda_of(site)
            if function is not None:
                found.setdefault(function, []).append(site)
        return found

    @cached_property
    def _imports(self) -> dict[Statement, list[Binding]]:
        found: dict[Statement, list[Binding]] = {}
        for script in self._script.scripts:
            for binding in script.imports:
                if binding.statement is not None:
                    found.setdefault(binding.statement, []).append(binding)
        return found


def started_mains(script: Script, site: Site) -> Iterator[Scope]:
    """The function ``main`` of the file that is started, where a call runs it unnamed: ``tf.app.run()``."""
    if site.name != "run" or any(word.arg == "main" for word in site.node.keywords) or site.node.args:
        return
    if not script.names.full_names(site.node.func, site.scope, site.statement).isdisjoint(LAUNCHERS):
        for binding in script.scripts[0].module_bindings.get("main", ()):
            if binding.inner is not None and binding.kind == "function":
                yield binding.inner


def _lambda_of(site: Site) -> Scope | None:
    """The lambda around a call, if there is one."""
    function = site.scope.function() if site.deferred else None
    return function if function is not None and isinstance(function.node, ast.Lambda) else None


def _end(site: Site) -> tuple[int, int]:
    return site.node.end_lineno or 0, site.node.end_col_offset or 0


def _is_guard(statement: Statement) -> bool:
    """Return whether a statement is the code that runs only where its file is started."""
    body = statement.branches.get("body", [])
    return bool(body) and behind_main_guard(body[0])
