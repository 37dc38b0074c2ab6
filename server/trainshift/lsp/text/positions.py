"""Positions: the protocol's lines and characters, and the core's offsets in code points.

A character of the protocol is a unit of the negotiated encoding; a line ends at ``\\n``, ``\\r\\n`` or
``\\r`` and nothing else.  Units of UTF-16 are those of JavaScript: an editor may split a surrogate pair, and
join it again.
"""

from __future__ import annotations

from trainshift.lsp.transport.client import UTF_8, UTF_16, UTF_32
from trainshift.python.lazy import cached_property
from trainshift.python.source.source import Source, Span

_CODECS = {UTF_8: ("utf-8", 1), UTF_16: ("utf-16-le", 2), UTF_32: ("utf-32-le", 4)}

Place = tuple[int, int]
"""A 0-based line, and a 0-based character in units of the encoding."""


class Positions:
    """The positions of one text in one encoding."""

    def __init__(self, source: Source, encoding: str) -> None:
        self._source = source
        self._encoding = encoding

    @cached_property
    def is_plain(self) -> bool:
        """Return whether a unit is a code point everywhere in the text."""
        return self._encoding == UTF_32 or self._source.text.isascii()

    def place(self, offset: int) -> Place:
        """The position of an offset."""
        line = self._source.line_of(offset)
        start = self._source.line_starts[line]
        if self.is_plain:
            return line, offset - start
        return line, units(self._source.text[start:offset], self._encoding)

    def offset(self, place: Place) -> int:
        """The offset of a position; beyond a line's end that end, beyond the last line the end of
        the text.
        """
        line, character = place
        starts = self._source.line_starts
        if line >= len(starts):
            return len(self._source.text)
        start = starts[max(line, 0)]
        end = self._source.line_end(start)
        if self.is_plain:
            return min(start + max(character, 0), end)
        return start + len(cut(self._source.text[start:end], max(character, 0), self._encoding)[0])

    def span(self, first: Place, last: Place) -> Span:
        """The span between two positions, in either order."""
        start, end = self.offset(first), self.offset(last)
        return Span(min(start, end), max(start, end))


def units(text: str, encoding: str) -> int:
    """The length of a text in units of an encoding."""
    if text.isascii():
        return len(text)
    codec, size = _CODECS[encoding]
    return len(text.encode(codec, "surrogatepass")) // size


def cut(line: str, character: int, encoding: str) -> tuple[str, str]:
    """Split a line at a character; a code point of UTF-8 that would be halved goes to the right."""
    if line.isascii():
        return line[:character], line[character:]
    codec, size = _CODECS[encoding]
    data = line.encode(codec, "surrogatepass")
    at = min(character * size, len(data))
    while encoding == UTF_8 and at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1
    return data[:at].decode(codec, "surrogatepass"), data[at:].decode(codec, "surrogatepass")


def replaced(source: Source, first: Place, last: Place, text: str, encoding: str) -> Source:
    """The source with `text` between two positions; halves of surrogate pairs are joined."""
    if source.text.isascii() and text.isascii():
        return source.edited(Positions(source, encoding).span(first, last), text)
    if first > last:
        first, last = last, first
    left = _side(source, first, encoding)[0]
    right = _side(source, last, encoding)[1]
    return Source(joined(left + text + right))


def _side(source: Source, place: Place, encoding: str) -> tuple[str, str]:
    """Everything before and after a position."""
    line, character = place
    if line >= len(source.line_starts):
        return source.text, ""
    start = source.line_starts[line]
    end = source.line_end(start)
    left, right = cut(source.text[start:end], character, encoding)
    return source.text[:start] + left, right + source.text[end:]


def joined(text: str) -> str:
    """The text with each matching surrogate pair as one code point."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text
