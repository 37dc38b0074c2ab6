"""A rank's GPU must be chosen by its number on its machine.

    gpus[hvd.rank()]                        gpus[hvd.local_rank()]

## Why it matters

On the second machine there is no GPU of this number. With a constant number, all ranks train on that one GPU.

## What to do

Use `hvd.local_rank()`.

## What is reported

A GPU that is chosen by `rank()`, or that is the same for all ranks. Not reported: a rank modulo a count, and
a list of GPUs of the script's own."""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.source.edit import Change
from trainshift.restrictions.fixes.places import replaced
from trainshift.training.devices.gpus import By, Choice, Gpus
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.ranks.shared_loops import Together


def check(program: Program, report: Report) -> Findings:
    """One finding for each choice of a wrong GPU."""
    if not program.fact(Together).loops:
        return
    chosen = program.fact(Gpus).choices
    pinned = any(each.by is By.LOCAL_RANK for each in chosen)
    for each in chosen:
        if each.by is By.RANK:
            message = "On the second machine there is no GPU of this number. Use hvd.local_rank()."
            yield report.violated(each.at, message, fix=_fix(program, report, each))
        elif each.by is By.CONSTANT and not pinned:
            message = "All ranks of a machine use this one GPU. Choose it by hvd.local_rank()."
            yield report.violated(each.at, message)


def _fix(program: Program, report: Report, choice: Choice) -> Change | None:
    for node in ast.walk(choice.at.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if program.fact(Horovod).is_call(program.script.site_of(node), "rank"):
                at = Occurrence(node.func, choice.at.scope, choice.at.statement)
                text = program.script.text(node.func.value, choice.at.scope)
                return replaced(report, "Use local_rank", at, f"{text}.local_rank")
    return None
