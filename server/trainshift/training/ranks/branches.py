"""Branches: code that runs on some ranks only, and the test that decides it (a root branch)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.script import Script
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, expression_path
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.horovod import horovod_api
from trainshift.training.uniformity.uniformity import Uniformity


class Branch(NamedTuple):
    """Code that runs on some ranks only.

    `test` selects the ranks; `statement` is the `if` of the test, None if it is part of an expression. `arm`
    is the block of that `if`, or "after" if the other ranks have left before.
    """

    test: Occurrence
    statement: Statement | None
    arm: str


class Branches:
    """The root branches of one program."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._uniformity = program.fact(Uniformity)
        self._flow = program.fact(ControlFlow)
        self._statements: dict[Statement, Branch | None] = {}
        self._tested: dict[Scope | Script, bool] = {}
        self._asked: set[Scope] = set()

    @cached_property
    def is_judged(self) -> bool:
        """Return whether a file of the program imports Horovod for TensorFlow."""
        names = (
            name
            for script in self._script.scripts
            for binding in script.imports
            for name in (binding.full_name, getattr(binding.target, "name", ""))
        )
        return any(
            name == door or name.startswith(f"{door}.") for name in names for door in horovod_api.DOORS
        )

    def of_call(self, site: Site) -> Branch | None:
        """The branch of a call that only some ranks make; None if all ranks make it."""
        return self.of(of_call(site))

    def of(self, at: Occurrence) -> Branch | None:
        """Like `of_call`, for any expression."""
        if not self.is_judged or at.statement is None:
            return None
        for test in self._inside(at):
            if self._uniformity.on_rank(test):
                return Branch(test, None, "expression")
        return self._of_handed(at) or self.of_statement(at.statement)

    def of_statement(self, statement: Statement) -> Branch | None:
        """Like `of_call`, for a statement."""
        if not self.is_judged:
            return None
        if statement not in self._statements:
            self._statements[statement] = next(self._around(statement), None)
        return self._statements[statement]

    def _inside(self, at: Occurrence) -> Iterator[Occurrence]:
        """The tests inside a statement that decide whether one of its expressions is evaluated."""
        assert at.statement is not None
        path = expression_path(at.statement.node, at.node)
        if isinstance(at.statement.node, ast.If | ast.While) and len(path) == 2:
            return
        for above, below in pairwise(path):
            if isinstance(above, ast.IfExp) and below is not above.test:
                yield at.part(above.test)
            elif isinstance(above, ast.BoolOp) and below in above.values:
                yield from map(at.part, above.values[: above.values.index(below)])
            elif isinstance(above, ast.ListComp | ast.SetComp | ast.GeneratorExp) and below is above.elt:
                inner = at.scope.facts.scope_of.get(above, at.scope)
                for generator in above.generators:
                    yield from (Occurrence(test, inner, at.statement) for test in generator.ifs)

    def _of_handed(self, at: Occurrence) -> Branch | None:
        """The branch in which a function of the script calls the lambda around an expression."""
        assert at.statement is not None
        function = at.scope.function()
        if function is None or not isinstance(function.node, ast.Lambda):
            return None
        for above, below in pairwise(expression_path(at.statement.node, at.node)):
            if not isinstance(above, ast.Call) or not isinstance(below, ast.Lambda):
                continue
            site = self._script.site_of(above)
            for called in self._names.called_functions(site):
                found = [self.of_call(each) for each in self._calls_of_given(site, called, below)]
                if found and all(found):
                    return found[0]
        return None

    def _calls_of_given(self, site: Site, function: Scope, given: ast.Lambda) -> Iterator[Site]:
        """Yield the calls of a callable parameter inside a function."""
        for name, bindings in function.bindings.items():
            if bindings[0].kind == "parameter" and self._names.argument(site, function, name) is given:
                yield from (
                    each for each in self._script.sites_named(name) if each.scope.function() is function
                )

    def _around(self, statement: Statement) -> Iterator[Branch]:
        arms = {each.parent: each.branch for each in statement.path()}
        asked = self._flow.deciding(statement, self._asks_rank) if self._is_near_test(statement) else ()
        for outer, _ in asked:
            assert isinstance(outer.node, ast.If)
            test = Occurrence(outer.node.test, outer.scope, outer)
            yield Branch(test, outer, arms.get(outer, "after"))
        function = statement.scope.function()
        if function is not None and function not in self._asked:
            yield from self._of_function(function)

    def _is_near_test(self, statement: Statement) -> bool:
        """Return whether the function, class or file around a statement tests the rank."""
        code = self._code_of(statement)
        if code not in self._tested:
            self._tested[code] = any(map(self._asks_rank, self._tests.get(code, ())))
        return self._tested[code]

    @cached_property
    def _tests(self) -> dict[Scope | Script, list[Statement]]:
        """Every `if`, by the function, class or file around it."""
        found: dict[Scope | Script, list[Statement]] = {}
        for each in self._script.statements:
            if isinstance(each.node, ast.If):
                found.setdefault(self._code_of(each), []).append(each)
        return found

    def _code_of(self, statement: Statement) -> Scope | Script:
        scope = statement.scope
        return self._script.home(scope) if scope.kind == "module" else scope

    def _asks_rank(self, outer: Statement) -> bool:
        assert isinstance(outer.node, ast.If)
        return self._uniformity.on_rank(Occurrence(outer.node.test, outer.scope, outer))

    def _of_function(self, function: Scope) -> Iterator[Branch]:
        """Yield the branch that contains all calls of a function, apart from recursive ones."""
        yield from self._of_decorators(function)
        sites, elsewhere = self._names.callers(function)
        if elsewhere or not sites:
            return
        self._asked.add(function)
        try:
            found = [self.of_call(site) for site in sites if site.scope.function() is not function]
        finally:
            self._asked.discard(function)
        first = found[0] if found else None
        if first is not None and all(found):
            yield first

    def _of_decorators(self, function: Scope) -> Iterator[Branch]:
        """Yield the branch in which a decorator of the script makes all calls of the decorated function."""
        for decorator in getattr(function.node, "decorator_list", ()):
            assert function.parent is not None
            values = self._names.values(decorator, function.parent, function.statement)
            for scope in (each.scope for each in values if isinstance(each, Function)):
                found = [self.of_call(site) for site in self._calls_of_first(scope)]
                if found and found[0] is not None and all(found):
                    yield found[0]

    def _calls_of_first(self, decorator: Scope) -> Iterator[Site]:
        """Yield the calls of a decorator's first parameter, in the decorator or in functions inside it."""
        names = [each for each, found in decorator.bindings.items() if found[0].kind == "parameter"]
        for site in self._script.sites_named(*names[:1]):
            inside = site.scope.function()
            while inside is not None and inside is not decorator:
                inside = inside.parent.function() if inside.parent is not None else None
            if inside is decorator and isinstance(site.node.func, ast.Name):
                yield site
