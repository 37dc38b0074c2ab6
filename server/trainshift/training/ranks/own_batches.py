"""Own batches: the rows that each rank takes for itself while it trains.

What is computed from them, or from their number where the last batch may be smaller, is a rank's own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.divergence import CauseKind
from trainshift.libraries.entries import fact, is_bar
from trainshift.libraries.methods import named
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.syntax.chunk_syntax import Scope, Statement, argument, arguments, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.call_chains import statements_around
from trainshift.training.execution.executions import innermost_loop
from trainshift.training.loops.fits import Fits
from trainshift.training.loops.steps import Steps
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.ranks.equal_shares import NO_PLACES, EqualShares
from trainshift.training.ranks.row_sources import RowSources
from trainshift.training.ranks.sink_inputs import counts
from trainshift.training.uniformity.shapes import Shapes
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.verdict import Cause

_ZIPPING = ("builtins.zip", "itertools.zip_longest")
_NEXT = ("get_next", "next", "next_batch")
_BATCHING = ("batch", "padded_batch", "make_csv_dataset", "make_batched_features_dataset")
_TRAINING = named("training") - {"apply_gradients", "fit_transform"}
# The methods by which models of Keras train and test on a batch.
_STEPS = ("train_step", "test_step")
# The method by which layers and models compute on a batch, and its parameters that are no data.
_CALL = "call"
_MODES = frozenset({"mask", "training"})


class OwnBatches:
    """The expressions of one program that give a rank its own rows."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._known: dict[tuple[ast.AST, Scope], list[Occurrence]] = {}

    def cause(self, at: Occurrence) -> Cause | None:
        """Return the cause for which an expression differs if it takes rows, or counts those of a batch."""
        if self._takes(at) or self._counts(at):
            return Cause(CauseKind.DATA, at, None)
        return None

    def is_fed(self, cause: Cause) -> bool:
        """Return whether the cause is what a layer is called on, as it also is while a model is built."""
        return self._is_given(cause.at, (_CALL,))

    def _takes(self, at: Occurrence) -> bool:
        node = at.node
        if node in self._iterated:
            return True
        if isinstance(node, ast.Call):
            is_next = last_name(node.func) in _NEXT and self._is_in_training(at)
            return is_next and not self._is_first(node, at) and self._may_be_rows(node, at)
        if isinstance(node, ast.Subscript):
            if not isinstance(node.slice, ast.Slice) or not self._is_by_turn(node.slice, at):
                return False
            return self._program.fact(RowSources).may_take(at, node.value)
        return self._is_given(at, (*_STEPS, _CALL))

    def _is_first(self, node: ast.Call, at: Occurrence) -> bool:
        """Return whether a call asks a new iterator, which gives the same element each time."""
        if not node.args:
            return False
        asked = at.part(node.args[0])
        step = self._names.steps_back(asked)
        made = step.sources if step is not None and not step.unseen else ()
        if isinstance(asked.node, ast.Call):
            return self._makes_iterator(asked.node, asked)
        return bool(made) and all(
            isinstance(each.node, ast.Call)
            and self._makes_iterator(each.node, each)
            and _are_in_one_turn(each, at)
            for each in made
        )

    def _makes_iterator(self, node: ast.Call, at: Occurrence) -> bool:
        """Return whether a call makes a new iterator: of a library, or by a generator."""
        functions = self._names.called_functions(self._script.site_of(node))
        if functions:
            return all(each.is_generator for each in functions)
        return bool(self._names.full_names(node.func, at.scope, at.statement))

    def _may_be_rows(self, node: ast.Call, at: Occurrence) -> bool:
        """Return whether a call asks something for its next element that may be data."""
        if "builtins.next" not in self._names.full_names(node.func, at.scope, at.statement) or not node.args:
            return True
        return self._program.fact(RowSources).may_take(at, node.args[0])

    def _is_given(self, at: Occurrence, methods: tuple[str, ...]) -> bool:
        """Return whether Keras hands a value to one of some methods."""
        function = at.scope.function()
        given = self._given.get(function, ())
        named = function.name if function is not None else ""
        return isinstance(at.node, ast.Name) and at.node.id in given and named in methods

    def _is_in_training(self, at: Occurrence) -> bool:
        """Return whether an expression is evaluated anew for the steps of a training."""
        trained = self._program.fact(WhatTrains)
        above = at.statement.ancestors() if at.statement is not None else ()
        return at.scope.function() in trained.functions or any(
            isinstance(each.node, LOOPS) and trained.statement_trains(each) for each in above
        )

    def _is_by_turn(self, bounds: ast.Slice, at: Occurrence) -> bool:
        """Return whether the iteration of a training loop decides which rows a slice takes."""
        return any(
            binding.kind == "element" and binding.value in self._numbers
            for name in ast.walk(bounds)
            if isinstance(name, ast.Name)
            for binding in self._names.bindings(at.part(name))
        )

    def _counts(self, at: Occurrence) -> bool:
        return bool(self._counted(at)) and not self.counts_alike(at)

    def counts_rows(self, at: Occurrence) -> bool:
        """Return whether an expression counts rows that a rank takes for itself."""
        return bool(self._counted(at))

    def counts_alike(self, at: Occurrence, places: Mapping[ast.AST, bool] = NO_PLACES) -> bool:
        """Return whether an expression counts rows of which all ranks take equally many at a time.

        The data at `places` are going to be divided.
        """
        takes = self._counted(at)
        if any(map(self._is_whole, takes)):
            return True
        return self._is_of_batch(at, takes) and all(self._is_shared(each, places) for each in takes)

    def _is_of_batch(self, at: Occurrence, takes: list[Occurrence]) -> bool:
        """Return whether an expression counts all rows of what a rank takes, without a choice among them."""
        taken = {each.node for each in takes}
        measured = self._program.fact(Shapes).measured(at)

        def back(each: Occurrence) -> Iterable[Occurrence]:
            step = self._names.steps_back(each) if each.node not in taken else None
            return (*step.sources, *step.within) if step is not None else ()

        behind = reachable([measured] if measured is not None else [], back, lambda each: each[:2])
        return bool(takes) and all(
            each.node in taken
            or isinstance(each.node, ast.Name | ast.Attribute)
            or (isinstance(each.node, ast.Subscript) and isinstance(each.node.slice, ast.Constant))
            for each in behind
        )

    def _counted(self, at: Occurrence) -> list[Occurrence]:
        """The rows of its own that a rank counts by an expression; none if it counts nothing."""
        key = at.node, at.scope
        if key not in self._known:
            self._known[key] = self._find_counted(at)
        return self._known[key]

    def _find_counted(self, at: Occurrence) -> list[Occurrence]:
        measured = self._program.fact(Shapes).measured(at)
        if measured is None:
            return []
        is_fed = at.scope.function() in self._given or self._is_in_training(at)
        if not is_fed and not self._has_others:
            return []
        return [
            each
            for each in self._program.fact(Uniformity).behind(measured)
            if self._takes(each) and (is_fed or not self._is_given(each, (_CALL,)))
        ]

    def _is_shared(self, at: Occurrence, places: Mapping[ast.AST, bool]) -> bool:
        """Return whether all ranks take batches from equal shares."""
        is_equal = self._program.fact(EqualShares).batches_are_equal
        if not isinstance(at.node, ast.Name) or not self._is_given(at, (*_STEPS, _CALL)):
            return is_equal(at, places=places)
        fits = self._program.fact(Fits).fits
        fed = [of_call(each.site).part(data) for each in fits if (data := each.given("x")) is not None]
        return (
            bool(fits)
            and len(fed) == len(fits)
            and not self._iterated
            and all(is_equal(each, is_fit=True, places=places) for each in fed)
        )

    def _is_whole(self, at: Occurrence) -> bool:
        """Return whether all batches of an iterable have the same size."""
        calls = (each.node for each in self._program.fact(Uniformity).behind(at))
        return any(
            isinstance(each, ast.Call)
            and last_name(each.func) in _BATCHING
            and isinstance(given := argument(each, None, "drop_remainder") or argument(each, 1), ast.Constant)
            and given.value is True
            for each in calls
        )

    @cached_property
    def _has_others(self) -> bool:
        """Return whether the program may take rows in another way than by the `call` of a layer."""
        steps = any(each is not None and each.name in _STEPS for each in self._given)
        return steps or bool(self._iterated or self._numbers) or any(self._script.sites_named(*_NEXT))

    @cached_property
    def _iterated(self) -> frozenset[ast.AST]:
        """The iterables of the training loops that take rows."""
        return frozenset(self._loops[False])

    @cached_property
    def _numbers(self) -> frozenset[ast.AST]:
        """The iterables of the training loops that count."""
        return frozenset(self._loops[True])

    @cached_property
    def _loops(self) -> dict[bool, list[ast.expr]]:
        """The iterables of the innermost loops that train, by whether they only count."""
        trains = self._program.fact(WhatTrains).statement_trains
        is_uniform = self._program.fact(Uniformity).is_uniform
        loops = {
            each: Occurrence(each.node.iter, each.scope, each)
            for each in self._script.statements
            if isinstance(each.node, ast.For | ast.AsyncFor) and trains(each) and self._has_losses(each)
        }
        counting = {each for each, at in loops.items() if self._only_counts(at)}
        fits = [each.site.statement for each in self._program.fact(Fits).fits]
        outer = {
            True: self._around([*loops, *fits]),
            # Each pass of a loop over rows may count steps of its own.
            False: self._around([*(loops.keys() - counting), *fits]),
        }
        found: dict[bool, list[ast.expr]] = {False: [], True: []}
        for each, start in loops.items():
            for at in self._passed_on(start) if each not in outer[each in counting] else ():
                is_count = self._only_counts(at)
                if is_count or not (isinstance(at.node, ast.List | ast.Tuple) or is_uniform(at)):
                    found[is_count].append(at.node)
        return found

    def _only_counts(self, at: Occurrence) -> bool:
        """Return whether a loop iterates over numbers, or over a rank's share of them."""
        while isinstance(at.node, ast.Subscript) and isinstance(at.node.slice, ast.Slice):
            at = at.part(at.node.value)
        return counts(self._program, at)

    def _has_losses(self, loop: Statement) -> bool:
        """Return whether each pass of a loop computes a loss, and not only applies gradients."""
        return any(each in self._computing for each in loop.walk() if each is not loop)

    @cached_property
    def _computing(self) -> set[Statement]:
        """The statements that record a loss, or call what trains."""
        trained = self._program.fact(WhatTrains)
        tapes = {each.with_statement for each in self._program.fact(Steps).tapes}
        found = {each for each in tapes if each is not None}
        for site in self._script.sites:
            called = self._names.called_functions(site)
            if not trained.functions.isdisjoint(called) or (not called and site.name in _TRAINING):
                found.add(site.statement)
        return found

    def _around(self, trainings: Iterable[Statement]) -> set[Statement]:
        """The statements around trainings, and around the calls that lead to them."""
        return {above for each in trainings for above in statements_around(self._names, each)}

    def _passed_on(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield an iterable, and those whose elements it passes on: ``enumerate(ds)``."""
        yield at
        if isinstance(at.node, ast.Call):
            called = self._names.full_names(at.node.func, at.scope, at.statement)
            if any(each in _ZIPPING or is_bar(each) or fact(each, "length") == "through" for each in called):
                for given in arguments(at.node):
                    yield from self._passed_on(at.part(given))

    @cached_property
    def _given(self) -> dict[Scope | None, set[str]]:
        """The parameters by which Keras hands a batch to a model's step, or to a layer."""
        found: dict[Scope | None, set[str]] = {}
        for each in self._script.statements:
            function = each.scope.function()
            if function is None or function in found or function.name not in (*_STEPS, _CALL):
                continue
            owner = function.owner()
            bases = api.LAYER if function.name == _CALL else api.MODEL
            if owner is not None and self._names.descends(owner, *bases):
                names = [name for name, given in function.bindings.items() if given[0].kind == "parameter"]
                found[function] = set(names[1:]) - _MODES
        return found


def _are_in_one_turn(one: Occurrence, other: Occurrence) -> bool:
    """Return whether two expressions are evaluated equally often, each time one after the other."""
    if one.statement is None or other.statement is None:
        return False
    is_loop = innermost_loop(one.statement) is not innermost_loop(other.statement)
    return one.scope is other.scope is other.statement.scope and not is_loop
