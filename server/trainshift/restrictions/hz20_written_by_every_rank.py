"""One rank alone must write a file.

    model.save("model.h5")                  if hvd.rank() == 0:
                                                model.save("model.h5")

## Why it matters

All ranks write the same file at once. The file is broken or lost, and HDF5 ends the job.

## What to do

Write under `if hvd.rank() == 0:`, and put callbacks that write into the list on rank 0 only.

## What is reported

Writes by every rank: models, checkpoints, summaries, files, folders, and callbacks of a `fit` that write.
Moves, deletions and transfers by every rank: uploads, requests, messages, and commands that do these. Runs of
an experiment log that every rank starts, with `wandb`, `mlflow` and similar libraries. Not reported: a path
that names the rank, a temporary one, and memory."""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.restrictions.fixes.places import text_of
from trainshift.training.rank_regions.root_only import RootOnly
from trainshift.training.rank_regions.writes import Writes
from trainshift.training.ranks.shared_loops import Together


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each write that all ranks make to one path, and for each tracker that all ranks
    start.
    """
    if not program.fact(Together).loops:
        return
    writes = program.fact(Writes).by_all
    reasons: dict[ast.expr, str] = (
        {call.site.node: call.reason for call in program.fact(RootOnly).calls} if writes else {}
    )
    for at in writes:
        name = text_of(program, at.node.func, at.scope)  # type: ignore[attr-defined]
        is_file = at.node not in program.fact(Writes).once
        what = " and writes the same file" if is_file else ", which must be done once"
        reason = reasons.get(at.node, "")
        advice = f"Rank 0 alone cannot: {reason}." if reason else "Keep it to rank 0."
        message = f"Every rank runs {name}(...){what}. {advice}"
        yield report.violated(at, message)
    for at in program.fact(Writes).tracked:
        name = text_of(program, at.node.func, at.scope)  # type: ignore[attr-defined]
        message = f"Every rank runs {name}(...), so there are as many runs as ranks. Keep it to rank 0."
        yield report.violated(at, message)
