"""Averaging: check that the gradients of each step are averaged over the ranks exactly once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function, UserInstance
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument
from trainshift.training.execution.graph_slice import is_reached
from trainshift.training.execution.origins import Origins
from trainshift.training.horovod.defects import Flaw, at, reaching
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.own_horovod import OwnHorovod
from trainshift.training.keras_version.for_keras2 import ForKeras2
from trainshift.training.loops.execution_order import Course
from trainshift.training.loops.loop_kinds import Loop, Pattern
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.steps import GRADIENT_METHODS, Step, Steps

# Horovod's calls that average the gradients passed to them, or those of the tape or optimizer passed to
# them.
_WRAPS = ("DistributedGradientTape", "DistributedOptimizer", "create_distributed_optimizer", "load_model")
_REDUCTIONS = ("allreduce", "grouped_allreduce")
# Methods of an optimizer that take gradients, and functions that do.
_TAKING = (*GRADIENT_METHODS, "compute_gradients", "get_gradients", "_compute_gradients", "gradients")


class Averaging:
    """The averaging of gradients in one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        calls = self._horovod.calls(*_WRAPS, *_REDUCTIONS)
        unheeded = program.fact(ForKeras2).unheeded
        self.calls = {site.node: site for site in calls if site.node not in unheeded}
        self._unheeded = {site.node: site for site in calls if site.node in unheeded}

    def flaws(self) -> Iterator[Flaw]:
        """Yield the steps whose gradients are not averaged, and the calls that average them again."""
        yield from self._unaveraged()
        yield from self._averaged_twice()

    def _unaveraged(self) -> Iterator[Flaw]:
        """The steps whose gradients are not averaged."""
        wrapped = {each.site: each.bare <= each.wrapped for each in self._program.fact(Steps).gradients}
        is_aside = self._program.fact(Steps).is_optimizers_own
        for step in self._program.fact(Steps).steps:
            if step.pairs is not None and not is_aside(step.site.scope):
                yield from self._of_step(step, wrapped)
        for site in self.minimizers:
            assert isinstance(site.node.func, ast.Attribute)
            if not self.averages(at(site.node.func.value, site)):
                yield Flaw("the gradients of this step are not averaged", site)
        for loop in self._program.fact(Loops).own:
            if loop.pattern is Pattern.OPTIMIZER:
                yield from self._of_fit(loop)
            elif loop.pattern is Pattern.ESTIMATOR:
                yield from self._of_estimator(loop)

    def _of_step(self, step: Step, wrapped: dict[Site, bool]) -> Iterator[Flaw]:
        """Yield the defects of a call of `apply_gradients`."""
        assert step.pairs is not None
        pairs = at(step.pairs, step.site)
        if step.reduced or self._program.fact(OwnHorovod).averages(pairs._replace(node=step.receiver)):
            return
        taken = self._reaching(self._taking, pairs)
        if not taken and (self.averages(pairs) or self.averages(pairs._replace(node=step.receiver))):
            return
        taken = taken or [each.site for each in step.gradients]
        if not taken:
            text = "Trainshift cannot find the gradients of this step; check that they are averaged"
            yield Flaw(text, step.site, certain=False)
        for site in taken:
            called = site.node.func
            of = called.value if isinstance(called, ast.Attribute) else None
            known = wrapped.get(site, of is not None and self.averages(at(of, site)))
            if not known:
                yield Flaw("the gradients of this step are not averaged", step.site)
                return

    def _of_fit(self, loop: Loop) -> Iterator[Flaw]:
        """Yield the defects of the `fit` of a Keras model."""
        site = loop.sites[0]
        if self.has_own_step(loop) or any(map(self.averages, loop.models)) or self.is_distributed(loop):
            return
        if self.is_given_average(loop):
            return
        optimizers = loop.optimizers or self._compiled
        if not optimizers:
            yield Flaw(
                "Trainshift cannot find the optimizer of this model; check that it is wrapped",
                site,
                certain=False,
            )
        elif not all(self.averages(each) or self._is_for_own_step(each) for each in optimizers):
            yield Flaw("the optimizer of this model does not average its gradients", site)

    def _of_estimator(self, loop: Loop) -> Iterator[Flaw]:
        """Yield the defects of an Estimator's training, unless the script has steps of its own."""
        if any(map(self.averages, (*loop.models, *self._of_heads))):
            return
        if not (self.minimizers or self._program.fact(Steps).steps):
            yield Flaw("the optimizer of this Estimator does not average its gradients", loop.sites[0])

    @cached_property
    def _of_heads(self) -> list[Occurrence]:
        """The optimizer arguments of Estimators' heads."""
        specs = self._script.sites_named("create_estimator_spec")
        given = [(argument(site.node, 4, "optimizer"), site) for site in specs]
        return [at(node, site) for node, site in given if node is not None]

    @cached_property
    def _compiled(self) -> list[Occurrence]:
        """The optimizers with which models are compiled."""
        compiles = self._script.sites_named("compile")
        given = [(argument(site.node, 0, "optimizer"), site) for site in compiles]
        return [at(node, site) for node, site in given if node is not None]

    def is_distributed(self, loop: Loop) -> bool:
        """Return whether every `compile` of the fitted model uses an averaging optimizer."""
        own = self._program.fact(OwnHorovod)
        if not own.distributed or any(own.is_distributed(each.node, loop.sites[0]) for each in loop.models):
            return bool(own.distributed)
        compiles = list(self.compiles(loop)) or list(self._script.sites_named("compile"))
        of_models = [each for each in compiles if isinstance(each.node.func, ast.Attribute)]
        return bool(of_models) and all(map(self._is_distributed_at, of_models))

    def _is_distributed_at(self, compile: Site) -> bool:
        assert isinstance(compile.node.func, ast.Attribute)
        return self._program.fact(OwnHorovod).is_distributed(compile.node.func.value, compile)

    def is_given_average(self, loop: Loop) -> bool:
        """Return whether a model certainly has an averaging optimizer when `fit` starts.

        For example, a loaded model: ``model.optimizer = hvd.DistributedOptimizer(model.optimizer)``.
        """
        origins, fit = self._program.fact(Origins), loop.sites[0]
        for attribute in self._script.attribute_bindings("optimizer"):
            where, given = attribute.binding.statement, attribute.binding.taken
            if (
                where is None
                or given is None
                or not self.averages(Occurrence(given, attribute.binding.scope, where))
            ):
                continue
            made = origins.inside_and_out(Occurrence(attribute.base, attribute.binding.scope, where))
            same = bool(loop.models) and all(origins.creations(each) & made for each in loop.models)
            if same and self._stands_before(where, fit):
                return not any(self._stands_before(where, each) for each in self.compiles(loop))
        return False

    def _stands_before(self, statement: Statement, site: Site) -> bool:
        """Return whether a statement comes before a call, in the same block or an enclosing one."""
        for each in site.statement.path():
            if each.scope.function() is site.scope.function():
                block, index = self._script.siblings(each)
                if statement in block[:index]:
                    return True
        return False

    def compiles(self, loop: Loop) -> Iterator[Site]:
        """Yield the calls of `compile` that give a fitted model its optimizer."""
        given = {id(each.statement) for each in loop.optimizers}
        found = [
            site
            for site in self._script.sites_named("compile")
            if isinstance(site.node.func, ast.Attribute)
            and (id(site.statement) in given or self._is_same_model(site, loop))
        ]
        last = self._last_before(found, loop.sites[0])
        if last is None:
            yield from found
            return
        order = self._program.fact(Course).index
        first, end = order.get(last, 0), order.get(loop.sites[0], len(order))
        yield from (site for site in found if first <= order.get(site, len(order)) < end)

    def compiles_by_model(self, loop: Loop) -> list[list[Site]]:
        """Like `compiles`, grouped by model if the script shows the model of each."""
        found = list(self.compiles(loop))
        groups = [[site for site in found if self._is_of(site, model)] for model in loop.models]
        shown = {site for group in groups for site in group}
        return [group for group in groups if group] if shown == set(found) else [found]

    def _last_before(self, compiles: list[Site], fit: Site) -> Site | None:
        """The last of some calls that each run reaches before another one, in its block or an enclosing one.
        It replaces earlier compilations.
        """
        assert isinstance(fit.node.func, ast.Attribute)
        models = ast.unparse(fit.node.func.value)
        before: list[Site] = []
        for each in fit.statement.path():
            if each.scope.function() is fit.scope.function():
                block, index = self._script.siblings(each)
                before += [site for site in compiles if site.statement in block[:index]]
        same = [each for each in before if ast.unparse(each.node.func.value) == models]  # type: ignore[attr-defined]
        return max(same, key=lambda each: self._script.span(each.node, each).start, default=None)

    def _is_same_model(self, site: Site, loop: Loop) -> bool:
        return any(self._is_of(site, each) for each in loop.models)

    def _is_of(self, compile: Site, model: Occurrence) -> bool:
        """Return whether a call compiles a model."""
        assert isinstance(compile.node.func, ast.Attribute)
        origins = self._program.fact(Origins)
        return bool(origins.inside_and_out(at(compile.node.func.value, compile)) & origins.creations(model))

    def takes(self, pairs: Occurrence) -> bool:
        """Return whether the arguments of `apply_gradients` certainly come from a call that computes
        gradients.
        """
        return is_reached(self._script, self._taking, *pairs[:3])

    def plain_gradients(self, pairs: Occurrence) -> Iterator[Site]:
        """Yield the calls of ``tf.gradients`` whose results reach a step without being averaged."""
        for site in self._reaching(self._taking, pairs):
            names = self._names.full_names(site.node.func, site.scope, site.statement)
            is_function = any(name.endswith(".gradients") and name.startswith("tensorflow") for name in names)
            if is_function and not self._reaching(self._reductions, pairs):
                yield site

    def has_own_step(self, loop: Loop) -> bool:
        """Return whether the model takes its steps in a method of the script's own."""
        return any(map(self._steps_itself, loop.models))

    def _is_for_own_step(self, optimizer: Occurrence) -> bool:
        """Return whether a model with a step of its own is compiled with an optimizer under another
        attribute's name.
        """
        return any(
            site.statement is optimizer.statement
            and isinstance(site.node.func, ast.Attribute)
            and self._steps_itself(at(site.node.func.value, site))
            for site in self._script.sites_named("compile")
        )

    def _steps_itself(self, model: Occurrence) -> bool:
        return any(
            isinstance(value, UserInstance) and self._defines_step(value.scope)
            for value in self._names.values(model.node, model.scope, model.statement)
        )

    def _defines_step(self, cls: Scope) -> bool:
        return any(
            isinstance(each, Scope) and "train_step" in each.bindings for each in self._names.ancestry(cls)
        )

    @cached_property
    def minimizers(self) -> list[Site]:
        """The calls of an optimizer's `minimize`."""
        return [
            site
            for site in self._script.sites_named("minimize")
            if isinstance(site.node.func, ast.Attribute)
            and not self._names.full_names(site.node.func, site.scope, site.statement)
            and not self._program.fact(Steps).is_optimizers_own(site.scope)
            and self._names.may_be(self._names.site_values(site.node.func.value, site), *api.OPTIMIZERS)
        ]

    @cached_property
    def _taking(self) -> dict[ast.Call, Site]:
        sites = self._script.sites_named(*_TAKING)
        return {site.node: site for site in sites if not self._is_own(site)}

    def _is_own(self, site: Site) -> bool:
        return any(isinstance(value, Function) for value in self._names.callee(site))

    def averages(self, at: Occurrence) -> bool:
        """Return whether an expression's value has been averaged, on any path."""
        return is_reached(self._script, self.calls, *at[:3]) or self._program.fact(OwnHorovod).averages(at)

    def unheeded(self, of: Occurrence) -> Site | None:
        """The wrapper of an optimizer or a model that averages nothing on Keras 3."""
        return next(iter(self._reaching(self._unheeded, of)), None) if self._unheeded else None

    def reached(self, wanted: dict[ast.Call, Site], of: Occurrence) -> list[Site]:
        """The calls among `wanted` whose results reach an expression."""
        return self._reaching(wanted, of)

    def _reaching(self, wanted: dict[ast.Call, Site], of: Occurrence) -> list[Site]:
        return reaching(self._program, wanted, of)

    # Averaged twice

    def _averaged_twice(self) -> Iterator[Flaw]:
        """Yield the calls that average gradients or optimizers that are averaged already."""
        reason = "the gradients are averaged here a second time"
        for site in self.calls.values():
            given = argument(site.node, 0, "gradtape", "optimizer")
            if given is not None and self._is_wrapped(at(given, site), site):
                yield Flaw(reason, site)
        for step in self._program.fact(Steps).steps:
            if step.pairs is None:
                continue
            pairs = at(step.pairs, step.site)
            for site in self._reaching(self._reductions, pairs):
                of = argument(site.node, 0, "tensor", "tensors")
                before = self._reaching(self._reductions, at(of, site)) if of else ()
                if any(each is not site for each in before):
                    yield Flaw(reason, site)

    @cached_property
    def _reductions(self) -> dict[ast.Call, Site]:
        is_call = self._horovod.is_call
        return {node: site for node, site in self.calls.items() if is_call(site, *_REDUCTIONS)}

    def _is_wrapped(self, at: Occurrence, outer: Site) -> bool:
        """Return whether the argument of a wrapping call is wrapped already."""
        if isinstance(at.node, ast.Call):
            return at.node in self.calls
        for binding in self._names.bindings(at):
            value = binding.taken
            inner = self.calls.get(value) if isinstance(value, ast.Call) else None
            if inner is None or inner is outer:
                continue
            if isinstance(at.node, ast.Name):
                # Calls under conditions of their own may belong to modes that exclude each other.
                conditions, others = (frozenset(_conditions(each)) for each in (inner, outer))
                if conditions <= others or others <= conditions:
                    return True
            elif isinstance(at.node, ast.Attribute) and self._follows(outer.statement, inner.statement):
                return True
        return False

    def _follows(self, later: Statement, earlier: Statement) -> bool:
        """Return whether a statement comes later in another one's block."""
        block, index = self._script.siblings(later)
        return earlier in block[:index]


def _conditions(site: Site) -> Iterator[tuple[Statement, str]]:
    """Yield the branches around a call."""
    for below, above in pairwise(site.statement.path()):
        if isinstance(above.node, ast.If | ast.Match | ast.Try):
            yield above, below.branch
