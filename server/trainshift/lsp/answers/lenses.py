"""Lenses: a line above each training loop with its kind and the possible actions."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from trainshift.engine.conversion import Conversion, Status
from trainshift.lsp.answers.places import Places
from trainshift.lsp.answers.summary import counted, loops, part_of, title_of, warnings
from trainshift.lsp.scheduler import State
from trainshift.lsp.transport.capabilities import CONVERT, OPEN, WARNINGS

NOT_DISTRIBUTABLE = "cannot be made distributed"


def lenses(state: State, uri: str) -> Iterator[types.CodeLens]:
    """The lenses of one document of a program."""
    if state.outline is None:
        return
    loud, home = warnings(state), part_of(state)
    doing, reason = _doing(state, state.outline.whole.obstacle)
    for part, span, name in loops(state):
        if part.uri == uri:
            place = types.Position(*part.places(span)[0])
            where = types.Range(place, place)
            # A click converts, or explains why it cannot.
            convert = types.Command(f"{name} loop · {doing}", CONVERT, reason, [{"uri": uri}])
            yield types.CodeLens(where, convert)
            if home is not None:
                title = f"part of {home['name']} · {counted(home['files'], 'file')}"
                tooltip = "Open the file that starts this program"
                yield types.CodeLens(where, types.Command(title, OPEN, tooltip, [home["uri"], 1]))
            if loud:
                title = counted(len(loud), "warning")
                show = types.Command(title, WARNINGS, "Show the findings of this file", [uri])
                yield types.CodeLens(where, show)


def _doing(state: State, obstacle: Conversion | None) -> tuple[str, str]:
    """The possible action on the program, and its details."""
    if obstacle is None:
        return "Make distributed", f"Rewrite {title_of(state) or 'the file'} for Horovod"
    reason = Places(state, {}).reason(obstacle)
    is_done = obstacle.status is Status.ALREADY_DISTRIBUTED
    return "distributed" if is_done else NOT_DISTRIBUTABLE, reason
