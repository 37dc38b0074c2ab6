"""Accumulated gradients must be averaged where the rate grows with their number.

    opt = SGD(0.01 * k * hvd.size())        opt = SGD(0.01 * k * hvd.size())
    opt = hvd.DistributedOptimizer(         opt = hvd.DistributedOptimizer(
        opt, backward_passes_per_step=k)        opt, backward_passes_per_step=k,
                                                average_aggregated_gradients=True)

## Why it matters

Horovod adds up the gradients of the batches of one step. With a rate that is multiplied by their number as
well, each step is that many times too long.

## What to do

Pass `average_aggregated_gradients=True`, or leave the number out of the rate.

## What is reported

`backward_passes_per_step` above 1 without `average_aggregated_gradients=True`, where the rate is multiplied
by the same number. Harmless is a rate that is not; unknown a number that comes from outside.
"""

from __future__ import annotations

import ast

from trainshift.core.finding import Verdict
from trainshift.core.names.occurrence import Occurrence
from trainshift.core.names.values import Literal
from trainshift.core.program import Program
from trainshift.core.ranks.work.rates import Rates
from trainshift.core.text.edit import Change, Edit
from trainshift.core.text.facts import Site, argument
from trainshift.core.training.horovod import Horovod
from trainshift.restrictions.facts.places import hazard, text_of
from trainshift.restrictions.restriction import Findings

_PASSES, _AVERAGED = "backward_passes_per_step", "average_aggregated_gradients"
_WRAPS = ("DistributedOptimizer", "PartialDistributedOptimizer")


def check(program: Program) -> Findings:
    """One finding for each wrap that adds up the gradients of several batches."""
    for site in program.fact(Horovod).calls(*_WRAPS):
        passes = argument(site.node, None, _PASSES)
        averaged = argument(site.node, None, _AVERAGED)
        if passes is None or (
            averaged is not None and not (isinstance(averaged, ast.Constant) and not averaged.value)
        ):
            continue
        at = Occurrence(passes, site.scope, site.statement)
        known = [each.value for each in program.names.site_values(passes, site) if isinstance(each, Literal)]
        if known and all(each == 1 for each in known):
            continue
        text = text_of(program, passes, site)
        if program.fact(Rates).has_factor(site, at):
            message = (
                f"The gradients of {text} batches are added up, and the rate is multiplied by {text} as "
                "well. "
                f"Pass {_AVERAGED}=True."
            )
            yield hazard(
                program, "HZ24", Verdict.VIOLATED, site, message, fix=_fix(program, site, averaged), asks=True
            )
        elif not known or ... in known:
            message = (
                f"The gradients of {text} batches are added up. "
                f"Check that the rate is not multiplied by {text} as well."
            )
            yield hazard(program, "HZ24", Verdict.UNKNOWN, site, message)
        else:
            message = (
                f"The gradients of {text} batches are added up and not averaged, so each step is as long."
            )
            yield hazard(program, "HZ24", Verdict.HARMLESS, site, message)


def _fix(program: Program, site: Site, averaged: ast.expr | None) -> Change:
    span = program.script.span(site.node, site)
    if averaged is not None:
        inner = program.script.span(averaged, site)
        edit = Edit(inner.start, inner.end, "True")
    else:
        last = program.script.span(site.node.keywords[-1], site)
        edit = Edit(last.end, last.end, f", {_AVERAGED}=True")
    return Change("HZ24", "Average the accumulated gradients", span, (edit,))
