"""Writes: the prints and writes that a program makes on every rank, by names alone (HZ20, HZ21)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.libraries import api, entries
from trainshift.libraries.entries import ROOT, Entry, Role
from trainshift.libraries.methods import named
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function, Instance, Library, Literal, Member, Unknown, texts
from trainshift.python.syntax.chunk_syntax import Scope, Site, argument, arguments, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.training.loops.steps import Steps
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.rank_regions.library_effects import Acting
from trainshift.training.ranks.branches import Branches
from trainshift.training.ranks.shared_loops import Together
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.list_members import callbacks
from trainshift.training.uniformity.uniformity import Uniformity

_MODEL = frozenset({"save", "save_weights", "export"})
_CHECKPOINT = frozenset({"save", "write", "export_meta_graph"})
_MAKES_WRITER = "tensorflow.summary.create_file_writer"
_TEMPORARY = ("tempfile", "BytesIO", "StringIO", "devnull", "getpid", "uuid4", "uuid1", "mkdtemp")
_KEEPING = {"MonitoredTrainingSession": "checkpoint_dir", "Supervisor": "logdir"}
_ESTIMATORS = "model_dir"
_LIBRARYS = (Role.WRITER, Role.WRITER_OBJECT, Role.MOVES, Role.OUTSIDE)


class Writes:
    """The writes and prints of one program that every rank makes."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._branches = program.fact(Branches)
        self._uniformity = program.fact(Uniformity)
        self._together = program.fact(Together)
        self._acting = program.fact(Acting)
        self._in_training: dict[Scope, bool] = {}

    @cached_property
    def by_all(self) -> list[Occurrence]:
        """The writes that every rank makes to one path: calls, and callbacks where they are created."""
        found = [Occurrence(site.node, site.scope, site.statement) for site in self._calls()]
        found += self._callbacks()
        calls = {each.node for each in found}
        return [each for each in dict.fromkeys(found) if not self._is_into(each, calls)]

    @cached_property
    def once(self) -> set[ast.expr]:
        """The calls among these that move files or act beyond this program."""
        sites = self._program.fact(Libraries).sites(Role.MOVES, Role.OUTSIDE)
        return {site.node for site, _ in sites}

    def _is_into(self, write: Occurrence, calls: set[ast.expr]) -> bool:
        """Return whether a call writes into an object that one of the other calls has opened."""
        assert isinstance(write.node, ast.Call)
        trails = self._program.fact(Trails)
        behind = (part.node for each in arguments(write.node) for part in trails.behind(write.part(each)))
        return any(node in calls for node in behind if isinstance(node, ast.Call))

    @cached_property
    def tracked(self) -> list[Occurrence]:
        """The calls by which every rank starts an experiment's log, the first of each library."""
        found: dict[str, Occurrence] = {}
        for site, entry in self._program.fact(Libraries).sites(Role.TRACKER):
            if self._together.is_of_all(site) and not self._acting.is_quiet(site, entry):
                found.setdefault(entry.package, Occurrence(site.node, site.scope, site.statement))
        return list(found.values())

    def _calls(self) -> Iterator[Site]:
        libraries = self._program.fact(Libraries)
        names = libraries.for_root
        for site in self._script.sites_named(*sorted({*names, *_KEEPING, "Estimator"})):
            if self._writes(site) and self._together.is_of_all(site) and not self._is_apart(site):
                yield site

    def _writes(self, site: Site) -> bool:
        return any(
            not entry.flag("shows") and self._acting.acts(site, value, entry)
            if (entry := self._acting.entry(value)) is not None and entry.role in _LIBRARYS
            else self._writes_function(site, api.canonical(value.name) or value.name)
            if isinstance(value, Library)
            else isinstance(value, Member) and self._writes_method(site, value)
            for value in self._names.callee(site)
            if not isinstance(value, Function | Unknown)
        )

    def _writes_function(self, site: Site, name: str) -> bool:
        if (opened := entries.opener(name)) is not None:
            return self._opens_for_writing(site, opened)
        if name == _MAKES_WRITER or entries.fact(name, "writes"):
            return True
        kept = _KEEPING.get(site.name) or (_ESTIMATORS if api.is_subclass(name, *api.ESTIMATOR) else "")
        if not kept or not name.startswith("tensorflow"):
            return False
        given = argument(site.node, None, kept)
        return given is not None and not (isinstance(given, ast.Constant) and given.value is None)

    def _writes_method(self, site: Site, value: Member) -> bool:
        owner, names = value.owner, self._names
        if names.is_a(owner, *api.MODEL):
            return value.name in _MODEL
        if names.is_a(owner, *api.CHECKPOINT, *api.CHECKPOINT_MANAGER, *api.SAVER):
            return value.name in _CHECKPOINT
        if isinstance(owner, Instance) and owner.cls.endswith("keras.export.ExportArchive"):
            return value.name == "write_out"
        if isinstance(owner, Instance) and owner.cls in ("pandas.DataFrame", "pandas.Series"):
            return value.name in named("path_writing")
        return value.name in named("exporting") and names.is_a(owner, *api.ESTIMATOR)

    def _opens_for_writing(self, site: Site, opened: Entry) -> bool:
        if not opened.text("mode"):
            return True
        mode = argument(site.node, 1, opened.text("mode"))
        values = self._names.site_values(mode, site) if mode is not None else ()
        return any(not set(each).isdisjoint("wx+") for each in texts(values))

    def _callbacks(self) -> Iterator[Occurrence]:
        """Yield the callbacks that only write, at their creation, in a `fit` that all ranks call."""
        for loop in self._together.loops:
            for element in callbacks(self._script, loop.sites[0]):
                if self._branches.of(element) is not None or self._on_some(element):
                    continue
                for value in self._names.values(element.node, element.scope, element.statement):
                    if isinstance(value, Instance) and self._keeps(value):
                        made = self._script.site_of(value.node)
                        if self._branches.of_call(made) is None and not self._is_apart(made):
                            yield Occurrence(made.node, made.scope, made.statement)

    def _on_some(self, element: Occurrence) -> bool:
        """Return whether an element is added to its list on some ranks only."""
        return element.site is not None and self._branches.of_call(element.site) is not None

    def _keeps(self, value: Instance) -> bool:
        known = self._program.fact(Libraries).callback(value.cls)
        return known is not None and known.text("ranks") == ROOT and not known.flag("shows")

    def _is_apart(self, site: Site) -> bool:
        """Return whether a path contains the rank, or is in a folder of each process's own."""
        given = arguments(site.node)
        if isinstance(site.node.func, ast.Attribute) and not self._names.member_of_library(site.node.func):
            given = [*given, site.node.func.value]
        trails = self._program.fact(Trails)
        for each in given:
            at = Occurrence(each, site.scope, site.statement)
            if self._uniformity.on_rank(at):
                return True
            if isinstance(each, ast.Constant | ast.Lambda):
                continue
            for part in trails.behind(at, True):
                named = last_name(part.node.func) if isinstance(part.node, ast.Call) else last_name(part.node)
                if named in _TEMPORARY:
                    return True
        return self._is_manager_apart(site)

    def _is_manager_apart(self, site: Site) -> bool:
        """Return whether the object of a writing method got a path that contains the rank."""
        if not isinstance(site.node.func, ast.Attribute):
            return False
        for value in self._names.site_values(site.node.func.value, site):
            if isinstance(value, Instance) and self._names.is_a(value, *api.CHECKPOINT_MANAGER):
                made = self._script.site_of(value.node)
                at = (Occurrence(each, made.scope, made.statement) for each in arguments(made.node))
                if any(map(self._uniformity.on_rank, at)):
                    return True
        return False

    # Prints

    @cached_property
    def printed(self) -> list[Site]:
        """The calls that print on every rank during training."""
        return [*self._prints(), *self._bars()]

    def _prints(self) -> Iterator[Site]:
        for site in self._script.sites_named(*sorted(self._program.fact(Libraries).names(Role.PRINTS))):
            called = self._names.full_names(site.node.func, site.scope, site.statement)
            if called.isdisjoint({"builtins.print", "tensorflow.print"}):
                continue
            if self._is_in_training(site) and self._together.is_of_all(site):
                given = (Occurrence(each, site.scope, site.statement) for each in arguments(site.node))
                if not any(map(self._uniformity.on_rank, given)):
                    yield site

    def _is_in_training(self, site: Site) -> bool:
        trains = self._program.fact(WhatTrains)
        if any(
            isinstance(above.node, LOOPS) and trains.statement_trains(above)
            for above in site.statement.ancestors()
        ):
            return True
        function = site.scope.function()
        if function is None:
            return False
        if any(function is each.site.scope.function() for each in self._program.fact(Steps).steps):
            return True
        if function not in self._in_training:
            self._in_training[function] = False
            callers = self._names.callers(function)[0]
            self._in_training[function] = any(map(self._is_in_training, callers))
        return self._in_training[function]

    def _bars(self) -> Iterator[Site]:
        for loop in self._together.loops:
            site = loop.sites[0]
            if site.name not in ("fit", "fit_generator"):
                continue
            given = self._names.given(site, 4 if site.name == "fit" else None, "verbose")
            if not given or not all(map(self._is_quiet, given)):
                yield site

    def _is_quiet(self, at: Occurrence) -> bool:
        if isinstance(at.node, ast.Constant):
            return bool(at.node.value == 0)
        values = self._names.values(*at[:3])
        if values and all(isinstance(each, Literal) and each.value == 0 for each in values):
            return True
        return self._uniformity.on_rank(at) or any(isinstance(each, Unknown) for each in values)
