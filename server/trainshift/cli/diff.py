"""Unified diffs of bytes that `patch` and `git apply` accept, computed fast for long files; also coloured."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from trainshift.cli.diff_view import show
from trainshift.cli.terminal import Printer

STANDARD_INPUT_NAME = "<stdin>"

_CONTEXT = 3
_NO_NEWLINE = b"\n\\ No newline at end of file\n"
# The number of consecutive equal lines that count as being in step again, and the number of lines to search
# for them. Short runs are trusted only nearby. The far search comes last: if it fails, the rest is one
# change.
_RESYNC_STEPS = ((3, 24), (2, 12), (1, 6), (3, 2000))
_FINE_LIMIT = 4_000_000

_Change = tuple[int, int, int, int]


def unified_diff(old: bytes, new: bytes, path: str, part: str = "") -> bytes:
    """The diff from `old` to `new`, two contents of the file at `path`; empty if they are equal.

    `part` is put behind the name of the file, of which they are no more than a part.

    Lines end at a line feed only, as they do for `patch`, so carriage returns are part of the lines.
    """
    if old == new:
        return b""
    old_lines, new_lines = _lines(old), _lines(new)
    name = header_name(path) + part
    parts = [b"--- " + _quoted("a/" + name), b"\n+++ " + _quoted("b/" + name), b"\n"]
    for hunk in _hunks(list(_changes(old_lines, new_lines))):
        parts.extend(_render(hunk, old_lines, new_lines))
    return b"".join(parts)


def header_name(path: str) -> str:
    """`path` as a diff names it: relative to the current directory, or from the root when outside it."""
    if path == STANDARD_INPUT_NAME:
        return path
    absolute = os.path.abspath(path)
    if not lies_outside(path):
        absolute = os.path.relpath(absolute, os.getcwd())
    return os.path.splitdrive(absolute)[1].replace(os.sep, "/").lstrip("/")


def lies_outside(path: str) -> bool:
    """Return True if a file lies outside of the current directory, where `patch` follows no name."""
    below = os.path.join(os.getcwd(), "")
    return path != STANDARD_INPUT_NAME and not os.path.abspath(path).startswith(below)


def root() -> str:
    """The folder that names of files outside of the current directory begin at."""
    return os.path.abspath(os.sep)


def _lines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _quoted(name: str) -> bytes:
    """A file name in a header: quoted as in C if needed, with a tab after spaces, as Git does."""
    raw = os.fsencode(name)
    if any(byte < 32 or byte in b'"\\\x7f' for byte in raw):
        return b'"' + b"".join(_escaped(byte) for byte in raw) + b'"'
    return raw + b"\t" if b" " in raw else raw


def _escaped(byte: int) -> bytes:
    if byte in b'"\\':
        return b"\\" + bytes([byte])
    return b"\\%03o" % byte if byte < 32 or byte == 127 else bytes([byte])


def _changes(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[_Change]:
    """The differing ranges (old start, old end, new start, new end), in order.

    The edits are local, so both files are walked side by side and only the short stretch between two
    places where they are in step is compared in full: the time grows with the length, not its square.
    """
    at_old = at_new = 0
    while True:
        while at_old < len(old) and at_new < len(new) and old[at_old] == new[at_new]:
            at_old += 1
            at_new += 1
        if at_old == len(old) and at_new == len(new):
            return
        next_old, next_new = _next_step(old, new, at_old, at_new)
        yield from _fine_changes(old, new, (at_old, next_old, at_new, next_new))
        at_old, at_new = next_old, next_new


def _next_step(old: Sequence[bytes], new: Sequence[bytes], at_old: int, at_new: int) -> tuple[int, int]:
    """Return the next indices from which both files are equal again; their ends if there are none."""
    for run, reach in _RESYNC_STEPS:
        for distance in range(1, reach):
            first = max(0, distance - (len(new) - at_new))
            last = min(distance, len(old) - at_old)
            for ahead in range(first, last + 1):
                in_old, in_new = at_old + ahead, at_new + distance - ahead
                if old[in_old : in_old + 1] != new[in_new : in_new + 1]:
                    continue
                common = old[in_old : in_old + run]
                if common == new[in_new : in_new + run] and (run > 2 or any(map(bytes.strip, common))):
                    return in_old, in_new
    return len(old), len(new)


def _fine_changes(old: Sequence[bytes], new: Sequence[bytes], change: _Change) -> Iterator[_Change]:
    old_start, old_end, new_start, new_end = change
    if (old_end - old_start) * (new_end - new_start) > _FINE_LIMIT:
        yield change
        return
    matcher = SequenceMatcher(None, old[old_start:old_end], new[new_start:new_end], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            yield old_start + i1, old_start + i2, new_start + j1, new_start + j2


def _hunks(changes: list[_Change]) -> Iterator[list[_Change]]:
    """`changes` in groups whose context lines would touch or overlap."""
    hunk: list[_Change] = []
    for change in changes:
        if hunk and change[0] - hunk[-1][1] > 2 * _CONTEXT:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk


def _render(hunk: list[_Change], old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[bytes]:
    before = min(_CONTEXT, hunk[0][0])
    after = min(_CONTEXT, len(old) - hunk[-1][1])
    old_range = _range(hunk[0][0] - before, hunk[-1][1] + after)
    new_range = _range(hunk[0][2] - before, hunk[-1][3] + after)
    yield b"@@ -%b +%b @@\n" % (old_range, new_range)
    at = hunk[0][0] - before
    for old_start, old_end, new_start, new_end in hunk:
        yield from _marked(b" ", old[at:old_start])
        yield from _marked(b"-", old[old_start:old_end])
        yield from _marked(b"+", new[new_start:new_end])
        at = old_end
    yield from _marked(b" ", old[at : at + after])


def _marked(mark: bytes, lines: Sequence[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield mark + (line if line.endswith(b"\n") else line + _NO_NEWLINE)


def _range(start: int, end: int) -> bytes:
    length = end - start
    if length == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + 1 if length else start, length)


def is_text(colour: bool) -> bool:
    """Return whether diffs on standard output are for people rather than exact bytes."""
    return colour or sys.stdout.isatty()


def print_diffs(diffs: Sequence[bytes], encoding: str, colour: bool) -> None:
    """Show diffs on standard output."""
    sys.stdout.flush()
    for diff in diffs:
        if is_text(colour):
            show(Printer(sys.stdout, colour), diff, encoding)
        else:
            sys.stdout.buffer.write(diff)
    sys.stdout.flush()


def decoded(diff: bytes, encoding: str) -> str:
    """A diff as text; the two header lines are in the system's encoding, the rest in the file's."""
    start = diff.find(b"\n", diff.find(b"\n") + 1) + 1
    return os.fsdecode(diff[:start]) + diff[start:].decode(encoding, "replace")
