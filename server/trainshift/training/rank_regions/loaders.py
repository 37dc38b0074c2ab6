"""Loaders: code that reads data while training runs: in threads, graphs, generators and Keras' sequences.

Ranks cannot wait for each other there, so what such code both writes and reads must not be left to rank 0.
"""

from __future__ import annotations

import ast

from trainshift.core.libraries import Libraries, full_name
from trainshift.core.program import Program
from trainshift.libraries import entries
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import class_around
from trainshift.python.names.occurrence import of_call
from trainshift.python.names.values import Value
from trainshift.python.syntax.chunk_syntax import Scope, Site, argument, arguments
from trainshift.python.values.call_graph import calls_leading_to, functions_handed_to
from trainshift.training.execution.executions import Executions
from trainshift.training.rank_regions.path_keys import PathKeys
from trainshift.training.ranks.branches import Branches

# Calls that run their function arguments in other threads or processes: datasets, pools and threads.
_HANDED_TO = (
    "Process", "Thread", "apply_async", "filter", "flat_map", "from_generator", "imap", "imap_unordered",
    "interleave", "map", "numpy_function", "py_func", "py_function", "starmap", "submit",
)  # fmt: skip
# Data whose batches Keras reads in threads of its own.
_SEQUENCES = ("tensorflow.keras.utils.Sequence", "tensorflow.keras.utils.PyDataset")
# The object whose method reads, in the terms of the entries.
_SELF = "self"


class Loaders:
    """The loaders of one script, and the places that start them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._paths = program.fact(PathKeys)

    def outside(self, call: Site) -> list[Site]:
        """Return the place where a call's function is passed on or started, if in a thread or a graph."""
        function = call.scope.function()
        if function is None:
            return []
        if function in self._handed:
            return [self._handed[function]]
        cls = class_around(function)
        if cls is not None:
            made = list(self._script.sites_named(cls.name))
            if self._is_sequence(cls) or any(map(self._program.fact(Branches).of_call, made)):
                return made
        if function.is_generator or self._program.fact(Executions).is_traced(function):
            return self._program.names.callers(function)[0]
        return []

    def reads_back(self, site: Site) -> bool:
        """Return whether a loader writes a file by a call, and reads it."""
        if not self._reads or not self._is_inside(site):
            return False
        written: set[str] = set()
        for each in (*arguments(site.node), *_receiver(site)):
            written |= self._paths.of(of_call(site).part(each))
        return any(
            not written.isdisjoint(self._paths.of(of_call(read).part(path))) for read, path in self._reads
        )

    @cached_property
    def _reads(self) -> list[tuple[Site, ast.expr]]:
        """The calls by which loaders read files, and the paths."""
        names = self._program.fact(Libraries).names_stating("reads")
        found = []
        for site in self._script.sites_named(*sorted(names)):
            paths = {read_by(site, value) for value in self._program.names.callee(site)} - {None}
            if paths and self._is_inside(site):
                found += [(site, path) for path in paths if path is not None]
        return found

    def _is_inside(self, site: Site) -> bool:
        """Return whether Keras' sequences, or functions handed to datasets and threads, make a call."""
        functions = {call.scope.function() for call in calls_leading_to(self._program.names, site)} - {None}
        return any(
            function in self._handed
            or ((cls := class_around(function)) is not None and self._is_sequence(cls))
            for function in functions
            if function is not None
        )

    def _is_sequence(self, cls: Scope) -> bool:
        return not self._program.names.library_bases(cls).isdisjoint(_SEQUENCES)

    @cached_property
    def _handed(self) -> dict[Scope, Site]:
        """The functions that threads run, and the places that start them."""
        return functions_handed_to(self._script, *_HANDED_TO)


def read_by(site: Site, value: Value) -> ast.expr | None:
    """Return the path that a call reads; None if it reads none."""
    reads = entries.fact(full_name(value), "reads")
    if reads == _SELF:
        return site.node.func.value if isinstance(site.node.func, ast.Attribute) else None
    return argument(site.node, 0, reads) if reads else None


def _receiver(site: Site) -> tuple[ast.expr, ...]:
    return (site.node.func.value,) if isinstance(site.node.func, ast.Attribute) else ()
