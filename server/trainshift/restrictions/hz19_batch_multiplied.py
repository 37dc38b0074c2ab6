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

from trainshift.core.finding import Verdict
from trainshift.core.names.occurrence import Occurrence
from trainshift.core.program import Program
from trainshift.core.ranks.dependence import Dependence
from trainshift.core.ranks.together import Together
from trainshift.core.ranks.work.feeds import Feeds
from trainshift.core.text.edit import Change
from trainshift.restrictions.facts.places import hazard, replaced, text_of
from trainshift.restrictions.restriction import Findings


def check(program: Program) -> Findings:
    """One finding for each batch that is multiplied and not divided again."""
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
        # Without the factor nothing divides the work, unless the steps do.
        divided = any(map(program.fact(Dependence).on_size, (*feed.steps, *feed.epochs)))
        fix = _without_factor(program, batch) if divided else None
        yield hazard(program, "HZ19", Verdict.VIOLATED, batch, message, fix=fix, asks=True)


def _without_factor(program: Program, batch: Occurrence) -> Change | None:
    """The batch of one rank, where the product is written out."""
    node = batch.node
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    for side, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(side, ast.Call) and program.fact(Dependence).on_size(batch.part(side)):
            text = program.script.text(other, batch.scope)
            return replaced(program, "HZ19", "Drop the factor", batch, text)
    return None
