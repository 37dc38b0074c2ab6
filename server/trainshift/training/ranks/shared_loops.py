"""Shared loops: the training loops that all ranks run, and those that lack averaging.

A loop that only some ranks run, or that no code runs, is not a loop of all ranks; nor is a step that an
elastic script takes before its ranks train together.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function, Instance, Literal
from trainshift.python.syntax.chunk_syntax import Scope, Site, argument, arguments
from trainshift.python.values.backward_slice import sliced
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.own_horovod import OwnHorovod
from trainshift.training.loops.execution_order import started_mains
from trainshift.training.loops.fits import Fits
from trainshift.training.loops.loop_kinds import Loop, Pattern
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.steps import Gradient, Steps
from trainshift.training.optimizers.averaging import Averaging
from trainshift.training.ranks.branches import Branches

_TRAINING = frozenset(
    {Pattern.GRAD_TAPE, Pattern.OPTIMIZER, Pattern.ESTIMATOR, Pattern.SESSION, Pattern.MONITORED_SESSION,
    Pattern.MINIMIZE}
)  # fmt: skip
_LAUNCHING = ("run", "run_remote")


class Plain(NamedTuple):
    """A call whose gradients are not averaged.

    `unused` is the wrap beside it, if any; `unheeded` is a wrap that is used but averages nothing on Keras 3.
    `own_tape` is the class of a model whose step always applies the gradients of its own tape.
    """

    site: Site
    loop: Loop | None
    unused: Site | None = None
    unheeded: Site | None = None
    own_tape: str = ""


class Together:
    """The loops that the ranks of one program train together."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._branches = program.fact(Branches)
        self._running: dict[Scope, bool] = {}

    @cached_property
    def loops(self) -> list[Loop]:
        """The loops that all ranks run."""
        return [
            loop
            for loop in self._program.fact(Loops).own
            if loop.pattern in _TRAINING
            and (loop.certain or self._trains_distributed(loop))
            and self.is_of_all(loop.sites[0])
            and not self._is_overridden(loop.sites[0].scope)
        ]

    def _trains_distributed(self, loop: Loop) -> bool:
        """Return whether a possible model is compiled with an optimizer that averages."""
        averages = self._program.fact(Averaging).averages
        return loop.likely and loop.pattern is Pattern.OPTIMIZER and any(map(averages, loop.optimizers))

    @cached_property
    def averaged(self) -> list[Loop]:
        """The loops whose gradients are averaged, as far as the script shows."""
        without = {each.loop for each in (*self.plain_tapes, *self.plain_optimizers)}
        return [loop for loop in self.loops if loop not in without and self._averages_any]

    @cached_property
    def to_average(self) -> list[Loop]:
        """The loops whose gradients are averaged or should be."""
        plain = [each.loop for each in (*self.plain_tapes, *self.plain_optimizers)]
        return [loop for loop in self.loops if loop in plain or loop in self.averaged]

    @cached_property
    def _averages_any(self) -> bool:
        return bool(self._program.fact(Averaging).calls)

    def is_of_all(self, site: Site) -> bool:
        """Return whether all ranks make a call, and some code reaches it."""
        if not self.runs(site.scope) or self._branches.of_call(site) is not None:
            return False
        if self._horovod.site_on_root(site):
            return False
        if self._launched and not self._is_launched(site.scope):
            return False
        return not self._is_warm_up(site)

    def runs(self, scope: Scope) -> bool:
        """Return whether the program names the function around some code, if there is one."""
        function = scope.function()
        if function is None:
            return True
        if function not in self._running:
            self._running[function] = True
            self._running[function] = self._is_run(function)
        return self._running[function]

    def _is_run(self, function: Scope) -> bool:
        owner = function.owner()
        if function.parent is not None and function.parent.function() is not None:
            if not self.runs(function.parent):
                return False
        if not function.name or getattr(function.node, "decorator_list", None):
            return True
        named = function.name if owner is None or function.name.startswith("__") is False else owner.name
        names = [named] if owner is None else [named, owner.name]
        mentioned = any(script.loads(name) for name in names[:1] for script in self._script.scripts)
        if owner is not None and not mentioned:
            # A method that overrides one of a library's class is called by that class.
            return bool(self._names.library_bases(owner)) and any(
                script.loads(owner.name) for script in self._script.scripts
            )
        if not mentioned:
            if function in self._mains:
                return True
            return any(
                alias.full_name.rpartition(".")[2] == function.name
                for script in self._script.scripts
                for alias in script.imports
            )
        sites, elsewhere = self._names.callers(function)
        return elsewhere or function in self._mains or any(self.runs(site.scope) for site in sites)

    @cached_property
    def _mains(self) -> set[Scope]:
        """The functions that ``app.run()`` runs without naming them."""
        sites = self._script.sites_named("run")
        return {each for site in sites for each in started_mains(self._script, site)}

    @cached_property
    def _launched(self) -> set[Scope]:
        """The functions that the program itself launches on ranks: on Spark, Ray or other processes."""
        found: set[Scope] = set()
        for site in self._script.sites_named(*_LAUNCHING):
            names = self._names.full_names(site.node.func, site.scope, site.statement)
            method = site.name == "run_remote" or (site.name == "run" and self._is_of_launcher(site))
            if method or any(name.startswith("horovod.") and name.endswith(".run") for name in names):
                for given in arguments(site.node):
                    values = self._names.site_values(given, site)
                    found.update(each.scope for each in values if isinstance(each, Function))
        return found

    def _is_of_launcher(self, site: Site) -> bool:
        """Return whether a method is called of one of Horovod's executors."""
        if not isinstance(site.node.func, ast.Attribute):
            return False
        values = self._names.site_values(site.node.func.value, site)
        return any(isinstance(each, Instance) and each.cls.startswith("horovod.") for each in values)

    def _is_launched(self, scope: Scope) -> bool:
        """Return whether a function that ranks run reaches some code."""

        def around(function: Scope | None) -> list[Scope | None]:
            if function is None:
                return []
            callers = [site.scope.function() for site in self._names.callers(function)[0]]
            return [*callers, function.parent.function() if function.parent is not None else None]

        return any(function in self._launched for function in reachable([scope.function()], around))

    def _is_warm_up(self, site: Site) -> bool:
        """Return whether an elastic script makes a call before its ranks train together."""
        if not self._horovod.is_elastic:
            return False
        function = site.scope.function()
        while function is not None:
            if function in self._elastic:
                return False
            callers = self._names.callers(function)[0]
            if any(each.scope.function() in self._elastic for each in callers):
                return False
            function = function.parent.function() if function.parent is not None else None
        return bool(self._elastic)

    @cached_property
    def _elastic(self) -> set[Scope | None]:
        """The functions that run under Horovod's elastic training."""
        found: set[Scope | None] = set()
        for scope in self._script.scopes:
            for decorator in getattr(scope.node, "decorator_list", ()):
                names = self._names.full_names(decorator, scope.parent or scope, scope.statement)
                if any(name.endswith("elastic.run") for name in names):
                    found.add(scope)
        return found

    # Gradients that are not averaged

    @cached_property
    def plain_tapes(self) -> list[Plain]:
        """The `gradient` calls of undistributed tapes whose gradients are applied (HZ08)."""
        return list(dict.fromkeys(self._plain_tapes()))

    def _plain_tapes(self) -> Iterator[Plain]:
        steps = self._program.fact(Steps)
        averaging = self._program.fact(Averaging)
        for step in steps.steps:
            if step.pairs is None or step.reduced or steps.is_optimizers_own(step.site.scope):
                continue
            if not self.is_of_all(step.site) or self._is_overridden(step.site.scope):
                continue
            pairs = Occurrence(step.pairs, step.site.scope, step.statement)
            if not step.gradients and averaging.averages(pairs):
                continue
            if self._program.fact(OwnHorovod).averages(pairs._replace(node=step.receiver)):
                continue
            taken = step.gradients if averaging.takes(pairs) else []
            # A function that clips gradients may also receive those of other steps.
            function = step.site.scope.function()
            own = [each for each in taken if each.site.scope.function() is function]
            for gradient in own or taken:
                if gradient.tapes and not gradient.wrapped and self._is_plain(gradient):
                    loop = self._loop_of(step.site) or self._loop_of(gradient.site)
                    yield Plain(gradient.site, loop, self._unused(gradient))
            for site in averaging.plain_gradients(pairs):
                yield Plain(site, self._loop_of(step.site))

    def _is_overridden(self, scope: Scope) -> bool:
        """Return whether a subclass overrides the method that code belongs to, so that the override may run
        instead.
        """
        function = scope.function()
        while function is not None and function.owner() is None:
            function = function.parent.function() if function.parent is not None else None
        owner = function.owner() if function is not None else None
        if function is None or owner is None:
            return False
        return any(function.name in heir.bindings for heir in self._names.heirs(owner))

    def _is_plain(self, gradient: Gradient) -> bool:
        """Return whether the tape is certainly TensorFlow's own."""
        assert isinstance(gradient.site.node.func, ast.Attribute)
        values = self._names.site_values(gradient.site.node.func.value, gradient.site)
        return bool(values) and all(
            isinstance(each, Instance) and self._names.is_a(each, *api.TAPE) for each in values
        )

    def _unused(self, gradient: Gradient) -> Site | None:
        """The call that distributes a gradient's tape under an unused name."""
        return self._wrap_of({tape.creation.node for tape in gradient.tapes}, "DistributedGradientTape")

    def _wrap_of(self, made: Collection[ast.AST | None], function: str) -> Site | None:
        """The first call that distributes an object created by one of some calls."""
        for wrap in self._horovod.calls(function):
            for given in wrap.node.args[:1]:
                values = self._names.site_values(given, wrap)
                if any(isinstance(each, Instance) and each.node in made for each in values):
                    return wrap
        return None

    def _loop_of(self, site: Site) -> Loop | None:
        for loop in self.loops:
            if site in loop.sites or site in loop.sites[:1]:
                return loop
        function = site.scope.function()
        own = [loop for loop in self.loops if any(each.scope.function() is function for each in loop.sites)]
        if own:
            return own[0]
        fits = [loop for loop in self.loops if loop.pattern is Pattern.OPTIMIZER]
        return fits[0] if len(fits) == 1 else None

    @cached_property
    def plain_optimizers(self) -> list[Plain]:
        """The calls by which an undistributed optimizer trains: `compile`, `minimize` (HZ07)."""
        return list(dict.fromkeys((*self._plain_fits(), *self._plain_minimizers())))

    def _plain_fits(self) -> Iterator[Plain]:
        averaging = self._program.fact(Averaging)
        for loop in self.loops:
            if loop.pattern is not Pattern.OPTIMIZER:
                continue
            tapes = (self._program.fact(Fits).librarys_tape(each.node, loop.sites[0]) for each in loop.models)
            if own := next(filter(None, tapes), ""):
                yield Plain(loop.sites[0], loop, own_tape=own)
            if own or averaging.has_own_step(loop):
                continue
            if any(map(averaging.averages, loop.models)) or averaging.is_distributed(loop):
                continue
            if averaging.is_given_average(loop):
                continue
            groups = averaging.compiles_by_model(loop)
            if not any(groups):
                unheeded = next(filter(None, map(averaging.unheeded, loop.models)), None)
                loads = [site for model in loop.models for site in self._loads(model)]
                if unheeded is not None or loads:
                    yield Plain(unheeded or loads[0], loop, unheeded=unheeded)
                continue
            for compiles in groups:
                if all(self._compiles_plain(site, averaging) for site in compiles):
                    given = self._names.given(compiles[-1], 0, "optimizer")
                    unheeded = next(filter(None, map(averaging.unheeded, given)), None)
                    used = (self._beside(each) for each in given if unheeded is None)
                    yield Plain(compiles[-1], loop, next(used, None), unheeded)

    def _compiles_plain(self, site: Site, averaging: Averaging) -> bool:
        given = self._names.given(site, 0, "optimizer")
        return not any(map(averaging.averages, given)) and all(
            self._is_known_optimizer(each) or averaging.unheeded(each) is not None for each in given
        )

    def _is_known_optimizer(self, at: Occurrence) -> bool:
        values = self._names.values(*at[:3])
        return bool(values) and all(
            (isinstance(each, Literal) and isinstance(each.value, str))
            or self._names.is_a(each, *api.OPTIMIZERS)
            for each in values
        )

    def _beside(self, optimizer: Occurrence) -> Site | None:
        """An unused wrap of the same optimizer, if there is one."""
        used = {each.node for each in self._names.values(*optimizer[:3]) if isinstance(each, Instance)}
        return self._wrap_of(used, "DistributedOptimizer")

    def _loads(self, model: Occurrence) -> Iterator[Site]:
        """The calls of Keras that load a model with its optimizer."""
        for each in sliced(model, self._sources):
            if isinstance(each.node, ast.Call):
                site = self._script.site_of(each.node)
                if self._names.calls(site, "tensorflow.keras.models.load_model"):
                    compiled = argument(site.node, 2, "compile")
                    if not (isinstance(compiled, ast.Constant) and not compiled.value):
                        yield site

    def _sources(self, at: Occurrence) -> tuple[Occurrence, ...]:
        step = self._names.steps_back(at)
        return step.sources if step is not None else ()

    def _plain_minimizers(self) -> Iterator[Plain]:
        averaging = self._program.fact(Averaging)
        for site in (*averaging.minimizers, *self._script.sites_named("compute_gradients")):
            function = site.node.func
            if not isinstance(function, ast.Attribute) or not self.is_of_all(site):
                continue
            if self._program.fact(Steps).is_optimizers_own(site.scope):
                continue
            if any(isinstance(each, Function) for each in self._names.callee(site)):
                continue
            at = Occurrence(function.value, site.scope, site.statement)
            if averaging.averages(at) or not self._is_known_optimizer(at):
                continue
            if site.name == "compute_gradients" and self._is_reduced(site):
                continue
            loop = next((each for each in self.loops if site in each.sites), None)
            yield Plain(site, loop or (self.loops[0] if len(self.loops) == 1 else None), self._beside(at))

    def _is_reduced(self, site: Site) -> bool:
        """Return whether a call's gradients are reduced later on, or never applied."""
        return bool(self._horovod.calls("allreduce", "grouped_allreduce")) or not list(
            self._script.sites_named("apply_gradients")
        )
