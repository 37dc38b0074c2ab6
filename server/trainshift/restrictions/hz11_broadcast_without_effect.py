"""A broadcast must reach the variables that are trained.

    pairs = zip(grads, weights)             pairs = list(zip(grads, weights))
    opt.apply_gradients(pairs)              opt.apply_gradients(pairs)
    hvd.broadcast_variables(                hvd.broadcast_variables(
        [v for _, v in pairs], 0)               [v for _, v in pairs], 0)

## Why it matters

Nothing is broadcast, and nothing says so. The ranks start with different weights and keep the difference.

## What to do

Broadcast after the first step, what has variables by then, in a place that each run comes to.

## What is reported

A broadcast of a model that was never called, of pairs that are used up, under a flag that a `tf.function`
sets itself, before the variables or their initializer in TensorFlow 1, and `on_train_begin()` of Horovod's
callback by hand.
"""

from __future__ import annotations

from trainshift.core.finding import Verdict
from trainshift.core.program import Program
from trainshift.core.ranks.broadcasts import Broadcasts
from trainshift.core.ranks.together import Together
from trainshift.restrictions.facts.places import beside, hazard
from trainshift.restrictions.restriction import Findings


def check(program: Program) -> Findings:
    """One finding for each broadcast that does nothing or is undone."""
    together = program.fact(Together)
    if together.loops and not together.averaged:
        return
    for spoiled in program.fact(Broadcasts).spoiled:
        related = () if spoiled.other is None else (beside(program, spoiled.other, "the other place"),)
        yield hazard(program, "HZ11", Verdict.VIOLATED, spoiled.site, spoiled.reason, related)
