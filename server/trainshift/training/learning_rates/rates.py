"""Rates: the optimizers that ranks share, with their learning rates and the factors of these."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function, Instance, Literal, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import Site, alternatives, argument, arguments, children, last_name
from trainshift.python.values.made_objects import MadeObjects
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.own_horovod import RATE_CALLBACKS, OwnHorovod
from trainshift.training.loops.steps import Steps
from trainshift.training.optimizers.averaging import Averaging
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.uniformity import Uniformity

WRAPS = ("DistributedOptimizer", "PartialDistributedOptimizer", "create_distributed_optimizer")
TAPE_WRAPS = ("DistributedGradientTape", "PartialDistributedGradientTape")
RATES = ("learning_rate", "lr")
# Calls that set a rate later.
_SETTING = (*RATE_CALLBACKS, "LearningRateScheduler", "assign", "set_value")
# Functions that make an optimizer from a name or a configuration.
_UNSEEN = ("from_config", "get", "deserialize")
# A rate behind more names and calls than this is unknown.
_DEEPEST = 40


class Rates:
    """The learning rates of one program's shared optimizers."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._uniformity = program.fact(Uniformity)

    @cached_property
    def made(self) -> list[Site]:
        """Every call that makes an optimizer of a library's class."""
        return [
            site
            for site, values in self._program.fact(MadeObjects).all
            if any(
                isinstance(each, Instance) and each.node is site.node and self._is_optimizer(each)
                for each in values
            )
            and not self._is_scaler(site)
        ]

    @cached_property
    def shared(self) -> dict[Site, list[Site]]:
        """The calls that create optimizers for averaged gradients, with the calls that wrap or
        average them.
        """
        found: dict[Site, list[Site]] = {}
        for wrap in self._horovod.calls(*WRAPS):
            given = argument(wrap.node, 0, "optimizer")
            if given is not None:
                for site in self.makers(Occurrence(given, wrap.scope, wrap.statement)):
                    found.setdefault(site, []).append(wrap)
        for site, reductions in self._told_to_average:
            if any(isinstance(each, Function) for each in self._names.callee(site)):
                given = argument(site.node, None, "optimizer")  # Its own parameters may be in any order.
                if given is None:
                    continue
            else:
                given = argument(site.node, 0, "optimizer")
            makers = self.makers(Occurrence(given, site.scope, site.statement)) if given is not None else []
            # A missing name also means the default rate, which is that of one rank.
            for maker in makers or ([site] if given is None or isinstance(given, ast.Constant) else []):
                found.setdefault(maker, []).extend(reductions)
        for step in self._program.fact(Steps).steps:
            wraps = [wrap for gradient in step.gradients for wrap in gradient.wraps]
            if step.reduced and step.pairs is not None and not self._horovod.calls(*TAPE_WRAPS):
                pairs = Occurrence(step.pairs, step.site.scope, step.statement)
                wraps += self._program.fact(Averaging).reached(self._reductions, pairs)
            if wraps or step.reduced:
                receiver = Occurrence(step.receiver, step.site.scope, step.statement)
                for site in self.makers(receiver):
                    found.setdefault(site, []).extend(wraps)
        return found

    @property
    def _told_to_average(self) -> Iterator[tuple[Site, list[Site]]]:
        """Yield the `compile` calls of models that the script makes average, with the calls that do so."""
        own = self._program.fact(OwnHorovod)
        for site in self._script.sites_named("compile") if own.distributed else ():
            if isinstance(site.node.func, ast.Attribute):
                reductions = own.reductions(site.node.func.value, site)
                if reductions:
                    yield site, reductions

    @cached_property
    def _reductions(self) -> dict[ast.Call, Site]:
        return {site.node: site for site in self._horovod.calls("allreduce", "grouped_allreduce")}

    def makers(self, at: Occurrence) -> list[Site]:
        """The calls that create the optimizers of an expression, including wrapped ones."""
        found: dict[Site, None] = {}
        for site in reachable(self._made_by(at), self._made_inside):
            if self._inside(site) is None:
                found[site] = None
        return list(found)

    def _made_by(self, at: Occurrence) -> list[Site]:
        values = self._names.values(at.node, at.scope, at.statement)
        made = [each.node for each in values if isinstance(each, Instance) and self._is_optimizer(each)]
        return [site for site in map(self._script.site_of, made) if site.name not in _UNSEEN]

    def _made_inside(self, site: Site) -> list[Site]:
        inner = self._inside(site)
        return self._made_by(Occurrence(inner, site.scope, site.statement)) if inner is not None else []

    def _inside(self, site: Site) -> ast.expr | None:
        """The optimizer inside a loss-scaling wrapper."""
        inner = argument(site.node, 0, "opt", "inner_optimizer", "optimizer")
        return inner if self._is_scaler(site) else None

    def _is_optimizer(self, value: Value) -> bool:
        return isinstance(value, Instance) and api.is_subclass(value.cls, *api.OPTIMIZERS)

    def _is_scaler(self, site: Site) -> bool:
        return site.name.endswith("LossScaleOptimizer")

    def rate(self, site: Site) -> Occurrence | None:
        """The rate argument of an optimizer; None for its default."""
        # A new optimizer ignores `lr`, and a legacy one reads it first.
        named = {word.arg: word.value for word in site.node.keywords if word.arg in RATES}
        values = self._names.site_values(site.node, site)
        is_legacy = any(isinstance(value, Instance) and ".legacy." in value.cls for value in values)
        for name in reversed(RATES) if is_legacy else RATES:
            if name in named:
                return Occurrence(named[name], site.scope, site.statement)
        for value in values:
            signature = api.constructor(value.cls) if isinstance(value, Instance) else None
            position = signature.position("learning_rate") if signature is not None else None
            given = argument(site.node, position, "learning_rate") if position is not None else None
            if given is not None:
                return Occurrence(given, site.scope, site.statement)
        return None

    def is_scaled(self, at: Occurrence) -> bool:
        """Return whether a rate depends on the number of ranks, directly or through its schedule."""
        values = self._names.values(at.node, at.scope, at.statement)
        schedules = [each for each in values if self._is_library_schedule(each)]
        if schedules and len(schedules) == len(values):
            # Its other arguments, the steps, may depend on the number of ranks.
            return any(map(self.is_scaled, self._rates_of(schedules)))
        if self._uniformity.on_size(at):
            return True
        if self._program.fact(Horovod).scaled(*at[:3]):
            return True
        for value in values:
            if isinstance(value, UserInstance) and self._program.fact(Trails).mentions_size(value.scope):
                return True
        return False

    @staticmethod
    def _is_library_schedule(value: Value) -> bool:
        return isinstance(value, Instance) and bool(api.rate_parameters(value.cls))

    def _rates_of(self, schedules: list[Value]) -> Iterator[Occurrence]:
        """The rate arguments of a library's schedules."""
        for each in schedules:
            assert isinstance(each, Instance)
            signature = api.constructor(each.cls) or api.function(each.cls)
            site = self._script.site_of(each.node)
            for name in api.rate_parameters(each.cls):
                given = argument(site.node, signature.position(name) if signature is not None else None, name)
                if given is not None:
                    yield Occurrence(given, site.scope, site.statement)

    @cached_property
    def is_set_later(self) -> bool:
        """Return whether the program sets a rate that follows the number of ranks during training."""
        for site in self._script.sites_named(*_SETTING):
            if any(
                self.is_scaled(Occurrence(each, site.scope, site.statement)) for each in arguments(site.node)
            ):
                return True
            for each in arguments(site.node):
                if site.name == "LearningRateScheduler" and self._program.fact(Trails).function_mentions_size(
                    Occurrence(each, site.scope, site.statement)
                ):
                    return True
        for name in RATES:
            for attribute in self._script.attribute_bindings(name):
                binding = attribute.binding
                if binding.value is not None and self.is_scaled(
                    Occurrence(binding.value, binding.scope, binding.statement)
                ):
                    return True
        return False

    def is_known(self, at: Occurrence, depth: int = 0) -> bool:
        """Return whether the script shows a learning rate in full: numbers, and schedules made of numbers."""
        node = at.node
        if depth > _DEEPEST:
            return False
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Call):
            values = self._names.values(node, at.scope, at.statement)
            if values and all(
                isinstance(each, UserInstance) and self._names.is_a(each, *api.SCHEDULE) for each in values
            ):
                return all(self.is_known(at.part(each), depth + 1) for each in arguments(node))
            made = all(
                isinstance(each, Instance) and api.is_subclass(each.cls, *api.SCHEDULE) for each in values
            )
            if (values and made) or self._names.full_names(node.func, at.scope, at.statement):
                rates = [
                    argument(node, position, name)
                    for value in values
                    if isinstance(value, Instance)
                    for position, name in enumerate(api.rate_parameters(value.cls)[:1])
                ]
                given = [each for each in rates if each is not None] or arguments(node)[:1]
                return all(self.is_known(at.part(each), depth + 1) for each in given)
        step = self._names.steps_back(at)
        if step is not None:
            return (
                not step.unseen
                and bool(step.sources)
                and all(self.is_known(each, depth + 1) for each in step.sources)
            )
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.List | ast.Tuple):
            parts = [each for each in children(node) if isinstance(each, ast.expr)]
            return all(self.is_known(at.part(each), depth + 1) for each in parts)
        return False

    def is_schedule(self, at: Occurrence) -> bool:
        """Return whether a rate is an object of a schedule's class."""
        values = self._names.values(at.node, at.scope, at.statement)
        return self._names.may_be(values, *api.SCHEDULE)

    def factors(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the factors of a learning rate, followed through names."""
        for each in reachable([at], self._factors, lambda one: (id(one.node), id(one.scope))):
            if not _is_product(each.node):
                yield each

    def _factors(self, at: Occurrence) -> Iterable[Occurrence]:
        node = at.node
        if isinstance(node, ast.BinOp):
            return map(at.part, (node.left, node.right)) if _is_product(node) else ()
        follows = isinstance(node, ast.Name | ast.Attribute | ast.Call) or alternatives(node)
        step = self._names.steps_back(at) if follows else None
        return step.sources if step is not None else ()

    def has_factor(self, wrap: Site, number: Occurrence) -> bool:
        """Return whether the rate of a wrapped optimizer is multiplied by a number, or by an equal
        expression.
        """
        given = argument(wrap.node, 0, "optimizer")
        if given is None:
            return False
        texts = {ast.unparse(each.node) for each in self.factors(number)}
        for value in self._names.values(*number[:3]):
            if isinstance(value, Literal) and value.value is not ...:
                texts.add(repr(value.value))
        for site in self.makers(Occurrence(given, wrap.scope, wrap.statement)):
            rate = self.rate(site)
            if rate is not None and any(
                ast.unparse(each.node) in texts for each in self.factors(rate) if each.node is not rate.node
            ):
                return True
        return False

    def sums(self, wraps: list[Site]) -> bool:
        """Return whether one of some wrappers sums gradients, so that no rate needs scaling."""
        return any(self._is_sum(site) for site in wraps)

    def _is_sum(self, site: Site) -> bool:
        return any(
            isinstance(each.node, ast.Name | ast.Attribute)
            and any(
                name.startswith("horovod.") and name.endswith(".Sum")
                for name in self._names.full_names(*each[:3])
            )
            for operation in self._names.given(site, None, "op")
            for each in self._program.fact(Trails).behind(operation)
        )

    def uses_adasum(self, wraps: list[Site]) -> bool:
        """Return whether one of some wrappers combines gradients by Adasum, which scales by itself."""
        return any(
            last_name(each.node) == "Adasum"
            for site in wraps
            for operation in self._names.given(site, None, "op")
            for each in self._program.fact(Trails).behind(operation)
        )


def _is_product(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
