"""Whether what reached an optimizer is the mean of what the ranks had computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from trainshift.proving.observed.record import Record

# How far the direction may be off: gradients may be compressed to half precision on their way.
SLACK = 0.02
# How far first losses may be off a share of the original's, on other data, and of how many steps they are.
LOSS_SLACK, FIRST_LOSSES = 0.3, 3


class Averaging(Enum):
    """How the gradients of the ranks come together."""

    MEAN = "mean"
    SUMMED = "summed"
    TWICE = "twice"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Result:
    """What was found of one optimizer: in how many steps, and by which factor of the mean."""

    kind: Averaging
    steps: int = 0
    factor: float = 1.0

    @property
    def is_fault(self) -> bool:
        """Whether it is not as it should be."""
        return self.kind in (Averaging.SUMMED, Averaging.TWICE)


def averaging(number: int, records: Sequence[Record], arrays: Sequence[Any]) -> Result:
    """Compare the samples of one optimizer's steps.

    What is clipped or scaled after it was averaged has another factor, and is not judged by it; the
    first step, before which weights may differ, counts like any other.
    """
    import numpy

    if len(arrays) < len(records) or len(records) < 2:
        return Result(Averaging.UNKNOWN)
    names = [record.optimizers[number].number for record in records]
    factors = []
    for step in range(min(record.optimizers[number].steps for record in records)):
        own = [each.get(f"{name}/local/{step}") for each, name in zip(arrays, names)]
        reached = arrays[0].get(f"{names[0]}/gradients/{step}")
        if reached is None or any(each is None or each.shape != reached.shape for each in own):
            continue
        mean = numpy.mean(numpy.stack([each.astype("f8") for each in own]), axis=0)
        size, length = float(mean @ mean), float(numpy.linalg.norm(reached.astype("f8")))
        if not size or not length or not numpy.isfinite(size * length):
            continue
        factor = float(reached.astype("f8") @ mean) / size
        off = float(numpy.linalg.norm(reached - factor * mean)) / length
        if off <= SLACK:
            factors.append(factor)
    if not factors:
        return Result(Averaging.UNKNOWN)
    ranks = len(records)
    for kind, expected in (
        (Averaging.MEAN, 1.0),
        (Averaging.SUMMED, float(ranks)),
        (Averaging.TWICE, 1.0 / ranks),
    ):
        near = [factor for factor in factors if abs(factor - expected) <= SLACK * expected]
        others = [factor for factor in factors if factor not in near]
        # A sum that began, or ended, within the run is one.
        summed = kind is Averaging.SUMMED and len(near) > 1 and all(abs(each - 1) <= SLACK for each in others)
        if near and (not others or summed):
            return Result(kind, len(near), float(numpy.median(near)))
    return Result(Averaging.UNKNOWN, len(factors), float(numpy.median(factors)))


def is_undone(first: Record, second: Record) -> bool:
    """Whether only the first step was not averaged, and a broadcast has replaced what it made."""
    pairs = [*zip(first.optimizers, second.optimizers)]
    return any(one.gradients != two.gradients for one, two in pairs) and all(
        one.gradients[1:] == two.gradients[1:] and one.weights[1:] == two.weights[1:] and len(one.weights) > 2
        for one, two in pairs
    )


def shares_loss(before: Record, records: Sequence[Record]) -> bool:
    """Whether the losses that ranks begin with may be the original's, divided by the number of ranks."""
    losses = [record.losses[:FIRST_LOSSES] for record in (before, *records)]
    if not all(losses) or not sum(losses[0]):
        return False
    theirs, *ours = (sum(each) / len(each) for each in losses)
    share = sum(ours) / len(ours) / theirs * len(records)
    return abs(share - 1) <= LOSS_SLACK


def unknown_reduction(records: Sequence[Record]) -> str:
    """Why it is not known what reached an optimizer that got no mean; empty if Horovod takes means only."""
    manners = sorted({how for record in records for how in record.reduced})
    others = [how for how in manners if how not in ("average", "adasum")]
    if not manners:
        return "No reduction by Horovod was seen."
    if others:
        return (
            f"Horovod takes the {' and the '.join(others)} of gradients, and what the script makes of that "
            "could not be told."
        )
    return ""
