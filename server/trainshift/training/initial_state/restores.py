"""Restores: the values that only some ranks restore before all train together."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Library, Member, Unknown
from trainshift.python.syntax.chunk_syntax import Site, argument
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.own_horovod import OwnHorovod
from trainshift.training.initial_state.broadcasts import Broadcasts
from trainshift.training.initial_state.initial_weights import Beginning
from trainshift.training.loops.execution_order import Course
from trainshift.training.ranks.branches import Branch, Branches
from trainshift.training.ranks.collectives import Collectives
from trainshift.training.ranks.shared_loops import Together
from trainshift.training.uniformity.uniformity import Uniformity

_METHODS = ("load_weights", "restore", "read", "restore_or_initialize")
_LOADING = "load_model"
_BROADCASTS = ("broadcast_variables", "broadcast_global_variables", "broadcast_object")
_AT_BEGIN = ("BroadcastGlobalVariablesCallback", "BroadcastGlobalVariablesHook")


class Restore(NamedTuple):
    """A load of weights on some ranks only, and the test that selects these ranks."""

    site: Site
    branch: Branch


class Restores:
    """The loads of one program that some ranks make alone."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._branches = program.fact(Branches)

    @cached_property
    def apart(self) -> list[Restore]:
        """The loads before training that no broadcast follows."""
        return [each for each in self._loads() if not self._is_broadcast(each.site)]

    @cached_property
    def _places(self) -> dict[Site, list[Site]]:
        """The calls that broadcast, each with those that run it in a session."""
        places = {site: [site] for site in self._program.fact(Horovod).calls(*_BROADCASTS)}
        for run, made in self._program.fact(Collectives).runs.items():
            for site in made:
                places.get(site, []).append(run)
        return places

    @property
    def broadcasts(self) -> list[Site]:
        """The broadcasts of the program: the calls, or in a session the runs."""
        return [sites[-1] for sites in self._places.values()]

    def _loads(self) -> Iterator[Restore]:
        for site in self._script.sites_named(*_METHODS, _LOADING):
            branch = self._branches.of_call(site)
            if branch is None or not self._program.fact(Together).runs(site.scope):
                continue
            if self._restores(site) and self._comes_before_training(site):
                yield Restore(site, branch)

    def _restores(self, site: Site) -> bool:
        for value in self._names.callee(site):
            if isinstance(value, Library) and site.name == _LOADING:
                return value.name.startswith(("tensorflow", "keras", "horovod"))
            if isinstance(value, Member) and site.name in _METHODS:
                known = (*api.MODEL, *api.CHECKPOINT, *api.CHECKPOINT_MANAGER, *api.SAVER)
                return self._names.is_a(value.owner, *known)
            if isinstance(value, Unknown) and site.name == "load_weights":
                return True
        return False

    def _comes_before_training(self, site: Site) -> bool:
        order = self._program.fact(Course).index
        sites = [each for loop in self._program.fact(Together).averaged for each in loop.sites]
        return site in order and any(order.get(each, -1) > order[site] for each in sites)

    def _is_broadcast(self, load: Site) -> bool:
        """Return whether a broadcast after a load gives all ranks the loaded values."""
        horovod, order = self._program.fact(Horovod), self._program.fact(Course).index
        spoiled = {each.site for each in self._program.fact(Broadcasts).spoiled}
        places = self._places
        for each in places.values():
            if spoiled.isdisjoint(each) and any(order.get(site, -1) > order[load] for site in each):
                return True
        begins = horovod.calls(*_AT_BEGIN) or self._program.fact(OwnHorovod).broadcasts
        if begins and not spoiled:
            unbegun = {flaw.site for flaw in self._program.fact(Beginning).flaws()}
            return not any(
                site in unbegun for loop in self._program.fact(Together).averaged for site in loop.sites
            )
        return horovod.is_elastic

    @cached_property
    def epochs(self) -> list[tuple[Site, ast.expr]]:
        """The fits that begin at an epoch which depends on the rank."""
        found = []
        for loop in self._program.fact(Together).averaged:
            for site in loop.sites:
                given = argument(site.node, None, "initial_epoch")
                if given is not None and self._program.fact(Uniformity).on_rank(
                    Occurrence(given, site.scope, site.statement)
                ):
                    found.append((site, given))
        return found
