"""Judge whether the gradients that reached an optimizer are the mean over the ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from trainshift.proving.judging.seen import Seen
from trainshift.proving.observed.record import Record

# The tolerance for the direction: gradients may be compressed to half precision.
SLACK = 0.02
# The gradients kept besides the last ones before a step: all of them together, and others.
SUM = "sum"
MORE = (SUM, *"123")
# A larger factor is the scaling of losses, in steps of the script's own.
MOST_FACTOR = 256.0
# The tolerance for the ratio of first losses on other data, and the number of steps to compare.
LOSS_SLACK, FIRST_LOSSES = 0.3, 3


class Averaging(Enum):
    """The way in which the ranks' gradients are combined."""

    MEAN = "mean"
    SUMMED = "summed"
    TWICE = "twice"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Result:
    """The result for one optimizer: the number of averaged steps, and the factor of the mean."""

    kind: Averaging
    steps: int = 0
    factor: float = 1.0

    @property
    def is_fault(self) -> bool:
        """Return whether it is not as it should be."""
        return self.kind in (Averaging.SUMMED, Averaging.TWICE)


class Fit(NamedTuple):
    """The best fit for the gradients that reached an optimizer in a step: kind, factor and error."""

    kind: str
    factor: float
    off: float


def averaging(number: int, seen: Seen) -> Result:
    """Compare the samples of one optimizer's steps.

    Other operations of the script on gradients also happen on one process: their factor is ignored. Clipping
    has a different factor in each step, and is ignored too; the first step, before which weights may differ,
    counts like any other.
    """
    import numpy

    ranks = seen.size
    if len(seen.arrays) < ranks or len(seen.records) < ranks or ranks < 2:
        return Result(Averaging.UNKNOWN)
    usual = {
        kind: of_script
        for kind, each in factors(number, [seen.before], [seen.samples]).items()
        if (of_script := constant(each)) and 1 / MOST_FACTOR <= of_script <= MOST_FACTOR
    }
    found = [
        factor / usual.get(kind, 1.0)
        for kind, each in factors(number, seen.records, seen.arrays).items()
        if kind in usual or not kind
        for factor in each
    ]
    if not found:
        return Result(Averaging.UNKNOWN)
    for kind, expected in (
        (Averaging.MEAN, 1.0),
        (Averaging.SUMMED, float(ranks)),
        (Averaging.TWICE, 1.0 / ranks),
    ):
        near = [factor for factor in found if abs(factor - expected) <= SLACK * expected]
        others = [factor for factor in found if factor not in near]
        # A sum that began, or ended, within the run.
        summed = kind is Averaging.SUMMED and len(near) > 1 and all(abs(each - 1) <= SLACK for each in others)
        if near and (not others or summed):
            return Result(kind, len(near), float(numpy.median(near)))
    if usual and len(found) > 1 and (factor := constant(found)):
        return Result(Averaging.SUMMED if factor > 1 else Averaging.TWICE, len(found), factor)
    return Result(Averaging.UNKNOWN, len(found), float(numpy.median(found)))


def factors(number: int, records: Sequence[Record], arrays: Sequence[Any]) -> dict[str, list[float]]:
    """The factors of the ranks' mean gradients that reached an optimizer, by step.

    The keys name the best fit: one computed gradient (""), or the sum of all (SUM).
    """
    found: dict[str, list[float]] = {}
    for fit in fits(number, records, arrays):
        if fit:
            found.setdefault(fit.kind, []).append(fit.factor)
    return found


def fits(number: int, records: Sequence[Record], arrays: Sequence[Any]) -> list[Fit | None]:
    """The best fit of each step for the gradients that reached an optimizer on the first rank, if any."""
    import numpy

    found: list[Fit | None] = []
    if any(number >= len(record.optimizers) for record in records):
        return found
    names = [record.optimizers[number].number for record in records]
    for step in range(min(record.optimizers[number].steps for record in records)):
        reached = arrays[0].get(f"{names[0]}/gradients/{step}")
        found.append(None)
        if reached is None:
            continue
        best = Fit("", 0.0, SLACK)
        own = f"{names[0]}/local/{step}"
        for key in (key for key in (own, *(f"{own}/{each}" for each in MORE)) if key in arrays[0]):
            several = [each.get(f"{name}{key[len(str(names[0])) :]}") for each, name in zip(arrays, names)]
            if any(each is None or each.shape != reached.shape for each in several):
                continue
            mean = numpy.mean(numpy.stack([each.astype("f8") for each in several]), axis=0)
            size, length = float(mean @ mean), float(numpy.linalg.norm(reached.astype("f8")))
            if not size or not length or not numpy.isfinite(size * length):
                continue
            factor = float(reached.astype("f8") @ mean) / size
            off = float(numpy.linalg.norm(reached - factor * mean)) / length
            if off <= best.off:
                best = Fit(SUM if key.endswith(SUM) else "", factor, off)
        if best.factor:
            found[-1] = best
    return found


def constant(values: Sequence[float]) -> float:
    """The constant factor of all steps; 0.0 if there is none."""
    middle = sorted(values)[len(values) // 2] if values else 0.0
    return middle if all(abs(each - middle) <= SLACK * abs(middle) for each in values) else 0.0


def is_undone(first: Record, second: Record) -> bool:
    """Return whether only the first step was not averaged, and a broadcast has replaced its result."""
    pairs = [*zip(first.optimizers, second.optimizers)]
    return any(one.gradients != two.gradients for one, two in pairs) and all(
        one.gradients[1:] == two.gradients[1:] and one.weights[1:] == two.weights[1:] and len(one.weights) > 2
        for one, two in pairs
    )


def shares_loss(before: Record, first: Record, size: int) -> bool:
    """Return whether the losses that rank 0 begins with may be the original's, divided by the number of
    ranks.

    Only rank 0 has the original's seeds, and so its weights.
    """
    theirs, ours = (record.losses[:FIRST_LOSSES] for record in (before, first))
    if not theirs or not ours or not sum(theirs):
        return False
    share = sum(ours) / len(ours) / (sum(theirs) / len(theirs)) * size
    return abs(share - 1) <= LOSS_SLACK


def unknown_reduction(records: Sequence[Record]) -> str:
    """Return the reason why the gradients that reached an optimizer are unknown; empty if Horovod only takes
    means.
    """
    manners = sorted({how for record in records for how in record.reduced})
    others = [how for how in manners if how not in ("average", "adasum")]
    if not manners:
        return "No reduction by Horovod was seen."
    if others:
        return (
            f"Horovod takes the {' and the '.join(others)} of gradients, and the script's use of "
            "that could not be determined."
        )
    return ""
