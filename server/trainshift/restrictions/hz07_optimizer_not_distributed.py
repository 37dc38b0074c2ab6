"""The optimizer that trains must be distributed.

    model.compile("adam", "mse")            opt = tf.keras.optimizers.Adam(0.001 * hvd.size())
                                            model.compile(hvd.DistributedOptimizer(opt), "mse")

## Why it matters

Each rank trains with its own gradients, so each ends with a model of its own.

## What to do

Wrap the optimizer with `hvd.DistributedOptimizer` and compile with the result. Load models with
`hvd.load_model`.

## What is reported

`fit`, `train_on_batch`, `minimize` and Estimators with an optimizer that is not wrapped: one that never was,
a string, a copy beside the wrapped one, one that is wrapped later, or one that Keras' `load_model` returns.
On Keras 3 (TensorFlow 2.16 and later) also a wrapped one: Horovod's wrap silently averages nothing there.
Remove it, and let `trainshift convert` write the averaging. If Keras 3 is merely installed, the verdict is
unknown.

Not reported: a model whose `train_step` has a distributed tape, and one that rank 0 trains alone.
"""

from __future__ import annotations

from trainshift.core.finding import Related
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.source.edit import Change
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.restrictions.fixes.places import beside, horovod_name, replaced
from trainshift.training.horovod.existing_use import KERAS
from trainshift.training.keras_version.for_keras2 import ForKeras2
from trainshift.training.ranks.shared_loops import Together

_NOT = "Gradients are not averaged across ranks, so the ranks diverge."
_TAKE_OUT = "Remove it, and let trainshift convert write the averaging."


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each call that trains a model with an optimizer of each rank's own."""
    for_keras2 = program.fact(ForKeras2)
    for plain in program.fact(Together).plain_optimizers:
        related: tuple[Related, ...] = ()
        fix = None
        message = f"{_NOT} Wrap the optimizer with hvd.DistributedOptimizer."
        if plain.own_tape:
            message = (
                f"The train_step of {plain.own_tape} applies gradients of its own tape, so the ranks "
                "diverge. Override it with a distributed tape."
            )
        elif plain.unheeded is not None:
            name = plain.unheeded.name
            message = f"On Keras 3 Horovod's {name} averages nothing ({for_keras2.because}). {_TAKE_OUT}"
            if plain.unheeded is not plain.site:
                related = (beside(program, plain.unheeded, "the call without effect"),)
        elif for_keras2.is_keras3:
            message = f"{_NOT} Let trainshift convert write the averaging for Keras 3."
        elif plain.site.name == "load_model":
            message = f"{_NOT} Keras loads a plain optimizer here; use hvd.load_model."
            fix = _loaded_by_horovod(program, report, plain.site)
        elif plain.unused is not None:
            message = f"{_NOT} The wrapped optimizer is not the one that is used here."
            related = (beside(program, plain.unused, "the wrapped optimizer"),)
        yield report.violated(plain.site, message, related, fix, asks=True)
    if not for_keras2.is_certain:
        for site in for_keras2.silent:
            message = (
                f"On Keras 3 this averages nothing ({for_keras2.because}). Check which Keras it runs on."
            )
            yield report.unknown(site, message)


def _loaded_by_horovod(program: Program, report: Report, site: Site) -> Change | None:
    name = horovod_name(program, site, KERAS)
    at = Occurrence(site.node.func, site.scope, site.statement)
    return replaced(report, "Load by Horovod", at, f"{name}.load_model") if name else None
