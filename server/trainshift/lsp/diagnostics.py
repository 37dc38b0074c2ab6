"""Diagnostics as the protocol has them: findings, and hints where a statement could be made distributed.

They are plain dictionaries, since a long file has hundreds and an edit sends all of them anew; every
other message is made of lsprotocol's classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainshift.core.source import Span
from trainshift.engine.checking import Diagnostic, Region
from trainshift.engine.settings import Severity
from trainshift.lsp.desk import Rules, State
from trainshift.lsp.documents import Paper, Part
from trainshift.lsp.positions import Place
from trainshift.lsp.uris import path_of, uri_of
from trainshift.pages import page_url

SOURCE = "trainshift"
_SEVERITIES = {Severity.ERROR: 1, Severity.WARNING: 2, Severity.INFORMATION: 3, Severity.HINT: 4}

Item = dict[str, Any]


def items_of(state: State, rules: Rules) -> dict[str, list[Item]]:
    """The diagnostics of a version, by the document that they are about."""
    found: dict[str, list[Item]] = {part.uri: [] for part in state.paper.parts}
    if not rules.enable:
        return found
    for diagnostic in state.report.diagnostics:
        span = span_of(state.paper, diagnostic.region)
        part = state.paper.part_at(span.start)
        found[part.uri].append(_finding(state.paper, part, span, diagnostic))
    if rules.hints:
        for part, item in _hints(state):
            found[part.uri].append(item)
    return found


def span_of(paper: Paper, region: Region) -> Span:
    """The stretch of a program that a region is."""
    starts = paper.source.line_starts
    last = len(paper.text)
    start = min(starts[min(region.line, len(starts)) - 1] + region.column - 1, last)
    end = min(starts[min(region.end_line, len(starts)) - 1] + region.end_column - 1, last)
    return Span(start, max(start, end))


def range_of(part: Part, span: Span) -> dict[str, dict[str, int]]:
    """The protocol's range of a stretch of the program."""
    first, last = part.places(span)
    return {"start": _position(first), "end": _position(last)}


def _position(place: Place) -> dict[str, int]:
    return {"line": place[0], "character": place[1]}


def _finding(paper: Paper, part: Part, span: Span, diagnostic: Diagnostic) -> Item:
    item: Item = {
        "range": range_of(part, span),
        "severity": _SEVERITIES[diagnostic.severity],
        "code": diagnostic.code,
        "source": SOURCE,
        "message": diagnostic.message,
        "data": {"rule": diagnostic.code, "at": span.start - part.start},
    }
    if diagnostic.url:
        item["codeDescription"] = {"href": diagnostic.url}
    related = [_related(paper, part, each.path, each.region, each.message) for each in diagnostic.related]
    if related:
        item["relatedInformation"] = related
    if diagnostic.code == "TS01":
        item["tags"] = [1]
    return item


def _related(paper: Paper, part: Part, path: str, region: Region, message: str) -> Item:
    if path and path_of(part.uri) != path and not paper.is_notebook:
        # Another file, of which only lines and columns in code points are at hand.
        first, last = (region.line - 1, region.column - 1), (region.end_line - 1, region.end_column - 1)
        where = {"uri": uri_of(path), "range": {"start": _position(first), "end": _position(last)}}
    else:
        span = span_of(paper, region)
        home = paper.part_at(span.start)
        where = {"uri": home.uri, "range": range_of(home, span)}
    return {"location": where, "message": message}


def _hints(state: State) -> Iterator[tuple[Part, Item]]:
    """A hint on the first line of each statement that could be made distributed, for each of its rules."""
    if state.outline is None:
        return
    text = state.paper.source
    is_current = state.outline.paper.text == state.paper.text
    shift = None if is_current else state.shift
    for change in state.outline.changes:
        span = change.target if shift is None else shift.span(change.target)
        if span is None:
            continue
        part = state.paper.part_at(span.start)
        line = Span(span.start, min(span.end, text.line_end(span.start)))
        item: Item = {
            "range": range_of(part, line),
            "severity": _SEVERITIES[Severity.HINT],
            "code": change.rule,
            "source": SOURCE,
            "message": f"Can be made distributed: {change.title[:1].lower()}{change.title[1:]}",
            "data": {"rule": change.rule, "at": span.start - part.start},
        }
        url = page_url(change.rule)
        if url:
            item["codeDescription"] = {"href": url}
        yield part, item
