"""The comments of a text, also by line, and its strings."""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple, TypeAlias

_NEWLINE = re.compile(r"\r\n?")
# Python text has no quote and no `#` between these.
_STRING_OR_COMMENT = re.compile(
    r"#[^\n]*"
    r'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'",
    re.DOTALL,
)
# An f-string may hold strings with its own quotes, and comments.
_NESTS_STRINGS = sys.version_info >= (3, 12)
_FORMATTED = re.compile(r"""\b(?:[fFtT][rR]?|[rR][fFtT])["']""")
_PREFIXES = "rRbBuUfFtT"


class Comment(NamedTuple):
    """A comment: its 1-based line, its column in code points, and its text from the `#` on."""

    line: int
    column: int
    text: str


# The comments of a text by their lines.
Comments: TypeAlias = "Mapping[int, Comment]"


def read_comments(text: str) -> Iterator[Comment]:
    """Yield the comments of a text as Python's tokenizer sees them, in order.

    Raises `SyntaxError` or `tokenize.TokenError` if the text is not valid Python, after the comments before
    the error.
    """
    if "#" not in text:
        return
    lines = io.StringIO(_NEWLINE.sub("\n", text.removeprefix("\ufeff")))
    for token in tokenize.generate_tokens(lines.readline):
        if token.type == tokenize.COMMENT:
            yield Comment(*token.start, token.string)


def comments_in(code: str) -> list[str]:
    """The comments in the code of an expression or a statement, in order; it may end inside brackets."""
    found: list[str] = []
    with suppress(tokenize.TokenError, SyntaxError):
        for each in read_comments(f"({code}"):  # The parenthesis joins the lines.
            found.append(each.text.rstrip())
    return found


def comments_by_line(text: str) -> Comments:
    """The comments of a valid Python text, by line."""
    if "#" not in text:
        return {}
    text = _NEWLINE.sub("\n", text.removeprefix("\ufeff"))
    if _NESTS_STRINGS and _FORMATTED.search(text):
        return {each.line: each for each in read_comments(text)}
    found: dict[int, Comment] = {}
    line, start = 1, 0
    for match in _STRING_OR_COMMENT.finditer(text):
        if match[0].startswith("#"):
            line += text.count("\n", start, match.start())
            start = text.rfind("\n", 0, match.start()) + 1
            found[line] = Comment(line, match.start() - start, match[0])
    return found


def quotes_in(text: str) -> Iterator[str]:
    """Yield the first quote of each string of a valid Python text, as one character or three."""
    if _NESTS_STRINGS and _FORMATTED.search(text):
        for token in tokenize.generate_tokens(io.StringIO(_NEWLINE.sub("\n", text)).readline):
            if token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_START", -1)):
                yield _opening(token.string.lstrip(_PREFIXES))
        return
    for match in _STRING_OR_COMMENT.finditer(text):
        if not match[0].startswith("#"):
            yield _opening(match[0])


def _opening(string: str) -> str:
    return string[:3] if string[:3] in ('"""', "'''") else string[0]
