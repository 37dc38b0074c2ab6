"""Text -> top-level statements -> `ast`, cached by text; a text that does not parse is a value.

A chunk is a run of whole lines that holds one top-level statement (or several that share a line)
with the comments and blank lines below it.  Chunks are read once and kept by their text, so a later
edit re-reads only the chunks whose text changed.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

from trainshift.core.facts import Facts, read_facts
from trainshift.core.source import Source

# A line that may begin a top-level statement: not blank, indented, a comment, a closing
# bracket or the continuation of a compound statement.
_START = re.compile(r"^(?![ \t\f\r\n#)\]}]|(?:else|elif|except|finally)\b)(?=.)", re.MULTILINE)
_LONE_RETURN = re.compile(r"\r(?!\n)")
# More candidate lines than this in one statement (a long string, say) are left to the full parse.
_MOST_JOINED = 8


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """Why a text is not Python: a message with a 1-based line and column (code points)."""

    message: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines of a script: offset in the text, the text itself, and what was read from it."""

    offset: int
    text: str
    facts: Facts


class FactsCache:
    """Facts by chunk text.  Equal texts at two places of one script get two readings."""

    def __init__(self) -> None:
        self._known: dict[str, list[Facts]] = {}

    def take(self, text: str) -> Facts | None:
        """A reading of `text` from an earlier version of the script, handed out once."""
        readings = self._known.get(text)
        return readings.pop() if readings else None

    def replace(self, chunks: list[Chunk]) -> None:
        """Keep the readings of the script's present version and forget all others."""
        self._known = {}
        for chunk in chunks:
            self._known.setdefault(chunk.text, []).append(chunk.facts)

    def __bool__(self) -> bool:
        return bool(self._known)


def parse(text: str, cache: FactsCache | None = None) -> list[Chunk] | ParseFailure:
    """The chunks of `text` in order, or why it does not parse."""
    cache = FactsCache() if cache is None else cache
    try:
        chunks = _from_cache(text, cache) or _from_tree(text, cache)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _diagnose(text)
    cache.replace(chunks)
    return chunks


def _from_cache(text: str, cache: FactsCache) -> list[Chunk] | None:
    """Chunks cut at lines that may begin a statement; None where that does not work out."""
    if not cache:
        return None
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
            facts = cache.take(piece) or _read(piece)
            if facts is not None:
                chunks.append(Chunk(marks[at], piece, facts))
                break
        else:
            return None
        at = end
    return chunks


def _from_tree(text: str, cache: FactsCache) -> list[Chunk]:
    """Chunks cut where the whole file's `ast` says that statements begin and end."""
    body = _tree(text)
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
        facts = cache.take(piece) or read_facts(piece, statements, line)
        chunks.append(Chunk(starts[line], piece, facts))
    return chunks


def _read(piece: str) -> Facts | None:
    try:
        return read_facts(piece, _tree(piece))
    except SyntaxError:
        return None


def _tree(text: str) -> list[ast.stmt]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text).body


def _diagnose(text: str) -> ParseFailure:
    null = text.find("\0")
    if null >= 0:
        return ParseFailure("a null byte", *Source(text).position(null))
    try:
        _tree(text)
    except SyntaxError as error:
        return ParseFailure(error.msg, error.lineno or 1, max(error.offset or 1, 1))
    except (ValueError, RecursionError, MemoryError):
        pass
    return ParseFailure("the code is nested too deeply to be read", 1, 1)
