"""Each rank must see one GPU of its machine.

    hvd.init()                              hvd.init()
    for gpu in gpus:                        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
        set_memory_growth(gpu, True)

## Why it matters

Every rank takes memory of all GPUs of its machine, and all train on the first.

## What to do

Choose the GPU by `hvd.local_rank()` right after `hvd.init()`.

## What is reported

A program that uses GPUs and gives no rank its own, or names it in an unused configuration. Unknown: a
program without a sign of GPUs. Not reported: hidden GPUs.
"""

from __future__ import annotations

from trainshift.core.finding import Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.training.devices.gpus import By, Gpus
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.execution_order import Course
from trainshift.training.ranks.shared_loops import Together

_WHY = "Every rank uses all GPUs of its machine, and trains on the first."


def check(program: Program, report: Report) -> Findings:
    """One finding for a program that pins no GPU."""
    gpus = program.fact(Gpus)
    used = [each for each in gpus.choices if not gpus.is_unused(each)]
    if not program.fact(Together).loops or any(each.by is not By.CONSTANT for each in used):
        return
    if used or any(each.by in (By.RANK, By.CONSTANT) for each in gpus.choices):
        return
    for each in gpus.choices:
        message = f"{_WHY} Nothing uses the configuration that is set here."
        yield report.violated(each.at, message)
        return
    runs = program.fact(Together).runs
    starts = [each for each in program.fact(Horovod).calls("init") if runs(each.scope)]
    if starts:
        order = program.fact(Course).index
        first = min(starts, key=lambda each: order.get(each, len(order)))
        verdict = Verdict.VIOLATED if gpus.has_signs else Verdict.UNKNOWN
        message = f"{_WHY} Choose one by hvd.local_rank()."
        if verdict is Verdict.UNKNOWN:
            message = "If the machine has GPUs, every rank uses all of them. Choose one by hvd.local_rank()."
        yield report.finding(verdict, first, message)
