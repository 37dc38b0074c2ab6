"""Compiled models: those whose optimizers must average on Keras 3, at their `compile`."""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.syntax.chunk_syntax import Site, dotted
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.horovod.own_horovod import OwnHorovod
from trainshift.training.keras_version.target import Target
from trainshift.training.loops.fits import Compile, Fit, Fits
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.steps import is_plain
from trainshift.training.optimizers.averaging import Averaging

_XLA = "jit_compile"


class Compiled:
    """The `compile` calls of one program's fits."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script

    @cached_property
    def to_distribute(self) -> list[Compile]:
        """The `compile` calls after which the model's optimizer has yet to be distributed."""
        own = self._program.fact(OwnHorovod)
        return [
            each
            for each in self._all
            if self.averages(each)
            and not own.is_distributed(model_of(each), each.site)
            and not self._is_told_at_fit(each)
        ]

    @cached_property
    def loaded(self) -> list[Fit]:
        """The fits, outside loops, of models that are loaded with an optimizer that should average."""
        own = self._program.fact(OwnHorovod)
        return [
            each
            for each in self._told_at_fit
            if self._program.fact(Fits).own_tape(each.model, each.site) is None
            and not own.is_distributed(each.model, each.site)
        ]

    @cached_property
    def loaded_with_xla(self) -> list[Fit]:
        """The fits of loaded models whose own tape averages, before which XLA must still be turned off."""
        return [
            each
            for each in self._told_at_fit
            if self._program.fact(Fits).own_tape(each.model, each.site) is not None
            and not self._has_no_xla(each.model, each.site)
        ]

    @cached_property
    def _told_at_fit(self) -> list[Fit]:
        """The fits of models that may be loaded with their optimizer, above which it is distributed."""
        fits = self._program.fact(Fits)
        return [
            each
            for each in (fits.fits if self._program.fact(Target).is_keras3 else ())
            if fits.is_loaded_compiled(each)
            and is_plain(each.model)
            and not self._program.fact(ControlFlow).repeats(each.site.statement)
        ]

    def _is_told_at_fit(self, compile: Compile) -> bool:
        """Return whether all fits of a compiled model may also be of a loaded one."""
        fits = self._program.fact(Fits)
        own = [
            each for each in fits.fits if any(made.site is compile.site for made in fits.compiles_of(each))
        ]
        return bool(own) and all(each in self._told_at_fit for each in own)

    def is_averaged_loaded(self, fit: Fit) -> bool:
        """Return whether a model loaded with its optimizer averages, or is made to average, at its fit."""
        own = self._program.fact(OwnHorovod).is_distributed(fit.model, fit.site)
        if self._program.fact(Target).is_keras3:
            return own or fit in self.loaded
        given = (each for each in self._program.fact(Loops).own if fit.site in each.sites)
        return any(map(self._program.fact(Averaging).is_given_average, given))

    @cached_property
    def to_run_without_xla(self) -> list[Compile]:
        """The `compile` calls of models whose own tape averages, after which XLA has yet to be turned off."""
        return [
            each
            for each in self._all
            if not self.averages(each)
            and not self._has_no_xla(model_of(each), each.site)
            and not self._is_told_at_fit(each)
        ]

    def averages(self, compile: Compile) -> bool:
        """Return whether the optimizer averages, and not a tape of the model's own."""
        return compile.own_tape is None or self._program.fact(Fits).may_have_own_tape_or_not(compile)

    @cached_property
    def _all(self) -> list[Compile]:
        fits = self._program.fact(Fits)
        own = [each for each in fits.own_compiles if each.own_tape is not None]
        return [*fits.compiles, *own] if self._program.fact(Target).is_keras3 else []

    def _has_no_xla(self, model: ast.expr, site: Site) -> bool:
        name, function = dotted(model), site.scope.function()
        return any(
            dotted(each.base) == name != ""
            and each.binding.scope.function() is function
            and isinstance(each.binding.value, ast.Constant)
            and each.binding.value.value is False
            for each in self._script.attribute_bindings(_XLA)
        )


def model_of(compile: Compile) -> ast.expr:
    """The model that is compiled."""
    assert isinstance(compile.site.node.func, ast.Attribute)
    return compile.site.node.func.value
