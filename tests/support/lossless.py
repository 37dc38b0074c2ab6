"""The parts of a text that no rewrite may lose."""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable

from trainshift.python.source.edit import Edit, apply
from trainshift.python.source.source import BOM


def assert_lossless(before: str, edits: Iterable[Edit], after: str, where: str) -> None:
    """Assert that every code point outside the edits is in the result, in order, and so is every comment."""
    edits = tuple(edits)
    assert apply(before, edits) == after, where
    at = end = 0
    for edit in edits:
        kept = before[end : edit.start]
        assert after[at : at + len(kept)] == kept, where
        at += len(kept) + len(edit.text)
        end = edit.end
    assert after[at:] == before[end:], where
    assert comments(before) <= comments(after), where
    assert blank_lines(before) <= blank_lines(after), where
    if "\r\n" in before and "\n" not in before.replace("\r\n", ""):
        assert "\n" not in after.replace("\r\n", ""), where
    assert after.endswith(("\n", "\r")) or not before.endswith(("\n", "\r")), where


def comments(text: str) -> Counter[str]:
    """The comments of a text, with their numbers; one line may end with two."""
    lines = io.StringIO(text.removeprefix(BOM), newline="").readline
    found = (each.string for each in tokenize.generate_tokens(lines) if each.type == tokenize.COMMENT)
    return Counter(each for comment in found for each in re.split(r" {2}(?=#)", comment))


def blank_lines(text: str) -> int:
    """The number of blank lines in a text."""
    return sum(1 for line in text.split("\n") if not line.strip())
