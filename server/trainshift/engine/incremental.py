"""Live: check a script while it is edited: the changed statements at once, then everything.

A full check asks every restriction about the whole program. For a long script that is too slow while the user
types, so only the changed statements are checked, together with the statements that they name: once as they
were at the last full check, and once as they are. The difference between the two is due to the edit, and
everything else is taken from the full check. The next full check has the last word.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Sequence
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from trainshift.core.finding import Finding, Related
from trainshift.core.program import Program
from trainshift.engine.checking import (
    CheckReport,
    Demanded,
    Diagnostic,
    OtherPlace,
    Region,
    Told,
    Weigh,
    check_failed,
    diagnostics_of,
    judge,
    matter,
    report_of,
    report_on,
    unread,
)
from trainshift.engine.effects.outcomes import with_left_out
from trainshift.engine.findings import Judgement
from trainshift.engine.settings import Settings
from trainshift.engine.suppressions import may_suppress, read_suppressions
from trainshift.engine.workspace import ParsedFiles, linked
from trainshift.python.names.script import Script
from trainshift.python.names.workspace import MOST_CONVERTED
from trainshift.python.source.source import Source, Span
from trainshift.python.syntax.chunks import Chunk, ChunkCache, ParseFailure, parse
from trainshift.python.syntax.code import Code

log = logging.getLogger(__name__)

# The code points to read besides the changed statements (shorter texts are read whole), and the largest
# change.
_MOST_AROUND = 6_000
_MOST_CHANGED = 12_000
# Texts are compared in blocks of this many code points, down to single ones where they differ.
_STEPS = (4096, 256, 16, 1)


class Shift(Struct, frozen=True):
    """A map of offsets from the text before an edit to the text after it; `start` and `end` are in the old
    text.
    """

    start: int
    end: int
    distance: int

    @classmethod
    def between(cls, old: str, new: str) -> Shift:
        """The smallest edit that leads from one text to another."""
        most = min(len(old), len(new))
        start = end = 0
        for step in _STEPS:
            while start + step <= most and old.startswith(new[start : start + step], start):
                start += step
        for step in _STEPS:
            while end + step <= most - start and old.endswith(
                new[-end - step : -end or None], 0, -end or None
            ):
                end += step
        return cls(start, len(old) - end, len(new) - len(old))

    def offset(self, at: int, *, is_end: bool = False) -> int | None:
        """The new offset of an old offset; None inside the edited part."""
        if at < self.start or (is_end and at == self.start):
            return at
        return at + self.distance if at >= self.end else None

    def span(self, span: Span) -> Span | None:
        """The new span of an old span, resized by an edit inside it; None if the edit cut it."""
        start, end = self.offset(span.start), self.offset(span.end, is_end=True)
        return None if start is None or end is None or end < start else Span(start, end)


class _Full(Struct):
    """A version that was checked in full.

    It `is_plain` if no comment silences anything.  `before` are the findings in some of its chunks alone,
    with the first chunk and the end.
    """

    source: Source
    chunks: list[Chunk]
    result: Judgement
    settings: Settings
    told: Told
    is_plain: bool
    before: tuple[tuple[int, int], tuple[Finding, ...]] | None = None


class Live:
    """One script while it is edited. Texts are without byte order mark; no method raises for their sake.

    With `files`, imports are followed from the absolute `path`; if it `is_open`, the parsed text is shared
    with `files`, so that no other program reads it again. `at_once` may run on one thread while `in_full`
    runs on another.
    """

    def __init__(self, path: str = "", files: ParsedFiles | None = None, *, is_open: bool = False) -> None:
        self.path = path
        self.files = files
        self._is_open = is_open
        self._cache = ChunkCache()
        self._reading = Lock()
        self._full: _Full | None = None
        self.linked: frozenset[str] = frozenset()
        """The files that the last full check looked into besides the script's own."""

    def in_full(
        self,
        source: Source,
        settings: Settings,
        pause: Callable[[], None] = lambda: None,
        demanded: Demanded = lambda: None,
        weigh: Weigh | None = None,
    ) -> CheckReport:
        """Check a version in full, with the effects of findings if `weigh` knows them.

        `pause` may raise to give up.
        """
        try:
            return self._in_full(source, settings, pause, demanded, weigh)
        except Exception as error:
            self._full = None
            return check_failed(error, self.path, settings)

    def _in_full(
        self,
        source: Source,
        settings: Settings,
        pause: Callable[[], None],
        demanded: Demanded,
        weigh: Weigh | None,
    ) -> CheckReport:
        read = self._read(source)
        if isinstance(read, ParseFailure):
            return unread(read, self.path, settings)
        chunks, script = read
        pause()
        program = Program(script)
        try:
            result = judge(program, settings, pause, demanded, self.files)
            is_plain = not read_suppressions(source)
            if weigh is not None:
                result = with_left_out(result, weigh())
            self._full = _Full(source, chunks, result, settings, told := Told(), is_plain)
            if script.workspace is not None:
                self.linked = script.workspace.paths - {self.path}
            return report_on(script, result, settings, self.path, weigh, told)
        finally:
            program.forget()

    def weighed(self, source: Source, settings: Settings, weigh: Weigh) -> CheckReport | None:
        """Report the fully checked version again, with the effects that became known since then.

        None if they do not matter.
        """
        full = self._full
        if full is None or full.source.text != source.text or full.settings != settings:
            return None
        before, full.result = full.result, with_left_out(full.result, weigh())
        if full.result.found == before.found and not matter(full.result.found, settings):
            return None
        script = Script(Code(source, full.chunks))
        full.told = Told()
        report = report_on(script, full.result, settings, self.path, weigh, full.told)
        Program(script).forget()
        return report

    def code(self, source: Source) -> Code | None:
        """The syntax of a version, without resolved names; None if it is not Python."""
        chunks = self._chunks(source)
        return None if isinstance(chunks, ParseFailure) else Code(source, chunks)

    def by_itself(self, source: Source) -> Script | None:
        """The script without the files that it imports; None if it is not Python."""
        code = self.code(source)
        return Script(code) if code is not None else None

    def whole(self, source: Source) -> Script | None:
        """The script that starts a program which may be converted; None if it is not Python."""
        chunks = self._chunks(source)
        if isinstance(chunks, ParseFailure):
            return None
        return linked(Code(source, chunks), self.path, self.files, MOST_CONVERTED)

    def of_code(self, source: Source, settings: Settings, code: str) -> CheckReport:
        """Check a version for a single restriction."""
        read = self._read(source)
        if isinstance(read, ParseFailure):
            return unread(read, self.path, settings)
        only = settings.overridden([code], ())
        return report_on(read[1], judge(Program(read[1]), only, files=self.files), only, self.path)

    def _read(self, source: Source) -> tuple[list[Chunk], Script] | ParseFailure:
        """The chunks of a version, and its script, linked to the modules that it imports."""
        chunks = self._chunks(source)
        if isinstance(chunks, ParseFailure):
            return chunks
        code = Code(source, chunks)
        if self.files is not None and self._is_open:
            self.files.know(self.path, code)
        return chunks, linked(code, self.path, self.files)

    def _chunks(self, source: Source) -> list[Chunk] | ParseFailure:
        with self._reading:
            return parse(source.text, self._cache)

    def at_once(self, source: Source, settings: Settings, weigh: Weigh | None = None) -> CheckReport | None:
        """A quick report of a version before it is checked in full; None if there is no quick way."""
        full = self._full
        if full is None or full.settings != settings:
            return None
        try:
            chunks = self._chunks(source)
            if isinstance(chunks, ParseFailure):
                return unread(chunks, self.path, settings)
            return self._at_once(source, chunks, full, weigh)
        except Exception:
            log.exception("the statements that changed could not be checked alone")
            return None

    def _at_once(
        self, source: Source, chunks: list[Chunk], full: _Full, weigh: Weigh | None
    ) -> CheckReport | None:
        moves = _Moves(self.path, full.source, source)
        if max(len(full.source.text), len(source.text)) <= _MOST_AROUND:
            first, old_last, new_last = 0, len(full.chunks), len(chunks)
        else:
            first, old_last, new_last = _changed(full.chunks, chunks)
        old, new = full.chunks[first:old_last], chunks[first:new_last]
        if sum(len(chunk.text) for chunk in (*old, *new)) > _MOST_CHANGED:
            return None
        settings = full.settings
        if full.before is None or full.before[0] != (first, old_last):
            full.before = (first, old_last), _alone(full.source, full.chunks, old, settings)
        was = {_key(each): each for each in map(moves.finding, full.before[1]) if each is not None}
        now = {_key(each): each for each in _alone(source, chunks, new, settings)}
        began = old[0].offset if old else 0
        ended = old[-1].offset + len(old[-1].text) if old else 0
        # Suppressions are applied anew.
        is_plain = full.is_plain and not any(may_suppress(chunk.text) for chunk in new)
        kept: dict[tuple[object, ...], Finding] = {}
        found: list[Finding] = []
        told: list[Diagnostic] = []
        for finding in full.result.found:
            is_inside = began <= finding.span.start < ended
            if is_plain and not is_inside and (known := full.told.of(finding)) is not None:
                there = moves.diagnostic(known)
                if there is not None:
                    told.append(there)
                    continue
            each = moves.finding(finding)
            if each is None:
                continue
            if not is_inside:
                found.append(each)
            elif (key := _key(each)) in now or key not in was:
                kept.setdefault(key, each)
        for key, each in now.items():
            if key not in was or was[key].related != each.related:
                kept[key] = each
        found += kept.values()
        if is_plain:
            told += diagnostics_of(source, found, settings, self.path, weigh)
            told.sort(key=_in_text_order)
            return report_of(full.result, told, self.path)
        found.sort(key=lambda each: (each.span, each.code))
        script = Script(Code(source, chunks))
        report = report_on(script, replace(full.result, found=tuple(found)), settings, self.path, weigh)
        Program(script).forget()  # It holds a text that the next edit does not need.
        return report


def kept(found: Iterable[Diagnostic], path: str, old: Source, new: Source) -> tuple[Diagnostic, ...]:
    """Diagnostics of a text, moved to the next text of the file at `path` while that has a syntax error.

    They have no fixes meanwhile, and their regions may have been cut.
    """
    moves = _Moves(path, old, new)
    moved = []
    for each in found:
        span = moves.span(each.span) if each.span is not None else None
        if span is None:
            continue
        related = []
        for other in each.related:
            there = moves.span(other.region.span(old)) if other.path == path else None
            if there is not None:
                other = replace(other, region=Region.of(new, there))
            if there is not None or other.path != path:
                related.append(other)
        region = Region.of(new, span)
        moved.append(dataclasses.replace(each, region=region, related=tuple(related), fix=None, span=span))
    return tuple(moved)


def _changed(old: Sequence[Chunk], new: Sequence[Chunk]) -> tuple[int, int, int]:
    """The first chunk that differs between two versions, and the ends of those that do in each."""
    most = min(len(old), len(new))
    first = 0
    while first < most and old[first].facts is new[first].facts:
        first += 1
    last = 0
    while last < most - first and old[-1 - last].facts is new[-1 - last].facts:
        last += 1
    return first, len(old) - last, len(new) - last


def _alone(
    source: Source, chunks: Sequence[Chunk], wanted: Sequence[Chunk], settings: Settings
) -> tuple[Finding, ...]:
    """The findings in some chunks, read only together with the chunks that they name."""
    if not wanted:
        return ()
    program = Program(Script(Code(source, _with_named(chunks, wanted))), is_excerpt=True)
    found = judge(program, settings.without_hazards).found
    program.forget()
    start, end = wanted[0].offset, wanted[-1].offset + len(wanted[-1].text)
    return tuple(each for each in found if start <= each.span.start < end)


def _with_named(chunks: Sequence[Chunk], wanted: Sequence[Chunk]) -> list[Chunk]:
    """The chunks in `wanted` and the ones that bind their names, nearest first up to a limit, in
    text order.
    """
    binding: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        for name in chunk.facts.module.bindings:
            binding.setdefault(name, []).append(chunk)
    taken = {id(chunk.facts): chunk for chunk in wanted}
    waiting = list(wanted)
    left = _MOST_AROUND
    for chunk in waiting:
        for name in sorted(chunk.facts.names):
            for other in binding.get(name, ()):
                if id(other.facts) not in taken and len(other.text) <= left:
                    left -= len(other.text)
                    taken[id(other.facts)] = other
                    waiting.append(other)
    return sorted(taken.values(), key=lambda chunk: chunk.offset)


def _in_text_order(each: Diagnostic) -> tuple[int, int, str]:
    assert each.span is not None
    return each.span.start, each.span.end, each.code


def _key(finding: Finding) -> tuple[object, ...]:
    return finding.code, finding.verdict, finding.span, finding.message


class _Moves:
    """A map of findings and diagnostics from the text before an edit to the text after it."""

    def __init__(self, path: str, old: Source, new: Source) -> None:
        self._path = path
        self._old = old.text
        self._new = new.text
        self._shift = shift = Shift.between(old.text, new.text)
        # The edited lines of the old text, counted from 1, and the number of added lines.
        self._edited = old.line_of(shift.start) + 1, old.line_of(shift.end) + 1
        self._lines = len(new.line_starts) - len(old.line_starts)

    def finding(self, finding: Finding) -> Finding | None:
        """A finding at its new place; None if the edit cut its span."""
        span = self.span(finding.span)
        if span is None:
            return None
        related = []
        for each in finding.related:
            there = each.span if each.script is not None else self.span(each.span)
            if there is not None:
                related.append(Related(there, each.message, each.script))
        return finding.at(span, tuple(related))

    def diagnostic(self, diagnostic: Diagnostic) -> Diagnostic | None:
        """A diagnostic at its new place; None if it is on an edited line."""
        before = diagnostic.span
        span = self._shift.span(before) if before is not None else None
        region = self._region(diagnostic.region)
        related: tuple[OtherPlace, ...] = ()
        for each in diagnostic.related:
            there = self._region(each.region) if each.path == self._path else each.region
            if there is None:
                return None
            related += (each if there is each.region else replace(each, region=there),)
        if span is None or region is None:
            return None
        is_same = (span, region, related) == (before, diagnostic.region, diagnostic.related)
        return diagnostic if is_same else diagnostic.moved(region, related, span)

    def _region(self, region: Region) -> Region | None:
        """A region at its new place; None if one of its lines was edited."""
        first, last = self._edited
        if region.end_line < first or (region.line > last and not self._lines):
            return region
        return region.down(self._lines) if region.line > last else None

    def span(self, span: Span) -> Span | None:
        """A span at its new place; between two edits it is the part with the same text, if that is unique."""
        there = self._shift.span(span)
        if there is not None:
            return there
        text = self._old[span.start : span.end]
        end = self._shift.end + self._shift.distance + len(text)
        at = self._new.find(text, max(self._shift.start - len(text), 0), end) if text else -1
        if at < 0 or self._new.find(text, at + 1, end) >= 0:
            return None
        return Span(at, at + len(text))
