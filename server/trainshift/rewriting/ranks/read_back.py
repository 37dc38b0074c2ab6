"""Read back: files that rank 0 alone writes and that every rank reads later in the same run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainshift.core import tables
from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.core.training.horovod import Horovod
from trainshift.core.training.loops import Loops
from trainshift.libraries import api
from trainshift.libraries.entries import ROOT
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import of_call
from trainshift.python.names.values import Instance, Library, Literal
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, arguments
from trainshift.python.values.call_graph import calls_leading_to, functions_handed_to
from trainshift.rewriting.keras.callbacks import CallbackLists
from trainshift.rewriting.ranks.guard_forms import Form, may_differ
from trainshift.rewriting.ranks.path_keys import PathKeys, is_shown
from trainshift.rewriting.ranks.restored import Restored
from trainshift.rewriting.ranks.root_only import RootOnly

# The forms by which a whole statement is left to rank 0.
_GUARDED = (Form.GUARD, Form.RELOAD)
# What hands functions to a dataset.
_IN_DATA = (
    "filter",
    "flat_map",
    "from_generator",
    "interleave",
    "map",
    "numpy_function",
    "py_func",
    "py_function",
)


class Read(NamedTuple):
    """A call that reads a file: the path, and the statement before which all ranks still go together.

    What a dataset reads, in a thread of its own, waits where the dataset is made.
    """

    site: Site
    path: ast.expr
    anchor: Statement


class ReadBack:
    """The calls of one script that read what it has written itself."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._paths = program.fact(PathKeys)

    @cached_property
    def all(self) -> list[Read]:
        """The reading calls that must wait for rank 0, in text order."""
        if not self._program.fact(Loops).runs_eagerly:
            return []
        written = self._written if self.of_all else {}
        found = [
            each for each in self.of_all if self._is_written(each, written) and not self._waits(each.anchor)
        ]
        return sorted(found, key=lambda each: self._script.span(each.site.node, each.site))

    @cached_property
    def of_all(self) -> list[Read]:
        """The calls by which all ranks read files, of those that stay so."""
        reads = list(self._reads())
        calls = self._program.fact(RootOnly).calls if reads else ()
        # What only rank 0 does it does after what it has written itself.
        guarded = {call.site.statement for call in calls if call.form in _GUARDED and not call.reason}
        # Nor does what writes a file itself read it.
        others = {call.site for call in calls if call.form is Form.SHARE}
        others.update(self._program.fact(RootOnly).written if reads else ())
        return [
            each
            for each in reads
            if each.site not in others
            and not self._is_in(guarded, each.site)
            and not self._program.fact(Horovod).site_on_root(each.site)
        ]

    def _is_in(self, guarded: set[Statement], site: Site) -> bool:
        """Whether a call is made in one of the statements, directly or by a function that is called there."""
        calls = calls_leading_to(self._program.names, site)
        return any(not guarded.isdisjoint(call.statement.path()) for call in calls)

    def _is_written(self, read: Read, written: dict[str, int]) -> bool:
        """Whether a write stands before all that waits for it, or a function that reads runs after it."""
        start = self._script.statement_span(read.anchor).start
        path = of_call(read.site).part(read.path)
        return any(
            written[key] < start or (is_shown(key) and self._is_late(read.site))
            for key in self._paths.of(path) | self._paths.of_folders(path)
            if key in written
        )

    @cached_property
    def _of_data(self) -> dict[Scope, Site]:
        """The functions that a dataset calls, and where they are handed to it."""
        return functions_handed_to(self._script, *_IN_DATA)

    def _read(self, site: Site, path: ast.expr) -> Read:
        calls = [site, *calls_leading_to(self._program.names, site)] if self._of_data else []
        around = [function for each in calls if (function := each.scope.function()) is not None]
        made = next((self._of_data[each] for each in around if each in self._of_data), site)
        return Read(site, path, _anchor(made.statement))

    def _is_late(self, site: Site) -> bool:
        """Whether a function that reads may run after a training step."""
        return site.scope.function() is not None and self._program.fact(Restored).follows_training(site)

    def is_native(self, path: ast.expr, site: Site) -> bool:
        """Whether Keras may keep a model under the path in its own format, which names Horovod's classes."""
        values = self._program.names.site_values(path, site)
        shown = [value.value for value in values if isinstance(value, Literal)]
        return len(shown) < len(values) or any(
            isinstance(each, str) and (each.endswith(".keras") or not each) for each in shown
        )

    def _reads(self) -> Iterator[Read]:
        names = {name.rpartition(".")[2] for name in tables.READING}
        names |= {new for new, old in self._script.code.renamed_imports if old in names}
        for site in self._script.sites_named(*sorted(names)):
            for value in self._program.names.callee(site):
                name = (api.canonical(value.name) or value.name) if isinstance(value, Library) else ""
                if name in tables.READING:
                    path = argument(site.node, 0, tables.READING[name])
                    if path is not None:
                        yield self._read(site, path)
        for site in self._script.sites_named("load_weights"):
            path = self._program.fact(Restored).path(site)
            if path is not None:
                yield self._read(site, path)

    def _keeps(self, name: str) -> bool:
        """Whether a class of callbacks is rank 0's."""
        known = self._program.fact(Libraries).callback(name)
        return known is not None and known.text("ranks") == ROOT

    @cached_property
    def _written(self) -> dict[str, int]:
        """What rank 0 alone writes: every argument that may be the path, and where it is first written."""
        writing = list(self._program.fact(RootOnly).written)
        for callbacks in self._program.fact(CallbackLists).all:
            for member in callbacks.members:
                element = member.element
                for value in self._program.names.values(element.node, element.scope, element.statement):
                    if isinstance(value, Instance) and self._keeps(value.cls):
                        writing.append(self._script.site_of(value.node))
        found: dict[str, int] = {}
        for site in writing:
            at = self._script.span(site.node, site).end
            for given in arguments(site.node):
                # Rewritten, the path of `open` is one on rank 0 and another on the others.
                path = given.body if isinstance(given, ast.IfExp) else given
                if not isinstance(path, ast.Constant) or isinstance(path.value, str):
                    for key in self._paths.of(of_call(site).part(path)):
                        found[key] = min(at, found.get(key, at))
        return found

    def _waits(self, statement: Statement) -> bool:
        """Whether the statement before is a broadcast, for which the other ranks wait."""
        return self._program.fact(Horovod).is_statement(self._script.preceding(statement), "broadcast")


def _anchor(statement: Statement) -> Statement:
    """The outermost statement around one that only some ranks may enter, or the statement itself."""
    return next((above for above in reversed(list(statement.ancestors())) if may_differ(above)), statement)
