"""Input functions: what Estimators train on, which is not divided: whether all ranks have it in one order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from trainshift.core.names.occurrence import Occurrence
from trainshift.core.names.values import Function
from trainshift.core.program import Program
from trainshift.core.ranks.work.seeds import Order
from trainshift.core.text.facts import Site, argument
from trainshift.core.training.loop_kinds import Pattern
from trainshift.core.training.loops import Loops
from trainshift.rewriting.data.step_counts import StepCounts
from trainshift.rewriting.datasets.generators import Generators

# Functions of TensorFlow that make an input function of arrays.
_OF_ARRAYS = ("numpy_input_fn", "pandas_input_fn")
# The arguments of hooks that end a training after some steps.
_STOPPING = ("last_step", "num_steps")


@dataclass(frozen=True, eq=False, slots=True)
class InputFn:
    """An input function that is given for a training, and whether all ranks have its data in one order.

    `counted` tells that the training is given a number of steps.
    """

    at: Occurrence
    order: Order
    counted: bool


def read_input_fns(program: Program) -> Iterator[InputFn]:
    """The input functions of the Estimators that a program trains."""
    counts = program.fact(StepCounts).given
    counted = {each.site for each in counts if getattr(each.node, "value", ...) is not None}
    stopped = any(each.what in _STOPPING for each in counts)
    for site in _given(program):
        node = argument(site.node, 0, "input_fn")
        if node is not None:
            at = Occurrence(node, site.scope, site.statement, site)
            yield InputFn(at, _order(program, at), stopped or site in counted)


def _given(program: Program) -> Iterator[Site]:
    """The calls that are given an input function to train with."""
    loops = [each for each in program.fact(Loops).own if each.pattern is Pattern.ESTIMATOR]
    if loops:
        yield from (site for loop in loops for site in loop.sites if site.name == "train")
        yield from program.script.sites_named("TrainSpec")


def _order(program: Program, at: Occurrence) -> Order:
    step = program.names.steps_back(at) if not isinstance(at.node, ast.Lambda | ast.Call) else None
    sources = step.sources if step is not None and step.sources else [at]
    for each in sources:
        if isinstance(each.node, ast.Call) and program.script.site_of(each.node).name in _OF_ARRAYS:
            shuffle = argument(each.node, None, "shuffle")
            fixed = isinstance(shuffle, ast.Constant) and not shuffle.value
            return Order.SAME if fixed else Order.OWN
    order = program.fact(Generators).likeness(at)
    values = program.names.values(*at[:3])
    seen = bool(values) and all(isinstance(value, Function) for value in values)
    return Order.UNKNOWN if order is Order.SAME and not seen else order
