"""First batches: where ranks may take a second optimizer step before a broadcast.

The callback of `fit` broadcasts the variables of rank 0 after the first batch.  A `train_step` with several
steps has then taken all but the first from each rank's own weights.  For Keras 3, the callback also
broadcasts before the first batch, except for weights that Keras creates when it sees data.
"""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.names.values import UserInstance
from trainshift.python.syntax.chunk_syntax import Scope, Site, dotted, last_name
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.execution.executions import Executions, is_of_one_branch
from trainshift.training.keras_version.target import Target
from trainshift.training.loops.fits import Fit, Fits
from trainshift.training.loops.steps import Step, Steps

_SEQUENTIALS = ("tensorflow.keras.Sequential", "tensorflow.keras.models.Sequential")
_MODEL_METHODS = ("train_step", "__call__")
_INPUTS = ("Input", "InputLayer")
_SHAPES = ("input_shape", "batch_input_shape", "input_dim", "batch_shape")


class FirstBatches:
    """The first batches of one program's fits."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    def takes_several(self, step: Step) -> bool:
        """Return whether a step in a `train_step` may be one of several that its optimizer takes in a
        batch.
        """
        model = self._model(step)
        if model is None:
            return False
        same = [
            each
            for each in self._program.fact(Steps).steps
            if dotted(each.receiver) == dotted(step.receiver) and self._model(each) is model
        ]
        return any(map(self._is_repeated, same)) or len([e for e in same if not is_of_one_branch(e.site)]) > 1

    def doubt(self, fit: Fit) -> str:
        """The doubt about the variables of a fitted model on Keras 3; "" if there is none."""
        cls = self._program.fact(Fits).own_tape(fit.model, fit.site)
        if cls is None or not self._program.fact(Target).is_keras3:
            return ""
        family = self._names.ancestry(cls)
        several = any(
            self._model(step) in family and self.takes_several(step)
            for step in self._program.fact(Steps).steps
        )
        unbuilt = next(filter(self._may_be_unbuilt, self._script.sites), None) if several else None
        if unbuilt is None:
            return ""
        made = self._script.home(unbuilt.scope).line_at(self._script.span(unbuilt.node, unbuilt).start)
        return (
            f"{self._script.text(fit.model, fit.site)} takes several steps per batch, and its "
            f"weights are assumed to exist before fit: give the model of line {made} an Input, or "
            "call `build`"
        )

    def _model(self, step: Step) -> Scope | None:
        return self._program.fact(Executions).custom_model(step.site.scope)

    def _is_repeated(self, step: Step) -> bool:
        """Return whether a batch runs the statement of a step more than once."""
        function = step.site.scope.function()
        repeats = self._program.fact(ControlFlow).repeats
        if repeats(step.statement) or function is None or function.name in _MODEL_METHODS:
            return repeats(step.statement)
        calls = self._names.callers(function)[0]
        return len(calls) > 1 or any(repeats(each.statement) for each in calls)

    def _may_be_unbuilt(self, site: Site) -> bool:
        """Return whether a call creates a model of layers that have no weights before they see data."""
        made = self._names.site_values(site.node, site)
        if self._names.calls(site, *_SEQUENTIALS):
            first = site.node.args[:1] + [each.value for each in site.node.keywords if each.arg == "layers"]
            added = [each.node for each in self._calls_of(site, "add")]
            return not any(map(_has_shape, [*first, *added])) and not self._calls_of(site, "build")
        own = any(isinstance(each, UserInstance) for each in made)
        if not own or not any(self._names.is_a(each, *api.MODEL) for each in made):
            return False
        classes = [
            cls for each in made if isinstance(each, UserInstance) for cls in self._names.ancestry(each.scope)
        ]
        layers = any(
            self._names.is_a(value, *api.LAYER)
            for inner in self._script.sites
            if (inner.scope.function() or inner.scope).owner() in classes
            for value in self._names.site_values(inner.node, inner)
        )
        return layers and not self._calls_of(site, "build")

    def _calls_of(self, made: Site, method: str) -> list[Site]:
        """The calls of a method on a call's result, by its name."""
        node = made.statement.node
        names = {dotted(each) for each in getattr(node, "targets", ())} - {""}
        return [
            site
            for site in self._script.sites_named(method)
            if isinstance(site.node.func, ast.Attribute) and dotted(site.node.func.value) in names
        ]


def _has_shape(node: ast.expr) -> bool:
    """Return whether the code of layers names the shape of an input."""
    return any(
        isinstance(each, ast.Call)
        and (last_name(each.func) in _INPUTS or any(word.arg in _SHAPES for word in each.keywords))
        for each in ast.walk(node)
    )
