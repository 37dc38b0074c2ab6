"""Summary: what is said of a program as a whole: its training loops, and what a conversion comes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trainshift.core.text.edit import Change
from trainshift.core.text.source import Span
from trainshift.engine.conversion import Conversion, Note, carry_out, whole
from trainshift.engine.settings import Severity
from trainshift.lsp.desk import Outdated, State
from trainshift.lsp.diagnostics import range_of
from trainshift.lsp.outline import refused
from trainshift.lsp.text.documents import Paper, Part

_CONVERTIBLE = "convertible"


def summary(state: State, uri: str) -> dict[str, Any]:
    """A settled version in short, as the client is told that asks by the URI of one of its documents."""
    obstacle = _obstacle(state)
    part = state.paper.part_of(uri)
    return {
        "version": part.version if part is not None else None,
        "loops": [
            {"name": name, "uri": part.uri, "range": range_of(part, span)}
            for part, span, name in loops(state)
        ],
        "status": _CONVERTIBLE if obstacle is None else obstacle.status.value,
        "reason": "" if obstacle is None else obstacle.reason,
        "changes": len(state.outline.changes) if obstacle is None and state.outline is not None else 0,
        "warnings": warnings(state),
    }


def loops(state: State) -> Iterator[tuple[Part, Span, str]]:
    """The headers of the training loops: the document of each, its place in the program, and its name."""
    for span, name in state.outline.loops if state.outline is not None else ():
        moved = state.moved(span)
        if moved is not None:
            yield state.paper.part_at(moved.start), moved, name


def warnings(state: State) -> int:
    """How many findings are warnings at least."""
    return sum(each.severity >= Severity.WARNING for each in state.report.diagnostics)


def conversion_of(state: State, chosen: Sequence[Change] | None = None) -> Conversion:
    """The conversion of a settled version, or of the statements of some of its changes.

    Raises Outdated if there is a newer version.
    """
    obstacle = _obstacle(state)
    if obstacle is not None:
        return obstacle
    if chosen == []:
        return refused(state.paper, "no statement here needs a change any more")
    assert state.outline is not None
    if state.outline.analysis is None:
        raise Outdated
    conversion = carry_out(state.outline.analysis, chosen=chosen, runtime=state.outline.runtime)
    return conversion if state.paper.cells is None else whole(conversion, state.paper.cells)


def _obstacle(state: State) -> Conversion | None:
    """What the conversion of a settled version comes to where there is nothing to change."""
    if state.outline is None or not state.has_outline:
        return refused(state.paper, "the file cannot be read as Python")
    return state.outline.obstacle


def account(paper: Paper, conversion: Conversion) -> dict[str, Any]:
    """A conversion that nobody has applied yet, as the client is told of it."""
    notes = {
        "changes": conversion.applied,
        "decisions": conversion.decisions,
        "doubts": conversion.doubts,
        "withheld": conversion.withheld,
    }
    listed = {name: [_told(paper, each) for each in found] for name, found in notes.items()}
    return {"applied": False, "reason": conversion.reason, "status": conversion.status.value, **listed}


def _told(paper: Paper, note: Note) -> dict[str, Any]:
    """A note, whose line and column are those of the document that it is about, from 1."""
    offset = paper.source.line_starts[note.line - 1] + note.column - 1
    part = paper.part_at(offset)
    (line, character), _ = part.places(Span(offset, offset))
    return {
        "rule": note.rule,
        "uri": part.uri,
        "line": line + 1,
        "column": character + 1,
        "text": note.text,
    }
