"""Values that one rank restores must be broadcast before training.

    if hvd.rank() == 0:                     if hvd.rank() == 0:
        model.load_weights(path)                model.load_weights(path)
                                            hvd.broadcast_variables(model.variables, root_rank=0)

## Why it matters

The ranks continue with different weights. A rank that starts at a different epoch takes fewer steps, and the
others fail.

## What to do

Broadcast the variables after the load, and the epoch by `hvd.broadcast_object`.

## What is reported

Weights that are loaded on some ranks only and that no broadcast follows, and an `initial_epoch` that one rank
found.
"""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.source.edit import Change
from trainshift.restrictions.fixes.moves import inserted, moved
from trainshift.restrictions.fixes.places import beside, horovod_name
from trainshift.training.horovod.existing_use import KERAS, TENSORFLOW
from trainshift.training.initial_state.restores import Restore, Restores
from trainshift.training.ranks.shared_loops import Together


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each load, and each first epoch, of only some ranks."""
    together = program.fact(Together)
    if not together.averaged:
        return
    for restore in program.fact(Restores).apart:
        message = (
            "Other ranks keep their own weights: nothing broadcasts these before training. Broadcast them "
            "here."
        )
        related = (beside(program, restore.branch.test, "the test of the rank"),)
        fix = _broadcast_behind(program, report, restore)
        yield report.violated(restore.site, message, related, fix)
    for site, epoch in program.fact(Restores).epochs:
        at = Occurrence(epoch, site.scope, site.statement)
        message = "Ranks start at different epochs, and those with more left hang. Use hvd.broadcast_object."
        yield report.violated(at, message, fix=_sent_epoch(program, report, at), asks=True)


def _broadcast_behind(program: Program, report: Report, restore: Restore) -> Change | None:
    """Add broadcasts of the loaded variables after the branch in which one rank loads them."""
    outer, script = restore.branch.statement, program.script
    if outer is None or restore.branch.arm == "after":
        return None
    block, index = script.siblings(outer)
    above = [each.statement for each in program.fact(Restores).broadcasts if each.statement in block[:index]]
    title = "Broadcast the loaded values"
    if above:
        ordered = [each for each in block[:index] if each in above]
        plain = all(isinstance(each.node, ast.Expr) for each in ordered)
        return moved(report, title, ordered, outer, behind=True) if plain else None
    called, name = restore.site.node.func, horovod_name(program, restore.site, TENSORFLOW)
    if program.fact(Restores).broadcasts or restore.site.name != "load_weights" or not name:
        return None
    assert isinstance(called, ast.Attribute)
    text = f"{name}.broadcast_variables({script.text(called.value, restore.site)}.variables, root_rank=0)"
    return inserted(report, title, text, outer, behind=True)


def _sent_epoch(program: Program, report: Report, epoch: Occurrence) -> Change | None:
    """The epoch of rank 0, sent above the loop that begins with it."""
    statement = epoch.statement
    if not isinstance(epoch.node, ast.Name) or statement is None or statement.scope is not epoch.scope:
        return None
    text, name = epoch.node.id, horovod_name(program, epoch, TENSORFLOW)
    sent = f"{name}.broadcast_object({text}, root_rank=0)"
    if not name:
        name = horovod_name(program, epoch, KERAS)
        sent = f"{name}.broadcast({text}, 0)"
    title = "Broadcast the epoch of rank 0"
    return inserted(report, title, f"{text} = {sent}", statement) if name else None
