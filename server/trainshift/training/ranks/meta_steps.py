"""Meta steps: weights that a turn of a loop sets from those before and after its training, as Reptile does.

The training inside is on one task. If each rank draws its own, averaged gradients mix the tasks of all ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from trainshift.core.program import Program
from trainshift.libraries.divergence import CauseKind
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.syntax.chunk_syntax import Site, Statement, argument, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.call_chains import statements_around
from trainshift.training.loops.steps import VARIABLE_LISTS
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.ranks.weights_between_steps import WeightsBetweenSteps
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.set_variables import SetVariables
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.verdict import Cause, cause_of

_SET, _GET = "set_weights", "get_weights"


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
            around = (each for each in site.statement.path() if _is_in_loop(each))
            for each in around:
                before = each.block[: each.index]
                trainings = [one for one in before if trains(one)]
                if trainings:
                    before = before[: trainings[0].index]
                    if self._goes_back(value, before):
                        causes = (cause for one in trainings for cause in self._drawn(one, before))
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

    def _goes_back(self, value: Occurrence, before: list[Statement]) -> bool:
        """Return whether a value is made of weights that were read, or set, before the training."""
        inside = {one for each in before for one in each.walk()}
        behind = self._program.fact(Trails).behind(value)
        return any(each.statement in inside and _reads_weights(each.node) for each in behind) or any(
            site.statement in inside for site in self._script.sites_named(_SET)
        )

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
