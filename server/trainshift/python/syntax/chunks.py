"""Text -> top-level statements -> `ast`, cached by text; a text that does not parse is a value.

A chunk is a run of whole lines that holds one top-level statement (or several that share a line)
with the comments and blank lines below it.  Chunks are read once and kept by their text, so a later
edit re-reads only the chunks whose text changed.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from trainshift.python.source.source import Source
from trainshift.python.syntax.chunk_syntax import ChunkSyntax
from trainshift.python.syntax.collect import read_facts
from trainshift.python.syntax.slotted_ast import lean

# A line that may begin a top-level statement: not blank, indented, a comment, a closing
# bracket or the continuation of a compound statement.
_START = re.compile(r"^(?![ \t\f\r\n#)\]}]|(?:else|elif|except|finally)\b)(?=.)", re.MULTILINE)
_LONE_RETURN = re.compile(r"\r(?!\n)")
# More candidate lines than this in one statement (a long string, say) are left to the full parse.
_MOST_JOINED = 8
# New text of at most this many code points counts as an edit.
_MOST_EDITED = 12_000
_Parsed: TypeAlias = Callable[[str], list[ast.stmt]]


class ParseFailure(Struct, frozen=True):
    """A syntax error: a message with a 1-based line and column (code points)."""

    message: str
    line: int
    column: int


class Chunk(Struct, frozen=True):
    """Whole lines of a script: the offset, the text, and its parsed syntax."""

    offset: int
    text: str
    facts: ChunkSyntax

    def moved(self, distance: int) -> Chunk:
        """The same chunk, moved by some code points."""
        return Chunk(self.offset + distance, self.text, self.facts)


class ChunkCache:
    """The chunks of the last version of a script that could be parsed.

    Each place uses its own reading: equal texts at two places of one script have two.
    """

    def __init__(self, chunks: list[Chunk] | None = None) -> None:
        self.chunks = chunks or []


class _Readings:
    """Parsed chunks by their text, each used once."""

    def __init__(self, chunks: list[Chunk]) -> None:
        self._known: dict[str, list[ChunkSyntax]] = {}
        for chunk in chunks:
            self._known.setdefault(chunk.text, []).append(chunk.facts)

    def take(self, text: str) -> ChunkSyntax | None:
        """A reading of `text` from an earlier version of the script."""
        readings = self._known.get(text)
        return readings.pop() if readings else None


def parse(text: str, cache: ChunkCache | None = None, *, is_kept: bool = True) -> list[Chunk] | ParseFailure:
    """The chunks of `text` in order, or the syntax error.

    Chunks to keep take less memory, and slightly longer to read.
    """
    old = [] if cache is None else cache.chunks
    start = 0  # Everything before was already read, and is unchanged.
    try:
        first, start, last, end = _edited(text, old)
        known = _Readings(old[first:last])
        is_edit = bool(old) and end - start <= _MOST_EDITED
        middle = _cut(text[start:end], known, is_edit=is_edit) if cache is not None else None
        if middle is None:
            chunks = _from_tree(text, start, _Readings(old), _tree if is_kept else _plain_tree)
        else:
            chunks = [*old[:first], *(each.moved(start) for each in middle), *_tail(old[last:], end)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _diagnose(text, start)
    if cache is not None:
        cache.chunks = chunks
    return chunks


def _edited(text: str, old: list[Chunk]) -> tuple[int, int, int, int]:
    """The first old chunk to parse again, with its offset, and the first after it to keep."""
    first = at = 0
    while first < len(old) and text.startswith(old[first].text, at):
        at += len(old[first].text)
        first += 1
    if first:  # Its end may have been edited: the next line may belong to it now.
        first -= 1
        at = old[first].offset
    last, end = len(old), len(text)
    while last > first and text.endswith(old[last - 1].text, at, end):
        end -= len(old[last - 1].text)
        last -= 1
    while last < len(old) and not _begins_line(text, end):
        end += len(old[last].text)
        last += 1
    return first, at, last, end


def _begins_line(text: str, at: int) -> bool:
    before = text[at - 1 : at]
    return before == "\n" or not before or (before == "\r" and text[at : at + 1] != "\n")


def _tail(chunks: list[Chunk], start: int) -> list[Chunk]:
    """Consecutive chunks, moved to another offset."""
    if not chunks or chunks[0].offset == start:
        return chunks
    distance = start - chunks[0].offset
    return [chunk.moved(distance) for chunk in chunks]


def _cut(text: str, known: _Readings, *, is_edit: bool) -> list[Chunk] | None:
    """Cut the text into chunks at lines that may begin a statement; None if that is impossible.

    An edit (`is_edit`) is read quickly: it stays only until the next one, so its memory does not matter.
    """
    if not text:
        return []
    # `re` knows line feeds only; a lone carriage return ends a line too.
    marks = [match.start() for match in _START.finditer(_LONE_RETURN.sub("\n", text))]
    if not marks or marks[0] != 0:
        marks.insert(0, 0)
    marks.append(len(text))
    chunks: list[Chunk] = []
    at = 0
    while at < len(marks) - 1:
        for end in range(at + 1, min(at + 1 + _MOST_JOINED, len(marks))):
            piece = text[marks[at] : marks[end]]
            facts = known.take(piece) or _read(piece, _plain_tree if is_edit else _tree)
            if facts is not None:
                chunks.append(Chunk(marks[at], piece, facts))
                break
        else:
            return None
        at = end
    return chunks


def _from_tree(text: str, start: int, known: _Readings, parsed: _Parsed) -> list[Chunk]:
    """Chunks cut at the statements in the `ast` of the whole file.

    Errors from `start` on are found before the whole is read.
    """
    if start:
        parsed(text[start:])
    body = parsed(text)
    starts = Source(text).line_starts
    groups: list[tuple[int, list[ast.stmt]]] = [(0, [])]  # 0-based first line, statements
    last = 0  # 1-based last line of the statements so far
    for statement in body:
        first = min(node.lineno for node in (statement, *getattr(statement, "decorator_list", ())))
        if first > last and starts[first - 1] > 0:
            groups.append((first - 1, []))
        groups[-1][1].append(statement)
        last = max(last, statement.end_lineno or first)
    ends = [*(starts[line] for line, _ in groups[1:]), len(text)]
    chunks = []
    for (line, statements), end in zip(groups, ends, strict=True):
        piece = text[starts[line] : end]
        facts = known.take(piece) or read_facts(piece, statements, line)
        chunks.append(Chunk(starts[line], piece, facts))
    return chunks


def _read(piece: str, parsed: _Parsed) -> ChunkSyntax | None:
    try:
        return read_facts(piece, parsed(piece))
    except SyntaxError:
        return None


def _tree(text: str) -> list[ast.stmt]:
    return lean(_parsed(text)).body


def _plain_tree(text: str) -> list[ast.stmt]:
    return _parsed(text).body


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _diagnose(text: str, start: int) -> ParseFailure:
    """Return the syntax error of a text that is valid up to the offset `start`, where a statement begins."""
    null = text.find("\0")
    if null >= 0:
        return ParseFailure("a null byte", *Source(text).position(null))
    try:
        # Messages contain line numbers; the omitted lines are replaced by blank ones.
        _tree("\n" * Source(text).line_of(start) + text[start:])
    except SyntaxError as error:
        return ParseFailure(error.msg, error.lineno or 1, max(error.offset or 1, 1))
    except (ValueError, RecursionError, MemoryError):
        pass
    return ParseFailure("the code is nested too deeply to be read", 1, 1)
