"""Text edits, applied exactly like an editor: with the protocol's positions, in every encoding."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lsprotocol import types

_CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
_LINE_START = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")

TextEdit = types.TextEdit | types.AnnotatedTextEdit | types.SnippetTextEdit


def lines_of(text: str) -> list[str]:
    """The lines of the protocol, each with its end; the last one has none."""
    return _LINE_START.split(text)


def units(text: str, encoding: str) -> int:
    """The length of a text in units of an encoding."""
    codec, size = _CODECS[encoding]
    return len(text.encode(codec)) // size


def position(text: str, offset: int, encoding: str) -> types.Position:
    """The position of a code point in a text."""
    before = lines_of(text[:offset])
    if text[offset - 1 : offset + 1] == "\r\n":  # The two characters are one line ending.
        before = lines_of(text[: offset - 1])
    return types.Position(len(before) - 1, units(before[-1], encoding))


def offset(text: str, place: types.Position, encoding: str) -> int:
    """The code point at a position, which must exist, between two code points."""
    lines = lines_of(text)
    assert place.line < len(lines), f"there is no line {place.line}"
    line = lines[place.line]
    codec, size = _CODECS[encoding]
    data = line.rstrip("\r\n").encode(codec)
    assert place.character * size <= len(data), f"line {place.line} has no character {place.character}"
    inside = data[: place.character * size].decode(codec)
    return sum(map(len, lines[: place.line])) + len(inside)


def span(text: str, where: types.Range, encoding: str) -> tuple[int, int]:
    """The code points from the start of a range to its end."""
    start, end = offset(text, where.start, encoding), offset(text, where.end, encoding)
    assert start <= end
    return start, end


def applied(text: str, edits: Sequence[TextEdit], encoding: str) -> str:
    """A text after edits, which must not overlap; edits at one place keep their order."""
    made: list[str] = []
    at = 0
    ordered = sorted(
        ((*span(text, edit.range, encoding), number) for number, edit in enumerate(edits)),
        key=lambda each: (each[0], each[2]),
    )
    for start, end, number in ordered:
        assert start >= at, "two edits overlap"
        edit = edits[number]
        assert not isinstance(edit, types.SnippetTextEdit)
        made += [text[at:start], edit.new_text]
        at = end
    return "".join([*made, text[at:]])
