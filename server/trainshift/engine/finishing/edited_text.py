"""A text after edits, with what the edits have written, and how the file is formatted."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct

from trainshift.python.lazy import cached_property
from trainshift.python.rewrite.line_breaks import LogicalLine, logical_lines
from trainshift.python.source.edit import Edit, apply
from trainshift.python.source.source import Source, Span


class Manner(Struct, frozen=True):
    """The format of a file: one level of its indentation, and the longest line allowed."""

    unit: str
    longest: int
    every: tuple[Edit, ...] = ()
    """All edits of a conversion; some may be left for later."""


class Edited:
    """A text after edits, with the spans that the edits have written."""

    def __init__(self, text: str, edits: Sequence[Edit], apart: Sequence[int]) -> None:
        self.before = text
        self.source = Source(apply(text, edits))
        self.written: list[Span] = []
        self.apart: list[int] = []
        self._olds: list[int] = []
        grown, starts = 0, [*apart][::-1]
        for edit in edits:
            while starts and starts[-1] <= edit.start:
                self.apart.append(starts.pop() + grown)
            start = edit.start + grown
            self.written.append(Span(start, start + len(edit.text)))
            self._olds.append(edit.end)
            grown += len(edit.text) - (edit.end - edit.start)
        self.apart += [each + grown for each in reversed(starts)]

    def origin(self, start: int, end: int) -> int | None:
        """The original offset of the first unedited code point of a span; None if edits wrote all of it."""
        index = bisect_right(self.written, start, key=lambda each: each.start) - 1
        while index >= 0 and index < len(self.written) and self.written[index].end > start:
            start = self.written[index].end
            while index + 1 < len(self.written) and self.written[index + 1].start <= start:
                index += 1
        if start >= end:
            return None
        return start if index < 0 else start - self.written[index].end + self._olds[index]

    @cached_property
    def source_before(self) -> Source:
        return Source(self.before)

    @cached_property
    def lines_before(self) -> list[LogicalLine]:
        return logical_lines(self.before)

    @property
    def text(self) -> str:
        return self.source.text

    def is_written(self, offset: int) -> bool:
        """Return whether edits have put a code point there."""
        index = bisect_right(self.written, offset, key=lambda each: each.start) - 1
        return any(span.start <= offset < span.end for span in self.written[max(index - 1, 0) : index + 1])

    def is_changed(self, start: int, end: int) -> bool:
        """Return whether edits have written something from one offset to another, or taken it out."""
        return any(each.start <= end and start <= each.end for each in self.written)

    def place_of(self, node: ast.stmt) -> int | None:
        """The original offset of a statement; None if edits wrote its beginning."""
        start = self.source.line_starts[node.lineno - 1]
        return self.origin(start + len(self.source.indentation(start)), self.source.line_end(start))

    def is_pending(self, start: int, end: int, pending: Sequence[Edit]) -> bool:
        """Return whether edits are still to be made from one offset to another."""
        first, last = self._old(start), self._old(end)
        return any(each.start <= last and first <= each.end for each in pending)

    def _old(self, offset: int) -> int:
        """Map an offset of the edited text to the original; in an edit, to the end of the replaced text."""
        index = bisect_right(self.written, offset, key=lambda each: each.start) - 1
        if index < 0:
            return offset
        return max(offset - self.written[index].end, 0) + self._olds[index]

    def is_one(self, start: int, end: int) -> bool:
        """Return whether a span lies in one part of the text: a notebook's cells are separate."""
        return bisect_right(self.apart, start) == bisect_right(self.apart, end)

    @cached_property
    def tree(self) -> ast.Module | None:
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError):
            return None


def row_of(source: Source, row: int) -> str:
    """The text of a row, without its line ending."""
    start = source.line_starts[row]
    return source.text[start : source.line_end(start)]
