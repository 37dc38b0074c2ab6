"""Saved rates: the items of files in which a script keeps an optimizer's rate, which is scaled already."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.expressions import ExpressionsByKind
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Literal
from trainshift.python.syntax.chunk_syntax import Site, argument, last_name
from trainshift.python.values.backward_slice import sliced, sources
from trainshift.training.learning_rates.rate_kinds import RateKind

# Calls that ask whether there is a file, and those that open one.
_ASKING = frozenset({"exists", "getsize", "is_file", "isfile"})
_OPENING = frozenset({"GFile", "open"})
# Calls that give what a file holds, beside those that entries state; and those that name values.
_LOADING = frozenset({"full_load", "load", "loads", "safe_load"})
_NAMING = ("dict", "savez", "savez_compressed", "update")


class SavedRates:
    """The rates that one program keeps in files; `is_rate` judges an expression."""

    def __init__(self, program: Program, is_rate: Callable[[Occurrence], bool]) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._is_rate = is_rate

    def kind(self, at: Occurrence, node: ast.Subscript) -> RateKind:
        """The kind of a subscript that reads from a file a rate which the script saves there, or may do so;
        NONE for any other.
        """
        if not isinstance(node.slice, ast.Constant) or node.slice.value not in self._keys:
            return RateKind.NONE
        behind = list(sliced(at.part(node.value), lambda each: sources(self._names, each)))
        reads = self._program.fact(Libraries).names_stating("reads") | _LOADING
        loads = [
            each for each in behind if isinstance(each.node, ast.Call) and last_name(each.node.func) in reads
        ]
        if not loads:
            return RateKind.NONE
        read = {self._key(path): path for load in loads for path in self._paths(load)}
        written = {
            self._key(of_call(site).part(site.node.args[0]))
            for site in self._script.sites
            if site.node.args and self._may_write(site, reads)
        }
        if written.isdisjoint(read):
            # A file whose name the script shows, and which it does not write, keeps a rate of its own.
            is_other = any(isinstance(key, str) for key in read)
            return RateKind.NONE if is_other else RateKind.CURRENT | RateKind.UNSEEN
        is_sure = not any(isinstance(each.node, ast.Dict) for each in behind)
        return RateKind.CURRENT if is_sure else RateKind.CURRENT | RateKind.UNSEEN

    @staticmethod
    def _may_write(site: Site, reads: Collection[str]) -> bool:
        """Return whether a call may write a file, and does not only ask for it or read it."""
        if site.name in _OPENING:
            mode = argument(site.node, 1, "mode")
            return mode is not None and not str(getattr(mode, "value", "")).startswith("r")
        return site.name not in _ASKING and site.name not in reads

    def _paths(self, load: Occurrence) -> Iterator[Occurrence]:
        """Yield the first arguments of the calls by which a call gets what a file holds."""
        for each in sliced(load, self._inside):
            if isinstance(each.node, ast.Call) and each.node.args:
                yield each.part(each.node.args[0])

    def _inside(self, at: Occurrence) -> tuple[Occurrence, ...]:
        """The sources of an expression, and the first argument and the object of a call."""
        if not isinstance(at.node, ast.Call):
            return sources(self._names, at)
        held = [at.node.func.value] if isinstance(at.node.func, ast.Attribute) else []
        return (*sources(self._names, at), *map(at.part, [*at.node.args[:1], *held]))

    def _key(self, at: Occurrence) -> str | bytes:
        """Return the text of a path if the script shows it, else the code of the expression."""
        values = self._names.values(*at[:3])
        shown = {value.value for value in values if isinstance(value, Literal)}
        text = shown.pop() if len(shown) == len(values) == 1 else None
        return text if isinstance(text, str) else ast.dump(at.node).encode()

    @cached_property
    def _keys(self) -> frozenset[object]:
        """The keys under which the script holds an optimizer's rate in a dictionary."""
        found: set[object] = set()
        for at in self._program.fact(ExpressionsByKind).of(ast.Dict, ast.Call):
            pairs: list[tuple[object, ast.expr]] = []
            if isinstance(at.node, ast.Dict):
                keys = zip(at.node.keys, at.node.values, strict=True)
                pairs = [(key.value, value) for key, value in keys if isinstance(key, ast.Constant)]
            elif isinstance(at.node, ast.Call) and last_name(at.node.func) in _NAMING:
                pairs = [(word.arg, word.value) for word in at.node.keywords if word.arg is not None]
            found.update(key for key, value in pairs if self._reads_rate(at.part(value)))
        return frozenset(found)

    def _reads_rate(self, at: Occurrence) -> bool:
        """Return whether a part of an expression, or what it comes from, is the rate of an optimizer."""
        return any(
            isinstance(part, ast.Attribute) and self._is_rate(each.part(part))
            for each in sliced(at, lambda each: sources(self._names, each))
            for part in ast.walk(each.node)
        )
