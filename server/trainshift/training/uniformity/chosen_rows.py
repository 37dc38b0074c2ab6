"""Chosen rows: the random draws that decide which rows of the data an expression contains.

Draws for the contents of rows, such as noise or a synthetic data set, choose none.  An order chooses rows
only if a part of it is cut off.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.libraries import divergence
from trainshift.libraries.divergence import CauseKind
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.occurrence import Occurrence, Step, of_call
from trainshift.python.names.values import Class
from trainshift.python.syntax.chunk_syntax import Scope, Site, arguments, children, expression_path
from trainshift.training.uniformity.draws import APPLYING
from trainshift.training.uniformity.shapes import SHAPE
from trainshift.training.uniformity.uniformity import Uniformity, is_mask
from trainshift.training.uniformity.value_flow import ValueFlow, tests_around
from trainshift.training.uniformity.verdict import Cause

# Functions that select rows of their first argument by the indices in their second.
_TAKING = frozenset(
    {
        "boolean_mask", "compress", "delete", "difference", "drop", "gather", "in1d", "isin", "setdiff1d",
        "setxor1d", "take_along_axis",
    }
)  # fmt: skip
# Functions that return indices sorted by value.
_SORTING = frozenset({"argpartition", "argsort", "lexsort", "nargsort", "top_k"})
_FINDING = frozenset({"argwhere", "flatnonzero", "nonzero", "where"})
_CUTTING = frozenset(
    {"head", "islice", "nlargest", "nsmallest", "select", "skip", "tail", "take", "split", "array_split"}
)


class _Of(Enum):
    """The side of an expression that matters: its rows, their order, or the rows it is an index of."""

    ROWS = "rows"
    ORDER = "order"
    INDEX = "index"


class _Reached(NamedTuple):
    at: Occurrence
    of: _Of


class ChosenRows:
    """The draws that choose rows in one program."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._flow = program.fact(ValueFlow)
        self._uniformity = program.fact(Uniformity)
        self._known: dict[tuple[ast.expr, Scope, int], tuple[tuple[Occurrence, _Of | None], ...]] = {}

    def draws(self, at: Occurrence) -> dict[ast.AST, Cause]:
        """The random draws, clock readings and similar causes by which a rank chooses its rows of data."""
        found: dict[ast.AST, Cause] = {}
        values: list[Occurrence] = []

        def behind(reached: _Reached) -> Iterator[_Reached]:
            cause = self._cause(reached)
            if cause is not None:
                found.setdefault(cause.at.node, cause)
                return
            key = _key(reached)
            if key not in self._known:
                self._known[key] = tuple(self._behind(reached))
            for part, of in self._known[key]:
                if of is None:
                    values.append(part)
                else:
                    yield _Reached(part, of)

        for _ in reachable([_Reached(at, _Of.ROWS)], behind, _key):
            pass
        for cause in self._uniformity.causes_of_any(reversed(values)):
            if cause.kind is not CauseKind.DATA and not self._is_sorted(cause):
                found.setdefault(cause.at.node, cause)
        return found

    def _is_sorted(self, cause: Cause) -> bool:
        """Return whether a cause is a listing that is sorted at once: all ranks have the same files."""
        site = cause.site if cause.kind is CauseKind.DISK else None
        around = expression_path(site.statement.node, site.node)[-2:-1] if site is not None else ()
        return any(
            isinstance(each, ast.Call)
            and "builtins.sorted" in self._names.full_names(each.func, cause.at.scope, cause.at.statement)
            for each in around
        )

    def _cause(self, reached: _Reached) -> Cause | None:
        """Return the reason why an expression itself has different rows on each rank."""
        cause = self._uniformity.cause(reached.at)
        if cause is None or cause.site is None:
            return None
        if cause.kind is CauseKind.DISK:
            return cause if reached.of is _Of.ORDER else None
        if cause.kind is CauseKind.PERHAPS:
            return cause
        if cause.kind is not CauseKind.DRAW:
            return None
        if cause.site.name in divergence.CHOOSING_ROWS:
            return cause
        is_shuffled = self._uniformity.draws.shuffles(cause.site)
        return cause if is_shuffled is (reached.of is _Of.ORDER) and reached.of is not _Of.ROWS else None

    def _behind(self, reached: _Reached) -> Iterator[tuple[Occurrence, _Of | None]]:
        """Yield the sources of an expression's rows, one step back; paired with None if by their values."""
        at, of = reached
        node = at.node
        if isinstance(node, ast.Call):
            yield from self._of_call(self._script.site_of(node), of)
        elif of is _Of.INDEX and is_mask(node):
            yield at, None
        elif isinstance(node, ast.Subscript):
            yield from self._of_subscript(node, at, of)
        elif isinstance(node, ast.Attribute) and node.attr in SHAPE:
            yield at, None  # The size of an array holds none of its rows.
        elif isinstance(node, ast.Name | ast.Attribute):
            yield from self._of_name(at, of)
        elif isinstance(node, ast.IfExp):
            yield at.part(node.test), None
            yield from ((at.part(each), of) for each in (node.body, node.orelse))
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            inner = Occurrence(node.elt, at.scope.facts.scope_of.get(node, at.scope), at.statement)
            yield inner, of
            for generator in node.generators:
                yield inner.part(generator.iter), of
                yield from ((inner.part(each), None) for each in generator.ifs)
        elif not isinstance(node, ast.Lambda | ast.Constant):
            yield from ((at.part(each), of) for each in children(node) if isinstance(each, ast.expr))

    def _of_subscript(
        self, node: ast.Subscript, at: Occurrence, of: _Of
    ) -> Iterator[tuple[Occurrence, _Of | None]]:
        rows = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        if isinstance(rows, ast.Slice):
            bounds = [each for each in (rows.lower, rows.upper, rows.step) if each is not None]
            yield from ((at.part(each), None) for each in bounds)
            if of is _Of.INDEX and bounds:
                yield at.part(node.value), None
            else:
                yield at.part(node.value), _Of.ORDER if bounds else of
        elif isinstance(rows, ast.Constant):
            step = self._names.steps_back(at) or Step()
            yield from ((each, of) for each in (*step.sources, *step.within))
            yield at.part(node.value), of
        else:
            yield at.part(node.value), of
            if of is _Of.ROWS and not is_mask(rows):
                yield at.part(rows), _Of.INDEX
            else:
                yield at.part(rows), None

    def _of_name(self, at: Occurrence, of: _Of) -> Iterator[tuple[Occurrence, _Of | None]]:
        if self._names.member_of_library(at.node):
            return
        step = self._names.steps_back(at) or Step()
        yield from ((each, of) for each in (*step.sources, *step.within))
        if len(step.sources) > 1:
            for source in step.sources:
                yield from ((test, None) for test in tests_around(source.statement, at.statement))
        if isinstance(at.node, ast.Attribute) and not step.sources:
            yield at.part(at.node.value), of
        for item in (*self._names.additions(at), *self._flow.nested(at)):
            yield from ((each, of) for each in self._names.source_of(item.binding).sources)
            if item.key is not None:
                key = Occurrence(item.key, item.binding.scope, item.binding.statement)
                yield key, _Of.INDEX if of is _Of.INDEX else None
            yield from ((test, None) for test in self._flow.tests_of(item, at.statement))
        yield from ((of_call(each), of) for each in self._flow.shuffled_in_place(at))

    def _of_call(self, site: Site, of: _Of) -> Iterator[tuple[Occurrence, _Of | None]]:
        if self._flow.is_collected(of_call(site)):
            return
        if any(isinstance(each, Class) for each in self._names.callee(site)):
            # An object of the script's own, such as a `Sequence`, has the rows that it is given.
            yield from ((of_call(site).part(each), of) for each in arguments(site.node))
            return
        functions = self._names.called_functions(site)
        for called in functions:
            yield from ((Occurrence(value, called, where), of) for value, where in called.returns)
            for yielded, where in called.yields:
                if yielded.value is not None:
                    yield Occurrence(yielded.value, called, where), of
        if not functions:
            yield from self._of_library(site, of)

    def _given(self, site: Site) -> list[Occurrence]:
        """The object of a method, the arguments, and the results of a function that is applied to parts."""
        at, function = of_call(site), site.node.func
        given = list(map(at.part, arguments(site.node)))
        if site.name in APPLYING:
            given += [each for one in given for each in self._flow.returned(one)]
        if isinstance(function, ast.Attribute) and not self._names.member_of_library(function):
            given.insert(0, at.part(function.value))
        return given

    def _of_library(self, site: Site, of: _Of) -> Iterator[tuple[Occurrence, _Of | None]]:
        given = self._given(site)
        if self._names.calls(site, "builtins.sorted"):
            yield from ((each, _Of.ROWS if of is _Of.ORDER else of) for each in given)
        elif site.name in _SORTING:
            if of is _Of.ORDER:
                yield from ((each, None) for each in given)
        elif site.name in _FINDING and (of is _Of.INDEX or len(given) < 2):
            yield from ((each, None) for each in given)
        elif site.name in _CUTTING:
            yield from ((each, None if number else _Of.ORDER) for number, each in enumerate(given))
        elif site.name in _TAKING:
            yield from ((each, _Of.INDEX if number else of) for number, each in enumerate(given))
        elif site.name in divergence.TESTING:
            yield from ((each, of) for each in given)
            yield from ((each, None) for one in given for each in self._flow.returned(one))
        else:
            yield from ((each, of) for each in given)


def _key(reached: _Reached) -> tuple[ast.expr, Scope, int]:
    at, of = reached
    return at.node, at.scope, id(of)
