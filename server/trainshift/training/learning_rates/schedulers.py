"""Schedulers: the Keras callbacks that set the rate during training, and their functions."""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Class, Function
from trainshift.python.syntax.chunk_syntax import Site

_SCHEDULER = "tensorflow.keras.callbacks.LearningRateScheduler"
PLATEAU = "tensorflow.keras.callbacks.ReduceLROnPlateau"


class Schedulers:
    """The callbacks of one script that set the rate."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names

    @cached_property
    def callbacks(self) -> list[Site]:
        """The calls that may create a callback that sets the rate, judged by their names."""
        return self._script.sites_calling(api.last_names(_SCHEDULER, PLATEAU) | {"__init__"})

    @cached_property
    def current(self) -> set[ast.arg]:
        """The parameters through which a `LearningRateScheduler` passes the rate to its function: ``f(epoch,
        lr)``.
        """
        found: set[ast.arg] = set()
        for site in self.callbacks:
            for function in self.schedules(site):
                assert isinstance(function.scope.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                given = function.scope.node.args
                names = [*given.posonlyargs, *given.args]
                place = 2 if function.owner is not None else 1
                found.update(names[place : place + 1])
        return found

    def schedules(self, site: Site) -> list[Function]:
        """The functions that a call passes to a `LearningRateScheduler`."""
        given = self.schedule(site)
        values = self._names.site_values(given, site) if given is not None else frozenset()
        return [value for value in values if isinstance(value, Function)]

    def schedule(self, site: Site) -> ast.expr | None:
        """The schedule argument of a `LearningRateScheduler`, also in the ``__init__`` of a subclass."""
        if not self._makes_scheduler(site):
            return None
        return next((word.value for word in site.node.keywords if word.arg == "schedule"), None) or next(
            (each for each in site.node.args[:1] if not isinstance(each, ast.Starred)), None
        )

    def _makes_scheduler(self, site: Site) -> bool:
        if self._names.calls(site, _SCHEDULER):
            return True
        if site.name == "__init__":
            function = site.scope.function()
            owner = function.owner() if function is not None else None
            return owner is not None and _SCHEDULER in self._names.ancestry(owner)
        return any(
            isinstance(value, Class)
            and _SCHEDULER in self._names.ancestry(value.scope)
            and self._names.function_named(value.scope, "__init__") is None
            for value in self._names.callee(site)
        )
