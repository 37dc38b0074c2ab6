"""Hints: explain how a statement could be distributed, with its lines before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import ndiff
from itertools import groupby
from textwrap import dedent

from msgspec.structs import replace

from trainshift.engine.conversion import finished_plan
from trainshift.engine.registry import BY_CODE
from trainshift.lsp.scheduler import State
from trainshift.pages import page_url, section
from trainshift.python.source.edit import Change, Edit, apply, merge
from trainshift.python.source.source import Source, Span

_MOST_LINES, _MOST_AROUND = 14, 2
# Breaking lines takes time proportional to the file, which would delay a hover.
_MOST_FINISHED = 100_000
_TOO_LONG = "The file is too long to show the new lines here. `trainshift convert` shows them."
_GAP = "  …"


def hints(state: State, offset: int, docs_url: str = "") -> Iterator[str]:
    """Yield the explanation of the hints at an offset of the program, Markdown: one text for each rule."""
    outline = state.outline
    if outline is None or outline.whole.analysis is None or outline.paper.text != state.paper.text:
        return
    source = state.paper.source
    here = [
        change
        for span, change in outline.changes
        if span.start <= offset < max(min(span.end, source.line_end(span.start)), span.start + 1)
    ]
    for code, changes in groupby(sorted(here, key=lambda change: change.rule), lambda change: change.rule):
        yield _told(code, [*changes], state, docs_url)


def _told(code: str, changes: Sequence[Change], state: State, docs_url: str) -> str:
    titles = dict.fromkeys(change.title for change in changes)
    url = page_url(code, docs_url)
    parts = [
        f"**{code}** {'; '.join(titles)}.",
        section(BY_CODE[code].doc, "Why it matters"),
        _difference(state, changes),
        f"[More about {code}]({url})" if url else "",
    ]
    return "\n\n".join(filter(None, parts))


def _difference(state: State, changes: Sequence[Change]) -> str:
    """The changed lines before and after, without prerequisites elsewhere; of a long file, who shows them."""
    if len(state.paper.text) > _MOST_FINISHED:
        return _TOO_LONG
    assert state.outline is not None
    assert state.outline.whole.analysis is not None
    analysis, path = state.outline.whole.analysis, state.outline.path
    plan = merge(replace(each, requires=()) for each in changes)
    plan = finished_plan(analysis, plan, state.paper.cells.starts if state.paper.cells is not None else ())
    first = min(each.target.start for each in changes)
    lines: list[str] = []
    for script, edits in analysis.edits_by_file(plan.edits):
        if script.path == path or state.outline.whole.start == path == "":
            start = first - analysis.start_of(script.path)
            for group in _groups(script.source, edits):
                lines += [_GAP] * bool(lines) + _compared(script.source, group, min(start, group[0].start))
                start = group[-1].end
    if not lines:
        return ""
    shown = lines[:_MOST_LINES] + [_GAP] * (len(lines) > _MOST_LINES)
    return "```diff\n" + "\n".join(shown) + "\n```"


def _groups(source: Source, edits: Sequence[Edit]) -> Iterator[list[Edit]]:
    """Edits whose lines touch, together."""
    group: list[Edit] = []
    for edit in edits:
        if group and source.line_of(edit.start) > source.line_of(group[-1].end) + 1:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _compared(source: Source, edits: Sequence[Edit], start: int) -> list[str]:
    """The lines from a place to some edits, in the form of a diff."""
    lines = Span(source.line_start(start), source.line_end(edits[-1].end))
    before = source.text[lines.start : lines.end]
    after = apply(before, tuple(edit.moved(-lines.start) for edit in edits))
    # Both are as far left as they can be together.
    old, new = before.splitlines(), after.splitlines()
    text = dedent("\n".join([*old, *new])).splitlines()
    compared = [f"{line[0]} {line[2:]}".rstrip() for line in ndiff(text[: len(old)], text[len(old) :])]
    shown: list[str] = []
    for is_same, found in groupby((line for line in compared if line[:1] != "?"), _is_same):
        group = [*found]
        # For unchanged code, the first line shows the place.
        long = is_same and len(group) > _MOST_AROUND
        shown += (
            [group[0], _GAP] if long else group if is_same else sorted(group, key=lambda line: line[0] != "-")
        )
    return shown


def _is_same(line: str) -> bool:
    return line[:1] not in "+-"
