"""Saved rates: the items of files in which a script keeps an optimizer's rate, which is scaled already."""

from __future__ import annotations

import ast
from collections.abc import Callable

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.expressions import ExpressionsByKind
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import last_name
from trainshift.python.values.backward_slice import sliced, sources
from trainshift.training.learning_rates.rate_kinds import RateKind

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
        calls = [each.node for each in behind if isinstance(each.node, ast.Call)]
        if not any(last_name(each.func) in reads for each in calls):
            return RateKind.NONE
        is_sure = not any(isinstance(each.node, ast.Dict) for each in behind)
        return RateKind.CURRENT if is_sure else RateKind.CURRENT | RateKind.UNSEEN

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
