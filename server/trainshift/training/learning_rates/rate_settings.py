"""Rate settings: the places where a script changes the rate of an existing optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import UNKNOWN
from trainshift.python.syntax.chunk_syntax import Scope, Site, argument, last_name
from trainshift.training.execution.graph_slice import occurrences_behind
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.learning_rates.rate_cases import ATTRIBUTES, RateCases

ASSIGNING = ("assign", "assign_add", "assign_sub", "set_value")


class RateSetting(Struct, frozen=True, eq=False):
    """An assignment of a rate to an existing optimizer: the value and the optimizer."""

    value: Occurrence
    optimizer: Occurrence


class RateSettings:
    """The changes of rates in one script."""

    def __init__(self, program: Program, cases: RateCases) -> None:
        self._script = program.script
        self._horovod = program.fact(Horovod)
        self._names = program.names
        self._cases = cases

    def all(self) -> Iterator[RateSetting]:
        """Yield the values assigned to an optimizer's rate after its creation."""
        for name in ATTRIBUTES:
            for attribute in self._script.attribute_bindings(name):
                binding = attribute.binding
                if binding.kind != "value" or binding.value is None or binding.statement is None:
                    continue
                optimizer = Occurrence(attribute.base, binding.scope, binding.statement)
                value = binding.taken
                if isinstance(binding.statement.node, ast.AugAssign):
                    added = isinstance(binding.statement.node.op, ast.Add | ast.Sub)
                    value = binding.statement.node.value if added else None
                if value is not None and self._cases.is_optimizer(optimizer):
                    yield RateSetting(Occurrence(value, binding.scope, binding.statement), optimizer)
        for site in self._script.sites_named(*ASSIGNING):
            yield from self._set_as_variable(site)
        for site in self._script.sites_named("setattr", "_set_hyper"):
            yield from self._set_by_name(site)

    def multiplied(self) -> Iterator[RateSetting]:
        """Yield the places where the script itself multiplies an existing optimizer's rate by the number of
        ranks.

        The product uses the rate that the optimizer was created with, so that rate must stay unchanged.
        """
        for value, optimizer, grows in self._by_attribute():
            if self._horovod.scaled(*value[:3]) and (grows or self._multiplies(value)):
                yield RateSetting(value, value.part(optimizer))

    def of_attributes(self) -> Iterator[RateSetting]:
        """Yield the values that an existing optimizer's rate is set to, changed by or multiplied by."""
        for value, optimizer, _ in self._by_attribute():
            if last_name(optimizer) == "optimizer" or self._cases.is_optimizer(value.part(optimizer)):
                yield RateSetting(value, value.part(optimizer))

    def _by_attribute(self) -> Iterator[tuple[Occurrence, ast.expr, bool]]:
        """Yield the values set to rates, the optimizers concerned, and whether the rate is multiplied by the
        value.
        """
        for name in ATTRIBUTES:
            for attribute in self._script.attribute_bindings(name):
                binding = attribute.binding
                if binding.statement is None or binding.value is None:
                    continue
                node = binding.statement.node
                given = node.value if isinstance(node, ast.AugAssign) else binding.taken
                if given is not None:
                    grows = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult)
                    yield Occurrence(given, binding.scope, binding.statement), attribute.base, grows
        for site in self._script.sites_named(*ASSIGNING):
            target, given = self.assigned(site)
            if isinstance(target, ast.Attribute) and target.attr in ATTRIBUTES and given is not None:
                yield Occurrence(given, site.scope, site.statement), target.value, False

    def _multiplies(self, value: Occurrence) -> bool:
        """Return whether a product multiplies an optimizer's rate by the number of ranks.

        Steps of a schedule divided by that number belong to the optimizer's creation, and multiply nothing.
        """
        rates = {
            (id(at.node), id(at.scope))
            for at in occurrences_behind(self._script, *value[:3], {})
            if isinstance(at.node, ast.Attribute) and at.node.attr in ATTRIBUTES
        }
        beside = occurrences_behind(self._script, *value[:3], {}, seen={*rates}) if rates else []
        calls = {at.node for at in beside if isinstance(at.node, ast.Call)}
        sizes = self._horovod.calls("size", "local_size")
        return any(site.node in calls and not self._horovod.moves_step(site) for site in sizes)

    def _set_as_variable(self, site: Site) -> Iterator[RateSetting]:
        """``optimizer.lr.assign(x)`` and ``K.set_value(optimizer.lr, x)``."""
        target, value = self.assigned(site)
        if target is not None and value is not None:
            rate = Occurrence(target, site.scope, site.statement)
            if self._cases.is_rate(rate, held=True):
                member = self._cases.member(rate)
                optimizer = member[0] if member is not None else rate
                yield RateSetting(Occurrence(value, site.scope, site.statement, site), optimizer)

    def _set_by_name(self, site: Site) -> Iterator[RateSetting]:
        """``setattr(optimizer, "lr", x)``."""
        given = site.node.args
        if site.name == "_set_hyper" and isinstance(site.node.func, ast.Attribute):
            given = [site.node.func.value, *given]
        if len(given) == 3 and isinstance(given[1], ast.Constant) and given[1].value in ATTRIBUTES:
            optimizer = Occurrence(given[0], site.scope, site.statement)
            if self._cases.is_optimizer(optimizer):
                yield RateSetting(Occurrence(given[2], site.scope, site.statement, site), optimizer)

    def is_within_optimizer(self, setting: RateSetting) -> bool:
        """Return whether an optimizer class of the script passes on a rate argument that is already
        scaled.
        """
        scope: Scope | None = setting.value.scope
        while scope is not None and scope.kind != "class":
            scope = scope.parent
        return scope is not None and self._names.descends(scope, *api.OPTIMIZERS)

    def assigned(self, site: Site) -> tuple[ast.expr | None, ast.expr | None]:
        """The variable and the value in ``variable.assign(x)`` and ``K.set_value(variable, x)``."""
        # Older Keras gives its backend, K, with ``from keras.layers import *``.
        callee = self._names.callee(site)
        is_hidden = site.name == "set_value" and bool(callee) and callee <= {UNKNOWN}
        if is_hidden or self._names.calls(site, "tensorflow.keras.backend.set_value"):
            return argument(site.node, 0, "x"), argument(site.node, 1, "value")
        if site.name != "set_value" and isinstance(site.node.func, ast.Attribute):
            return site.node.func.value, argument(site.node, 0, "value", "delta")
        return None, None
