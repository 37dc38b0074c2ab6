"""Graphs: the training in a TensorFlow 1 graph, and the gradients that Horovod must average.

A wrapped optimizer averages in `compute_gradients`, which `minimize` calls; the result of `tf.gradients`
bypasses it, so it is averaged at its call.
"""

from __future__ import annotations

import ast

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Instance, Unknown
from trainshift.python.syntax.chunk_syntax import (
    COMPREHENSIONS,
    Site,
    argument,
    arguments,
    expression_path,
    last_name,
)
from trainshift.training.execution.graph_slice import reaching_calls
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.loop_kinds import GRAPH_PATTERNS
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.steps import Step, Steps

# The methods of an optimizer in which its wrap averages the gradients.
_AVERAGING = ("minimize", "compute_gradients", "get_updates")
_GRADIENTS = (
    "tensorflow.gradients",
    "tensorflow.compat.v1.gradients",
    "tensorflow.keras.backend.gradients",
    "tensorflow.compat.v1.keras.backend.gradients",
)
# Functions that list variables, and the collection of local ones.
_LISTING = ("global_variables", "trainable_variables", "local_variables", "get_collection")
_LOCAL = "LOCAL_VARIABLES"


class HiddenGradients(Struct, frozen=True, eq=False):
    """Gradients that are applied and cannot be averaged, with the place and the reason."""

    site: Site
    reason: str


class Graphs:
    """The TensorFlow 1 graphs of one script."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    @cached_property
    def is_used(self) -> bool:
        """Return whether some loop of the script runs operations of a graph."""
        return any(loop.pattern in GRAPH_PATTERNS for loop in self._program.fact(Loops).own)

    @cached_property
    def steps(self) -> list[Step]:
        """The `apply_gradients` calls that make operations of a graph."""
        if not self.is_used:
            return []
        eager = self._program.fact(Loops).eager_updates
        return [
            step
            for step in self._program.fact(Steps).steps
            if not step.gradients and step.pairs is not None and step.site not in eager
        ]

    @cached_property
    def optimizers(self) -> list[tuple[ast.expr, Site]]:
        """The optimizers that compute gradients of a graph themselves, with the place of each."""
        if not self.is_used:
            return []
        reduced = {site for step in self.steps for site in self._averaged_by_hand(step, self._computing)}
        return [
            (site.node.func.value, site)
            for site in self._script.sites_named(*_AVERAGING)
            if isinstance(site.node.func, ast.Attribute)
            and self._may_be_optimizers(site)
            and site not in reduced
        ]

    @cached_property
    def averaging(self) -> frozenset[ast.Call]:
        """The calls at which the gradients of a graph are averaged, or will be."""
        found = {site.node for _, site in self.optimizers}
        found |= {site.node for site in self._program.fact(Horovod).calls("allreduce", "grouped_allreduce")}
        return frozenset(found.union(self._taking))

    @cached_property
    def gradients(self) -> tuple[list[Site], list[HiddenGradients]]:
        """The calls of `tf.gradients` to average, and the steps with unknown gradients."""
        found: dict[Site, None] = {}
        hidden = []
        for step in self.steps:
            taken = self._reaching(step, self._taking)
            if taken:
                by_hand = self._averaged_by_hand(step, self._taking)
                found.update(
                    (site, None) for site in taken if not self._is_averaged(site) and site not in by_hand
                )
            elif not self._reaching(step, self._computing) and not step.reduced:
                pairs = self._script.text(step.pairs, step.site) if step.pairs is not None else ""
                reason = (
                    f"Trainshift cannot tell where the gradients {pairs} come from, so they are not averaged"
                )
                hidden.append(HiddenGradients(step.site, reason))
        return list(found), hidden

    def takes_gradients_of(self, step: Step) -> bool:
        """Return whether a step applies gradients of a graph, as far as the script shows."""
        seen = step.pairs is not None and not step.gradients
        return seen and bool(self._reaching(step, self._taking) or self._reaching(step, self._computing))

    def _may_be_optimizers(self, site: Site) -> bool:
        assert isinstance(site.node.func, ast.Attribute)
        if self._names.full_names(site.node.func, site.scope, site.statement):
            return False
        values = self._names.site_values(site.node.func.value, site)
        unknown = not values or any(isinstance(value, Unknown) for value in values)
        return unknown or self._names.may_be(values, *api.OPTIMIZERS)

    @cached_property
    def _taking(self) -> dict[ast.Call, Site]:
        sites = self._script.sites_named("gradients")
        return {site.node: site for site in sites if self._names.calls(site, *_GRADIENTS)}

    @cached_property
    def _computing(self) -> dict[ast.Call, Site]:
        sites = self._script.sites_named("compute_gradients", "get_gradients")
        return {site.node: site for site in sites if self._may_be_optimizers(site)}

    def initializes_local(self, initializer: Instance) -> bool:
        """Return whether `variables_initializer` gets local variables, such as a metric's, which never
        train.
        """
        given, made = argument(initializer.node, 0, "var_list"), self._script.site_of(initializer.node)
        listing = {site.node: site for site in self._script.sites_named(*_LISTING)}
        if given is None:
            return False
        found = reaching_calls(self._script, listing, given, made.scope, made.statement)
        return bool(found) and all(
            site.name == "local_variables" or any(last_name(each) == _LOCAL for each in site.node.args)
            for site in found
        )

    def _reaching(self, step: Step, wanted: dict[ast.Call, Site]) -> list[Site]:
        return self._program.fact(Steps).reaching(step, wanted)

    def _averaged_by_hand(self, step: Step, wanted: dict[ast.Call, Site]) -> set[Site]:
        """The calls among `wanted` whose results pass through an allreduce of the script."""
        reductions = {
            site.node: site for site in self._program.fact(Horovod).calls("allreduce", "grouped_allreduce")
        }
        return {
            site
            for reduction in (self._reaching(step, reductions) if reductions else ())
            for given in arguments(reduction.node)
            for site in reaching_calls(self._script, wanted, given, reduction.scope, reduction.statement)
        }

    def _is_averaged(self, site: Site) -> bool:
        """Return whether a call is in a comprehension or `map` that averages its result."""
        return any(
            isinstance(part, ast.Call)
            and self._program.fact(Horovod).is_call(
                self._script.site_of(part), "allreduce", "grouped_allreduce"
            )
            for above in expression_path(site.statement.node, site.node)
            if isinstance(above, COMPREHENSIONS)
            or (isinstance(above, ast.Call) and last_name(above.func) == "map")
            for part in ast.walk(above)
        )
