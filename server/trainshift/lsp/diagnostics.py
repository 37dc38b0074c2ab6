"""Diagnostics for the protocol: findings, and hints at statements that could be distributed.

They are plain dictionaries, because a long file has hundreds and an edit sends all of them again; every other
message uses lsprotocol's classes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from trainshift.engine.checking import Diagnostic, OtherPlace, Region
from trainshift.engine.own_codes import UNUSED_SUPPRESSION
from trainshift.engine.settings import Severity
from trainshift.lsp.options import Rules
from trainshift.lsp.scheduler import State
from trainshift.lsp.text.documents import Paper, Part, paper_of
from trainshift.lsp.text.positions import Place
from trainshift.lsp.transport.uris import path_of, uri_of
from trainshift.pages import page_url
from trainshift.python.lazy import cached_property
from trainshift.python.source.edit import Change
from trainshift.python.source.source import Span

if TYPE_CHECKING:
    from trainshift.lsp.outline import Outline

SOURCE = "trainshift"
# The protocol counts from errors down, the settings from hints up.
_LOUDEST = 1 + Severity.ERROR


class Item(dict[str, Any]):
    """A diagnostic that caches its JSON once it has been sent."""

    @cached_property
    def json(self) -> str:
        """The diagnostic in its transmitted form."""
        return json.dumps(self, separators=(",", ":"))


def encoded_list(items: Iterable[Item]) -> str:
    """Diagnostics as a JSON array."""
    return f"[{','.join([item.json for item in items])}]"


def items_of(state: State, rules: Rules) -> dict[str, list[Item]]:
    """The diagnostics of a version, by the document that they are about."""
    found: dict[str, list[Item]] = {part.uri: [] for part in state.paper.parts}
    if not rules.enable:
        return found
    first = state.paper.parts[0] if not state.paper.is_notebook else None
    for diagnostic in state.shown:
        if first is not None and _is_plain(first, diagnostic):
            item = _plain_finding(first.uri, diagnostic)
            found[first.uri].append(item)
            continue
        span = place_of(state.paper, diagnostic)
        part = state.paper.part_at(span.start)
        found[part.uri].append(_finding(state.paper, part, span, diagnostic, rules))
    if rules.hints:
        for part, item in _hints(state, rules.settings.docs_url):
            found[part.uri].append(item)
    return found


def place_of(paper: Paper, diagnostic: Diagnostic) -> Span:
    """The span of a program that a diagnostic is about."""
    return diagnostic.span if diagnostic.span is not None else diagnostic.region.span(paper.source)


def range_of(part: Part, span: Span) -> dict[str, dict[str, int]]:
    """The protocol's range of a stretch of the program."""
    first, last = part.places(span)
    return {"start": _position(first), "end": _position(last)}


def _position(place: Place) -> dict[str, int]:
    return {"line": place[0], "character": place[1]}


def _is_plain(part: Part, diagnostic: Diagnostic) -> bool:
    """Return whether all places of a finding are in documents in which each character is one code point."""
    if not part.positions.is_plain or diagnostic.span is None:
        return False
    return all(not each.path or each.path == path_of(part.uri) for each in diagnostic.related)


@lru_cache(2048)
def _plain_finding(uri: str, diagnostic: Diagnostic) -> Item:
    """The item of a finding in a plain document, cached, because most stay the same after an edit."""
    related = [
        {"location": {"uri": uri, "range": _range(each.region)}, "message": each.message}
        for each in diagnostic.related
    ]
    return _item(_range(diagnostic.region), diagnostic, related)


def _range(region: Region) -> dict[str, dict[str, int]]:
    return {
        "start": _position((region.line - 1, region.column - 1)),
        "end": _position((region.end_line - 1, region.end_column - 1)),
    }


def _finding(paper: Paper, part: Part, span: Span, diagnostic: Diagnostic, rules: Rules) -> Item:
    related = [_related(paper, part, each, rules) for each in diagnostic.related]
    return _item(range_of(part, span), diagnostic, related)


def _item(where: dict[str, Any], diagnostic: Diagnostic, related: list[dict[str, Any]]) -> Item:
    item = _bare_item(where, diagnostic.severity, diagnostic.code, diagnostic.message, diagnostic.url)
    if related:
        item["relatedInformation"] = related
    if diagnostic.code == UNUSED_SUPPRESSION.code:
        item["tags"] = [1]
    return item


def _related(paper: Paper, part: Part, other: OtherPlace, rules: Rules) -> dict[str, Any]:
    if other.path and other.path != (paper.path or path_of(part.uri)):
        source = rules.source_of(other.path)
        file = Part(uri_of(other.path), None, source.text if source is not None else "", part.encoding)
        where = {"uri": file.uri, "range": range_of(file, other.region.span(paper_of(file).source))}
    else:
        span = other.region.span(paper.source)
        home = paper.part_at(span.start)
        where = {"uri": home.uri, "range": range_of(home, span)}
    return {"location": where, "message": other.message}


def _hints(state: State, docs_url: str) -> Iterator[tuple[Part, Item]]:
    """Yield a hint on the first line of each statement that could be distributed, for each of its rules."""
    outline = state.outline
    if outline is None:
        return
    if outline.paper.text == state.paper.text and not state.paper.is_notebook:
        yield from ((state.paper.parts[0], item) for item in _hints_of(outline, docs_url))
        return
    if state.paper.is_notebook:
        for target, change in outline.changes:
            span = state.moved(target)
            if span is not None:
                part = state.paper.part_at(span.start)
                yield part, _hint(state.paper, part, span, change, docs_url)
        return
    # Lines that were not edited keep their hints, shifted by the number of added lines.
    old, new, shift = outline.paper.source, state.paper.source, state.shift
    first, last = old.line_of(shift.start), old.line_of(shift.end)
    distance = len(new.line_starts) - len(old.line_starts)
    part = state.paper.parts[0]
    for (target, change), item in zip(outline.changes, _hints_of(outline, docs_url), strict=True):
        line = item["range"]["start"]["line"]
        if first <= line <= last:
            span = shift.span(target)
            if span is not None:
                yield part, _hint(state.paper, part, span, change, docs_url)
        elif line < first or not distance:
            yield part, item
        else:
            start, end = item["range"]["start"], item["range"]["end"]
            where = {"start": {**start, "line": line + distance}, "end": {**end, "line": line + distance}}
            yield part, Item({**item, "range": where})


# The hints of plain documents' outlines, as long as those exist.
_HINTS: WeakKeyDictionary[Outline, list[Item]] = WeakKeyDictionary()


def _hints_of(outline: Outline, docs_url: str) -> list[Item]:
    """The hints of a plain document's outline."""
    hints = _HINTS.get(outline)
    if hints is None:
        part = outline.paper.parts[0]
        hints = [_hint(outline.paper, part, target, change, docs_url) for target, change in outline.changes]
        _HINTS[outline] = hints
    return hints


def _hint(paper: Paper, part: Part, span: Span, change: Change, docs_url: str) -> Item:
    line = Span(span.start, min(span.end, paper.source.line_end(span.start)))
    message = f"Can be made distributed: {change.title[:1].lower()}{change.title[1:]}"
    return _bare_item(
        range_of(part, line), Severity.HINT, change.rule, message, page_url(change.rule, docs_url)
    )


def _bare_item(where: dict[str, Any], severity: Severity, code: str, message: str, url: str) -> Item:
    """The fields common to all diagnostics."""
    item = Item(
        {
            "range": where,
            "severity": _LOUDEST - severity,
            "code": code,
            "source": SOURCE,
            "message": message,
        }
    )
    if url:
        item["codeDescription"] = {"href": url}
    return item
