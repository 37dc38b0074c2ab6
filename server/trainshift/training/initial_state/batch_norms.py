"""Batch norms: the layers of a program whose statistics all ranks can share, with Horovod's layer (spec.md
8).

Horovod's layer averages the mean and the variance of a batch over the ranks, in every training call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Class, Library
from trainshift.python.syntax.chunk_syntax import Site, hides_arguments, last_name
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.optimizers.graphs import Graphs
from trainshift.training.rank_regions.root_only import RootOnly

LAYER = "tensorflow.keras.layers.BatchNormalization"
_READY = "tensorflow.keras.applications."
# The arguments of Keras' layer that are passed by position.
_POSITIONS = ("axis", "momentum", "epsilon", "center", "scale")
# Arguments of Keras' layer that Horovod's does not implement.
_OF_KERAS = ("fused", "synchronized", "renorm", "virtual_batch_size")


class BatchNorm(Struct, frozen=True, eq=False):
    """A call that creates such a layer; `reason` is the reason why it keeps per-rank statistics, if it does.

    `positions` are the names of its positional arguments, which Horovod's layer takes by name.
    """

    site: Site
    reason: str
    positions: tuple[str, ...] = ()

    @property
    def is_named(self) -> bool:
        """Return whether the script names the layer."""
        return any(word.arg == "name" for word in self.site.node.keywords)


class BatchNorms:
    """The layers of one program that normalize batches, if they should share statistics."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    @cached_property
    def all(self) -> list[BatchNorm]:
        """The normalization layers of the script, and other calls that create some; none unless chosen."""
        return list(self._read()) if self._program.choices.sync_batch_norm else []

    @property
    def is_needed(self) -> bool:
        """Return whether some layer is to be Horovod's."""
        return any(not each.reason for each in self.all)

    def _read(self) -> Iterator[BatchNorm]:
        for site in self._script.sites:
            values = self._names.callee(site)
            libraries = {
                api.canonical(value.name) or value.name for value in values if isinstance(value, Library)
            }
            if LAYER in libraries:
                reason = self._obstacle(site, libraries, len(values))
                yield BatchNorm(site, reason, _POSITIONS[: len(site.node.args)])
            elif any(
                name.startswith(_READY) and last_name(site.node.func)[:1].isupper() for name in libraries
            ):
                yield BatchNorm(site, f"{last_name(site.node.func)} makes its layers itself")
            elif any(
                isinstance(value, Class) and LAYER in self._names.ancestry(value.scope) for value in values
            ):
                yield BatchNorm(
                    site, f"{last_name(site.node.func)} is a class of the script, derived from Keras's layer"
                )
            elif any(LAYER in self._given(each, site) for each in _references(site.node)):
                yield BatchNorm(site, "Trainshift cannot see where the layer is made")

    def _given(self, node: ast.expr, site: Site) -> set[str]:
        names = self._names.full_names(node, site.scope, site.statement)
        return {api.canonical(name) or name for name in names}

    def _obstacle(self, site: Site, libraries: set[str], values: int) -> str:
        given = [word.arg for word in site.node.keywords]
        own = next((name for name in _OF_KERAS if name in given), "")
        if self._program.fact(Graphs).is_used:
            return "Horovod's layer is for TensorFlow 2"
        if len(libraries) < values or len(libraries) > 1:
            return f"{last_name(site.node.func)} may be another layer"
        if hides_arguments(site.node) or len(site.node.args) > len(_POSITIONS):
            return "its arguments are hidden in * or **"
        if own:
            return f"Horovod's layer does not take {own}="
        if site.in_fstring:
            return "it is made inside an f-string"
        if self._trains_on_root:
            return "rank 0 would wait in a call with training=True that the other ranks skip"
        return ""

    @cached_property
    def _trains_on_root(self) -> bool:
        """Return whether a call that only rank 0 makes runs layers as in training."""
        calls = self._program.fact(RootOnly).calls
        kept = {each for call in calls for each in (call.site.statement, call.statement)}
        return any(
            site.statement in kept or self._program.fact(Horovod).site_on_root(site)
            for site in self._script.sites
            if any(
                word.arg == "training" and isinstance(word.value, ast.Constant) and word.value.value
                for word in site.node.keywords
            )
        )


def _references(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the layers among a call's arguments: ``partial(BatchNormalization, momentum=0.9)``."""
    for node in (*call.args, *(word.value for word in call.keywords)):
        if isinstance(node, ast.Name | ast.Attribute) and last_name(node).endswith("Normalization"):
            yield node
