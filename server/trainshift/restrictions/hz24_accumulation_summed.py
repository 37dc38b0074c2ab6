"""Accumulated gradients must be averaged where the rate grows with their number.

    opt = SGD(0.01 * k * hvd.size())        opt = SGD(0.01 * k * hvd.size())
    opt = hvd.DistributedOptimizer(         opt = hvd.DistributedOptimizer(
        opt, backward_passes_per_step=k)        opt, backward_passes_per_step=k,
                                                average_aggregated_gradients=True)

## Why it matters

Horovod sums the gradients of the batches of one step. If the rate is multiplied by their number as well, each
step is that many times too long.

## What to do

Pass `average_aggregated_gradients=True`, or leave the number out of the rate.

## What is reported

`backward_passes_per_step` above 1 without `average_aggregated_gradients=True`, where the rate is multiplied
by the same number. Harmless: a rate that is not multiplied. Unknown: a number that comes from outside.
"""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Literal
from trainshift.python.source.edit import Change, Edit
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.restrictions.fixes.places import text_of
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.learning_rates.rates import Rates

_PASSES, _AVERAGED = "backward_passes_per_step", "average_aggregated_gradients"
_WRAPS = ("DistributedOptimizer", "PartialDistributedOptimizer")


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each wrap that sums the gradients of several batches."""
    for site in program.fact(Horovod).calls(*_WRAPS):
        at = next(iter(program.names.given(site, None, _PASSES)), None)
        averaged = next(iter(program.names.given(site, None, _AVERAGED)), None)
        if at is None or (averaged is not None and not _is_false(averaged)):
            continue
        known = [each.value for each in program.names.values(*at[:3]) if isinstance(each, Literal)]
        if known and all(each == 1 for each in known):
            continue
        text = text_of(program, at.node, at.scope)
        if program.fact(Rates).has_factor(site, at):
            message = (
                f"The gradients of {text} batches are summed, and the rate is multiplied by {text} as "
                f"well. Pass {_AVERAGED}=True."
            )
            yield report.violated(site, message, fix=_fix(program, report, site, averaged), asks=True)
        elif not known or ... in known:
            message = (
                f"The gradients of {text} batches are summed. Check that the rate is not multiplied by "
                f"{text} as well."
            )
            yield report.unknown(site, message)
        else:
            message = (
                f"The gradients of {text} batches are summed and not averaged, so each step is {text} times "
                f"as long."
            )
            yield report.harmless(site, message)


def _is_false(at: Occurrence) -> bool:
    return isinstance(at.node, ast.Constant) and not at.node.value


def _fix(program: Program, report: Report, site: Site, averaged: Occurrence | None) -> Change:
    span = program.script.span(site.node, site)
    if averaged is not None:
        inner = program.script.span(averaged.node, averaged.scope)
        edit = Edit(inner.start, inner.end, "True")
    else:
        last = program.script.span(site.node.keywords[-1], site)
        edit = Edit(last.end, last.end, f", {_AVERAGED}=True")
    return report.change("Average the accumulated gradients", span, (edit,))
