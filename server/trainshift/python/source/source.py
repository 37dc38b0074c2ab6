"""The exact text of a script, and the bounds of its lines.

All offsets in the core are 0-based code points into `Source.text`, which never holds a byte
order mark.  Lines end at ``\\n``, ``\\r\\n`` and ``\\r`` only, as they do for Python's tokenizer
and for LSP; form feeds and U+2028 do not end a line.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct

from trainshift.python.lazy import cached_property

BOM = "\ufeff"
_NEWLINE = re.compile(r"\r\n|\n|\r")


def one_line(text: str) -> str:
    """The text with all white space reduced to single spaces, as messages show it."""
    return " ".join(text.split())


class Span(Struct, frozen=True, order=True):
    """A half-open range of code points."""

    start: int
    end: int


class Source:
    """The text of a script with its line table."""

    def __init__(self, text: str) -> None:
        self.text = text

    def edited(self, span: Span, text: str) -> Source:
        """The source with a span replaced by `text`, with lines computed from the old ones."""
        new = Source(self.text[: span.start] + text + self.text[span.end :])
        if "\r" in self.text or "\r" in text:  # One line ending may have become two, or the other way round.
            return new
        starts = self.line_starts
        first, after = bisect_right(starts, span.start), bisect_right(starts, span.end)
        inside = (match.end() + span.start for match in _NEWLINE.finditer(text))
        moved = map((len(text) - span.end + span.start).__add__, starts[after:])
        new.line_starts = array("q", [*starts[:first], *inside, *moved])
        return new

    @cached_property
    def line_starts(self) -> Sequence[int]:
        """Offset of the first code point of every line; line 0 starts at 0."""
        # An array takes a fifth of the memory of a list of numbers; a server has the lines of several
        # versions.
        if "\r" not in self.text:
            lengths = map(len, self.text.split("\n"))
            return array("q", [0, *accumulate(map((1).__add__, lengths))][:-1])
        return array("q", [0, *(match.end() for match in _NEWLINE.finditer(self.text))])

    @cached_property
    def newline(self) -> str:
        """The script's own line ending: the first one found, a line feed if there is none."""
        match = _NEWLINE.search(self.text)
        return match.group() if match else "\n"

    def line_of(self, offset: int) -> int:
        """0-based number of the line at `offset`."""
        return bisect_right(self.line_starts, offset) - 1

    def line_start(self, offset: int) -> int:
        """Offset of the first code point of the line at `offset`."""
        return self.line_starts[self.line_of(offset)]

    def line_end(self, offset: int) -> int:
        """Offset of the line ending (or the end of the text) of the line at `offset`."""
        match = _NEWLINE.search(self.text, offset)
        return match.start() if match else len(self.text)

    def next_line(self, offset: int) -> int:
        """Offset of the first code point after the line ending that follows `offset`."""
        match = _NEWLINE.search(self.text, offset)
        return match.end() if match else len(self.text)

    def indentation(self, offset: int) -> str:
        """The white space that the line of `offset` starts with."""
        start = self.line_start(offset)
        end = start
        while end < len(self.text) and self.text[end] in " \t\f":
            end += 1
        return self.text[start:end].rpartition("\f")[2]

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and 1-based column (in code points) of `offset`."""
        line = self.line_of(offset)
        return line + 1, offset - self.line_starts[line] + 1
