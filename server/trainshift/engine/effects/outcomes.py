"""Outcomes: what a conversion does where, and what it does because of a finding.

Apart from `effects.py`, which asks the conversion, so that who is told of outcomes loads no rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from trainshift.core.finding import Effect, Finding
from trainshift.core.text.source import Span


class Outcome(NamedTuple):
    """What a conversion does at a place of the file at `path`, and the codes of what it may do it for."""

    path: str
    span: Span
    codes: frozenset[str]
    effect: Effect


def effect_of(finding: Finding, outcomes: Iterable[Outcome]) -> Effect:
    """What a conversion does because of a finding, by what it does in the finding's file."""
    related = (each.span for each in finding.related if each.script is None)
    spans = (finding.span, *finding.concerns, *related)
    found = (
        outcome.effect
        for outcome in outcomes
        if finding.code in outcome.codes
        and any(span.start < outcome.span.end and outcome.span.start < span.end for span in spans)
    )
    return max(found, default=Effect.NONE)
