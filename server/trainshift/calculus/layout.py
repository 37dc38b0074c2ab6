"""Layout: a text with possible breaks, set in lines of some width."""

from __future__ import annotations

from typing import Any, TypeAlias

WIDTH = 100
# Lines deeper than this are not indented any further.
_MOST_INDENT = 60

Text: TypeAlias = "str | _Text"


class _Text:
    """A piece of text: `width` is how wide it is in one line."""

    __slots__ = ("kind", "parts", "width")

    def __init__(self, kind: str, parts: tuple[Any, ...], width: int) -> None:
        self.kind, self.parts, self.width = kind, parts, width


LINE: Text = _Text("line", (), 1)
"""A space, or a new line where the group that it is in is broken."""


def together(*parts: Text) -> Text:
    """One text after the other."""
    return _Text("together", parts, _width(parts))


def group(*parts: Text) -> Text:
    """A text with either all of its line breaks, or none if it fits on one line."""
    return _Text("group", parts, _width(parts))


def nested(*parts: Text) -> Text:
    """A text whose new lines are indented by two more."""
    return _Text("nested", parts, _width(parts))


def _width(parts: tuple[Text, ...]) -> int:
    return sum(len(part) if isinstance(part, str) else part.width for part in parts)


def set_in_lines(text: Text, width: int = WIDTH) -> str:
    """The text, broken where a line would be longer than `width`."""
    pieces: list[str] = []
    column = 0
    waiting: list[tuple[int, bool, Text]] = [(0, False, text)]
    while waiting:
        indent, flat, each = waiting.pop()
        if isinstance(each, str):
            pieces.append(each)
            column += len(each)
        elif each.kind == "line":
            pieces.append(" " if flat else "\n" + " " * indent)
            column = column + 1 if flat else indent
        else:
            if each.kind == "group":
                flat = flat or column + each.width <= width
            elif each.kind == "nested":
                indent = min(indent + 2, _MOST_INDENT)
            waiting += [(indent, flat, part) for part in reversed(each.parts)]
    return "".join(pieces)
