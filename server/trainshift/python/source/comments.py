"""The comments of a text, and by line."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

_NEWLINE = re.compile(r"\r\n?")


class Comment(NamedTuple):
    """A comment: its 1-based line, its column in code points, and its text from the `#` on."""

    line: int
    column: int
    text: str


# The comments of a text by their lines.
Comments: TypeAlias = "Mapping[int, Comment]"


def read_comments(text: str) -> Iterator[Comment]:
    """Yield the comments of a text as Python's tokenizer sees them, in order.

    Raises `SyntaxError` or `tokenize.TokenError` where the text is no Python, behind the comments before.
    """
    if "#" not in text:
        return
    lines = io.StringIO(_NEWLINE.sub("\n", text.removeprefix("\ufeff")))
    for token in tokenize.generate_tokens(lines.readline):
        if token.type == tokenize.COMMENT:
            yield Comment(*token.start, token.string)


def comments_by_line(text: str) -> Comments:
    """The comments of a text that is Python, by their lines."""
    return {each.line: each for each in read_comments(text)}
