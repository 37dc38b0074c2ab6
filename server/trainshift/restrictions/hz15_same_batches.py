"""Each rank must train on batches of its own.

    ds = ds.shuffle(1000, seed=7)           ds = ds.shuffle(1000, seed=7 + hvd.rank())
    ds = ds.batch(32)                       ds = ds.batch(32)

## Why it matters

All ranks average gradients of the same batch. N ranks do the work of one, at N times its rate.

## What to do

Add `hvd.rank()` to its seed, or take `.shard(hvd.size(), hvd.rank())` first.

## What is reported

A loop over data that all ranks share, in the same order: nothing shuffles, or every shuffle has the same
seed. Unknown: a seed from outside.
"""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.source.edit import Change
from trainshift.restrictions.fixes.places import appended, horovod_name
from trainshift.training.data.loop_inputs import Feed, Feeds
from trainshift.training.ranks.shared_loops import Together
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.verdict import Unknown

_MAKING = tuple(
    f"tensorflow.data.{name}"
    for name in (
        "Dataset.from_tensor_slices", "Dataset.from_generator", "Dataset.range", "TFRecordDataset",
        "TextLineDataset", "FixedLengthRecordDataset",
    )
)  # fmt: skip


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each loop whose ranks all take the same batches."""
    feeds = program.fact(Feeds)
    for loop in program.fact(Together).loops:
        feed = feeds.of(loop)
        if not feeds.is_seen(feed) or feeds.is_own(feed):
            continue
        order = feeds.order(feed)
        if order.is_uniform:
            message = (
                "All ranks train on the same batches: N ranks do the work of one, at N times its rate. "
                "Add hvd.rank() to its seed, or shard the data."
            )
            fix = _by_rank(program, report, feeds.seeds(feed)) or _sharded(program, report, feed)
            yield report.violated(loop.sites[0], message, fix=fix, asks=True)
        elif isinstance(order, Unknown):
            message = (
                "If all ranks get the same seed here, they train on the same batches. Add hvd.rank() to it."
            )
            yield report.unknown(loop.sites[0], message)


def _by_rank(program: Program, report: Report, seeds: list[Occurrence]) -> Change | None:
    """Add the rank to the only seed of the order."""
    name = horovod_name(program, seeds[0]) if len(seeds) == 1 else ""
    if not name or not isinstance(seeds[0].node, ast.Constant | ast.Name):
        return None
    return appended(report, "Add the rank to the seed", seeds[0], f" + {name}.rank()")


def _sharded(program: Program, report: Report, feed: Feed) -> Change | None:
    """Shard the data for each rank, directly after the only call that creates them, if steps are equal."""
    bounded = feed.steps and not any(map(program.fact(Uniformity).on_rank, feed.steps))
    made = [site for site in feed.calls if program.names.calls(site, *_MAKING)]
    name = horovod_name(program, made[0]) if len(made) == 1 else ""
    if not name or not bounded or not any(call.name == "repeat" for call in feed.calls):
        return None  # A share may have one batch less than the others.
    function = made[0].scope.function()
    if function is not None and len(program.names.callers(function)[0]) != 1:
        return None
    return appended(report, "Shard the data", of_call(made[0]), f".shard({name}.size(), {name}.rank())")
