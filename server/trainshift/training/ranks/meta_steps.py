"""Meta steps: weights that a turn of a loop sets from those before and after its training, as Reptile does.

The training inside is on one task. If each rank draws its own, averaged gradients mix the tasks of all ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from trainshift.core.program import Program
from trainshift.libraries.divergence import CauseKind
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.syntax.chunk_syntax import Site, Statement, argument, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.call_chains import calls_leading_to, statements_around
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.loops.fits import Fits
from trainshift.training.loops.steps import VARIABLE_LISTS
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.ranks.weights_between_steps import WeightsBetweenSteps
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.set_variables import SetVariables
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.verdict import Cause, cause_of

_SET, _GET = "set_weights", "get_weights"
_FITS = ("fit", "fit_generator")


class MetaSteps:
    """The meta steps of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._weights = program.fact(WeightsBetweenSteps)

    @property
    def mixed(self) -> Iterator[tuple[Occurrence, Cause]]:
        """Yield the values that meta steps set, each with a draw that gives every rank a task of its own."""
        trains = self._program.fact(WhatTrains).statement_trains
        for site, value in self._settings:
            path = site.statement.path()
            for each in (one for one in path if _is_in_loop(one) or self._is_turn(one, site)):
                before = each.block[: each.index]
                trainings = [one for one in before if trains(one)]
                if trainings:
                    before = before[: trainings[0].index]
                    if self._goes_back(value, before):
                        causes = (cause for one in trainings for cause in self._drawn_for(one, before))
                        yield from ((value, cause) for cause in islice(causes, 1))
                    break

    @property
    def _settings(self) -> Iterator[tuple[Site, Occurrence]]:
        """The calls that set weights during a training, with the values."""
        for site in self._script.sites_named(_SET):
            given = argument(site.node, 0, "weights")
            if given is not None and self._weights.are_set_by(site):
                yield site, of_call(site).part(given)
        for each in self._program.fact(SetVariables).settings:
            if self._weights.are_set_by(each.site):
                yield each.site, each.value

    def _is_turn(self, statement: Statement, site: Site) -> bool:
        """Return whether a statement of a function belongs to a turn of a loop that calls the function."""
        if statement.scope.function() is None or statement.scope.function() is not site.scope.function():
            return False
        is_outermost = statement.parent is None or statement.parent.scope is not statement.scope
        repeats = self._program.fact(ControlFlow).repeats
        return is_outermost and any(
            each.deferred or repeats(each.statement) for each in calls_leading_to(self._names, site)
        )

    def _goes_back(self, value: Occurrence, before: list[Statement]) -> bool:
        """Return whether a value is made of weights that were read, or set, before the training."""
        inside = {one for each in before for one in each.walk()}
        behind = self._program.fact(Trails).behind(value)
        return any(each.statement in inside and _reads_weights(each.node) for each in behind) or any(
            site.statement in inside for site in self._script.sites_named(_SET)
        )

    def _drawn_for(self, training: Statement, before: list[Statement]) -> Iterator[Cause]:
        """Yield the draws that decide on what a turn trains, also in the functions that train for it."""
        yield from self._drawn(training, before)
        inside = set(training.walk())
        calls = [site for site in self._script.sites if site.statement in inside]
        trained = self._program.fact(WhatTrains).functions
        called = {each for site in calls for each in self._names.called_functions(site)}.intersection(trained)
        for inner in self._inner if called else ():
            if inner.scope.function() in called:
                yield from self._drawn(inner, inner.block[: inner.index])

    @cached_property
    def _inner(self) -> list[Statement]:
        """The loops that train, and the statements that call `fit`."""
        trains = self._program.fact(WhatTrains).statement_trains
        loops = [each for each in self._script.statements if isinstance(each.node, LOOPS) and trains(each)]
        fits = self._program.fact(Fits).fits
        return [*loops, *(each.site.statement for each in fits if each.site.name in _FITS)]

    def _drawn(self, training: Statement, before: list[Statement]) -> Iterator[Cause]:
        """Yield the draws of a turn before its training that decide on what it trains."""
        made = {one for each in before for one in each.walk()}
        behind = self._program.fact(Trails).behind
        read = (
            Occurrence(node, statement.scope, statement)
            for statement in training.walk()
            for node in statement.own_parts()
            if isinstance(node, ast.Name)
        )
        for each in (part for at in read for part in behind(at)):
            statement = each.statement
            if isinstance(each.node, ast.Call) and statement is not None and self._draws(each):
                if not made.isdisjoint((statement, *statements_around(self._names, statement))):
                    yield cause_of(CauseKind.DRAW, self._script.site_of(each.node))

    def _draws(self, at: Occurrence) -> bool:
        """Return whether a call draws a rank's own values, and not only an order."""
        uniformity = self._program.fact(Uniformity)
        cause = uniformity.cause(at)
        if cause is None or cause.kind is not CauseKind.DRAW or cause.site is None:
            return False
        return not uniformity.draws.shuffles(cause.site)


def _is_in_loop(statement: Statement) -> bool:
    return statement.parent is not None and isinstance(statement.parent.node, LOOPS)


def _reads_weights(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return last_name(node.func) == _GET
    return isinstance(node, ast.Attribute) and node.attr in VARIABLE_LISTS
