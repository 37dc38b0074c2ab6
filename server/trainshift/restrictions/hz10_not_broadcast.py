"""All ranks must start with the same weights.

    model.fit(x, y)                         start = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
                                            model.fit(x, y, callbacks=[start])

## Why it matters

Each rank draws initial weights of its own. Averaged gradients keep the difference for good.

## What to do

Give `fit` the broadcast callback, or broadcast the variables after the first step.

## What is reported

A loop with averaged gradients whose variables nothing makes equal: no callback that reaches `fit`, no
hook, no `broadcast_variables`. Harmless: all ranks draw or load the same weights. A seed of
`tf.random.set_seed` alone does not ensure that.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainshift.core.finding import Related, Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import Site, argument
from trainshift.restrictions.fixes.places import beside
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.initial_state.broadcasts import Broadcasts
from trainshift.training.initial_state.initial_weights import Beginning
from trainshift.training.initial_state.restores import Restores
from trainshift.training.ranks.shared_loops import Together
from trainshift.training.ranks.unsupported_api import Strangers

_WHY = "The ranks start from different weights and stay different."


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each loop whose ranks start from different weights."""
    # Models whose gradients are not averaged yet (HZ07, HZ08) will be averaged, and also start from
    # different weights.
    loops = program.fact(Together).to_average
    sites = [
        flaw.site
        for flaw in program.fact(Beginning).flaws()
        if flaw.site is not None and any(flaw.site in loop.sites for loop in loops)
    ]
    if not sites or program.fact(Broadcasts).spoiled or program.fact(Restores).apart or _is_refused(program):
        return
    for site in sites:
        related = tuple(_unused(program))
        message = f"{_WHY} Broadcast the variables of rank 0."
        if related:
            message = f"{_WHY} The callbacks that broadcast are not passed to this call."
        verdict = Verdict.HARMLESS if _is_alike(program, site) else Verdict.VIOLATED
        if verdict is Verdict.VIOLATED and program.fact(Beginning).broadcasts_all:
            verdict = Verdict.UNKNOWN
            message = "Trainshift cannot tell whether these variables are broadcast too. Check that they are."
        if verdict is Verdict.HARMLESS:
            message = "Nothing broadcasts the weights, but all ranks draw or load the same."
        yield report.finding(verdict, site, message, related)


def _is_refused(program: Program) -> bool:
    """Return whether a broadcast has a form that Horovod rejects, which HZ23 reports."""
    refused = program.fact(Strangers).calls
    sites = program.fact(Horovod).calls("broadcast_variables", "broadcast_global_variables")
    return any(site.node in refused or site.node.func in refused for site in sites)


def _unused(program: Program) -> Iterator[Related]:
    for site in program.fact(Horovod).calls("BroadcastGlobalVariablesCallback"):
        yield beside(program, site, "the callback that is not used")


def _is_alike(program: Program, site: Site) -> bool:
    """Return whether all ranks draw the same weights with one seed, or load them from one file."""
    names = program.names
    for seed in program.script.sites_named("set_random_seed"):
        if names.calls(seed, "tensorflow.keras.utils.set_random_seed"):
            given = argument(seed.node, 0, "seed")
            if given is not None and program.fact(Broadcasts).is_alike(
                Occurrence(given, seed.scope, seed.statement)
            ):
                return True
    return any(
        program.fact(Broadcasts).loads_for_all(load, site)
        for load in program.script.sites_named("load_weights", "load_model")
    )
