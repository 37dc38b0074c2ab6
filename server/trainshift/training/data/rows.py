"""Rows: Python and Keras objects that yield batches one by one: generators, lists of batches, sequences.

A generator yields as many elements at once as there are ranks, and each rank keeps its own: all get equally
many, whatever the total. A `fit` reads a sequence in a random order, so only its steps are divided.
"""

from __future__ import annotations

import ast

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.divergence import CauseKind
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Display, UserInstance
from trainshift.python.syntax.chunk_syntax import Site, argument, hides_arguments, last_name
from trainshift.training.data.arrays import is_array, is_read_again
from trainshift.training.data.division_places import Form, Place
from trainshift.training.data.index_loops import LISTS, called, side_by_side, unwrapped
from trainshift.training.data.loop_iterables import Iteration
from trainshift.training.datasets.draw_remedies import Remedies
from trainshift.training.datasets.generators import Generators
from trainshift.training.datasets.knowledge import unordered
from trainshift.training.loops.fits import Fit
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.uniformity import environments as worlds
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.draws import PYTHON
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.verdict import Uniform, Verdict, divergent

# Functions that number the elements of a row, or show progress.
_SIDE_BY_SIDE = "builtins.zip"
ASKING = worlds.ASKING | {"get", "get_nowait", "predict", "read", "sample"}
"""Methods that ask the world for what may be another thing on each rank."""
# Methods of Keras' image readers that return sequences.
_FLOWS = ("flow", "flow_from_dataframe", "flow_from_directory")


class Rows(Struct, frozen=True):
    """The place where a sequence is sharded, or the reason why not; with `is_own`, each rank already has its
    own.

    With `is_seen`, all ranks certainly have the same elements, if `is_own` is false.
    """

    places: tuple[Place, ...] = ()
    reason: str = ""
    is_own: bool = False
    is_seen: bool = False


def read_rows(program: Program, iteration: Iteration) -> Rows | None:
    """The sharding of a loop's sequence, or of a `fit`'s; None if it is not a sequence."""
    at = unwrapped(program, iteration.at, "builtins.enumerate")
    fit = iteration.fit
    if program.fact(Generators).run_by(at):
        if any(map(program.fact(WhatTrains).site_trains, _calls(program, at))):
            return None
        return _of_fit(program, at) if fit is not None else _of_loop(program, at)
    if fit is not None:
        order = _order(program, fit, at)
        if order is None:
            return None
        if order.diverges and counts(fit):
            return Rows(is_own=True)
        return _of_flow(program, at) or _of_sequence(fit, at, order)
    if _is_sequence(program, at):
        return _of_loop(program, at)
    if side_by_side(program, at):
        return None
    found = [at]
    if isinstance(at.node, ast.Call) and _SIDE_BY_SIDE in called(program, at):
        found = [at.part(each) for each in at.node.args if not isinstance(each, ast.Starred)]
        is_row = len(found) == len(at.node.args) > 0 and all(
            _is_batches(program, each, frozenset()) or _is_array(program, each) for each in found
        )
    else:
        is_row = isinstance(at.node, ast.Name | ast.Attribute) and _is_batches(program, at, frozenset())
    return _of_lists(program, found) if is_row else None


def counts(fit: Fit) -> bool:
    """Return whether a `fit` has an argument for the number of steps."""
    steps = fit.given("steps_per_epoch")
    return steps is not None and not (isinstance(steps, ast.Constant) and steps.value is None)


def _calls(program: Program, at: Occurrence) -> list[Site]:
    """All calls that produce or consume the elements."""
    trails = program.fact(Trails)
    return trails.calls(trails.behind(at, True, whole=True))


def _order(program: Program, fit: Fit, at: Occurrence) -> Verdict | None:
    """The verdict on whether all ranks read a Keras sequence in one order; None if it is not one."""
    draws = program.fact(Uniformity).draws
    if isinstance(at.node, ast.Call) and program.script.site_of(at.node).name in _FLOWS:
        site = program.script.site_of(at.node)
        if not draws.shuffles(site):
            return Uniform()
        return divergent(CauseKind.RANK, site) if program.choices.seed_by_rank else draws.of(site)
    if _is_sequence(program, at):
        shuffles = fit.given("shuffle")
        if isinstance(shuffles, ast.Constant) and not shuffles.value:
            return Uniform()
        return draws.of_library(PYTHON, fit.site)
    step = program.names.steps_back(at)
    if step is None or step.unseen or len(step.sources) != 1 or isinstance(at.node, ast.Call):
        return None
    return _order(program, fit, step.sources[0])


def _is_sequence(program: Program, at: Occurrence) -> bool:
    """Return whether an expression is an object of the script that has a length, and elements by number."""
    values = program.names.values(*at[:3])
    return bool(values) and all(
        isinstance(value, UserInstance)
        and all(program.names.function_named(value.scope, name) for name in ("__getitem__", "__len__"))
        for value in values
    )


def _of_sequence(fit: Fit, at: Occurrence, order: Verdict) -> Rows:
    if not order.diverges:
        reason = "all ranks read it in the same order; shuffle it without a seed"
        return Rows(reason=reason, is_seen=order.is_uniform)
    if hides_arguments(fit.site.node) or not is_read_again(at.node):
        return Rows(
            reason="its length is unknown; assign it to a variable, and pass `steps_per_epoch` to `fit`"
        )
    return Rows((Place(at, Form.STEPS),))


def _of_flow(program: Program, at: Occurrence) -> Rows | None:
    """The sharding of the arrays from which an image reader makes batches; None if there are none."""
    if not isinstance(at.node, ast.Call):
        return None  # Its name may be asked for its length.
    site, given = program.script.site_of(at.node), at.node
    if site.name != "flow" or hides_arguments(given) or argument(given, None, "subset") is not None:
        return None
    parts = (argument(given, 0, "x"), argument(given, 1, "y"), argument(given, None, "sample_weight"))
    arrays = [at.part(each) for each in parts if each is not None]
    if not arrays or not all(is_read_again(each.node) and _is_array(program, each) for each in arrays):
        return None
    return _of_lists(program, arrays)


def _of_fit(program: Program, at: Occurrence) -> Rows:
    if program.fact(Generators).likeness(at).diverges:
        return Rows(is_own=True)
    read = {last_name(each.node) for each in program.fact(Trails).behind(at, True)}
    return _drawn((Place(at, Form.GENERATOR, tuple(program.fact(Remedies).shuffled(read))),))


def _of_loop(program: Program, at: Occurrence) -> Rows:
    if program.fact(Generators).is_by_rank(at):
        return Rows(is_own=True)
    calls = _calls(program, at)
    asking = next((each for each in calls if each.name in ASKING), None)
    if asking is not None:
        return Rows(reason=f"`{asking.name}` may return something different on each rank")
    return _drawn((Place(at, Form.GENERATOR, tuple(program.fact(Remedies).among(calls))),))


def _of_lists(program: Program, lists: list[Occurrence]) -> Rows:
    again = next((each.node for each in lists if not is_read_again(each.node)), None)
    if again is not None:
        return Rows(reason=f"`{ast.unparse(again)}` would be evaluated twice; assign it to a variable first")
    draws = dict.fromkeys(draw for each in lists for draw in program.fact(Remedies).behind(each))
    return _drawn(tuple(Place(each, Form.ARRAY, tuple(draws)) for each in lists))


def _drawn(places: tuple[Place, ...]) -> Rows:
    reason = unordered(draw for place in places for draw in place.draws)
    return Rows(reason=reason) if reason else Rows(places)


def _is_array(program: Program, at: Occurrence) -> bool:
    """Return whether an expression is certainly an array rather than a dataset or a list."""
    values = program.names.values(*at[:3])
    if any(isinstance(value, Display) for value in values) or program.names.may_be(values, *api.DATASET):
        return False
    return is_array(program, at)


def _is_batches(program: Program, at: Occurrence, seen: frozenset[int]) -> bool:
    """Return whether a list certainly contains slices of arrays."""
    if id(at.node) in seen:
        return False
    if isinstance(at.node, ast.ListComp):
        return any(isinstance(part, ast.Slice) for part in ast.walk(at.node.elt))
    if called(program, at) & LISTS:
        return True
    sources = program.names.all_sources(at)
    return bool(sources) and all(_is_batches(program, each, seen | {id(at.node)}) for each in sources)
