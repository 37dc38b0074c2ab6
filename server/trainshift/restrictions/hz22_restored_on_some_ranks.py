"""What one rank restores must be broadcast before training.

    if hvd.rank() == 0:                     if hvd.rank() == 0:
        model.load_weights(path)                model.load_weights(path)
                                            hvd.broadcast_variables(model.variables, root_rank=0)

## Why it matters

The ranks train on with different weights. A rank that begins at another epoch takes fewer steps, and the
others die.

## What to do

Broadcast the variables after the load, and the epoch by `hvd.broadcast_object`.

## What is reported

Weights that are loaded on some ranks only and that no broadcast follows, and an `initial_epoch` that one rank
found.
"""

from __future__ import annotations

from trainshift.core.finding import Verdict
from trainshift.core.names.occurrence import Occurrence
from trainshift.core.program import Program
from trainshift.core.ranks.restores import Restores
from trainshift.core.ranks.together import Together
from trainshift.restrictions.facts.places import beside, hazard
from trainshift.restrictions.restriction import Findings


def check(program: Program) -> Findings:
    """One finding for each load, and each first epoch, of some ranks alone."""
    together = program.fact(Together)
    if not together.averaged:
        return
    for restore in program.fact(Restores).apart:
        message = (
            "Other ranks keep their own weights: nothing broadcasts these before training. Broadcast them "
            "here."
        )
        related = (beside(program, restore.branch.test, "the test of the rank"),)
        yield hazard(program, "HZ22", Verdict.VIOLATED, restore.site, message, related)
    for site, epoch in program.fact(Restores).epochs:
        at = Occurrence(epoch, site.scope, site.statement)
        message = (
            "Ranks begin at different epochs, and those with more die waiting. Use hvd.broadcast_object."
        )
        yield hazard(program, "HZ22", Verdict.VIOLATED, at, message)
