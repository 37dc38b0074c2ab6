"""Made-up runs, for tests of the messages about them; nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy

from trainshift.proving.judging.claims import claims
from trainshift.proving.judging.seen import Claim, Seen
from trainshift.proving.observed.record import OptimizerRecord, Record, Run

STEPS = 6
RANKS = 2


def record(rank: int, **changes: Any) -> Record:
    """The record of a rank that began with its own weights, and got rank 0's in the first step."""
    steps = [str(step) for step in range(STEPS)]
    optimizer = OptimizerRecord(
        "SGD",
        rates=[0.2] * STEPS,
        gradients=steps,
        weights=[f"{rank}", *steps[1:]],
        variables=["kernel", "bias"],
        slots=["m"],
        initial=[f"kernel {rank}", "zeros"],
        final=["kernel", "bias"],
        number=1,
    )
    own = {name: changes.pop(name) for name in [*changes] if hasattr(optimizer, name)}
    return replace(
        Record(
            optimizers=[replace(optimizer, **own)],
            local_gradients=[f"{rank} {step}" for step in steps],
            broadcasts=[["kernel", "bias", "m"]],
            wraps=1,
            reduced=["average"],
            gpus=[str(rank)],
        ),
        **changes,
    )


def run(written: Record, values: float = 1.0) -> Run:
    """A process that ended well."""
    arrays = {f"0/{kind}/0": numpy.array([values]) for kind in ("variables", "slots")}
    arrays["0/variables/1"] = numpy.array([values])
    return Run(0, "", "", "", "", (), written, arrays)


def arrays(factors: Sequence[float], noise: float = 0.0) -> list[dict[str, Any]]:
    """The samples of two ranks whose optimizer gradients are a multiple of the ranks' mean."""
    own = [numpy.array([1.0, 2.0, 3.0]), numpy.array([3.0, 1.0, 0.0])]
    mean, off = (own[0] + own[1]) / 2, numpy.array([1.0, -1.0, 0.0]) * noise
    return [
        {
            name: value
            for step, factor in enumerate(factors)
            for name, value in (
                (f"1/local/{step}", gradient.astype("f4")),
                (f"1/gradients/{step}", (factor * mean + off).astype("f4")),
            )
        }
        for gradient in own
    ]


def judged(
    ranks: Sequence[Run], samples: Sequence[Any] = (), alone: Any = None, before: Record | None = None
) -> dict[str, Claim]:
    """The claims on a training by a number of ranks, by id; `alone` are the samples of the original."""
    before = before or record(0, rates=[0.1] * STEPS * RANKS, gpus=["0"], losses=[1.1, 0.9, 0.8])
    seen = Seen(run(before), ranks, arrays=samples, limit=STEPS, samples=alone or {})
    return {claim.id: claim for claim in claims(seen)}


def pair(**changes: Any) -> list[Run]:
    """Two ranks with equal records, except for data that always differ."""
    return [run(record(rank, **changes)) for rank in range(RANKS)]
