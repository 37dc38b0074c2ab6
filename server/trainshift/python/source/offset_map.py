"""The map between the offsets of a text and those of the text after edits, in both directions.

Spans and edits of the text after some edits are mapped to the text before them, so that both steps are edits
of one baseline.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from msgspec.structs import replace

from trainshift.python.source.edit import Edit
from trainshift.python.source.source import Span


class OffsetMap:
    """A map between the text before disjoint `edits`, in text order, and the text after them."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self.first = tuple(edits)
        self._starts: list[int] = []
        self._ends: list[int] = []
        grown = 0
        for edit in edits:
            self._starts.append(edit.start + grown)
            grown += len(edit.text) - (edit.end - edit.start)
            self._ends.append(edit.end + grown)
        self._olds = [edit.start for edit in edits]

    def forward(self, offset: int) -> int:
        """Map an offset of the first text to the second; an offset in replaced text maps to the start of
        its replacement.
        """
        index = bisect_right(self._olds, offset) - 1
        if index < 0:
            return offset
        edit = self.first[index]
        return self._starts[index] if offset < edit.end else offset - edit.end + self._ends[index]

    def back(self, span: Span) -> Span:
        """Map a span of the second text back to the first, without the removed text around it."""
        start = self._back(span.start)
        return (
            Span(start, max(start, self._back_end(span.end))) if span.end > span.start else Span(start, start)
        )

    def edits(self, edit: Edit) -> tuple[Edit, ...] | None:
        """Map an edit of the second text to edits of the first; None if it replaces text that the first step
        wrote.

        Deletions of the first step are not included.
        """
        span = self.back(Span(edit.start, edit.end))
        inner = [
            index
            for index in range(bisect_left(self._ends, edit.start), bisect_right(self._starts, edit.end))
            if self._touches(index, edit)
        ]
        if any(self.first[index].text for index in inner):
            return None
        found: list[Edit] = []
        start, text = span.start, edit.text
        for index in inner:
            out = self.first[index]
            if span.start <= out.start and out.end <= span.end:
                found.append(replace(edit, start=start, end=out.start, text=text))
                start, text = out.end, ""
        found.append(replace(edit, start=start, end=span.end, text=text))
        return tuple(each for each in found if each.text or each.end > each.start or each is found[0])

    def _touches(self, index: int, edit: Edit) -> bool:
        """Return whether an edit of the second text reaches into text that the first step wrote, or
        across a gap.
        """
        start, end = self._starts[index], self._ends[index]
        if start == end:
            return edit.start < start < edit.end
        return start < edit.end and edit.start < end and (edit.end > edit.start or start < edit.start)

    def _back(self, offset: int) -> int:
        index = bisect_right(self._ends, offset) - 1
        before = self.first[index].end - self._ends[index] if index >= 0 else 0
        if index + 1 < len(self.first) and self._starts[index + 1] < offset:
            return self.first[index + 1].start  # Inside the inserted text.
        return offset + before

    def _back_end(self, offset: int) -> int:
        index = bisect_left(self._starts, offset) - 1
        if index < 0:
            return offset
        return self.first[index].end + max(0, offset - self._ends[index])
