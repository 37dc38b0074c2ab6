"""All ranks must take equally many steps.

    ds = ds.shard(hvd.size(), hvd.rank())   ds = ds.shard(hvd.size(), hvd.rank())
    ds = ds.batch(16)                       ds = ds.batch(16).take(n // hvd.size() // 16)

## Why it matters

A rank with an extra batch waits for the others in its last step, and fails when they end. `drop_remainder`
does not help.

## What to do

Give all ranks the same number of steps, by `take` or `steps_per_epoch`.

## What is reported

Data that are split by rank into parts of different lengths and read to their end; or steps that are computed
from a rank's own part. Not reported: slices of `n // size`, equal steps, and `join` after the loop.
"""

from __future__ import annotations

import ast

from trainshift.core.finding import Verdict
from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report, span_of
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.source.edit import Change
from trainshift.python.syntax.chunk_syntax import Scope, Site, argument, hides_arguments, last_name
from trainshift.restrictions.fixes.places import appended, beside, horovod_name
from trainshift.training.data.loop_inputs import Feed, Feeds
from trainshift.training.data.shares import Shares, Uneven
from trainshift.training.loops.loop_kinds import Loop
from trainshift.training.ranks.shared_loops import Together
from trainshift.training.uniformity.backward_slice import Trails

# Functions that create data with batches of their own.
_DATASETS = ("batch", "padded_batch", "from_tensor_slices", "from_generator", "flow", "flow_from_directory")


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each split that gives some ranks more batches than others."""
    shares = program.fact(Shares)
    seen = set[int]()
    for loop in program.fact(Together).averaged:
        for uneven in shares.uneven(loop):
            if id(uneven.at.node) in seen:
                continue
            seen.add(id(uneven.at.node))
            related = (beside(program, loop.sites[0], "the loop that reads it"),)
            message = "Shards may differ by a row, and a rank with an extra batch waits for the others. " + (
                "Compute the steps from n // hvd.size()." if uneven.counted else "Give all ranks equal steps."
            )
            is_seen = uneven.counted or not uneven.is_file
            if not is_seen:
                message = "If the files differ in length, a rank with more batches waits for the others."
            verdict = Verdict.VIOLATED if is_seen else Verdict.UNKNOWN
            fixable = is_seen and not uneven.counted
            fix = (
                (_taken(program, report, loop, uneven) or _stepped(program, report, loop, uneven))
                if fixable
                else None
            )
            yield report.finding(verdict, uneven.at, message, related, fix, asks=True)


def _taken(program: Program, report: Report, loop: Loop, uneven: Uneven) -> Change | None:
    """Limit each rank to the number of batches that all ranks have, after the batching of a split of
    known length.
    """
    feed = program.fact(Feeds).of(loop)
    batches = [each for each in feed.calls if each.name in ("batch", "padded_batch")]
    repeats = any(each.name == "repeat" for each in feed.calls)
    name, rows = horovod_name(program, uneven.at), _rows(program, feed, uneven)
    if len(batches) != 1 or repeats or not name or rows is None:
        return None
    (batch,) = batches
    size = argument(batch.node, 0, "batch_size")
    if not isinstance(size, ast.Constant | ast.Name) or not _is_read_in(rows, batch):
        return None
    of = Occurrence(batch.node.func, batch.scope, batch.statement)
    if not any(each.node is uneven.at.node for each in program.fact(Trails).behind(of)):
        return None
    text = f".take(len({rows.id}) // {name}.size() // {program.script.text(size, batch)})"
    return appended(report, "Take equally many batches on all ranks", of.part(batch.node), text)


def _stepped(program: Program, report: Report, loop: Loop, uneven: Uneven) -> Change | None:
    """Limit each rank to the number of steps that all ranks have, if a `fit` gets a part of an array
    directly.
    """
    fit, feed = loop.sites[0], program.fact(Feeds).of(loop)
    name, rows = horovod_name(program, fit), _rows(program, feed, uneven)
    batches = any(each.name in _DATASETS for each in feed.calls)
    if (
        not feed.is_fit
        or fit.name != "fit"
        or batches
        or not name
        or rows is None
        or hides_arguments(fit.node)
    ):
        return None
    size = argument(fit.node, 2, "batch_size")
    if not isinstance(size, ast.Constant | ast.Name | None) or not _is_read_in(rows, fit):
        return None
    batch = program.script.text(size, fit) if size is not None else "32"
    edits = program.fact(Layout).add_keyword(
        fit, "steps_per_epoch", f"len({rows.id}) // {name}.size() // {batch}"
    )
    return report.change("Take equally many batches on all ranks", span_of(program, fit), edits)


def _rows(program: Program, feed: Feed, uneven: Uneven) -> ast.Name | None:
    """The array whose rows are split."""
    given: ast.expr | None = None
    if isinstance(uneven.at.node, ast.Subscript):
        given = uneven.at.node.value
    made = [each for each in feed.calls if each.name == "from_tensor_slices"]
    if given is None and len(made) == 1:
        given = argument(made[0].node, 0, "tensors")
    if isinstance(given, ast.Call) and last_name(given.func) == "array_split" and given.args:
        given = given.args[0]
    if isinstance(given, ast.Tuple | ast.List) and given.elts:
        given = given.elts[0]
    return given if isinstance(given, ast.Name) else None


def _is_read_in(rows: ast.Name, batch: Site) -> bool:
    """Return whether an array is bound once, where a call can read it."""
    scope: Scope | None = batch.scope
    while scope is not None and rows.id not in scope.bindings:
        scope = scope.parent
    return scope is None or len(scope.bindings[rows.id]) == 1
