"""Lenses: a line above each training loop that says what it is and what can be done with it."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from trainshift.engine.conversion import Status
from trainshift.engine.settings import Severity
from trainshift.lsp.capabilities import CONVERT
from trainshift.lsp.desk import State
from trainshift.lsp.outline import Outline


def lenses(state: State, uri: str) -> Iterator[types.CodeLens]:
    """The lenses of one document of a program."""
    outline = state.outline
    part = state.paper.part_of(uri)
    if outline is None or part is None:
        return
    loud = sum(each.severity >= Severity.WARNING for each in state.report.diagnostics)
    warnings = f" · {loud} warning{'s' if loud > 1 else ''}" if loud else ""
    for span, name in outline.loops:
        moved = state.moved(span)
        if moved is None or state.paper.part_at(moved.start) is not part:
            continue
        first, _ = part.places(moved)
        where = types.Range(types.Position(first[0], first[1]), types.Position(first[0], first[1]))
        title = f"{name} loop · {_doing(outline)}{warnings}"
        yield types.CodeLens(where, types.Command(title, *_command(outline, uri)))


def _doing(outline: Outline) -> str:
    if outline.obstacle is None:
        return "Make distributed"
    if outline.obstacle.status is Status.ALREADY_DISTRIBUTED:
        return "distributed"
    return "cannot be made distributed"


def _command(outline: Outline, uri: str) -> tuple[str, str | None, list[object]]:
    """What a click does: convert, or tell why not."""
    tooltip = outline.obstacle.reason if outline.obstacle is not None else "Rewrite the file for Horovod"
    return CONVERT, tooltip, [{"uri": uri}]
