"""Diff view: a diff for a terminal, with changed words marked, side by side on a wide one."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from trainshift.cli.terminal import Printer, Segment, visible, width_of

WIDE = 190
"""A terminal with this many columns has room for two files."""

DIFF_STYLES = {"-": "red", "+": "green", "@": "cyan", "\\": "dim"}
_MARKED = {"-": "bold reverse red", "+": "bold reverse green"}
_WORDS = re.compile(r"\w+|\s+|.")
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)")
# Lines with less in common are shown as two; longer lines are not compared.
_ALIKE, _LONGEST = 0.5, 400
_SEPARATOR = " │ "
_NUMBER = 5

_Line = tuple[Segment, ...]


def show(printer: Printer, diff: bytes, encoding: str) -> None:
    """Show a diff: decoded, coloured, without the carriage returns and control characters."""
    header, body = _lines(diff, encoding)
    for text in header:
        printer.line((text, "bold"))
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    if columns >= WIDE:
        for row in _side_by_side(body, (columns - len(_SEPARATOR)) // 2 - _NUMBER):
            printer.line(*row)
        return
    for block in _blocks(body):
        for line in _in_turn(block):
            printer.line(*line)


def _lines(diff: bytes, encoding: str) -> tuple[list[str], list[str]]:
    """The two lines of the header, and those of the hunks."""
    raw = diff.split(b"\n")[:-1]
    header = [visible(os.fsdecode(each), keep_tabs=True).rstrip("\t") for each in raw[:2]]
    texts = (each.decode(encoding, "replace").removesuffix("\r") for each in raw[2:])
    return header, [visible(each, keep_tabs=True) for each in texts]


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield unchanged lines one by one, and the removed and added lines of a change together."""
    block: list[str] = []
    for line in lines:
        mark = line[:1]
        is_change = mark in ("-", "+") or (mark == "\\" and bool(block))
        # A deletion comes before its insertion; a deletion after an insertion begins the next change.
        if block and (not is_change or (mark == "-" and any(each.startswith("+") for each in block))):
            yield block
            block = []
        if is_change:
            block.append(line)
        else:
            yield [line]
    if block:
        yield block


def _in_turn(block: Sequence[str]) -> Iterator[_Line]:
    """The lines of a block, one below the other."""
    marked: dict[int, _Line] = {}
    for old, new in _pairs(block):
        marked[old], marked[new] = _compared(block[old], block[new])
    for index, line in enumerate(block):
        yield marked.get(index, ((line, DIFF_STYLES.get(line[:1], "")),))


def _pairs(block: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of an old line and its new form in a change, in order."""
    old = [index for index, line in enumerate(block) if line.startswith("-")]
    new = [index for index, line in enumerate(block) if line.startswith("+")]
    first = 0
    for index in old:
        for at in range(first, len(new)):
            if _are_alike(block[index], block[new[at]]):
                yield index, new[at]
                first = at + 1
                break


def _are_alike(old: str, new: str) -> bool:
    if max(len(old), len(new)) > _LONGEST or not old[1:].strip() or not new[1:].strip():
        return False
    matcher = SequenceMatcher(None, old[1:].strip(), new[1:].strip(), autojunk=False)
    return matcher.real_quick_ratio() > _ALIKE and matcher.quick_ratio() > _ALIKE and matcher.ratio() > _ALIKE


def _compared(old: str, new: str) -> tuple[_Line, _Line]:
    """Two lines with the words that differ marked, indentation apart."""
    words = _WORDS.findall(old[1:]), _WORDS.findall(new[1:])
    left: list[Segment] = [("-", DIFF_STYLES["-"])]
    right: list[Segment] = [("+", DIFF_STYLES["+"])]
    for is_same, (i1, i2), (j1, j2) in _parts(*words):
        for side, given, first, last, mark in ((left, words[0], i1, i2, "-"), (right, words[1], j1, j2, "+")):
            text = "".join(given[first:last])
            blank = text[: len(text) - len(text.lstrip())] if first == 0 else ""
            side.append((blank, DIFF_STYLES[mark]))
            side.append((text[len(blank) :], (DIFF_STYLES if is_same else _MARKED)[mark]))
    return tuple(each for each in left if each[0]), tuple(each for each in right if each[0])


def _parts(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[bool, tuple[int, int], tuple[int, int]]]:
    """Yield the parts of two lines in order: whether they are the same, and where they are.

    The words that both end with are the same, so that of `f(x)` and `f(g(x))` one bracket is new, not two.
    """
    most = min(len(old), len(new))
    end = next((each for each in range(most) if old[-1 - each] != new[-1 - each]), most)
    heads = old[: len(old) - end], new[: len(new) - end]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, *heads, autojunk=False).get_opcodes():
        yield tag == "equal", (i1, i2), (j1, j2)
    yield True, (len(heads[0]), len(old)), (len(heads[1]), len(new))


def _side_by_side(lines: Sequence[str], width: int) -> Iterator[_Line]:
    """The lines of the old file on the left, those of the new one on the right, `width` cells each."""
    at = [0, 0]
    for block in _blocks(lines):
        head = block[0]
        found = _HUNK.match(head)
        if found is not None:
            at = [int(found[1]), int(found[2])]
            yield ((head, DIFF_STYLES["@"]),)
        elif head[:1] in ("-", "+"):
            for left, right in _rows(block):
                yield from _beside(left, right, at, width)
        elif head[:1] == " ":
            plain: _Line = ((head[1:], ""),)
            yield from _beside(plain, plain, at, width)


def _rows(block: Sequence[str]) -> Iterator[tuple[_Line | None, _Line | None]]:
    """Pair the lines of a change: a line and its new form share a row."""
    pairs = [*_pairs(block)]
    old = [index for index, line in enumerate(block) if line.startswith("-")]
    new = [index for index, line in enumerate(block) if line.startswith("+")]
    for one, other in [*pairs, (len(block), len(block))]:
        before = [((block[index][1:], DIFF_STYLES["-"]),) for index in old if index < one]
        after = [((block[index][1:], DIFF_STYLES["+"]),) for index in new if index < other]
        yield from zip_longest(before, after)
        if one < len(block):
            left, right = _compared(block[one], block[other])
            yield left[1:], right[1:]
        old = [index for index in old if index > one]
        new = [index for index in new if index > other]


def _beside(left: _Line | None, right: _Line | None, at: list[int], width: int) -> Iterator[_Line]:
    """Yield a row of two lines with their numbers, and further rows if one is too long for its half."""
    halves = []
    for side, line in enumerate((left, right)):
        number = f"{at[side]:>{_NUMBER - 1}} " if line is not None else " " * _NUMBER
        at[side] += line is not None
        halves.append((number, [*_cut(line or (), width)]))
    for row in range(max(len(halves[0][1]), len(halves[1][1]))):
        segments: list[Segment] = []
        for side, (number, parts) in enumerate(halves):
            part = parts[row] if row < len(parts) else ()
            segments += [(_SEPARATOR, "dim")] if side else []
            segments += [(number if row == 0 else " " * _NUMBER, "dim"), *part]
            if not side:
                segments.append((" " * (width - sum(width_of(text) for text, _ in part)), ""))
        yield tuple(segments)


def _cut(line: _Line, width: int) -> Iterator[_Line]:
    """Cut a line into parts of at most `width` cells; at least one part."""
    part: list[Segment] = []
    left = width
    for text, style in line:
        piece = ""
        for char in text.replace("\t", "    "):
            if width_of(char) > left:
                yield (*part, (piece, style))
                part, piece, left = [], "", width
            piece += char
            left -= width_of(char)
        if piece:
            part.append((piece, style))
    yield tuple(part)
