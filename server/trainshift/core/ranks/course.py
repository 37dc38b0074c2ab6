"""Course: the calls of a program in the order in which a run comes to them, as far as the text tells.

Branches are all gone through, and each function once, where it is first called or handed to what runs it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.core.training.loops import LAUNCHERS
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

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Course:
    """The course of one program's run."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._entered: set[Scope | Script] = set()

    @cached_property
    def calls(self) -> list[Site]:
        """Every call that a run comes to, in its order."""
        self._entered.clear()
        return list(self._module(self._script.scripts[0]))

    @cached_property
    def index(self) -> dict[Site, int]:
        """The place of each of these calls."""
        return {site: number for number, site in enumerate(self.calls)}

    def _module(self, script: Script) -> Iterator[Site]:
        self._entered.add(script)
        for statement in script.top:
            if script is not self._script.scripts[0] and _is_guard(statement):
                continue
            yield from self._statement(statement, script)

    def _statement(self, statement: Statement, script: Script) -> Iterator[Site]:
        if isinstance(statement.node, _DEFINITIONS):
            for site in self._sites.get(statement, ()):  # Decorators, defaults of parameters, bases.
                yield from self._call(site)
            if isinstance(statement.node, ast.ClassDef):
                for each in statement.branches.get("body", []):
                    yield from self._statement(each, script)
            return
        if isinstance(statement.node, ast.Import | ast.ImportFrom):
            for binding in self._imports.get(statement, ()):
                for imported in script.run_by_import(binding):
                    if imported not in self._entered and imported in self._script.scripts:
                        yield from self._module(imported)
            return
        for site in self._sites.get(statement, ()):
            yield from self._call(site)
        for name, block in statement.branches.items():
            if name.startswith("except"):
                continue
            for each in block:
                yield from self._statement(each, script)

    def _call(self, site: Site) -> Iterator[Site]:
        yield site
        functions = list(self._names.called_functions(site))
        for given in arguments(site.node):
            if isinstance(given, ast.Name | ast.Attribute | ast.Lambda):
                values = self._names.site_values(given, site)
                functions += [each.scope for each in values if isinstance(each, Function)]
        for function in (*functions, *started_mains(self._script, site)):
            if function in self._entered:
                continue
            self._entered.add(function)
            home = self._script.home(function)
            for inner in self._of_lambdas.get(function, ()):
                yield from self._call(inner)
            for statement in self._bodies.get(function, ()):
                yield from self._statement(statement, home)

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
        """The calls in each lambda, which run where that is called."""
        found: dict[Scope, list[Site]] = {}
        for site in sorted(self._script.sites, key=_end):
            function = _lambda_of(site)
            if function is not None:
                found.setdefault(function, []).append(site)
        return found

    @cached_property
    def _bodies(self) -> dict[Scope, list[Statement]]:
        found: dict[Scope, list[Statement]] = {}
        for statement in self._script.statements:
            function = statement.scope.function()
            outer = statement.parent
            if function is not None and (outer is None or outer.scope.function() is not function):
                found.setdefault(function, []).append(statement)
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
    """The lambda that a call stands in, if it does."""
    function = site.scope.function() if site.deferred else None
    return function if function is not None and isinstance(function.node, ast.Lambda) else None


def _end(site: Site) -> tuple[int, int]:
    return site.node.end_lineno or 0, site.node.end_col_offset or 0


def _is_guard(statement: Statement) -> bool:
    """Whether a statement is the code that runs only where its file is started."""
    body = statement.branches.get("body", [])
    return bool(body) and behind_main_guard(body[0])
