"""Guards: the consequences for a change if a restriction that its rule relies on does not hold.

The question is always whether this change could be wrong because of this finding (spec.md 1), so only
findings that are about, or concern, the changed statement count.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from trainshift.core.finding import Finding, Verdict
from trainshift.python.source.edit import Change, Withheld
from trainshift.python.source.source import Span
from trainshift.transforms import TRANSFORMS
from trainshift.transforms.rule import Consequence, Guard

GUARDING = frozenset(
    guard.code
    for rule in TRANSFORMS
    for guard in rule.guards
    if (guard.violated, guard.unknown) != (Consequence.NONE, Consequence.NONE)
)
"""The restrictions that can change what becomes of a change."""


def guarded(change: Change, guards: Iterable[Guard], findings: Iterable[Finding]) -> Change | Withheld:
    """The change with its doubts, or the reason why it is withheld."""
    by_code = {guard.code: guard for guard in guards}
    for finding in findings:
        guard = by_code.get(finding.code)
        if guard is None or finding.settled or not _concerns(finding, change.target):
            continue
        effect = {Verdict.VIOLATED: guard.violated, Verdict.UNKNOWN: guard.unknown}.get(finding.verdict)
        reason, causes = f"{finding.code}: {finding.message}", (finding.code,)
        if effect in (Consequence.WITHHOLD, Consequence.REFUSE):
            return Withheld(change.rule, change.target, reason, effect is Consequence.REFUSE, causes)
        # The rule's own doubt about the same statement says more than the finding.
        if effect is Consequence.DOUBT and not change.doubts:
            change = replace(change, doubts=(reason,), causes=causes, because=finding.span)
    return change


def _concerns(finding: Finding, target: Span) -> bool:
    spans = (finding.span, *finding.concerns)
    return any(span.start < target.end and target.start < span.end for span in spans)
