"""Training data: what the models of a program are trained on, and their predictions that choose it."""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Instance
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.ranks.sink_inputs import data_of
from trainshift.training.uniformity.environments import Worlds
from trainshift.training.uniformity.uniformity import Uniformity

_PREDICTING = ("predict", "predict_on_batch")


class TrainingData:
    """The data on which the models of one program are trained."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    @cached_property
    def trained(self) -> list[Occurrence]:
        """The data that models are trained on."""
        found: list[Occurrence] = []
        for loop in self._program.fact(Loops).own:
            for site in loop.sites if loop.is_call else ():
                found += (of_call(site).part(each) for each in data_of(site))
        trains = self._program.fact(WhatTrains).statement_trains
        for statement in self._script.statements:
            if isinstance(statement.node, ast.For) and trains(statement):
                found.append(Occurrence(statement.node.iter, statement.scope, statement))
        is_under_tape = self._program.fact(Uniformity).is_under_tape
        for site in self.calls_of_models:
            if is_under_tape(site):
                found += map(of_call(site).part, site.node.args[:1])
        return found

    @cached_property
    def calls_of_models(self) -> list[Site]:
        """The calls of models on data."""
        return [
            site
            for site in self._script.sites
            if isinstance(site.node.func, ast.Name | ast.Attribute)
            and site.node.args
            and self._names.may_be(self._names.callee(site), *api.MODEL)
            and any(isinstance(each, Instance) for each in self._names.callee(site))
        ]

    @cached_property
    def chosen_by(self) -> list[Occurrence]:
        """The models, by their names, whose predictions choose training data, labels or weights of rows.

        What ranks get from environments differs anyway.
        """
        is_under_tape = self._program.fact(Uniformity).is_under_tape
        sites = [each for each in self.calls_of_models if not is_under_tape(each)]
        sites += self._script.sites_named(*_PREDICTING)
        predicting = {each.node: each for each in sites}
        if not predicting:
            return []
        behind, asked = self._program.fact(Uniformity).behind, self._program.fact(Worlds).asked_by
        trained = [each for each in self.trained if not asked(each)]
        found = {part.node: part for at in trained for part in behind(at) if part.node in predicting}
        called = (of_call(predicting[node]).part(node.func) for node in found if isinstance(node, ast.Call))
        return [
            at.part(at.node.value)
            if isinstance(at.node, ast.Attribute) and at.node.attr in _PREDICTING
            else at
            for at in called
        ]
