"""Outline: what could be made distributed in one version of a document, and its training loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainshift.core.text.edit import Change, Edit
from trainshift.core.text.source import Span
from trainshift.lsp.text.documents import Paper
from trainshift.lsp.whole import Whole


@dataclass(eq=False)
class Outline:
    """What could be made distributed in a document, as a part of the first of the `wholes` it belongs to.

    `starts` are the files that start them, as far as somebody has looked for them.  The spans are the
    document's own, the changes and what is withheld those of the whole.
    """

    paper: Paper
    path: str
    starts: tuple[str, ...]
    wholes: tuple[Whole, ...]
    changes: tuple[tuple[Span, Change], ...]
    withheld: tuple[tuple[Span, str, str], ...]
    loops: tuple[tuple[Span, str], ...]

    @property
    def whole(self) -> Whole:
        """The program that the document is converted with."""
        return self.wholes[0]

    @property
    def is_dated(self) -> bool:
        """Whether a file of the program has changed since."""
        return any(whole.is_retired for whole in self.wholes)

    def reads(self, path: str) -> bool:
        """Whether something here depends on a file."""
        return any(path in whole.paths for whole in self.wholes)


def outline_of(paper: Paper, path: str, starts: tuple[str, ...], wholes: Sequence[Whole]) -> Outline:
    """The outline of the document at `path`, "" for none, which belongs to all these programs.

    Where they want different things of a statement, they withhold it.
    """
    first, *others = wholes
    withheld = [(place.span, each.rule, each.reason) for place, each in first.withheld if place.path == path]
    changes = []
    against = [(whole, _wanted(whole, path)) for whole in others if whole.obstacle is None]
    mine = _wanted(first, path) if against else {}
    for place, change in first.changes:
        if place.path != path:
            continue
        apart = [whole for whole, wanted in against if wanted.get(place.span) != mine.get(place.span)]
        if apart:
            names = " and ".join(each.name_of(each.start) for each in (first, *apart))
            withheld.append((place.span, change.rule, f"{names} want different changes here"))
        else:
            changes.append((place.span, change))
    loops = tuple((place.span, name) for place, name in first.loops if place.path == path)
    return Outline(paper, path, starts, tuple(wholes), tuple(changes), tuple(withheld), loops)


def _wanted(whole: Whole, path: str) -> dict[Span, set[tuple[str, str, Edit]]]:
    """What a program wants of the statements of a file: rules, and their edits with the files of these."""
    found: dict[Span, set[tuple[str, str, Edit]]] = {}
    analysis = whole.analysis
    for place, change in whole.changes if analysis is not None else ():
        if place.path == path and analysis is not None:
            for edit in change.edits:
                script, start = analysis.file_at(edit.start)
                made = change.rule, script.path, edit.moved(start - edit.start)
                found.setdefault(place.span, set()).add(made)
    return found
