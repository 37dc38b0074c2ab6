"""Code that trains: functions, statements and calls of a script that every rank must run identically."""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.steps import Steps


class WhatTrains:
    """The code of one script that performs or leads to an optimizer step."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._horovod = program.fact(Horovod)
        self._steps = program.fact(Steps)

    @cached_property
    def others(self) -> list[Site]:
        """The calls that are training loops themselves, or steps of a session."""
        return [site for loop in self._program.fact(Loops).own for site in loop.sites]

    @cached_property
    def functions(self) -> set[Scope]:
        """Functions that make an optimizer step or take a trained gradient, or call one that does."""
        starts = [step.site.scope.function() for step in self._steps.steps]
        starts += [each.site.scope.function() for step in self._steps.steps for each in step.gradients]
        starts += [site.scope.function() for site in self._horovod.calls("broadcast_variables", "allreduce")]
        starts += [site.scope.function() for site in self.others]

        def running(function: Scope | None) -> list[Scope | None]:
            if function is None:
                return []
            callers = [site.scope.function() for site in self._script.names.callers(function)[0]]
            # A nested function counts as running when the function around it does.
            is_lambda = function.parent is not None and not function.name
            return [*callers, *([function.parent.function()] if is_lambda and function.parent else [])]

        return {function for function in reachable(starts, running) if function is not None}

    @cached_property
    def _training_sites(self) -> set[Site]:
        found = {step.site for step in self._steps.steps}.union(self.others)
        found |= {each.site for step in self._steps.steps for each in step.gradients}
        for function in self.functions:
            found.update(self._script.names.callers(function)[0])
        return found

    def site_trains(self, site: Site) -> bool:
        """Return whether the call makes an optimizer step, or another action in which every rank must take
        part.
        """
        return site in self._training_sites

    def statement_trains(self, statement: Statement) -> bool:
        """Return whether something inside the statement trains."""
        return statement in self._training_statements

    @cached_property
    def _training_statements(self) -> set[Statement]:
        return {above for site in self._training_sites for above in site.statement.path()}
