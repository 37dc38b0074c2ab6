"""Tidy the edited text as a person would: neighbouring guards are merged, and long lines are broken.

These are edits of the edited text, combined with the edits that led to it.  They depend only on that text, so
changes applied one after another still end in the same text as all of them at once (spec.md 4).
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.engine.compiling import compiles
from trainshift.python.lazy import cached_property
from trainshift.python.names.script import Script
from trainshift.python.rewrite.line_breaks import LogicalLine, logical_lines, relaid, width
from trainshift.python.source.comments import comments_by_line
from trainshift.python.source.edit import Edit, apply, composed
from trainshift.python.source.source import Source, Span
from trainshift.python.syntax.chunk_syntax import Statement

_USUAL, _MOST = 88, 120
"""The longest line if the project does not set one, and if lines of the file are longer."""
_BLOCKS = ("body", "orelse", "finalbody")
_GUARD = re.compile(r"^[ \t]*if [\w.]+\.rank\(\) == 0:", re.MULTILINE)
_ROOT = re.compile(r"if ([\w.]+\.rank\(\) == 0):\s*\Z")


@dataclass(frozen=True)
class Manner:
    """The format of a file: one level of its indentation, and the longest line allowed."""

    unit: str
    longest: int
    every: tuple[Edit, ...] = ()
    """All edits of a conversion; some may be left for later."""


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


class _Edited:
    """A text after edits, with the spans that the edits have written."""

    def __init__(self, text: str, edits: Sequence[Edit], apart: Sequence[int]) -> None:
        self.before = text
        self.source = Source(apply(text, edits))
        self.written: list[Span] = []
        self.apart: list[int] = []
        self._olds: list[int] = []
        grown, starts = 0, [*apart][::-1]
        for edit in edits:
            while starts and starts[-1] <= edit.start:
                self.apart.append(starts.pop() + grown)
            start = edit.start + grown
            self.written.append(Span(start, start + len(edit.text)))
            self._olds.append(edit.end)
            grown += len(edit.text) - (edit.end - edit.start)
        self.apart += [each + grown for each in reversed(starts)]

    def origin(self, start: int, end: int) -> int | None:
        """The original offset of the first unedited code point of a span; None if edits wrote all of it."""
        index = bisect_right(self.written, start, key=lambda each: each.start) - 1
        while index >= 0 and index < len(self.written) and self.written[index].end > start:
            start = self.written[index].end
            while index + 1 < len(self.written) and self.written[index + 1].start <= start:
                index += 1
        if start >= end:
            return None
        return start if index < 0 else start - self.written[index].end + self._olds[index]

    @cached_property
    def source_before(self) -> Source:
        return Source(self.before)

    @cached_property
    def lines_before(self) -> list[LogicalLine]:
        return logical_lines(self.before)

    @property
    def text(self) -> str:
        return self.source.text

    def is_written(self, offset: int) -> bool:
        """Return whether edits have put a code point there."""
        index = bisect_right(self.written, offset, key=lambda each: each.start) - 1
        return any(span.start <= offset < span.end for span in self.written[max(index - 1, 0) : index + 1])

    def is_changed(self, start: int, end: int) -> bool:
        """Return whether edits have written something from one offset to another, or taken it out."""
        return any(each.start <= end and start <= each.end for each in self.written)

    def place_of(self, node: ast.stmt) -> int | None:
        """The original offset of a statement; None if edits wrote its beginning."""
        start = self.source.line_starts[node.lineno - 1]
        return self.origin(start + len(self.source.indentation(start)), self.source.line_end(start))

    def is_pending(self, start: int, end: int, pending: Sequence[Edit]) -> bool:
        """Return whether edits are still to be made from one offset to another."""
        first, last = self._old(start), self._old(end)
        return any(each.start <= last and first <= each.end for each in pending)

    def _old(self, offset: int) -> int:
        """The original offset of one in the edited text; the end of what an edit has replaced by it."""
        index = bisect_right(self.written, offset, key=lambda each: each.start) - 1
        if index < 0:
            return offset
        return max(offset - self.written[index].end, 0) + self._olds[index]

    def is_one(self, start: int, end: int) -> bool:
        """Return whether a span lies in one part of the text: a notebook's cells are separate."""
        return bisect_right(self.apart, start) == bisect_right(self.apart, end)

    @cached_property
    def tree(self) -> ast.Module | None:
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError):
            return None


def finished(
    text: str, edits: tuple[Edit, ...], manner: Manner, apart: Sequence[int] = ()
) -> tuple[Edit, ...]:
    """The edits, with further ones that tidy their result, all as edits of the original text.

    No edit joins text across one of the offsets in `apart`.
    """
    pending = [*{*manner.every}.difference(edits)]
    unfinished = _taking_up(text, manner, apart) if pending else frozenset()
    for step in (
        _joined_guards,
        partial(_taken_up, pending=pending),
        partial(_laid_out, unfinished=unfinished),
    ):
        edited = _Edited(text, edits, apart)
        more = sorted(step(edited, manner), key=lambda each: (each.start, each.end))
        if more:
            edits = composed(edits, more, len(text))
    return tuple(each for each in edits if text[each.start : each.end] != each.text)


def laid_out(
    script: Script, edits: tuple[Edit, ...], line_length: int = 0, apart: Sequence[int] = ()
) -> tuple[Edit, ...]:
    """Finish edits that fix findings of a script, like those of a conversion.

    `length` is the project's line length, or 0 if unknown.  A text that is not valid Python stays unchanged.
    """
    if not compiles(apply(script.source.text, edits)):
        return edits
    modules = [
        name
        for name, bindings in script.module_bindings.items()
        if any(each.full_name.partition(".")[0] == "horovod" for each in bindings)
    ]
    unit = Layout(Program(script)).unit
    return finished(
        script.source.text,
        edits,
        Manner(unit, line_length or longest_line(script, edits, modules)),
        apart,
    )


# Guards


def _joined_guards(edited: _Edited, manner: Manner) -> Iterator[Edit]:
    """Yield edits that merge a guard with the one above it, if edits have created one of them."""
    if len(_GUARD.findall(edited.text)) < 2 or edited.tree is None:
        return
    for node in ast.walk(edited.tree):
        for name in _BLOCKS:
            block = getattr(node, name, None)
            for one, other in pairwise(block) if isinstance(block, list) else ():
                if isinstance(one, ast.If) and isinstance(other, ast.If):
                    yield from _joined(edited, one, other)


def _joined(edited: _Edited, one: ast.If, other: ast.If) -> Iterator[Edit]:
    source, starts = edited.source, edited.source.line_starts
    header = _header(source, one)
    first, second = starts[one.lineno - 1], starts[other.lineno - 1]
    inner, outer = _indentation(source, one.body[0]), _indentation(source, other)
    if not header or header != _header(source, other) or inner != _indentation(source, other.body[0]):
        return
    if not edited.is_one(first, second) or not any(
        edited.is_written(each + len(outer)) for each in (first, second)
    ):
        return
    ends = one.end_lineno or one.lineno
    between = [
        (start, source.text[start : source.line_end(start)]) for start in starts[ends : other.lineno - 1]
    ]
    if any(line.strip() and not line.lstrip().startswith("#") for _, line in between):
        return
    for start, line in between:
        if line.strip() and not line.startswith(inner):
            yield Edit(start, start + len(line) - len(line.lstrip()), inner)
    yield Edit(second, source.next_line(second), "")


def _indentation(source: Source, node: ast.stmt) -> str:
    return source.indentation(source.line_starts[node.lineno - 1])


def _header(source: Source, node: ast.If) -> str:
    """The test of a guard on a row of its own; "" for any other guard."""
    if node.orelse or node.body[0].lineno == node.lineno:
        return ""
    start = source.line_starts[node.lineno - 1]
    found = _ROOT.fullmatch(source.text[start : source.line_end(start)].lstrip(" \t"))
    return found[1] if found else ""


def _taken_up(edited: _Edited, manner: Manner, pending: Sequence[Edit] = ()) -> Iterator[Edit]:
    """Yield edits that put a guard which is all that an ``if`` holds into the test of that one.

    That test must be as it was, and nothing left to be done below it: then it reads the same whatever was
    done first.
    """
    for outer, guard, header in _guarding(edited):
        found = _in_one_test(edited, manner, outer, guard, header)
        starts = edited.source.line_starts
        start = starts[outer.lineno - 1] + len(_indentation(edited.source, outer))
        end = edited.source.line_end(starts[(outer.end_lineno or outer.lineno) - 1])
        if found and not edited.is_pending(start, end, pending):
            yield from found


def _taking_up(text: str, manner: Manner, apart: Sequence[int]) -> frozenset[int | None]:
    """The original places of each ``if`` that takes a guard up once all edits are made."""
    edited = _Edited(text, manner.every, apart)
    joined = sorted(_joined_guards(edited, manner), key=lambda each: (each.start, each.end))
    edited = _Edited(text, composed(manner.every, joined, len(text)), apart)
    return frozenset(
        edited.place_of(outer)
        for outer, guard, header in _guarding(edited)
        if _in_one_test(edited, manner, outer, guard, header)
    )


def _guards_in(edited: _Edited) -> Iterator[tuple[ast.If, ast.If]]:
    """Yield each ``if`` with each of the guards in its block."""
    for node in ast.walk(edited.tree) if edited.tree is not None else ():
        if isinstance(node, ast.If):
            guards = (each for each in node.body if isinstance(each, ast.If))
            yield from ((node, each) for each in guards if _header(edited.source, each))


def _guarding(edited: _Edited) -> Iterator[tuple[ast.If, ast.If, str]]:
    """Yield each ``if`` that holds nothing but a guard, with that and its test."""
    if edited.tree is None or not _GUARD.search(edited.text):
        return
    for outer, guard in _guards_in(edited):
        if not outer.orelse and len(outer.body) == 1:
            yield outer, guard, _header(edited.source, guard)


def _in_one_test(edited: _Edited, manner: Manner, outer: ast.If, guard: ast.If, header: str) -> list[Edit]:
    """The edits that put a guard into the test around it, in order; none where that does not read well."""
    source, starts = edited.source, edited.source.line_starts
    row, end = outer.lineno - 1, source.line_end(starts[(outer.end_lineno or outer.lineno) - 1])
    said = _row(source, row)
    first, at, after = (
        len(said.encode()[:column].decode())
        for column in (outer.col_offset, outer.test.col_offset, outer.test.end_col_offset or 0)
    )
    closed = re.compile(r"[ \t)]*(?=:)").match(said, after)
    place = len(said[: closed.end()].rstrip()) if closed else 0
    opening, closing = ("", "") if _binds(outer.test) or said[at - 1] == "(" else ("(", ")")
    new = f"{said[:at]}{opening}{said[at:place]}{closing} and {header}{said[place:]}"
    module = header.partition(".")[0]
    if (
        outer.test.end_lineno != outer.lineno
        or guard.lineno == outer.lineno
        or not place
        or width(new) > manner.longest
        or re.search(rf"\b({module}|__name__)\b", said[at:after])
        or any(_is_long_string(each) for each in ast.walk(guard))
        or not edited.is_changed(starts[row] + first, end)
        or edited.is_changed(starts[row] + at, starts[row] + after)
        or not edited.is_one(starts[row], end)
    ):
        return []
    return [
        *([Edit(starts[row] + at, starts[row] + at, opening)] if opening else []),
        Edit(starts[row] + place, starts[row] + place, f"{closing} and {header}"),
        *_lifted(source, guard),
    ]


def _lifted(source: Source, guard: ast.If) -> Iterator[Edit]:
    """Yield edits that take the test of a guard away, and its block one level to the left."""
    indent, deep = _indentation(source, guard), _indentation(source, guard.body[0])
    rows = [*source.line_starts[guard.lineno - 1 : guard.end_lineno]]
    if source.text.startswith(deep, rows[1]):
        yield Edit(rows[0] + len(indent), rows[1] + len(deep), "")
        del rows[1]
    else:
        yield Edit(rows[0], rows[1], "")
    for start in rows[1:]:
        if source.text.startswith(deep[len(indent) :], start):
            yield Edit(start, start + len(deep) - len(indent), "")


def _binds(test: ast.expr) -> bool:
    """Return whether a test needs no parentheses before ``and``."""
    loose = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)
    return not loose and not isinstance(test, ast.IfExp | ast.Lambda | ast.NamedExpr)


def _is_long_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno


# Lines


def _laid_out(edited: _Edited, manner: Manner, unfinished: Collection[int | None] = ()) -> Iterator[Edit]:
    """Edits that break the lines that edits have made too long.

    A statement that was formatted like black is formatted like black again; of any other statement, only long
    rows with whole elements are broken.  The guards in the `unfinished` tests will go later, and their blocks
    move to the left.
    """
    source = edited.source
    lifted: set[int] = set()
    for outer, guard in _guards_in(edited) if unfinished else ():
        if edited.place_of(outer) in unfinished:
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
        manner = wider if line.first in lifted else usual
        long = [row for row in rows if _width(source, row) > manner.longest]
        alone: list[Edit | None] = [None]
        if not _was_laid_out(edited, line, manner):
            if not long:
                continue
            alone = [_row_alone(edited, line, row, manner) for row in long]
        kept = [each for each in alone if each is not None]
        if len(kept) < len(alone):
            kept = [*filter(None, [_broken(source, line.start, line.end, manner)])]
        yield from kept


def _was_laid_out(edited: _Edited, line: LogicalLine, manner: Manner) -> bool:
    """Return whether a statement was formatted like black before the edits, or is new."""
    at = edited.origin(line.start, line.end)
    if at is None:
        return True
    index = bisect_right(edited.lines_before, at, key=lambda each: each.start) - 1
    if index < 0 or at >= edited.lines_before[index].end:
        return False
    old = edited.lines_before[index]
    return _broken(edited.source_before, old.start, old.end, manner) is None


def _written_rows(edited: _Edited) -> Iterator[int]:
    """The rows, in order, that edits have written: those that did not exist before."""
    done = -1
    before = set(edited.before.splitlines())
    for span in edited.written:
        if span.end == span.start:
            continue
        first, last = edited.source.line_of(span.start), edited.source.line_of(span.end)
        yield from (
            row for row in range(max(first, done + 1), last + 1) if _row(edited.source, row) not in before
        )
        done = max(done, last)


def _row(source: Source, row: int) -> str:
    start = source.line_starts[row]
    return source.text[start : source.line_end(start)]


def _width(source: Source, row: int) -> int:
    return width(_row(source, row))


def _row_alone(edited: _Edited, line: LogicalLine, row: int, manner: Manner) -> Edit | None:
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
