"""The comments of a text by line."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Mapping


def comments_by_line(text: str) -> Mapping[int, tuple[int, str]]:
    """The comments of a text that is Python: by 1-based line the column, in code points, and the comment."""
    found: dict[int, tuple[int, str]] = {}
    if "#" not in text:
        return found
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            found[token.start[0]] = (token.start[1], token.string)
    return found
