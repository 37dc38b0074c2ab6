"""Loaders: code that reads data while training runs: in threads, graphs, generators and Keras' sequences.

Ranks cannot wait for each other there, so what such code both writes and reads must not be left to rank 0.
"""

from __future__ import annotations

import ast

from trainshift.core.libraries import Libraries, full_name
from trainshift.core.program import Program
from trainshift.libraries import entries
from trainshift.libraries.divergence import CauseKind
from trainshift.libraries.methods import named
from trainshift.python.flow import exits
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import class_around
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Unknown, Value
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, arguments
from trainshift.python.values.call_chains import calls_leading_to, functions_handed_to
from trainshift.training.execution.executions import Executions
from trainshift.training.rank_regions.path_keys import PathKeys
from trainshift.training.ranks.branches import Branches
from trainshift.training.uniformity.uniformity import Uniformity

# Calls that run their function arguments in other threads or processes: datasets, pools and threads.
_HANDED_TO = (
    "Process", "Thread", "apply_async", "filter", "flat_map", "from_generator", "imap", "imap_unordered",
    "interleave", "map", "numpy_function", "py_func", "py_function", "starmap", "submit",
)  # fmt: skip
# Data whose batches Keras reads in threads of its own.
_SEQUENCES = ("tensorflow.keras.utils.Sequence", "tensorflow.keras.utils.PyDataset")
_IN_THREADS = ("__getitem__", "__iter__", "on_epoch_end")
# The object whose method reads, in the terms of the entries.
_SELF = "self"
_LOADED = (
    "the code that loads the data writes this and reads it, where ranks cannot wait for each other; write it "
    "before, or to a folder of each rank"
)
_ALONE = (
    "each rank comes here by its own disk, so all write this file, and one may read it half written; write "
    "it before, or to a folder of each rank"
)


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

    def against(self, site: Site) -> str:
        """Return the reason why rank 0 cannot write a file for the others; "" if there is none."""
        if self.reads_back(site):
            return _LOADED
        return _ALONE if self.reads_alone(site) else ""

    def reads_back(self, site: Site) -> bool:
        """Return whether a loader writes a file by a call, and reads it."""
        return self._is_inside(site) and any(map(self._is_inside, self._reading(site)))

    def reads_alone(self, site: Site) -> bool:
        """Return whether each rank decides for itself whether it writes a file by a call, and then reads it.

        It decides by its own disk, or by the error that a missing file raises, in a function of the call or
        around one that leads to it.
        """
        # What a test asks is found last, because that is slow.
        reads = list(filter(_hands_on, self._reading(site)))
        leading = list(calls_leading_to(self._program.names, site)) if reads else []
        if not any(map(self._own_blocks, leading)):
            return False
        for read in reads:
            for call in calls_leading_to(self._program.names, read):
                for write in leading:
                    is_after = call.scope.function() is write.scope.function() and (
                        self._script.span(write.node, write).end <= self._script.span(call.node, call).start
                    )
                    outside = calls_leading_to(self._program.names, write)
                    if is_after and (
                        not self._own_blocks(write).isdisjoint(self._own_blocks(call))
                        or any(self._own_blocks(each) for each in outside if each is not write)
                    ):
                        return True
        return False

    def _own_blocks(self, call: Site) -> set[tuple[Statement, str]]:
        """The blocks around a call, in its function, into which each rank comes by its own disk."""
        found = set[tuple[Statement, str]]()
        for inner in call.statement.path():
            if inner.scope.function() is not call.scope.function():
                break
            # A rank that finds the file has returned before.
            before, index = self._script.siblings(inner)
            found.update(
                (each, "after")
                for each in before[:index]
                if isinstance(each.node, ast.If)
                and exits.RETURN in exits.completions([each.node])
                and self._looks_for_files(each)
            )
            above = inner.parent
            if above is not None:
                is_caught = isinstance(above.node, ast.Try) and inner.branch.startswith("except")
                if is_caught or self._looks_for_files(above):
                    found.add((above, inner.branch))
        return found

    def _looks_for_files(self, statement: Statement) -> bool:
        """Return whether a test asks a rank's own disk."""
        if not isinstance(statement.node, ast.If):
            return False
        at = Occurrence(statement.node.test, statement.scope, statement)
        causes = self._program.fact(Uniformity).causes(at)
        return any(each.kind is CauseKind.DISK for each in causes)

    def _reading(self, site: Site) -> list[Site]:
        """The calls that read a file which a call writes."""
        written: set[str] = set()
        for each in (*arguments(site.node), *_receiver(site)) if self._reads else ():
            written |= self._paths.of(of_call(site).part(each))
        return [
            read
            for read, path in self._reads
            if not written.isdisjoint(self._paths.of(of_call(read).part(path)))
        ]

    @cached_property
    def _reads(self) -> list[tuple[Site, ast.expr]]:
        """The calls that read files, and the paths."""
        names = self._program.fact(Libraries).names_stating("reads") | named("path_readers")
        found = []
        for site in self._script.sites_named(*sorted(names)):
            paths = {read_by(site, value) for value in self._program.names.callee(site)} - {None}
            found += [(site, path) for path in paths if path is not None]
        return found

    def _is_inside(self, site: Site) -> bool:
        """Return whether Keras' sequences, or functions handed to datasets and threads, make a call."""
        calls = calls_leading_to(self._program.names, site)
        functions = {call.scope.function() for call in calls} - {None}
        return any(
            function in self._handed or self._is_read_by_keras(function)
            for function in functions
            if function is not None
        )

    def _is_read_by_keras(self, function: Scope) -> bool:
        """Return whether threads of Keras may call a method of a sequence; the script makes and calls the
        rest.
        """
        cls = class_around(function)
        if cls is None or not self._is_sequence(cls):
            return False
        is_called = function.name == "__init__" or bool(self._program.names.callers(function)[0])
        return function.name in _IN_THREADS or not is_called

    def _is_sequence(self, cls: Scope) -> bool:
        return not self._program.names.library_bases(cls).isdisjoint(_SEQUENCES)

    @cached_property
    def _handed(self) -> dict[Scope, Site]:
        """The functions that threads run, and the places that start them."""
        return functions_handed_to(self._script, *_HANDED_TO)


def read_by(site: Site, value: Value) -> ast.expr | None:
    """Return the path that a call reads; None if it reads none."""
    reads = entries.fact(full_name(value), "reads")
    if reads == _SELF or (isinstance(value, Unknown) and site.name in named("path_readers")):
        return site.node.func.value if isinstance(site.node.func, ast.Attribute) else None
    return argument(site.node, 0, reads) if reads else None


def _hands_on(read: Site) -> bool:
    """Return whether a statement uses what a call reads, and does not only unpack it."""
    if not isinstance(read.statement.node, ast.With):
        return not isinstance(read.statement.node, ast.Expr)
    return any(
        isinstance(each.node, ast.Return | ast.Assign | ast.AnnAssign) for each in read.statement.walk()
    )


def _receiver(site: Site) -> tuple[ast.expr, ...]:
    return (site.node.func.value,) if isinstance(site.node.func, ast.Attribute) else ()
