"""Reductions: the chosen way in which Horovod's wraps combine the gradients of all ranks (spec.md 8).

The options of each form of training were read in the source of Horovod 0.28.1, and tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from trainshift.core.choices import ADASUM, FP16
from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.syntax.chunk_syntax import Site, argument
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.fits import Fits
from trainshift.training.loops.loop_kinds import Pattern
from trainshift.training.loops.loops import Loops
from trainshift.training.optimizers.global_batch import GlobalBatch
from trainshift.training.optimizers.graphs import Graphs
from trainshift.training.optimizers.wraps import Wraps

_OPTIMIZER, _TAPE, _ALLREDUCE = "DistributedOptimizer", "DistributedGradientTape", "allreduce"
_ADASUM, _SUM = "Adasum", "Sum"
# Wrappers that scale losses, by a factor that changes while gradients are accumulated.
_SCALING_LOSSES = (
    "LossScaleOptimizer",
    "enable_mixed_precision_graph_rewrite",
    "set_global_policy",
    "set_policy",
)


class Form(Enum):
    """The kind of wrapper that averages a step's gradients, with its name in messages."""

    TAPE = "a tape"
    KERAS = "Keras' fit"
    GRAPH = "a TensorFlow 1 optimizer"
    GRADIENTS = "tf.gradients"


class Reductions:
    """The arguments of the wrappers in one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._choices = program.choices
        self._horovod = program.fact(Horovod)

    @property
    def scales_rates(self) -> bool:
        """Return whether the rates are multiplied by the number of ranks.

        They are not if the script sums gradients, by Adasum or by hand, or keeps the global batch size.
        """
        return not (self._is_adasum or self._sums or self._program.fact(GlobalBatch).is_kept)

    def given(self, form: Form, module: str) -> str:
        """The arguments of a wrapper after the wrapped object; `module` is the name of Horovod's module."""
        return "".join(f", {each}" for each in self._given(form, module))

    def _given(self, form: Form, module: str) -> Iterator[str]:
        if self._choices.compression == FP16:
            yield f"compression={module}.Compression.fp16"
        if self._is_adasum:
            yield f"op={module}.Adasum"
        if self._choices.backward_passes_per_step > 1 and not self._gathers_nothing(form):
            yield f"backward_passes_per_step={self._choices.backward_passes_per_step}"
            yield "average_aggregated_gradients=True"
            yield "sparse_as_dense=True"

    def decisions(self, form: Form) -> Iterator[str]:
        """Yield the decisions about a wrapper that follow from options."""
        if self._choices.warmup_epochs and form is not Form.KERAS and not self._program.fact(Fits).fits:
            yield "the rate is not warmed up: Horovod supports that for fit only"
        passes = self._choices.backward_passes_per_step
        if passes > 1:
            lacks = self._gathers_nothing(form)
            yield (
                f"it averages at every batch: {lacks}"
                if lacks
                else f"each rank averages {passes} batches before a step; the rate is not scaled for these"
            )
        if self._is_adasum:
            yield (
                "Adasum sums the gradients and the rate is not scaled; it needs 2, 4, 8, ... ranks and "
                "a Horovod built with MPI: with Gloo alone, it stops at the first step"
            )
        elif self._choices.op == ADASUM:
            yield f"the gradients are averaged and the rate is scaled: {self._adds_nothing}"

    def _gathers_nothing(self, form: Form) -> str:
        """The reason why a wrapper cannot accumulate the gradients of several batches; empty if it can."""
        if form in (Form.TAPE, Form.GRADIENTS):
            return f"Horovod has no backward_passes_per_step for {form.value}"
        if self._scales_losses:
            return "Horovod would sum the gradients of losses that are scaled by different factors"
        if form is Form.GRAPH and self._runs_sessions:
            return "Horovod's variables for it are initialized by MonitoredSession and Estimators only"
        return ""

    @cached_property
    def _scales_losses(self) -> bool:
        return next(iter(self._program.script.sites_named(*_SCALING_LOSSES)), None) is not None

    @cached_property
    def _runs_sessions(self) -> bool:
        return any(loop.pattern is Pattern.SESSION for loop in self._program.fact(Loops).own)

    # Adasum

    @cached_property
    def _is_adasum(self) -> bool:
        """Return whether Adasum combines the gradients of all ranks, in the whole program."""
        there = self._wraps_there
        if there and all(self._makes_one_by(each, _ADASUM) for each in there):
            return True
        return self._choices.op == ADASUM and not self._adds_nothing

    @cached_property
    def _adds_nothing(self) -> str:
        """The reason why Adasum cannot be used; empty if it can."""
        if self._wraps_optimizers:
            # `DistributedOptimizer(op=Adasum)` of TensorFlow 1 lets the ranks diverge.
            return "Horovod's Adasum works only with tapes, not with the optimizers that it wraps"
        if self._wraps_there or self._has_scaled_rates:
            return "parts of the script average or scale already"
        return ""

    @cached_property
    def _wraps_optimizers(self) -> bool:
        wraps = self._program.fact(Wraps)
        made, named, _ = wraps.all
        by_name = any(each.compile.own_tape is None for each in named)
        return bool(made or by_name or wraps.unnamed or self._horovod.calls(_OPTIMIZER, "load_model"))

    @cached_property
    def _wraps_there(self) -> tuple[Site, ...]:
        """The calls in the original script that combine gradients of all ranks."""
        functions = (_TAPE, _ALLREDUCE) if self._program.fact(Graphs).is_used else (_TAPE,)
        return self._horovod.calls(*functions)

    @cached_property
    def _sums(self) -> bool:
        """Return whether the original script sums the gradients of all ranks instead of averaging them."""
        wraps = [*self._wraps_there, *self._horovod.calls(_OPTIMIZER)]
        return bool(wraps) and all(self._makes_one_by(each, _SUM) for each in wraps)

    def _makes_one_by(self, wrap: Site, operation: str) -> bool:
        """Return whether a wrapper gets a Horovod operation, at least in some cases."""
        at = argument(wrap.node, None, "op")
        names = self._program.names.full_names(at, wrap.scope, wrap.statement) if at is not None else ()
        return any(name.startswith("horovod.") and name.endswith(f".{operation}") for name in names)

    @cached_property
    def _has_scaled_rates(self) -> bool:
        """Return whether the script multiplies rates by the number of ranks itself."""
        return self._horovod.is_used and any(
            self._horovod.scaled(given, site.scope, site.statement)
            for site in self._program.script.sites
            if self._program.fact(Wraps).makes_optimizer(site)
            for given in (*site.node.args, *(word.value for word in site.node.keywords))
        )
