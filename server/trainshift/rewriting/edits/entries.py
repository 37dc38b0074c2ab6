"""Remove entries from a dictionary, a list or the arguments of a call."""

from __future__ import annotations

from collections.abc import Iterable

from trainshift.core.program import Program
from trainshift.python.source.edit import Edit
from trainshift.python.source.source import Span


def without(program: Program, entries: Iterable[Span]) -> tuple[Edit, ...]:
    """Remove entries of one literal or call, each with its comma; comments stay.

    Entries are passed in text order, with the parentheses around their parts.
    """
    gone: list[Span] = []
    for entry in entries:
        span = _with_comma(program, entry)
        if gone and span.start <= gone[-1].end:
            span = _with_comma_before(program, Span(gone.pop().start, span.end))
        gone.append(span)
    return tuple(Edit(span.start, span.end, "") for span in gone)


def _with_comma(program: Program, entry: Span) -> Span:
    """An entry with the comma after it (before it, if it is the last), and its line if it has one."""
    source = program.script.source
    text, start, end = source.text, entry.start, entry.end
    comma = _beyond_blanks(text, end)
    if text[comma : comma + 1] == ",":
        end = comma + 1
    rest = text[end : source.line_end(end)].lstrip(" \t")
    alone = not text[source.line_start(start) : start].strip()
    if alone and not rest:
        return Span(source.line_start(start), source.next_line(end))
    if end == entry.end and not alone:
        before = len(text[:start].rstrip(" \t"))
        return Span(before - 1 if text[before - 1] == "," else start, end)
    if alone or (rest and not rest.startswith("#")):
        return Span(start, _beyond_blanks(text, end))
    return Span(len(text[:start].rstrip(" \t")), end)


def _with_comma_before(program: Program, span: Span) -> Span:
    """Several entries, with the comma before them if they are the last ones of a line."""
    text = program.script.source.text
    before = len(text[: span.start].rstrip(" \t"))
    last = text[span.end : span.end + 1] in (")", "]", "}")
    return Span(before - 1, span.end) if last and text[before - 1] == "," else span


def _beyond_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at
