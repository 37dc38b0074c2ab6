"""The batch of a rank must not be multiplied by the number of ranks.

    batch = 32 * hvd.size()                 batch = 32
    ds = ds.batch(batch)                    ds = ds.batch(batch)

## Why it matters

That is a habit of `tf.distribute`. In Horovod the batch is that of one rank, so each rank still reads every
row.

## What to do

Drop the factor, and divide the steps by `hvd.size()`.

## What is reported

A batch of a training loop that is multiplied by `hvd.size()`, of which no part is taken.
"""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.source.edit import Change, Edit
from trainshift.restrictions.fixes.factors import divided, without_factor
from trainshift.restrictions.fixes.places import horovod_name, text_of
from trainshift.training.data.loop_inputs import Feed, Feeds
from trainshift.training.ranks.shared_loops import Together
from trainshift.training.uniformity.uniformity import Uniformity


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each batch that is multiplied and not divided again."""
    feeds = program.fact(Feeds)
    seen = set[int]()
    for loop in program.fact(Together).loops:
        feed = feeds.of(loop)
        batch = feeds.multiplied_batch(feed)
        if batch is None or id(batch.node) in seen or feeds.takes_part(feed, batch):
            continue
        seen.add(id(batch.node))
        text = text_of(program, batch.node, batch.scope)
        message = (
            f"{text} is the batch of one rank, and is multiplied by the number of ranks. "
            "Drop the factor, and divide the steps by hvd.size()."
        )
        yield report.violated(
            batch,
            message,
            fix=_of_one_rank(program, report, feed, batch),
            asks=True,
        )


def _of_one_rank(program: Program, report: Report, feed: Feed, batch: Occurrence) -> Change | None:
    """Remove the factor from the batch size, and divide the steps or epochs if nothing does yet."""
    edit, name = without_factor(program, batch), horovod_name(program, batch)
    if edit is None or not name:
        return None
    counts = (*feed.steps, *feed.epochs)
    divisions: tuple[Edit, ...] = ()
    title = "Drop the factor"
    if not any(map(program.fact(Uniformity).on_size, counts)):
        # Without the factor nothing divides the work.
        if len(counts) != 1 or not isinstance(counts[0].node, ast.Constant | ast.Name):
            return None
        divisions = divided(program, counts[0], f"{name}.size()")
        title = "Drop the factor, and divide the steps"
    return report.change(title, program.script.span(batch.node, batch.scope), (edit, *divisions))
