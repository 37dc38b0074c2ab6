"""Callbacks: those of a `fit` that every rank needs, and those for rank 0 alone (spec.md 5.8)."""

from __future__ import annotations

import ast

from msgspec import Struct, field
from msgspec.structs import replace

from trainshift.core.libraries import Libraries
from trainshift.libraries.entries import ROOT, Entry
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import of_call
from trainshift.python.names.values import Instance, Unknown, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import Scope, argument
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.own_horovod import AVERAGE, BROADCAST, OwnHorovod
from trainshift.training.loops.fits import Fit, Fits
from trainshift.training.loops.stops import Stops
from trainshift.training.rank_regions.list_roles import Listed, Lists, Member, Role
from trainshift.training.uniformity.list_members import Members
from trainshift.training.uniformity.uniformity import Uniformity


class Callbacks(Struct, Listed, eq=False):
    """The callbacks of one `fit`: the argument's expression, None if there is none."""

    fit: Fit
    given: ast.expr | None
    found: Members
    members: list[Member] = field(default_factory=list)

    @property
    def reads_metrics(self) -> bool:
        """Return whether some callback, as far as known, reads the metrics of an epoch."""
        return not self.found.complete or any(each.reads_metrics for each in self.members)


class CallbackLists(Lists):
    """The callbacks of every `fit` of a script."""

    @cached_property
    def all(self) -> list[Callbacks]:
        """One entry for each `fit`, in text order."""
        return [self._read(fit) for fit in self._program.fact(Fits).fits]

    @cached_property
    def written_on_all_ranks(self) -> list[Member]:
        """The callbacks that write and are not kept to rank 0 yet, each place in a list once."""
        found: dict[ast.expr, Member] = {}
        for callbacks in self.all:
            for member in self._to_keep(callbacks):
                found.setdefault(member.element.node, member)
        return list(found.values())

    def _read(self, fit: Fit) -> Callbacks:
        given = fit.given("callbacks")
        found = self._found(given, fit.site)
        return Callbacks(fit, given, found, [self._looked_at(self._member(each)) for each in found.elements])

    def missing(self, callbacks: Callbacks) -> list[str]:
        """Horovod's callbacks to insert before a list's own: the broadcast, and the average."""
        if not callbacks.has(BROADCAST) and not self._program.fact(Horovod).is_elastic:
            averages = callbacks.reads_metrics and not callbacks.has(AVERAGE)
            return [BROADCAST, AVERAGE] if averages else [BROADCAST]
        return [AVERAGE] if self._lacks_average(callbacks) else []

    def _lacks_average(self, callbacks: Callbacks) -> bool:
        """Return whether a known callback steers training by metrics that differ between ranks.

        Metrics of validation data that all ranks share are the same.
        """
        if callbacks.given is None or callbacks.has(AVERAGE):
            return False
        site, shared = callbacks.fit.site, callbacks.fit.given("validation_data")
        own = shared is not None and self._program.fact(Uniformity).on_rank(of_call(site).part(shared))
        values = [
            value
            for each in callbacks.members
            for value in self._names.values(each.element.node, each.element.scope, each.element.statement)
        ]
        return any(
            isinstance(value, Instance)
            and (known := self._entry(value.cls)) is not None
            and known.flag("decides")
            and (own or not _validates(value))
            for value in values
        )

    # Kinds of callbacks

    def _looked_at(self, member: Member) -> Member:
        """The member, with the further effects of a callback besides its role."""
        element = member.element
        values = self._names.values(element.node, element.scope, element.statement)
        reads = any(self._reads_metrics(value) for value in values)
        ends_epochs, ancestry = self._program.fact(Stops).ends_epochs, self._names.ancestry
        stops = any(
            isinstance(value, UserInstance) and ends_epochs(ancestry(value.scope)) for value in values
        )
        entries = (self._entry(value.cls) for value in values if isinstance(value, Instance))
        says = next((each.text("says") for each in entries if each is not None), "")
        return replace(member, reads_metrics=reads, stops_in_epoch=stops, says=says)

    def _stands_in_for(self, value: Value) -> str:
        return self._program.fact(OwnHorovod).role_of(value)

    def _entry(self, name: str) -> Entry | None:
        return self._program.fact(Libraries).callback(name)

    def _role_of_class(self, name: str) -> Role:
        known = self._entry(name)
        if known is None:
            return Role.UNKNOWN
        return Role.WRITES if known.text("ranks") == ROOT else Role.STEERS

    def _own_role(self, cls: Scope, bases: frozenset[str]) -> Role:
        roles = {self._role_of_class(each) for each in bases}
        if Role.STEERS in roles:
            return Role.STEERS
        return Role.WRITES if Role.WRITES in roles and not self._keeps_something(cls) else Role.OWN

    def _keeps_something(self, cls: Scope) -> bool:
        """Return whether methods of the class, except its ``__init__``, set attributes of any object."""
        return any(
            attribute.binding.scope.function() is not None
            and attribute.binding.scope.function().owner() is cls  # type: ignore[union-attr]
            and attribute.binding.scope.function().name != "__init__"  # type: ignore[union-attr]
            for facts in self._script.facts
            for bindings in facts.attributes.values()
            for attribute in bindings
        )

    def _reads_metrics(self, value: Value) -> bool:
        if isinstance(value, Instance):
            known = self._entry(value.cls)
            return known is None or not known.flag("blind")
        if isinstance(value, UserInstance):
            bases = self._names.library_bases(value.scope)
            reads = (known for each in bases if (known := self._entry(each)) and not known.flag("blind"))
            return any(reads) or self._uses_logs(value.scope)
        return isinstance(value, Unknown)

    def _uses_logs(self, cls: Scope) -> bool:
        """Return whether the class uses the logs at the end of an epoch or of the training."""
        for each in self._names.ancestry(cls):
            for name in ("on_epoch_end", "on_train_end", "on_test_end") if isinstance(each, Scope) else ():
                method = self._names.function_named(each, name)  # type: ignore[arg-type]
                if method is not None and isinstance(method.node, ast.FunctionDef):
                    logs = {argument.arg for argument in method.node.args.args[-1:]}
                    if any(isinstance(part, ast.Name) and part.id in logs for part in ast.walk(method.node)):
                        return True
        return False


def _validates(callback: Instance) -> bool:
    """Return whether a callback looks at a metric of the validation."""
    if callback.cls.endswith("TerminateOnNaN"):
        return False
    monitored = argument(callback.node, 0, "monitor")
    return not isinstance(monitored, ast.Constant) or str(monitored.value).startswith("val_")
