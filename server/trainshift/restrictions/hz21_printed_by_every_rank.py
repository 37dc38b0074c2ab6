"""Training must print on one rank only.

    print("loss", loss)                     if hvd.rank() == 0:
                                                print("loss", loss)

## Why it matters

Every line comes once from each rank, and their progress bars write over each other.

## What to do

Print under `if hvd.rank() == 0:`, and give `fit` `verbose=1 if hvd.rank() == 0 else 0`.

## What is reported

`print` and `tf.print` in a training loop or step, and a `fit` that is not silent. Not reported: prints that
contain the rank, and prints before or after the loop.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.training.rank_regions.writes import Writes


def check(program: Program, report: Report) -> Findings:
    """Yield one finding for each call by which all ranks print the same."""
    for site in program.fact(Writes).printed:
        message = "Every rank prints this. Print on rank 0 only."
        if site.name.startswith("fit"):
            message = "Every rank shows a progress bar. Pass verbose=1 if hvd.rank() == 0 else 0."
        yield report.violated(site, message)
