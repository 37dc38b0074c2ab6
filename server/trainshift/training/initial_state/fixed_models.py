"""Fixed models: the models that a loss comes of and that nothing trains, such as a random target.

Each rank makes such a model with its own random weights, so it is broadcast with what trains.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.methods import named
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import of_call
from trainshift.python.names.values import Instance, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import Site, argument, arguments, dotted, last_name
from trainshift.python.values.backward_slice import backward_slice
from trainshift.training.execution.executions import Executions
from trainshift.training.loops.fits import Fits
from trainshift.training.loops.steps import Step, Steps, is_plain

_LOADING = ("load_weights", "set_weights", *named("restoring"))
_LOADED = ("load_model", "from_pretrained", "from_preset")
_WITH_WEIGHTS = ".applications."


class FixedModels:
    """The models of one program that no step and no `fit` trains."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    def beside(self, step: Step) -> list[str]:
        """The names, at a step, of the fixed models under its tapes."""
        own = [dotted(each) for each in step.models]
        found = dict.fromkeys(dotted(each) for each in self._called(step))
        return [
            name
            for name in found
            if not any(f"{name}.".startswith(f"{each}.") for each in own) and name not in self._parts
        ]

    def _called(self, step: Step) -> Iterator[ast.expr]:
        tapes = {tape.with_statement for each in step.gradients for tape in each.tapes} - {None}
        function = step.site.scope.function()
        for site in self._script.code.sites_by_function.get(function, ()) if tapes else ():
            called = site.node.func
            if is_plain(called) and not isinstance(called, ast.Subscript):
                if not tapes.isdisjoint(site.statement.path()) and self._is_fixed(site):
                    yield called

    def _is_fixed(self, site: Site) -> bool:
        values = self._names.site_values(site.node.func, site)
        known = self._trained | self._given
        name = last_name(site.node.func)
        return bool(values) and all(
            self._names.is_a(each, *api.MODEL)
            and self._is_random(each)
            # Of several models that one function makes, the name tells which it is.
            and (each not in known or (name not in known[each] and not self._is_made_once(each)))
            for each in values
        )

    def _is_made_once(self, value: Value) -> bool:
        made = value.node if isinstance(value, Instance | UserInstance) else None
        return made is None or self._program.fact(Executions).runs_once(self._script.site_of(made))

    def _is_random(self, value: Value) -> bool:
        """Return whether a model begins with random weights, as far as the call that makes it tells."""
        if not isinstance(value, Instance):
            return isinstance(value, UserInstance) and value.node is not None
        made = self._script.site_of(value.node)
        names = self._names.full_names(made.node.func, made.scope, made.statement)
        if last_name(made.node.func) in _LOADED:
            return False
        weights = argument(made.node, None, "weights")
        is_none = isinstance(weights, ast.Constant) and weights.value is None
        return is_none or not any(_WITH_WEIGHTS in name for name in names)

    @cached_property
    def _parts(self) -> set[str]:
        """The names of the models that trained ones are made of: ``Model(x, decoder(encoder(x)))``,
        ``Sequential([encoder, decoder])``.
        """
        return {
            dotted(part)
            for value in self._trained
            if isinstance(value, Instance)
            for site in [self._script.site_of(value.node)]
            for given in arguments(site.node)
            for each in backward_slice(self._names, of_call(site).part(given))
            for part in ast.walk(each.node)
            if isinstance(part, ast.Name | ast.Attribute)
        }

    @cached_property
    def _trained(self) -> dict[Value, set[str]]:
        """The models that steps and `fit` train."""
        steps = (*self._program.fact(Steps).steps, *self._program.fact(Fits).steps)
        models = [(model, step.site) for step in steps for model in step.models]
        models += ((each.model, each.site) for each in self._program.fact(Fits).fits)
        return self._values(models)

    @cached_property
    def _given(self) -> dict[Value, set[str]]:
        """The models that get weights from elsewhere: a file, a checkpoint, or another model."""
        loads = [
            (site.node.func.value, site)
            for site in self._script.sites_named(*_LOADING)
            if isinstance(site.node.func, ast.Attribute)
        ]
        kept = [
            (each, site)
            for value in self._values(loads)
            if isinstance(value, Instance) and self._names.is_a(value, *api.CHECKPOINT)
            for site in [self._script.site_of(value.node)]
            for each in arguments(site.node)
        ]
        return self._values(loads) | self._values(kept)

    def _values(self, models: list[tuple[ast.expr, Site]]) -> dict[Value, set[str]]:
        """The objects that some expressions stand for, each with the names that they have there."""
        found: dict[Value, set[str]] = {}
        for model, site in models:
            for value in self._names.site_values(model, site):
                if isinstance(value, Instance | UserInstance):
                    found.setdefault(value, set()).add(last_name(model))
        return found
