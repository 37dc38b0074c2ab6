"""The places where a program's callbacks end a `fit`: in which methods, and what decides."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import Scope, Statement
from trainshift.python.values.call_chains import called_from, functions_leading_to
from trainshift.training.execution.control_flow import ControlFlow

_FLAG = "stop_training"


class Stops:
    """The statements of one program that end a `fit`."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self.bindings = [each.binding for each in self._script.attribute_bindings(_FLAG)]
        """The bindings of the flag that ends a `fit`."""
        self.set_by_name = [
            site
            for site in self._script.sites_named("setattr")
            if any(isinstance(each, ast.Constant) and each.value == _FLAG for each in site.node.args[1:2])
        ]
        """The calls that set it by its name."""

    def ends_epochs(self, family: Iterable[Scope | str]) -> bool:
        """Return whether a method for batches of a family of classes ends a `fit`, or what it calls."""
        owners = list(family)
        return any("batch" in each.name and each.owner() in owners for each in self._ending)

    @cached_property
    def _ending(self) -> list[Scope]:
        """The functions that end a `fit`, themselves or by a call."""
        scopes = [*(each.scope for each in self.bindings), *(each.scope for each in self.set_by_name)]
        setting = [each.function() for each in scopes]
        return list(functions_leading_to(setting, called_from(self._program.names)))

    def tests(self, stop: Statement) -> Iterator[Occurrence]:
        """Yield the tests of `if`s that decide whether a statement runs, including those of early exits."""
        for test, _ in self._program.fact(ControlFlow).deciding(stop):
            if isinstance(test.node, ast.If):
                yield Occurrence(test.node.test, test.scope, test)

    def deciding(self, stop: Statement) -> Iterator[Occurrence]:
        """Yield the `tests` of a statement, and what decides how often the loops around it run."""
        yield from self.tests(stop)
        for above in stop.ancestors():
            if above.scope is stop.scope and isinstance(above.node, ast.While):
                yield Occurrence(above.node.test, above.scope, above)
            elif above.scope is stop.scope and isinstance(above.node, ast.For | ast.AsyncFor):
                yield Occurrence(above.node.iter, above.scope, above)
