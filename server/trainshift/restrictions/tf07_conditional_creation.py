"""Datasets and optimizers must be created unconditionally.

    if args.sgd:                                        rate = 0.01 if args.sgd else 0.001
        optimizer = tf.keras.optimizers.SGD(0.01)       optimizer = tf.keras.optimizers.Adam(rate)
    else:
        optimizer = tf.keras.optimizers.Adam(0.001)

## Why it matters

If two processes take different branches, or a loop creates the object again, their optimizers do not match.
On two GPUs the job hangs, or the models drift apart.

## What to do

Create the object once, at the top of the function that trains, and let the condition choose its arguments.
Or give each configuration a function of its own.

## What is reported

A creation under `if`, `match`, a loop, `try`, a conditional expression, after `and` or `or`, or in a
comprehension.

Not reported: `with`, `if __name__ == "__main__":`, the header of a `for`, deriving from an object that exists
(`if shuffle: ds = ds.shuffle(9)`), and wrapping one (`if fp16: opt = LossScaleOptimizer(opt)`).

Harmless: a block that always runs, such as `if True:`, a `try` without `except`, or a `finally`.

Unknown: a call that may create one, such as `getattr(tf.keras.optimizers, name)()`.
"""

from __future__ import annotations

from trainshift.core.finding import Related, Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.training.objects.creations import Creation, Creations, MadeKind
from trainshift.training.objects.holders import Condition

_WHY = {
    MadeKind.DATASET: "Trainshift cannot tell which dataset the ranks share",
    MadeKind.OPTIMIZER: "Trainshift cannot tell which optimizer trains",
}
_A = {MadeKind.DATASET: "a dataset", MadeKind.OPTIMIZER: "an optimizer"}
_UNDER = {
    "conditional expression": "in a conditional expression",
    "comprehension": "in a comprehension",
    "and": "behind an `and`",
    "or": "behind an `or`",
    "for": "in a `for` loop",
    "while": "in a `while` loop",
}


def check(program: Program, report: Report) -> Findings:
    """Yield one finding for each creation of a dataset or an optimizer under a condition."""
    for creation in program.fact(Creations).of(*_WHY):
        conditions = creation.conditions
        if not conditions:
            continue
        deciding = [condition for condition in conditions if condition.decides]
        first = (deciding or conditions)[0]
        related: tuple[Related, ...] = ()
        if first.statement is not None:
            related = (Related(program.script.header_span(first.statement), f"The `{first.word}` is here."),)
        span = program.script.span(creation.whole, creation.site)
        verdict, message = _judged(program, creation, first)
        yield report.finding(verdict, span, message, related)


def _judged(program: Program, creation: Creation, first: Condition) -> tuple[Verdict, str]:
    made = f"`{program.fact(Creations).shown(creation)}`"
    kind = creation.kind.value
    where = _UNDER.get(first.word, f"under `{first.word}`")
    if not first.decides:
        return Verdict.HARMLESS, f"The {kind} {made} is created {where}, which always runs."
    if not creation.certain:
        return Verdict.UNKNOWN, (
            f"{made} {where} may be {_A[creation.kind]}. If it is, create it once, without the condition: "
            f"{_WHY[creation.kind]}."
        )
    if first.word in ("for", "while", "comprehension"):
        return Verdict.VIOLATED, (
            f"The {kind} {made} is created {where}, so each iteration makes a new one that the ranks do not "
            "share. Create it once, before."
        )
    return Verdict.VIOLATED, (
        f"The {kind} {made} is created {where}: {_WHY[creation.kind]}. Create it once, and let the condition "
        "choose its arguments."
    )
