"""Summary: a program as a whole: its training loops, and the outcome of a conversion."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Collection, Iterator, Sequence
from typing import Any, cast

from lsprotocol.types import Range
from msgspec.structs import replace

from trainshift.engine.checking import Diagnostic, has_signs
from trainshift.engine.conversion import Conversion, Note, carry_out
from trainshift.engine.conversion import whole as whole_or_nothing
from trainshift.engine.own_codes import SYNTAX_ERROR, UNSUPPORTED_VERSION
from trainshift.engine.settings import Severity
from trainshift.lsp.answers.changed_lines import changed_lines
from trainshift.lsp.answers.places import Places
from trainshift.lsp.diagnostics import range_of
from trainshift.lsp.scheduler import Outdated, State
from trainshift.lsp.snapshot import refused
from trainshift.lsp.text.documents import Part
from trainshift.lsp.transport.told import Outline, PartOf
from trainshift.lsp.transport.uris import uri_of
from trainshift.python.source.edit import Change
from trainshift.python.source.source import Span

_CONVERTIBLE = "convertible"
NEW_LINE = "newLine"
"""The key for a change's first line in the result."""


def summary(state: State, uri: str, places: Places) -> Outline:
    """The summary of a settled version, for a client that asks with the URI of one of its documents.

    `places` are those of its program.
    """
    obstacle = _obstacle(state)
    part = state.paper.part_of(uri)
    read = state.outline.whole if state.outline is not None else None
    whole = read if obstacle is None else None
    return {
        "version": part.version if part is not None else None,
        "loops": [
            {"name": name, "uri": part.uri, "range": cast(Range, range_of(part, span))}
            for part, span, name in loops(state)
        ],
        "program": title_of(state),
        "partOf": part_of(state),
        "status": _CONVERTIBLE if obstacle is None else obstacle.status.value,
        "reason": "" if obstacle is None else places.reason(obstacle),
        "changes": len(whole.changes) if whole is not None else 0,
        "files": [places.part(path).uri for path in whole.changing]
        if whole is not None and places.paper is None
        else [],
        "keras": read.written_for if read is not None else "",
        "warnings": len(warnings(state)),
        "usesTensorflow": has_signs(state.paper.text),
    }


def title_of(state: State) -> str:
    """The files that a conversion changes, in words; "" if only the document."""
    if state.outline is None or state.outline.whole.changing in ((), (state.outline.path,)):
        return ""
    whole = state.outline.whole
    first, *others = map(whole.name_of, whole.changing)
    return f"{first} and {counted(len(others), 'more file')}" if others else first


def part_of(state: State) -> PartOf | None:
    """The program of a module: its start file, and its number of files; None otherwise."""
    outline = state.outline
    if outline is None or not outline.path or outline.path == outline.whole.start or not outline.whole.trains:
        return None
    start = outline.whole.start
    return {"name": posixpath.basename(start), "uri": uri_of(start), "files": len(outline.whole.sources)}


def counted(number: int, what: str) -> str:
    """A number with its noun, in the plural if needed."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def loops(state: State) -> Iterator[tuple[Part, Span, str]]:
    """The headers of the training loops: the document of each, its place in the program, and its name."""
    for span, name in state.outline.loops if state.outline is not None else ():
        moved = state.moved(span)
        if moved is not None:
            yield state.paper.part_at(moved.start), moved, name


def warnings(state: State) -> list[Diagnostic]:
    """The findings that are at least warnings, except syntax errors."""
    loud = (each for each in state.shown if each.severity >= Severity.WARNING)
    return [each for each in loud if each.code != SYNTAX_ERROR.code]


def conversion_of(
    state: State,
    chosen: Sequence[Change] | None = None,
    *,
    without: Collection[Note] = (),
    ignores_versions: bool = False,
) -> Conversion:
    """The conversion of a settled version, or of the statements of some of its changes.

    The whole may be `without` some changes that are optional.  With `ignores_versions`, the project's
    requirements are ignored.  Raises Outdated if there is a newer version.
    """
    obstacle = _obstacle(state)
    if obstacle is not None and not (ignores_versions and obstacle.code == UNSUPPORTED_VERSION.code):
        return obstacle
    if chosen == []:
        return refused(state.paper.source, "no statement here needs a change any more")
    assert state.outline is not None
    whole = state.outline.whole
    if whole.analysis is None:
        raise Outdated
    runtime = whole.runtime
    if runtime is not None and ignores_versions:
        runtime = dataclasses.replace(runtime, is_ignored=True)
    cells = state.paper.cells
    apart = cells.starts if cells is not None else ()
    conversion = carry_out(whole.analysis, chosen=chosen, without=without, runtime=runtime, apart=apart)
    return conversion if cells is None else whole_or_nothing(conversion, cells)


def _obstacle(state: State) -> Conversion | None:
    """The outcome of converting a settled version if there is nothing to change."""
    error = state.syntax_error
    if error is not None or state.outline is None:
        found = refused(state.paper.source, "the file cannot be read as Python")
        path = state.outline.path if state.outline is not None else ""
        place = (error.region.line, error.region.column) if error is not None else None
        return replace(found, position=place, path=path, code=SYNTAX_ERROR.code)
    if not state.has_outline:
        raise Outdated
    return state.outline.whole.obstacle


def account(places: Places, conversion: Conversion) -> dict[str, Any]:
    """The report on a conversion that has not been applied yet."""
    notes = {
        "changes": conversion.applied,
        "decisions": conversion.decisions,
        "doubts": conversion.doubts,
        "withheld": conversion.withheld,
    }
    listed = {name: [places.told(each) for each in found] for name, found in notes.items()}
    if conversion.plan is not None:
        lines = changed_lines(conversion.plan, places.home)
        changed = zip(listed["changes"], lines, strict=True)
        listed["changes"] = [{**told, NEW_LINE: line} for told, line in changed]
    why = {"reason": conversion.reason, "code": conversion.code, "at": places.at(conversion)}
    return {**unaccounted(conversion), **why, "reason": places.reason(conversion), **listed}


def unaccounted(conversion: Conversion) -> dict[str, Any]:
    """The report on a conversion, with nothing but its reason."""
    nothing: dict[str, Any] = {"changes": [], "decisions": [], "doubts": [], "withheld": []}
    return {"applied": False, "reason": conversion.reason, "status": conversion.status.value, **nothing}
