"""Audit: check that a converted text trains correctly, judged by that text alone.

Each optimizer step must be averaged exactly once, each rate scaled and all data divided at most once, and all
ranks must start from equal weights. The audit uses none of the rules and none of their analyses, so that it
finds their gaps and repetitions. It also checks the result for every serious hazard of scripts distributed by
hand: one that the source did not have stops the conversion.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.engine.audit.hazards import original, serious
from trainshift.engine.edited import edited, forget_edited
from trainshift.python.source.edit import Change, Edit, merge
from trainshift.python.source.source import Span
from trainshift.restrictions import HAZARDS
from trainshift.restrictions.hazard import InResult
from trainshift.training.data.dividing import Dividing
from trainshift.training.horovod.defects import Flaw
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.initial_state.initial_weights import Beginning
from trainshift.training.learning_rates.double_scaling import DoubleScaling
from trainshift.training.loops.loops import Loops
from trainshift.training.optimizers.averaging import Averaging

log = logging.getLogger(__name__)

_UNAVERAGED = (
    "nothing in the result would average gradients; if another file starts the training, convert that one"
)
_DOUBTED, _AUDITED = (
    frozenset(hazard.code for hazard in HAZARDS if hazard.in_result is meaning)
    for meaning in (InResult.DOUBTED, InResult.AUDITED)
)


class Fault(Struct, frozen=True):
    """A defect of a conversion's result; not `certain` if the script does not show enough.

    `span` is the place in the converted text; for a program, in all files one after another.  `code` is the
    code of the hazard, "" for none.
    """

    text: str
    span: Span
    certain: bool = True
    code: str = ""


def faults_of(
    program: Program, changes: Iterable[Change], said: frozenset[str] = frozenset()
) -> tuple[Fault, ...]:
    """The defects of the text after all changes of a program, except those in `said`."""
    plan = merge(changes)
    edits, result = plan.edits, edited(program, plan.edits)
    nowhere = min((each.target for each in plan.changes), default=Span(0, 0))
    try:
        found = [
            Fault(
                flaw.text,
                original(result.script.span(flaw.site.node, flaw.site), edits) if flaw.site else nowhere,
                flaw.certain,
            )
            for flaw in _flaws(result)
        ]
        if not any(each.certain for each in found) and not program.fact(Horovod).is_used:
            found += _hazards(result, edits, said)
        return tuple(dict.fromkeys(found))
    except RecursionError:
        raise
    except Exception:
        log.exception("the audit failed")
        return (Fault("an internal error: the result could not be checked", nowhere, certain=False),)
    finally:
        forget_edited(result)


def _hazards(result: Program, edits: tuple[Edit, ...], said: frozenset[str]) -> list[Fault]:
    """The serious hazards of a result whose source did not use Horovod, and so had none."""
    return [
        Fault(each.message, original(each.span, edits), each.code not in _DOUBTED, each.code)
        for each in serious(result, _AUDITED | said)
    ]


def _flaws(result: Program) -> list[Flaw]:
    """The defects of a converted program, in no order."""
    trains = next((site for loop in result.fact(Loops).own for site in loop.sites), None)
    if not result.fact(Averaging).calls:
        return [Flaw(_UNAVERAGED, trains)]
    if not result.fact(Horovod).calls("init"):
        return [Flaw("nothing starts Horovod", trains)]
    return [
        *result.fact(Averaging).flaws(),
        *result.fact(DoubleScaling).flaws(),
        *result.fact(Beginning).flaws(),
        *result.fact(Dividing).flaws(),
    ]
