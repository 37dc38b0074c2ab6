"""Outcomes: the effects of a conversion by place, and their causes.

Separate from `asking.py`, which runs the conversion, so that readers of outcomes load no rules.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from msgspec.structs import replace

from trainshift.core.finding import Effect, Finding, Verdict
from trainshift.engine.findings import Judgement
from trainshift.engine.own_codes import NOT_CONVERTED
from trainshift.python.source.source import Span
from trainshift.restrictions import HAZARDS

_HAZARDS = frozenset(rule.code for rule in HAZARDS)


class Outcome(NamedTuple):
    """An outcome of the conversion at a place of the file at `path`, and the codes that may have caused it.

    Without codes, the whole program is refused. `told` is the message of a refusal or a withheld change.
    """

    path: str
    span: Span
    codes: frozenset[str]
    effect: Effect
    told: str = ""


_MESSAGES = {
    Effect.REFUSES: "`convert` refuses this program: {}.",
    Effect.WITHHOLDS: "`convert` leaves this as it is: {}.",
}


def with_left_out(judgement: Judgement, effects: Effects) -> Judgement:
    """Add the refusals and withheld changes of a conversion to the findings of a file."""
    found = [each for each in judgement.found if each.code != NOT_CONVERTED.code]
    found += effects.left_out(found)
    return replace(judgement, found=tuple(sorted(found, key=lambda each: (each.span, each.code))))


def _tells(finding: Finding, outcome: Outcome) -> bool:
    """Return whether a finding is a warning for the same reason, at the same place."""
    is_cause = finding.code in outcome.codes or finding.code in _HAZARDS
    if not is_cause or finding.settled or finding.verdict is Verdict.HARMLESS:
        return False
    related = (each.span for each in finding.related if each.script is None)
    spans = (finding.span, *finding.concerns, *related)
    return any(each.start < outcome.span.end and outcome.span.start < each.end for each in spans)


class Effects:
    """The outcomes of a conversion in one file, indexed by place: a long file has hundreds of findings."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self._by_code: dict[str, list[Outcome]] = {}
        self._known = known = sorted(outcomes, key=lambda each: each.span)
        is_refused = any(not each.codes for each in known)
        self._otherwise = None if is_refused else Effect.NONE
        for outcome in known:
            for code in outcome.codes:
                self._by_code.setdefault(code, []).append(outcome)
        self._starts = {code: [each.span.start for each in own] for code, own in self._by_code.items()}
        # The furthest end up to each outcome: no earlier outcome reaches a place if it ends above that
        # place.
        self._ends = {
            code: list(accumulate((each.span.end for each in own), max))
            for code, own in self._by_code.items()
        }

    def of(self, finding: Finding) -> Effect | None:
        """The largest effect of a finding on the conversion; the default if no outcome is due to it."""
        own = self._by_code.get(finding.code)
        if own is None or finding.settled:
            return self._otherwise
        related = (each.span for each in finding.related if each.script is None)
        spans = (finding.span, *finding.concerns, *related)
        found = (each.effect for span in spans for each in self._at(finding.code, own, span))
        return max(found, default=self._otherwise)

    def left_out(self, found: Sequence[Finding]) -> Iterator[Finding]:
        """Yield a finding for each refusal and withheld change, unless one of `found` reports it."""
        done: set[tuple[Span, str]] = set()
        for outcome in self._known:
            if outcome.told and (outcome.span, outcome.told) not in done:
                done.add((outcome.span, outcome.told))
                if not any(_tells(each, outcome) for each in found):
                    message = _MESSAGES[outcome.effect].format(outcome.told.rstrip("."))
                    yield Finding(NOT_CONVERTED.code, Verdict.VIOLATED, outcome.span, message)

    def _at(self, code: str, own: list[Outcome], span: Span) -> Iterator[Outcome]:
        index = bisect_left(self._starts[code], span.end) - 1
        while index >= 0 and self._ends[code][index] > span.start:
            if own[index].span.end > span.start:
                yield own[index]
            index -= 1
