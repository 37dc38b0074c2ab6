"""Warm-ups: whether `fit` may raise its rate over the first epochs with Horovod's callback (spec.md 8).

Before each batch the callback sets the rate of the model's optimizer, which rises to the scaled one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Class, Library
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.training.execution.executions import Executions, innermost_loop
from trainshift.training.execution.graph_slice import reaching_calls
from trainshift.training.keras_version.target import Target
from trainshift.training.learning_rates.rate_cases import RateCases
from trainshift.training.learning_rates.rate_settings import RateSettings
from trainshift.training.learning_rates.schedulers import Schedulers
from trainshift.training.loops.fits import Compile, Fit, Fits
from trainshift.training.loops.steps import is_plain
from trainshift.training.optimizers.reductions import Reductions

WARM_UP = "LearningRateWarmupCallback"
_CALLBACK = "tensorflow.keras.callbacks.Callback"
_MAKERS = frozenset({"deserialize", "get"})


class WarmUps:
    """The fits of one program that can warm up their rate."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._fits = program.fact(Fits)

    def obstacle(self, fit: Fit) -> str:
        """The reason why the callback would not raise the rate of a fit correctly; empty if it would."""
        compiles = self._fits.compiles_of(fit)
        if not self._program.fact(Reductions).scales_rates:
            return "the rate is not scaled"
        if self._program.fact(Target).is_keras3:
            return "Horovod's callback does not support Keras 3"
        if not fit.certain:
            return "Trainshift cannot tell whether this is a Keras model"
        if not is_plain(fit.model):
            return "the model has no name by which its rate could be read"
        if any(self._has_own_optimizers(each) for each in compiles):
            return "the model steps optimizers of its own"
        if any(self._follows_schedule(each) for each in compiles):
            return "the rate is a schedule, which the callback cannot set"
        if self._sets_rates:
            return "a callback of the script sets the rate"
        if self._goes_on(fit, compiles):
            return "the model is fitted more than once, and its rate would fall again"
        return ""

    def _has_own_optimizers(self, compile: Compile) -> bool:
        own = compile.own_tape
        return own is not None and not (compile.optimizer and self._fits.uses_compiled_optimizer(own))

    def _follows_schedule(self, compile: Compile) -> bool:
        site, given = compile.site, compile.optimizer
        return given is not None and bool(
            reaching_calls(self._script, self._schedules, given, site.scope, site.statement)
        )

    @cached_property
    def _schedules(self) -> dict[ast.Call, Site]:
        """The calls that create schedules of rates, of TensorFlow's classes or of the script's own."""
        return {site.node: site for site in self._script.sites if self._makes_schedule(site)}

    def _makes_schedule(self, site: Site) -> bool:
        return any(
            api.is_subclass(value.name, *api.SCHEDULE)
            or (site.name in _MAKERS and value.name.startswith("tensorflow.keras.optimizers.schedules."))
            if isinstance(value, Library)
            else isinstance(value, Class) and self._names.is_a(value, *api.SCHEDULE)
            for value in self._names.callee(site)
        )

    @cached_property
    def _sets_rates(self) -> bool:
        """Return whether a callback sets the rate on a schedule of its own; `ReduceLROnPlateau` acts
        later.
        """
        schedulers = self._program.fact(Schedulers)
        if any(schedulers.schedule(site) is not None for site in schedulers.callbacks):
            return True
        settings = RateSettings(self._program, self._program.fact(RateCases)).all()
        owners = (each.value.scope.owner() for each in settings)
        return any(
            api.is_subclass(base, _CALLBACK)
            for owner in owners
            if owner is not None
            for base in self._names.library_bases(owner)
        )

    def _goes_on(self, fit: Fit, compiles: Sequence[Compile]) -> bool:
        """Return whether the fit may continue with a model that was fitted before, without a new
        `compile`.
        """
        if not self._program.fact(Executions).runs_once(fit.site):
            own = [each for each in compiles if each.site.scope.function() is fit.site.scope.function()]
            loops = [innermost_loop(each.site.statement) for each in own]
            if innermost_loop(fit.site.statement) not in loops:
                return True
        sharing = [each for each in self._fits.fits if set(self._fits.compiles_of(each)) & set(compiles)]
        return bool(sharing) and sharing[0] is not fit and len(compiles) < len(sharing)
