"""Read back: files that rank 0 alone writes and that every rank reads later in the same run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core import tables
from trainshift.core.lazy import cached_property
from trainshift.core.names import api
from trainshift.core.names.values import Instance, Library, Literal
from trainshift.core.program import Program
from trainshift.core.text.facts import Site, argument, arguments
from trainshift.core.training.horovod import Horovod
from trainshift.core.training.loops import Loops
from trainshift.rewriting.keras.callbacks import CallbackLists
from trainshift.rewriting.ranks.guard_forms import Form, may_differ
from trainshift.rewriting.ranks.root_only import RootOnly

# The forms by which a whole statement is left to rank 0.
_GUARDED = (Form.GUARD, Form.RELOAD)


class ReadBack:
    """The calls of one script that read what it has written itself."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script

    @cached_property
    def all(self) -> list[tuple[Site, ast.expr]]:
        """The reading calls that must wait for rank 0, in text order, and the path of each."""
        if not self._program.fact(Loops).runs_eagerly:
            return []
        reads = list(self._reads())
        written = self._written if reads else {}
        calls = self._program.fact(RootOnly).calls if written else ()
        # What only rank 0 does it does after what it has written itself.
        guarded = {call.site.statement for call in calls if call.form in _GUARDED and not call.reason}
        found = [
            (site, path)
            for site, path in reads
            if ast.dump(path) in written
            and written[ast.dump(path)] < self._script.span(site.node, site).start
            and site.statement not in guarded
            and not self._program.fact(Horovod).site_on_root(site)
            and not self._waits(site)
            and not any(may_differ(above) for above in site.statement.ancestors())
        ]
        return sorted(found, key=lambda each: self._script.span(each[0].node, each[0]))

    def is_native(self, path: ast.expr, site: Site) -> bool:
        """Whether Keras may keep a model under the path in its own format, which names Horovod's classes."""
        values = self._program.names.site_values(path, site)
        shown = [value.value for value in values if isinstance(value, Literal)]
        return len(shown) < len(values) or any(
            isinstance(each, str) and (each.endswith(".keras") or not each) for each in shown
        )

    def _reads(self) -> Iterator[tuple[Site, ast.expr]]:
        names = {name.rpartition(".")[2] for name in tables.READING}
        names |= {new for new, old in self._script.code.renamed_imports if old in names}
        for site in self._script.sites_named(*sorted(names)):
            for value in self._program.names.callee(site):
                name = (api.canonical(value.name) or value.name) if isinstance(value, Library) else ""
                if name in tables.READING:
                    path = argument(site.node, 0, tables.READING[name])
                    if path is not None:
                        yield site, path

    @cached_property
    def _written(self) -> dict[str, int]:
        """What rank 0 alone writes: every argument that may be the path, and where it is first written."""
        writing = list(self._program.fact(RootOnly).written)
        for callbacks in self._program.fact(CallbackLists).all:
            for member in callbacks.members:
                element = member.element
                for value in self._program.names.values(element.node, element.scope, element.statement):
                    if isinstance(value, Instance) and value.cls in tables.WRITING_CALLBACKS:
                        writing.append(self._script.site_of(value.node))
        found: dict[str, int] = {}
        for site in writing:
            at = self._script.span(site.node, site).end
            for given in arguments(site.node):
                # Rewritten, the path of `open` is one on rank 0 and another on the others.
                path = given.body if isinstance(given, ast.IfExp) else given
                if not isinstance(path, ast.Constant) or isinstance(path.value, str):
                    found[ast.dump(path)] = min(at, found.get(ast.dump(path), at))
        return found

    def _waits(self, site: Site) -> bool:
        """Whether the statement before is a broadcast, for which the other ranks wait."""
        return self._program.fact(Horovod).is_statement(self._script.preceding(site.statement), "broadcast")
