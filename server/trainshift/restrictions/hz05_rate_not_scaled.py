"""The learning rate must follow the number of ranks.

    opt = SGD(0.01)                         opt = SGD(0.01 * hvd.size())

## Why it matters

N ranks take one step on a batch that is N times as large. With the rate of one rank, they learn N times more
slowly.

## What to do

Multiply the rate by `hvd.size()`, or warm it up to the product.

## What is reported

A distributed optimizer whose rate is a number, its default or a schedule made of numbers, and that nothing
scales later. Unknown: a rate from outside. Not reported: `op=Sum`, Adasum, a square root, and ranks that
share one batch."""

from __future__ import annotations

from trainshift.core.finding import Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.training.data.loop_inputs import Feeds
from trainshift.training.learning_rates.rates import Rates
from trainshift.training.ranks.shared_loops import Together


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each distributed optimizer whose rate is that of one rank."""
    rates = program.fact(Rates)
    if rates.is_set_later or _keeps_global_batch(program):
        return
    together = program.fact(Together)
    # Gradients that are not averaged yet (HZ07, HZ08) will be, and the rate must then match.
    plain = [each.loop for each in (*together.plain_tapes, *together.plain_optimizers)]
    optimizers = [at for loop in plain if loop is not None for at in loop.optimizers]
    shared = {site: list[Site]() for at in optimizers for site in rates.makers(at)} | rates.shared
    for site, wraps in shared.items():
        if rates.sums(wraps) or rates.uses_adasum(wraps) or not program.fact(Together).runs(site.scope):
            continue
        verdict = _judge(program, site)
        if verdict is Verdict.VIOLATED:
            message = (
                "The total batch is hvd.size() times as large, but the rate is not. "
                "Multiply it by hvd.size()."
            )
            yield report.finding(verdict, site, message)
        elif verdict is not None:
            message = (
                "Trainshift cannot tell whether this rate is multiplied by hvd.size(). Check that it is."
            )
            yield report.finding(verdict, site, message)


def _judge(program: Program, site: Site) -> Verdict | None:
    rates = program.fact(Rates)
    rate = rates.rate(site)
    if rate is None:
        starred = any(word.arg is None for word in site.node.keywords)
        return Verdict.UNKNOWN if starred else Verdict.VIOLATED
    if rates.is_scaled(rate):
        return None
    return Verdict.VIOLATED if rates.is_known(rate) else Verdict.UNKNOWN


def _keeps_global_batch(program: Program) -> bool:
    feeds = program.fact(Feeds)
    return any(feeds.keeps_global_batch(feeds.of(loop)) for loop in program.fact(Together).loops)
