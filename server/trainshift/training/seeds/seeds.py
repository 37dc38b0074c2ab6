"""Seeds: the fixed seeds that all ranks must share, with the reason (spec.md 8).

Weights are broadcast, so a seed of its own gives each rank only its own dropout, noise and order. Draws
before the training are different: data, a split, an order by which data are divided.
"""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Instance, Member
from trainshift.python.syntax.chunk_syntax import Scope, Site, expression_path
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.call_chains import callers_around, functions_handed_to
from trainshift.training.data.divided_data import DividedData
from trainshift.training.execution.executions import Executions
from trainshift.training.execution.graph_slice import reaching_calls
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.seeds.seed_places import (
    GENERATORS,
    GLOBAL,
    NUMPY,
    PYTHON,
    READING,
    TENSORFLOW,
    SeedPlaces,
)

# Functions that select a part of the data.
_SPLITTING = ("subset", "validation_split")
# The library whose numbers each prefix draws, and names with the prefix that draw none.
_DRAWING = {
    "numpy.random.": NUMPY,
    "random.": PYTHON,
    "sklearn.": NUMPY,
    "tensorflow.compat.v1.random.": TENSORFLOW,
    "tensorflow.compat.v1.random_": TENSORFLOW,
    "tensorflow.random.": TENSORFLOW,
}
_DRAWING_NONE = (
    "Generator", "Random", "RandomState", "SeedSequence", "create_rng_state", "default_rng", "from_seed",
    "from_state", "get_seed", "get_state", "get_global_generator", "getstate", "seed", "set_random_seed",
    "set_seed", "set_state", "setstate",
)  # fmt: skip
# Functions that choose or order elements.
_CHOOSING = ("choice", "choices", "next_batch", "permutation", "permuted", "sample", "shuffle")
# Methods that pass each element of the data to a function.
_MAPPING = ("interleave", "map", "numpy_function", "py_function")
_RUN_BY_KERAS = (
    *api.LAYER,
    *api.MODEL,
    "tensorflow.keras.callbacks.Callback",
    "tensorflow.keras.utils.Sequence",
)
_SETTING_UP = ("__init__", "build")


class Seeds:
    """The seeds of one program that all ranks must share."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._places = program.fact(SeedPlaces)

    def reason(self, site: Site) -> str:
        """The reason why all ranks must share the seed of a call; empty if each may have its own."""
        names = self._places.called(site)
        shared = [each for name in names for each in GLOBAL.get(name, ())]
        if shared:
            return next(filter(None, map(self._shared, shared)), "")
        if names & GENERATORS:
            return self._drawn_from(site)
        if site in self._ordering:
            return self._ordering[site]
        given = {word.arg for word in site.node.keywords}
        if site.name in READING and given & set(_SPLITTING):
            return "it splits the data, and every rank must split them alike"
        return ""

    def _shared(self, library: str) -> str:
        """The reason why all ranks must draw the same numbers from a library."""
        if library == TENSORFLOW and self._ordering:
            return next(iter(self._ordering.values()))
        for site in self._script.sites:
            for name in self._names.full_names(site.node.func, site.scope, site.statement):
                drawn = next((each for start, each in _DRAWING.items() if name.startswith(start)), "")
                if drawn == library and site.name not in _DRAWING_NONE:
                    reason = self._needed_by(site, name)
                    if reason:
                        return reason
        if library == NUMPY:
            unseen = [each for each in self._script.sites_named("sample") if not self._places.called(each)]
            unseen += self._script.sites_named("next_batch")
            return next(filter(None, (self._needed_by(each, "") for each in unseen)), "")
        return ""

    def _drawn_from(self, made: Site) -> str:
        """The reason why all ranks must draw the same numbers from a generator that a call creates."""
        for site in self._script.sites:
            if isinstance(site.node.func, ast.Attribute) and any(
                isinstance(value, Member)
                and isinstance(value.owner, Instance)
                and value.owner.node is made.node
                for value in self._names.callee(site)
            ):
                reason = self._needed_by(site, "")
                if reason:
                    return reason
        return "" if self._is_kept(made) else "Trainshift cannot see what draws from it"

    def _is_kept(self, made: Site) -> bool:
        """Return whether a name is bound to a call's generator, and all draws use this name."""
        return isinstance(made.statement.node, ast.Assign | ast.AnnAssign)

    def _needed_by(self, site: Site, name: str) -> str:
        """The reason why all ranks must draw the same in a call of a function with the full `name`."""
        where = f"`{site.name}` (line {self._script.line_at(self._script.span(site.node, site).start)})"
        chooses = site.name in _CHOOSING or name.startswith("sklearn.")
        if chooses and self._program.choices.divide_data:
            return f"{where} chooses or orders data, and every rank must see the same order to take its share"
        if not self._makes_variable(site) and not self._trains(site):
            return f"{where} draws before the training, and every rank must begin with the same data"
        return ""

    @cached_property
    def _ordering(self) -> dict[Site, str]:
        """The calls that draw the order by which data are divided or split, with the reason why ranks
        must agree.
        """
        found: dict[Site, str] = {}
        divided = "it orders the data before they are divided, and every rank must see the same order"
        for loop in self._program.fact(DividedData).loops:
            for site in (*loop.agreeing, *(draw.site for place in loop.places for draw in place.draws)):
                if self._places.is_shuffle(site) or site.name in READING:
                    found.setdefault(site, divided)
        split = "it orders the data before they are split, and every rank must split them alike"
        shuffles = {
            each.node: each for each in self._script.sites_named("shuffle") if self._places.is_shuffle(each)
        }
        for site in self._script.sites_named("skip") if shuffles else ():
            if isinstance(site.node.func, ast.Attribute):
                behind = site.node.func.value
                for each in reaching_calls(self._script, shuffles, behind, site.scope, site.statement):
                    found.setdefault(each, split)
        return found

    # The time of a draw

    def _makes_variable(self, site: Site) -> bool:
        """Return whether a draw initializes a variable, which is broadcast."""
        for outer in expression_path(site.statement.node, site.node):
            if isinstance(outer, ast.Call) and outer is not site.node:
                values = self._names.values(outer, site.scope, site.statement)
                if any(self._names.is_a(value, *api.VARIABLE) for value in values):
                    return True
        return False

    def _trains(self, site: Site) -> bool:
        """Return whether a call is made only in training steps, or for each element of the data."""

        def callers(each: Site) -> list[Site]:
            return [] if self._is_in_training(each) else callers_around(self._names, each)

        return all(
            self._is_in_training(each) or self._has_only_callers(each) for each in reachable([site], callers)
        )

    def _has_only_callers(self, site: Site) -> bool:
        """Return whether a call is in a function all of whose calls are known."""
        function = site.scope.function()
        callers, elsewhere = self._names.callers(function) if function is not None else ([], True)
        return bool(callers) and not elsewhere

    def _is_in_training(self, site: Site) -> bool:
        """Return whether the code around a call runs in the steps of a training, or for each element of
        data.
        """
        what = self._program.fact(WhatTrains)
        for above in site.statement.ancestors():
            if above.scope is not site.statement.scope:
                break
            if isinstance(above.node, LOOPS) and what.statement_trains(above):
                return True
        function = site.scope.function()
        if function is None:
            return False
        return (
            function in self._mapped
            or self._is_run_by_keras(function)
            or self._program.fact(Executions).is_traced(function)
        )

    def _is_run_by_keras(self, function: Scope) -> bool:
        owner = function.owner()
        return (
            owner is not None
            and function.name not in _SETTING_UP
            and self._names.descends(owner, *_RUN_BY_KERAS)
        )

    @cached_property
    def _mapped(self) -> dict[Scope, Site]:
        """The functions passed to calls that map data."""
        return functions_handed_to(self._script, *_MAPPING)
