"""Sinks: the values that must be the same on all ranks, or they diverge, crash or deadlock.

Hyperparameters of optimizers, the shapes of models, and the variables that a step trains.
`training/ranks/decisions.py` handles the number of steps, and `training/datasets` separates training data
from test data.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.divergence import CauseKind
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Instance, Values
from trainshift.python.syntax.chunk_syntax import (
    COMPREHENSIONS,
    Binding,
    Scope,
    Site,
    Statement,
    argument,
    arguments,
    children,
    expression_path,
)
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.call_chains import calls_of
from trainshift.python.values.made_objects import MadeObjects
from trainshift.training.learning_rates.rate_cases import RateCases
from trainshift.training.learning_rates.rate_settings import RateSettings
from trainshift.training.learning_rates.rates import Rates
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.steps import VARIABLE_LISTS, Gradient, Steps
from trainshift.training.loops.stops import Stops
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.ranks.decisions import Decisions
from trainshift.training.ranks.drawn_constants import DrawnConstants
from trainshift.training.ranks.drawn_targets import DrawnTargets
from trainshift.training.ranks.loss_states import LossStates
from trainshift.training.ranks.meta_steps import MetaSteps
from trainshift.training.ranks.own_batches import OwnBatches
from trainshift.training.ranks.sink_inputs import counts, data_of, given_to, turns_around
from trainshift.training.ranks.training_data import TrainingData
from trainshift.training.ranks.weights_between_steps import WeightsBetweenSteps
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.chosen_rows import ChosenRows
from trainshift.training.uniformity.set_variables import SetVariables
from trainshift.training.uniformity.uniformity import Of, Uniformity
from trainshift.training.uniformity.value_flow import tests_around
from trainshift.training.uniformity.verdict import Cause

# Attributes of a layer that differ by rank, or do not depend on its shape.
_OWN = frozenset({"activation", "bias_initializer", "kernel_initializer", "name", "rate", "seed", "weights"})
_JUDGING = (
    "evaluate",
    "evaluate_generator",
    "predict",
    "predict_generator",
    "predict_on_batch",
    "test_on_batch",
)
_LOADING = ("load_weights", "restore")
_PRESENCE = frozenset({"exists", "isfile"})
_NOISE = ("Dropout", "Noise", "Random")


class Sink(Enum):
    """A use of a value that decides how a rank trains, as messages name it."""

    HYPERPARAMETER = "ranks would train by different optimizers"
    SHAPE = "ranks would build different models"
    VARIABLES = "ranks would train different variables"
    MODEL = "ranks would train different models"
    OPTIMIZER = "ranks would step by different optimizers"
    TURNS = "ranks would take different numbers of steps"
    STOP = "ranks would stop at different steps"
    LENGTH = "ranks would have different numbers of batches"
    UPDATE = "ranks would apply different gradients"
    EPOCH = "ranks would begin at different epochs"
    WEIGHTS = "ranks would go on with different weights"
    STATE = "a layer would keep other values on each rank"
    LOSS = "a loss would use other values on each rank"
    TASK = "the ranks' inner steps would average over different tasks"
    TARGETS = "ranks would learn different targets"
    FUNCTION = "ranks would average the gradients of different functions"
    PATH = "ranks would look for different files"
    SPLIT = "ranks would test on rows that others train on"


class Divergence(NamedTuple):
    """A place where a divergent value decides how the ranks train, with its cause.

    With `is_test`, the test that decides it diverges, not a value.
    """

    sink: Sink
    at: Occurrence
    cause: Cause
    is_test: bool = False


class _Arrival(NamedTuple):
    """A place at which values arrive, and their relevant aspect there (value, length, order)."""

    sink: Sink
    at: Occurrence
    is_test: bool = False
    of: Of = Of.VALUE


class Sinks:
    """The places of one program at which divergent values arrive."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._data = program.fact(TrainingData)

    @cached_property
    def divergences(self) -> list[Divergence]:
        """Every cause that reaches a sink, once for each pair of sink and cause."""
        found: dict[tuple[Sink, ast.AST, ast.AST | None], Divergence] = {}
        tested: set[tuple[Sink, ast.AST]] = set()
        asked: set[tuple[Sink, ast.expr, Of]] = set()
        for sink, at, is_test, of in self._all():
            if isinstance(at.node, ast.Constant) or (sink, at.node, of) in asked:
                continue
            asked.add((sink, at.node, of))
            reached = self._causes_at(_Arrival(sink, at, is_test, of))
            is_meant = self._program.fact(Uniformity).is_meant
            for cause in (each for each in reached if not is_meant(each)):
                if is_test:
                    tested.add((sink, cause.at.node))
                elif (sink, cause.at.node) in tested and not self._computes_with(at, cause):
                    continue  # Ranks that decide alike compute alike.
                key = sink, cause.at.node, at.node if is_test else None
                found.setdefault(key, Divergence(sink, at, cause, is_test))
        tasks = [Divergence(Sink.TASK, *each) for each in self._program.fact(MetaSteps).mixed]
        drawn = self._program.fact(DrawnTargets).all if not tasks else ()
        targets = (Divergence(Sink.TARGETS, *each) for each in drawn)
        for each in (*self._of_splits(), *tasks, *targets):
            found.setdefault((each.sink, each.cause.at.node, None), each)
        reported = {each.cause.at.node for each in found.values()}
        for at, cause in self._program.fact(DrawnConstants).all if not tasks else ():
            if cause.at.node not in reported:
                found.setdefault((Sink.FUNCTION, cause.at.node, None), Divergence(Sink.FUNCTION, at, cause))
        return list(found.values())

    def _causes_at(self, arrival: _Arrival) -> list[Cause]:
        """The causes for which a value at a sink may differ, without those that do no harm there."""
        sink, at, is_test, of = arrival
        uniformity, own = self._program.fact(Uniformity), self._program.fact(OwnBatches)
        if sink is Sink.UPDATE and not is_test:
            # The tape has averaged the gradients; what changes them then is a rank's own.
            reached = uniformity.causes(at, of, self._is_applied_alike, own.cause)
        elif sink is Sink.LOSS:
            own_of_loss = self._program.fact(LossStates).cause
            reached = uniformity.causes(at, of, self._is_averaged, own_of_loss)
            # What is drawn first is soon replaced by what comes from batches.
            reached = sorted(reached, key=lambda each: each.kind is not CauseKind.DATA)[:1]
        elif sink in (Sink.WEIGHTS, Sink.STATE) and not is_test:
            reached = uniformity.causes(at, of, self._is_averaged, own.cause)
        else:
            reached = uniformity.causes(at, of, own=own.cause)
        if sink is Sink.SHAPE:
            # A graph is built before it is fed.
            reached = [each for each in reached if not (uniformity.is_fed(each) or own.is_fed(each))]
        if sink not in (Sink.TURNS, Sink.STOP, Sink.EPOCH):
            # Weights are broadcast, wherever they were read; the steps of other ranks remain unknown.
            reached = [each for each in reached if each.site is None or each.site.name not in _PRESENCE]
        return reached

    def _computes_with(self, at: Occurrence, cause: Cause) -> bool:
        """Return whether a value is computed from a divergent one, and not only chosen by it."""
        cause_of = self._program.fact(Uniformity).cause

        def computed_of(each: Occurrence) -> Iterable[Occurrence]:
            if isinstance(each.node, ast.Name | ast.Attribute):
                step = self._names.steps_back(each)
                return step.sources if step is not None else ()
            return (each.part(part) for part in children(each.node) if isinstance(part, ast.expr))

        slice_ = reachable([at], computed_of, lambda each: (each.node, each.scope))
        return any((found := cause_of(each)) and found.at.node is cause.at.node for each in slice_)

    def _of_splits(self) -> Iterator[Divergence]:
        """Yield the draws that split data into rows for training and rows for testing."""
        if not self._program.fact(Uniformity).asks_any or not self._data.trained:
            return
        draws = self._program.fact(ChosenRows).draws
        tested = [(at, draws(at)) for at in self._tested]
        if not any(causes for _, causes in tested) and "hash" not in self._script.identifiers:
            return
        training: dict[ast.AST, list[Divergence]] = {}
        for at in self._data.trained:
            for node, cause in draws(at).items():
                training.setdefault(node, []).append(Divergence(Sink.SPLIT, at, cause))
        hashed = {node for node, cause in training.items() if self._hashes(cause[0].cause)}
        yield from (each for node in hashed for each in training.pop(node))
        for at, causes in tested:
            for node, cause in causes.items():
                if self._hashes(cause):
                    yield Divergence(Sink.SPLIT, at, cause)
                elif node in training and self._is_one_draw(cause.at.scope) and at.node not in self._leading:
                    yield from (*training[node], Divergence(Sink.SPLIT, at, cause))

    @cached_property
    def _leading(self) -> set[ast.AST]:
        """The inputs of losses and targets: a model may evaluate data in order to learn from them."""
        behind = self._program.fact(Trails).behind
        losses = (
            of_call(each.site).part(given)
            for each in self._program.fact(Steps).gradients
            if (given := argument(each.site.node, 0, "target")) is not None
        )
        calls = (each.node for at in (*losses, *self._data.trained) for each in behind(at))
        return {part for call in calls if isinstance(call, ast.Call) for part in arguments(call)}

    def _hashes(self, cause: Cause) -> bool:
        """Return whether a cause is a call of `hash` that selects the rows of both parts of a split."""
        return cause.site is not None and self._names.calls(cause.site, "builtins.hash")

    def _is_one_draw(self, scope: Scope) -> bool:
        """Return whether code draws one thing for all callers, not a batch of its own for each."""
        around = self._functions_around(scope)
        return not any(
            function.yields or len(calls_of(self._names, self._script, function)) > 1 for function in around
        )

    def is_of_batches(self, scope: Scope) -> bool:
        """Return whether code draws for the batches that a generator yields, separately on each rank."""
        return any(function.yields for function in self._functions_around(scope))

    def _functions_around(self, scope: Scope) -> Iterator[Scope]:
        """Yield the function of a scope and its callers."""
        function = scope.function()
        return reachable(
            [function] if function is not None else [],
            lambda each: filter(
                None, (site.scope.function() for site in calls_of(self._names, self._script, each))
            ),
        )

    @cached_property
    def _tested(self) -> list[Occurrence]:
        """The data that models are tested on."""
        found: list[Occurrence] = []
        for site in self._script.sites_named(*_JUDGING):
            found += (of_call(site).part(each) for each in data_of(site))
        for site in self._script.sites:
            given = argument(site.node, None, "validation_data")
            if given is not None:
                found.append(of_call(site).part(given))
        is_under_tape = self._program.fact(Uniformity).is_under_tape
        for site in self._data.calls_of_models:
            if not is_under_tape(site):
                found += map(of_call(site).part, site.node.args[:1])
        return found

    def _all(self) -> Iterator[_Arrival]:
        """Yield every place at which values arrive; a variable that arrives brings what it is set to."""
        variables = self._program.fact(SetVariables)
        for each in self._direct():
            yield each
            for value in variables.behind(each.at) if each.of is Of.VALUE else ():
                yield _Arrival(each.sink, value)
                yield from (_Arrival(each.sink, test, is_test=True) for test in variables.tests(value))

    def _direct(self) -> Iterator[_Arrival]:
        for site in self._program.fact(Rates).made:
            yield from (_Arrival(Sink.HYPERPARAMETER, each) for each in given_to(site))
        for rate in self.rates_set:
            yield _Arrival(Sink.HYPERPARAMETER, rate)
            tests = tests_around(rate.statement, None)
            yield from (_Arrival(Sink.HYPERPARAMETER, each, is_test=True) for each in tests)
        yield from self._of_layers()
        yield from self._of_loops()
        steps = self._program.fact(Steps)
        taken = {each.site.node: each for each in steps.gradients}
        applied: dict[Site, Gradient] = {}
        for step in steps.steps:
            yield _Arrival(Sink.OPTIMIZER, of_call(step.site).part(step.receiver))
            applied |= {each.site: each for each in step.gradients or steps.reaching(step, taken)}
        # Other sources of gradients need not be variables, as in the inner steps of meta-learning.
        for gradient in applied.values() or taken.values():
            given = argument(gradient.site.node, 1, "sources")
            if given is not None and not steps.of_input(gradient):
                yield _Arrival(Sink.VARIABLES, of_call(gradient.site).part(given))
        for frozen in self._script.attribute_bindings("trainable"):
            if frozen.binding.value is not None:
                at = Occurrence(frozen.binding.value, frozen.binding.scope, frozen.binding.statement)
                yield _Arrival(Sink.VARIABLES, at)
                yield from self._deciding(Sink.VARIABLES, at)
        yield from self._of_weights()
        for stop in self._program.fact(Stops).bindings:
            yield from self._of_stop(stop)

    def _of_stop(self, binding: Binding) -> Iterator[_Arrival]:
        """Yield the value of a flag that ends a training, and the tests that decide whether it is set."""
        statement = binding.statement
        if statement is None:
            return
        value = statement.node.value if isinstance(statement.node, ast.AugAssign) else binding.value
        if value is not None:
            yield _Arrival(Sink.STOP, Occurrence(value, binding.scope, statement))
        tests = self._program.fact(Stops).tests(statement)
        yield from (_Arrival(Sink.STOP, each, is_test=True) for each in tests)

    def _of_weights(self) -> Iterator[_Arrival]:
        """Yield the gradients that steps apply, and the values that weights are set to during training."""
        for step in self._program.fact(Steps).steps:
            if step.pairs is not None and step.gradients:
                yield _Arrival(Sink.UPDATE, of_call(step.site).part(step.pairs))
        weights = self._program.fact(WeightsBetweenSteps)
        for site in self._script.sites_named("set_weights"):
            given = argument(site.node, 0, "weights")
            if given is not None and weights.are_set_by(site):
                yield from self._of_tests(site)
                yield _Arrival(Sink.WEIGHTS, of_call(site).part(given))
                if isinstance(site.node.func, ast.Attribute):
                    yield _Arrival(Sink.MODEL, of_call(site).part(site.node.func.value))
        states = self._program.fact(LossStates)
        for each in self._program.fact(SetVariables).settings:
            if weights.are_set_by(each.site):
                yield from self._of_tests(each.site)
                yield _Arrival(Sink.WEIGHTS, each.value)
            elif weights.keep_state(each.site, each.variable.node):
                yield _Arrival(Sink.STATE, each.value)
            elif states.are_set_by(each):
                yield _Arrival(Sink.LOSS, each.value)
        yield from (_Arrival(Sink.LOSS, value) for value in states.carried)
        for site in self._script.sites_named(*_LOADING):
            if weights.trains_on(site.statement):
                yield from self._of_tests(site)

    def _of_tests(self, site: Site) -> Iterator[_Arrival]:
        """Yield the tests that decide whether weights are set; a test around steps also decides how many."""
        trains = self._program.fact(WhatTrains).statement_trains
        for each in tests_around(site.statement, None):
            if each.statement is None or not trains(each.statement):
                yield _Arrival(Sink.WEIGHTS, each, is_test=True)

    def _is_averaged(self, node: ast.AST) -> bool:
        """Return whether an expression yields gradients, which ranks average, or initial weights."""
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return node.elt in self._gradients
        return node in self._gradients or (isinstance(node, ast.Attribute) and node.attr in VARIABLE_LISTS)

    def _is_applied_alike(self, node: ast.AST) -> bool:
        """Return whether an expression yields averaged gradients, or tests together whether a step is
        taken.
        """
        return node in self._decided or self._is_averaged(node)

    @cached_property
    def _decided(self) -> frozenset[ast.AST]:
        """The tests that ranks make together."""
        return frozenset(each.test for each in self._program.fact(Decisions).all if each.is_together)

    @cached_property
    def _gradients(self) -> frozenset[ast.AST]:
        return frozenset(each.site.node for each in self._program.fact(Steps).gradients)

    def _of_layers(self) -> Iterator[_Arrival]:
        for site, values in self._program.fact(MadeObjects).all:
            if self._makes_layer(site, values):
                yield from (_Arrival(Sink.SHAPE, each) for each in given_to(site, _OWN))
                yield from self._deciding(Sink.SHAPE, of_call(site))

    def _deciding(self, sink: Sink, at: Occurrence) -> Iterator[_Arrival]:
        """Yield the values that decide whether and how often an expression is evaluated."""
        tests = tests_around(at.statement, None)
        yield from (_Arrival(sink, each, is_test=True) for each in tests)
        for each in turns_around(at):
            is_test = each.statement is not None and isinstance(each.statement.node, ast.While)
            is_value = is_test or counts(self._program, each)
            yield _Arrival(sink, each, is_test, Of.VALUE if is_value else Of.LENGTH)

    def _of_loops(self) -> Iterator[_Arrival]:
        for loop in self._program.fact(Loops).own:
            for site in loop.sites if loop.is_call else ():
                if isinstance(site.node.func, ast.Attribute):
                    yield _Arrival(Sink.MODEL, of_call(site).part(site.node.func.value))
                epochs, first, steps, size, data = (
                    argument(site.node, position, name)
                    for position, name in (
                        (None, "epochs"),
                        (None, "initial_epoch"),
                        (None, "steps_per_epoch"),
                        (None, "batch_size"),
                        (0, "x"),
                    )
                )
                if first is not None:
                    yield _Arrival(Sink.EPOCH, of_call(site).part(first))
                for given in (epochs, steps, size):
                    if given is not None:
                        yield _Arrival(Sink.TURNS, of_call(site).part(given))
                yield from self._of_start(site.statement)
                if data is not None and steps is None:
                    yield _Arrival(Sink.LENGTH, of_call(site).part(data), of=Of.LENGTH)
        trains = self._program.fact(WhatTrains).statement_trains
        for statement in self._script.statements:
            if isinstance(statement.node, ast.For) and trains(statement):
                yield self._of_turns(Occurrence(statement.node.iter, statement.scope, statement))
            if isinstance(statement.node, LOOPS) and trains(statement):
                yield from self._of_start(statement)
        trains_alone = self._program.fact(WhatTrains).site_trains
        for site in self._script.sites:
            if not trains_alone(site):
                continue
            if isinstance(site.node.func, ast.Name | ast.Subscript | ast.Call | ast.IfExp):
                yield _Arrival(Sink.OPTIMIZER, of_call(site).part(site.node.func))
            for above in expression_path(site.statement.node, site.node) if site.deferred else ():
                for generator in above.generators if isinstance(above, COMPREHENSIONS) else ():
                    inner = Occurrence(generator.iter, site.statement.scope, site.statement)
                    yield self._of_turns(inner)

    def _of_start(self, loop: Statement) -> Iterator[_Arrival]:
        """The tests that decide whether training starts; what a loop around it decides, others tell."""
        trains = self._program.fact(WhatTrains).statement_trains
        if not any(isinstance(above.node, LOOPS) and trains(above) for above in loop.ancestors()):
            yield from (_Arrival(Sink.TURNS, each, is_test=True) for each in tests_around(loop, None))

    def _of_turns(self, at: Occurrence) -> _Arrival:
        """The values that arrive where a training loop iterates."""
        is_count = counts(self._program, at)
        return _Arrival(Sink.TURNS, at) if is_count else _Arrival(Sink.LENGTH, at, of=Of.LENGTH)

    @cached_property
    def rates_set(self) -> list[Occurrence]:
        """The values to which the rates of existing optimizers are set later."""
        settings = RateSettings(self._program, self._program.fact(RateCases))
        return [each.value for each in settings.of_attributes()]

    def _makes_layer(self, site: Site, values: Values) -> bool:
        return not site.name.startswith(_NOISE) and any(
            isinstance(each, Instance)
            and each.node is site.node
            and self._names.is_a(each, *api.LAYER)
            and not self._names.is_a(each, *api.MODEL)
            for each in values
        )
