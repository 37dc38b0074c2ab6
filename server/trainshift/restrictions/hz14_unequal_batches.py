"""All ranks must take equally many steps.

    ds = ds.shard(hvd.size(), hvd.rank())   ds = ds.shard(hvd.size(), hvd.rank())
    ds = ds.batch(16)                       ds = ds.batch(16).take(n // hvd.size() // 16)

## Why it matters

A rank with one batch more waits for the others in its last step, and dies when they end. `drop_remainder`
does not help.

## What to do

Give all ranks the same number of steps, by `take` or `steps_per_epoch`.

## What is reported

Data that are split by rank, of which parts may be longer than others, and that are read to their end; or
steps that are computed from a rank's own part. Fine are slices of `n // size`, equal steps, and `join` after
the loop.
"""

from __future__ import annotations

from trainshift.core.finding import Verdict
from trainshift.core.program import Program
from trainshift.core.ranks.together import Together
from trainshift.core.ranks.work.shares import Shares
from trainshift.restrictions.facts.places import beside, hazard
from trainshift.restrictions.restriction import Findings


def check(program: Program) -> Findings:
    """One finding for each split that leaves some rank more batches than others."""
    shares = program.fact(Shares)
    seen = set[int]()
    for loop in program.fact(Together).averaged:
        for uneven in shares.uneven(loop):
            if id(uneven.at.node) in seen:
                continue
            seen.add(id(uneven.at.node))
            related = (beside(program, loop.sites[0], "the loop that reads it"),)
            message = "Parts may differ by a row, and a rank with one batch more waits for the others. " + (
                "Compute the steps from n // hvd.size()." if uneven.counted else "Give all ranks equal steps."
            )
            is_seen = uneven.counted or not uneven.is_file
            if not is_seen:
                message = "If the files differ in length, a rank with more batches waits for the others."
            verdict = Verdict.VIOLATED if is_seen else Verdict.UNKNOWN
            yield hazard(program, "HZ14", verdict, uneven.at, message, related)
