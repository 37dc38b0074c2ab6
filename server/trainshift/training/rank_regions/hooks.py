"""Hooks: those of a session that every rank needs, and those for rank 0 alone."""

from __future__ import annotations

import ast

from msgspec import Struct, field

from trainshift.libraries import api, entries
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import UserInstance, Value
from trainshift.python.syntax.chunk_syntax import Scope, Site, argument, hides_arguments
from trainshift.training.horovod.own_horovod import HOOK, OwnHorovod
from trainshift.training.loops.loop_kinds import Pattern
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.session_loops import MONITORED
from trainshift.training.rank_regions.list_roles import Listed, Lists, Member, Role
from trainshift.training.uniformity.list_members import Members

TRAIN_SPEC = "tensorflow.estimator.TrainSpec"
# Lists of hooks that run while a model trains, except those to which the broadcast belongs.
_OTHERS = {
    "tensorflow.estimator.EstimatorSpec": ("training_hooks", "training_chief_hooks"),
    "tensorflow.compat.v1.train.MonitoredTrainingSession": ("chief_only_hooks",),
}


class Hooks(Struct, Listed, eq=False):
    """The hooks argument of one call: `word` is its name, `given` is None if there is none.

    With `hidden`, ``*`` or ``**`` may hide them; `stopping` names the script's own hooks that request a stop.
    """

    site: Site
    word: str
    given: ast.expr | None
    found: Members
    hidden: bool
    members: list[Member] = field(default_factory=list)
    stopping: list[str] = field(default_factory=list)

    @property
    def broadcasts(self) -> bool:
        """Return whether Horovod's broadcast hook, or a replacement, is among them."""
        return self.has(HOOK)


class HookLists(Lists):
    """The hooks of one script's monitored sessions and Estimators."""

    @cached_property
    def monitored(self) -> dict[Site, Hooks]:
        """The hooks of every monitored session."""
        return {
            site: self._read(site, name, "hooks")
            for name in MONITORED
            for site in self._script.sites_named(*self._called(name))
            if self._names.calls(site, name)
        }

    @cached_property
    def estimators(self) -> dict[Site, Hooks]:
        """The hooks of every `Estimator.train`, and of the `TrainSpec` of a `train_and_evaluate`."""
        found = {}
        trained = [
            site
            for loop in self._program.fact(Loops).own
            if loop.pattern is Pattern.ESTIMATOR
            for site in loop.sites
        ]
        for site in trained:
            if site.name == "train":
                found[site] = self._read(site, "", "hooks")
        if any(site.name != "train" for site in trained):
            for site in self._script.sites_calling(api.last_names(TRAIN_SPEC)):
                if self._names.calls(site, TRAIN_SPEC):
                    found[site] = self._read(site, TRAIN_SPEC, "hooks")
        return found

    @cached_property
    def _others(self) -> list[Hooks]:
        found = []
        for site in self._script.sites_calling(api.last_names(*_OTHERS)):
            for name in self._names.full_names(site.node.func, site.scope, site.statement) & _OTHERS.keys():
                found += [self._read(site, name, word) for word in _OTHERS[name]]
        return found

    @cached_property
    def written_on_all_ranks(self) -> list[tuple[Member, bool]]:
        """The hooks that write and are not kept to rank 0, each place once, and if an Estimator has them."""
        found: dict[ast.expr, tuple[Member, bool]] = {}
        for hooks in (*self.monitored.values(), *self.estimators.values(), *self._others):
            of_estimator = hooks.site in self.estimators or hooks.site.name.endswith("EstimatorSpec")
            for member in self._to_keep(hooks):
                found.setdefault(member.element.node, (member, of_estimator))
        return list(found.values())

    def _called(self, name: str) -> set[str]:
        """The names of a function in calls: its own, or import aliases."""
        last = name.rpartition(".")[2]
        return {last, *(new for new, old in self._script.code.renamed_imports if old == last)}

    def _read(self, site: Site, name: str, word: str) -> Hooks:
        signature = api.constructor(name) or api.function(name)
        if not name:
            signature = api.method(api.ESTIMATOR[0], site.name)
        given = argument(site.node, signature.position(word) if signature else None, word)
        hidden = given is None and hides_arguments(site.node)
        found = self._found(given, site)
        members = [self._member(element) for element in found.elements]
        stopping = [each.name for each in members if self._stops(each.element)]
        return Hooks(site, word, given, found, hidden, members, stopping)

    def _stops(self, element: Occurrence) -> bool:
        """Return whether a hook of the script stops the training."""
        for value in self._names.values(element.node, element.scope, element.statement):
            if isinstance(value, UserInstance):
                family = self._names.ancestry(value.scope)
                for site in self._script.sites_named("request_stop"):
                    function = site.scope.function()
                    if function is not None and function.owner() in family:
                        return True
        return False

    def _stands_in_for(self, value: Value) -> str:
        return self._program.fact(OwnHorovod).role_of(value)

    def _role_of_class(self, name: str) -> Role:
        if entries.fact(name, "hook"):
            return Role.WRITES
        return Role.STEERS if api.is_subclass(name, *api.SESSION_HOOK) else Role.UNKNOWN

    def _own_role(self, cls: Scope, bases: frozenset[str]) -> Role:
        return Role.WRITES if any(entries.fact(each, "hook") for each in bases) else Role.OWN
