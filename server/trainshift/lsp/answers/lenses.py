"""Lenses: a line above each training loop that says what it is and what can be done with it."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from trainshift.engine.conversion import Status
from trainshift.lsp.answers.summary import loops, warnings
from trainshift.lsp.desk import State
from trainshift.lsp.outline import Outline
from trainshift.lsp.wire.capabilities import CONVERT


def lenses(state: State, uri: str) -> Iterator[types.CodeLens]:
    """The lenses of one document of a program."""
    outline = state.outline
    if outline is None:
        return
    loud = warnings(state)
    also = f" · {loud} warning{'s' if loud > 1 else ''}" if loud else ""
    for part, span, name in loops(state):
        if part.uri == uri:
            first = types.Position(*part.places(span)[0])
            title = f"{name} loop · {_doing(outline)}{also}"
            yield types.CodeLens(types.Range(first, first), types.Command(title, *_command(outline, uri)))


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
