"""Hazards of a result: the defects that a conversion leaves in a program that already uses Horovod.

Such a program is not called distributed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from msgspec.structs import replace

from trainshift.core.finding import Finding, Verdict
from trainshift.core.program import Program
from trainshift.engine.edited import edited, forget_edited
from trainshift.engine.findings import hazards_of
from trainshift.python.source.edit import Change, Edit, merge
from trainshift.python.source.source import Span
from trainshift.restrictions import HAZARDS
from trainshift.training.horovod.existing_use import Horovod

log = logging.getLogger(__name__)
_SERIOUS = frozenset(rule.code for rule in HAZARDS if rule.is_serious)


def hazards_left(program: Program, changes: Iterable[Change]) -> tuple[Finding, ...]:
    """The hazards violated after the changes of a program, with places in the original.

    Those that merely waste work are left out, and a program without Horovod has none.
    """
    if not program.fact(Horovod).is_used:
        return ()
    edits = merge(changes).edits
    if not edits:
        return serious(program)
    result = edited(program, edits)
    try:
        return tuple(replace(each, span=original(each.span, edits)) for each in serious(result))
    finally:
        forget_edited(result)


def serious(program: Program, answered: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
    """The violated hazards of a program that do more than waste work, without those that are `answered`."""
    judgement = hazards_of(program, _SERIOUS - answered)
    for defect in judgement.defects:
        log.error("a hazard could not be judged: %s", defect)
    return tuple(each for each in judgement.found if each.verdict is Verdict.VIOLATED)


def original(span: Span, edits: tuple[Edit, ...]) -> Span:
    """Map a span of a result back to the text before the edits, which are in text order."""
    at = span.start
    for edit in edits:
        if edit.start >= at:
            break
        at -= min(len(edit.text) - (edit.end - edit.start), at - edit.start)
    return Span(at, at)
