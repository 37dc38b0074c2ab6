"""Outline: the possible changes in one version of a document, and its training loops."""

from __future__ import annotations

from msgspec import Struct

from trainshift.engine.effects.outcomes import Outcome
from trainshift.lsp.snapshot import Whole
from trainshift.lsp.text.documents import Paper
from trainshift.python.source.edit import Change
from trainshift.python.source.source import Span


class Outline(Struct, eq=False, weakref=True):
    """The possible changes in a document, as a part of its `whole` program.

    `starts` are the known start files of its programs; it is converted with the first one whose program
    trains.  Spans are the document's own, changes those of the whole.  Withheld changes have their rule and
    their reason, and `outcomes` are the effects of the conversion in the document.
    """

    paper: Paper
    path: str
    starts: tuple[str, ...]
    whole: Whole
    changes: tuple[tuple[Span, Change], ...]
    withheld: tuple[tuple[Span, str, str], ...]
    loops: tuple[tuple[Span, str], ...]
    outcomes: tuple[Outcome, ...]


def outline_of(paper: Paper, path: str, starts: tuple[str, ...], whole: Whole) -> Outline:
    """The outline of the document at `path` ("" for none), as a part of a program."""
    return Outline(
        paper,
        path,
        starts,
        whole,
        tuple((place.span, change) for place, change in whole.changes if place.path == path),
        tuple((place.span, each.rule, each.reason) for place, each in whole.withheld if place.path == path),
        tuple((place.span, name) for place, name in whole.loops if place.path == path),
        tuple(each for each in whole.outcomes if each.path == path),
    )
