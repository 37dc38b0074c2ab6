"""Splits: the draws by which a script splits its data for training and testing.

Ranks that draw these independently test on rows that others train on.  Any split that all ranks share is
equally good, so its draws are made alike wherever possible.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.libraries import divergence
from trainshift.python.lazy import cached_property
from trainshift.python.names.expressions import ExpressionsByKind
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.syntax.chunk_syntax import Site, arguments, last_name
from trainshift.training.datasets.draw_remedies import Draw, Remedies
from trainshift.training.ranks.sinks import Sinks

# Functions that return the rows that are not among others.
_REST = ("delete", "difference", "drop", "in1d", "isin", "setdiff1d")


class Splits:
    """The splits of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._remedies = program.fact(Remedies)

    @cached_property
    def draws(self) -> list[Draw]:
        """The draws without a seed by which data are split, each once."""
        if not self._remedies.any_free:
            return []
        found: dict[Site, Draw] = {}
        for at in self._split():
            for draw in self._remedies.behind(at):
                if draw.remedy is not None or self._remedies.is_free(draw.site):
                    found.setdefault(draw.site, draw)
        is_of_batches = self._program.fact(Sinks).is_of_batches
        return [
            each for each in found.values() if each.site.name != "set" and not is_of_batches(each.site.scope)
        ]

    @cached_property
    def mended(self) -> frozenset[Site]:
        """The calls among them that are made equal on all ranks."""
        return frozenset(each.site for each in self.draws if each.remedy is not None)

    def _split(self) -> Iterator[Occurrence]:
        """Yield the data that are split, or the values that decide the split."""
        yield from map(of_call, self._script.sites_called(*sorted(divergence.SPLITTING)))
        yield from self._cut_at_one_place()
        for site in self._script.sites_named(*_REST):
            yield from map(of_call(site).part, arguments(site.node))
        for at in self._program.fact(ExpressionsByKind).of(ast.Compare):
            assert isinstance(at.node, ast.Compare)
            if isinstance(at.node.ops[0], ast.NotIn):
                yield at.part(at.node.comparators[0])

    def _cut_at_one_place(self) -> Iterator[Occurrence]:
        """Yield the data sliced both up to a place and from there on, or by a mask and its complement."""
        up_to: dict[str, list[Occurrence]] = {}
        onwards: dict[str, list[Occurrence]] = {}
        for at in self._program.fact(ExpressionsByKind).of(ast.Subscript):
            node = at.node
            assert isinstance(node, ast.Subscript)
            rows = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            if isinstance(rows, ast.Slice) and rows.step is None:
                for found, bound in ((up_to, rows.upper), (onwards, rows.lower)):
                    if bound is not None:
                        found.setdefault(ast.dump(bound), []).append(at.part(node.value))
            elif isinstance(rows, ast.UnaryOp) and isinstance(rows.op, ast.Invert):
                yield at
        for end in up_to.keys() & onwards.keys():
            names = {last_name(each.node) for each in up_to[end]} - {"iloc", "loc"}
            yield from (
                each
                for each in onwards[end]
                if last_name(each.node) in names or isinstance(each.node, ast.Attribute)
            )
