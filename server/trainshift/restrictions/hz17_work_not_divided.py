"""The work of a training loop must be divided among the ranks.

    model.fit(ds, epochs=10)                model.fit(ds, epochs=10, steps_per_epoch=1000 // hvd.size())

## Why it matters

Every rank reads all of the data, so N ranks take as long as one.

## What to do

Divide the steps, or the epochs, by `hvd.size()`; or give each rank its share of the data.

## What is reported

A loop over data that all ranks share, whose steps and epochs do not depend on `hvd.size()`. Unknown:
steps from outside. Not reported: ranks that share one batch.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.training.data.loop_inputs import Feed, Feeds
from trainshift.training.ranks.shared_loops import Together


def check(program: Program, report: Report) -> Findings:
    """Yield one finding for each loop in which every rank does all of the work."""
    feeds = program.fact(Feeds)
    for loop in program.fact(Together).loops:
        feed = feeds.of(loop)
        if not feeds.is_seen(feed) or feeds.is_own(feed) or feeds.is_divided(feed):
            continue
        if feeds.keeps_global_batch(feed) or feeds.multiplied_batch(feed) or _is_same(feeds, feed):
            continue
        if feeds.is_counted_outside(feed):
            message = (
                "Trainshift cannot tell whether these steps are divided by hvd.size(). Check that they are."
            )
            yield report.unknown(loop.sites[0], message)
        else:
            message = "Every rank reads all of the data. Divide the steps by hvd.size()."
            yield report.violated(loop.sites[0], message)


def _is_same(feeds: Feeds, feed: Feed) -> bool:
    """Return whether another hazard reports it: all ranks take the same batches."""
    return feeds.order(feed).is_uniform
