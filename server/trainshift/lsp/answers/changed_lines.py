"""Changed lines: where in the new documents each change of a conversion begins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainshift.lsp.text.edits import Home
from trainshift.python.source.edit import Change, Edit, Plan
from trainshift.python.source.source import Span

_WORD = re.compile(r"\w")
_LINE_END = re.compile("\r\n|\r|\n")


def changed_lines(plan: Plan, home: Home) -> Iterator[int]:
    """The first new line of each change, in the order of the notes on the changes, counted from 1."""
    added: dict[str, int] = {}
    first_lines: dict[Edit, int] = {}
    for each in plan.edits:
        part, inside = home(each)
        (first, _), (last, _) = part.places(Span(inside.start, inside.end))
        first_lines[each] = first + added.get(part.uri, 0) + 1
        added[part.uri] = added.get(part.uri, 0) + _ends(inside.text) - (last - first)
    for change in sorted(plan.changes, key=lambda change: (change.target.start, change.rule)):
        own = _first(change)
        edit = next((each for each in plan.edits if each.start <= own.start and own.end <= each.end), None)
        if edit is not None:
            yield first_lines[edit] + _ends(edit.text[: _begin(own, edit)])
            continue
        # What it writes was put into the test of the block around it.
        part, _ = home(own)
        above = [each for each in plan.edits if each.end <= own.start and home(each)[0] is part]
        yield first_lines[above[-1]] if above else part.places(Span(own.start, own.end))[0][0] + 1


def _first(change: Change) -> Edit:
    """The first edit of a change that writes something, or else that takes something away."""
    edits = change.edits or change.requires
    return min([each for each in edits if each.text.strip()] or edits, key=lambda edit: edit.start)


def _begin(own: Edit, edit: Edit) -> int:
    """The offset of a change's new text in an edit, which may belong to several changes."""
    line = next((line.strip() for line in own.text.splitlines() if _WORD.search(line)), "")
    found = edit.text.find(line) if own != edit and line else -1
    if found >= 0:
        return found
    word = _WORD.search(edit.text)
    return word.start() if word else len(edit.text) - len(edit.text.lstrip())


def _ends(text: str) -> int:
    return len(_LINE_END.findall(text))
