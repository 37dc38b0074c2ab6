"""Break the lines that edits have made too long, as black breaks them."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from trainshift.engine.finishing.edited_text import Edited, Manner, row_of
from trainshift.engine.finishing.joined_guards import guards_in
from trainshift.python.names.script import Script
from trainshift.python.rewrite.line_breaks import LogicalLine, logical_lines, relaid, width
from trainshift.python.source.comments import comments_by_line
from trainshift.python.source.edit import Edit
from trainshift.python.source.source import Source, Span
from trainshift.python.syntax.chunk_syntax import Statement

_USUAL, _MOST = 88, 120
"""The longest line if the project does not set one, and if lines of the file are longer."""


def longest_line(script: Script, changed: Sequence[Edit], modules: Collection[str]) -> int:
    """The longest line of a file that the author could have broken, but did not; between 88 and 120.

    Changed statements do not count, so that successive changes find the same length: those that edits have
    `changed`, and those that name one of Horovod's `modules`.
    """
    source = script.source
    found = _USUAL
    if all(_width(source, row) <= found for row in range(len(source.line_starts))):
        return found
    for statement in script.statements:
        span = script.header_span(statement) if statement.branches else script.statement_span(statement)
        rows = range(source.line_of(span.start), source.line_of(span.end) + 1)
        columns = max(_width(source, row) for row in rows)
        if columns <= found or any(_changes(each, span, source) for each in changed):
            continue
        broken = relaid(source.text[span.start : span.end], source.indentation(span.start), "    ", _USUAL)
        could_be = broken is not None and broken.count("\n") + 1 > len(rows)
        if could_be and not _names(statement, modules) and not any(map(_is_guard, statement.ancestors())):
            found = columns
    return min(found, _MOST)


def _changes(edit: Edit, span: Span, source: Source) -> bool:
    """Return whether an edit changes the text in a span: lines above or below it change nothing."""
    above = edit.end == span.start and edit.text.endswith(f"\n{source.indentation(span.start)}")
    below = edit.start == span.end and edit.text.startswith(("\n", "\r"))
    is_beside = edit.start == edit.end and (above or below)
    return edit.start <= span.end and span.start <= edit.end and not is_beside


def _names(statement: Statement, modules: Collection[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in modules for part in statement.own_parts())


def _is_guard(statement: Statement) -> bool:
    """Return whether the test of an ``if`` asks for the rank, which has moved its block."""
    return isinstance(statement.node, ast.If) and any(
        isinstance(part, ast.Attribute) and part.attr == "rank" for part in statement.own_parts()
    )


def broken_lines(
    edited: Edited,
    manner: Manner,
    unfinished: Collection[tuple[int | None, bool]] = (),
    unnamed: Collection[int | None] = (),
    named: Collection[int | None] = (),
) -> Iterator[Edit]:
    """Edits that break the lines that edits have made too long.

    A statement that was formatted like black is formatted like black again; of any other statement, only long
    rows with whole elements are broken.  The guards in the `unfinished` tests will go later, and their blocks
    move to the left.  A statement whose list is `unnamed` is laid out once it
    is `named`, and then as a whole.
    """
    source = edited.source
    lifted: set[int] = set()
    for outer, guard in guards_in(edited) if unfinished else ():
        if (edited.place_of(outer), guard in outer.orelse) in unfinished:
            lifted.update(range(guard.lineno, guard.end_lineno or guard.lineno))
    usual, wider = manner, replace(manner, longest=manner.longest + width(manner.unit))
    by_line: dict[int, list[int]] = {}
    lines = logical_lines(edited.text)
    starts = [each.first for each in lines]
    for row in _written_rows(edited):
        index = bisect_right(starts, row) - 1
        if index >= 0 and row <= lines[index].last:
            by_line.setdefault(index, []).append(row)
    for index, rows in by_line.items():
        line = lines[index]
        place = edited.origin(line.start, source.line_end(line.start)) if unnamed or named else None
        if place is not None and place in unnamed:
            continue
        if place is not None and place in named:
            rows = [*range(line.first, line.last + 1)]
        manner = wider if line.first in lifted else usual
        long = [row for row in rows if _width(source, row) > manner.longest]
        alone: list[Edit | None] = [None]
        if not _wasbroken_lines(edited, line, manner):
            if not long:
                continue
            alone = [_row_alone(edited, line, row, manner) for row in long]
        kept = [each for each in alone if each is not None]
        if len(kept) < len(alone):
            kept = [*filter(None, [_broken(source, line.start, line.end, manner)])]
        yield from kept


def _wasbroken_lines(edited: Edited, line: LogicalLine, manner: Manner) -> bool:
    """Return whether a statement was formatted like black before the edits, or is new."""
    at = edited.origin(line.start, line.end)
    if at is None:
        return True
    index = bisect_right(edited.lines_before, at, key=lambda each: each.start) - 1
    if index < 0 or at >= edited.lines_before[index].end:
        return False
    old = edited.lines_before[index]
    return _broken(edited.source_before, old.start, old.end, manner) is None


def _written_rows(edited: Edited) -> Iterator[int]:
    """The rows, in order, that edits have written: those that did not exist before."""
    done = -1
    before = set(edited.before.splitlines())
    for span in edited.written:
        if span.end == span.start:
            continue
        first, last = edited.source.line_of(span.start), edited.source.line_of(span.end)
        yield from (
            row for row in range(max(first, done + 1), last + 1) if row_of(edited.source, row) not in before
        )
        done = max(done, last)


def _width(source: Source, row: int) -> int:
    return width(row_of(source, row))


def _row_alone(edited: Edited, line: LogicalLine, row: int, manner: Manner) -> Edit | None:
    """Break a row by itself, if it holds whole elements between brackets."""
    if not line.holds_elements(row):
        return None
    source = edited.source
    start = source.line_starts[row]
    return _broken(source, start, source.line_end(start), manner, in_brackets=True)


def _broken(
    source: Source, start: int, end: int, manner: Manner, *, in_brackets: bool = False
) -> Edit | None:
    """The edit that formats a span like black; None if it is formatted already, or cannot be parsed."""
    indent = source.indentation(start)
    start = source.line_start(start) + len(indent)
    code = source.text[start:end]
    new = relaid(code, indent, manner.unit, manner.longest, source.newline, in_brackets=in_brackets)
    if new is None or new == code or _comments(new) != _comments(code):
        return None
    same = _alike(code, new)
    tail = _alike(code[same:][::-1], new[same:][::-1])
    return Edit(start + same, end - tail, new[same : len(new) - tail])


def _comments(code: str) -> list[str]:
    """The comments of a span, in order; one line may have two after a change."""
    found = comments_by_line(code)
    return [each for line in sorted(found) for each in re.split(r" {2,}(?=#)", found[line].text)]


def _alike(one: str, other: str) -> int:
    """The length of the common prefix of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))
