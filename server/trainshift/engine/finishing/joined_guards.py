"""Merge neighbouring guards for rank 0, and put a guard into the test around it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from trainshift.engine.finishing.edited_text import Edited, Manner, row_of
from trainshift.python.rewrite.line_breaks import width
from trainshift.python.source.edit import Edit, composed
from trainshift.python.source.source import Source

_BLOCKS = ("body", "orelse", "finalbody")
_GUARD = re.compile(r"^[ \t]*if [\w.]+\.rank\(\) == 0:", re.MULTILINE)
_ELSE = re.compile(r"[ \t]*(else)[ \t]*:[ \t]*(?:#.*)?\Z")
_ROOT = re.compile(r"if ([\w.]+\.rank\(\) == 0):\s*\Z")


def joined_guards(edited: Edited, manner: Manner) -> Iterator[Edit]:
    """Yield edits that merge a guard with the one above it, if edits have created one of them."""
    if len(_GUARD.findall(edited.text)) < 2 or edited.tree is None:
        return
    for node in ast.walk(edited.tree):
        for name in _BLOCKS:
            block = getattr(node, name, None)
            for one, other in pairwise(block) if isinstance(block, list) else ():
                if isinstance(one, ast.If) and isinstance(other, ast.If):
                    yield from _joined(edited, one, other)


def _joined(edited: Edited, one: ast.If, other: ast.If) -> Iterator[Edit]:
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


def taken_up(edited: Edited, manner: Manner, pending: Sequence[Edit] = ()) -> Iterator[Edit]:
    """Yield edits that put a guard which is all that an ``if`` holds into the test of that one, and turn an
    ``else`` that holds only a guard into an ``elif``.

    The test must be as it was, and nothing left to be done below it: then it reads the same whatever was
    done first.
    """
    for outer, _, found in _taking(edited, manner):
        starts = edited.source.line_starts
        start = starts[outer.lineno - 1] + len(_indentation(edited.source, outer))
        end = edited.source.line_end(starts[(outer.end_lineno or outer.lineno) - 1])
        if not edited.is_pending(start, end, pending):
            yield from found


def taking_up(text: str, manner: Manner, apart: Sequence[int]) -> frozenset[tuple[int | None, bool]]:
    """The original places of each ``if`` that takes a guard up once all edits are made, each with whether its
    ``else`` does so.
    """
    edited = Edited(text, manner.every, apart)
    joined = sorted(joined_guards(edited, manner), key=lambda each: (each.start, each.end))
    edited = Edited(text, composed(manner.every, joined, len(text)), apart)
    return frozenset(
        (edited.place_of(outer), guard in outer.orelse) for outer, guard, _ in _taking(edited, manner)
    )


def guards_in(edited: Edited) -> Iterator[tuple[ast.If, ast.If]]:
    """Yield each ``if`` with each of the guards in its block, or in that of its ``else``."""
    for node in ast.walk(edited.tree) if edited.tree is not None else ():
        if isinstance(node, ast.If):
            guards = (each for each in (*node.body, *node.orelse) if isinstance(each, ast.If))
            yield from ((node, each) for each in guards if _header(edited.source, each))


def _taking(edited: Edited, manner: Manner) -> Iterator[tuple[ast.If, ast.If, list[Edit]]]:
    """Yield each ``if`` with a guard that is all it holds, or all its ``else`` holds, and the edits that make
    them one.
    """
    if edited.tree is None or not _GUARD.search(edited.text):
        return
    for outer, guard in guards_in(edited):
        header, found = _header(edited.source, guard), list[Edit]()
        if outer.body == [guard] and not outer.orelse:
            found = _in_one_test(edited, manner, outer, guard, header)
        elif outer.orelse == [guard] and not _is_guard(edited, outer.body):
            found = _in_one_branch(edited, outer, guard, header)
        if found:
            yield outer, guard, found


def _is_guard(edited: Edited, block: list[ast.stmt]) -> bool:
    """Return whether a block holds nothing but a guard: an ``else`` beside it reads better like it."""
    return len(block) == 1 and isinstance(block[0], ast.If) and bool(_header(edited.source, block[0]))


def _in_one_branch(edited: Edited, outer: ast.If, guard: ast.If, header: str) -> list[Edit]:
    """The edits that turn an ``else`` and the guard in it into an ``elif``, in order."""
    source, starts = edited.source, edited.source.line_starts
    row, end = guard.lineno - 2, source.line_end(starts[(outer.end_lineno or outer.lineno) - 1])
    opened = _ELSE.match(row_of(source, row))
    if (
        opened is None
        or any(_is_long_string(each) for each in ast.walk(guard))
        or not edited.is_changed(starts[outer.lineno - 1], end)
        or not edited.is_one(starts[outer.lineno - 1], end)
    ):
        return []
    start = starts[row] + opened.start(1)
    return [Edit(start, start + len(opened[1]), f"elif {header}"), *_lifted(source, guard)]


def _in_one_test(edited: Edited, manner: Manner, outer: ast.If, guard: ast.If, header: str) -> list[Edit]:
    """The edits that put a guard into the test around it, in order; none where that does not read well."""
    source, starts = edited.source, edited.source.line_starts
    row, end = outer.lineno - 1, source.line_end(starts[(outer.end_lineno or outer.lineno) - 1])
    said = row_of(source, row)
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
