"""The data of the plots, by step and rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainshift.proving.judging.speed import WARM_UP, speed
from trainshift.proving.judging.timeline import Reduction, joined, share
from trainshift.proving.observed.record import Run

# The number of steps in the timeline.
MOST_SHOWN = 12


def series(
    original: Run, ranks: Sequence[Run], arrays: Sequence[Any], reductions: Sequence[Reduction]
) -> dict[str, Any]:
    """The rates, losses and times of each process, and the largest difference of weights by step."""
    processes = [("original", 0, original), *(("ranks", rank, run) for rank, run in enumerate(ranks))]
    return {
        "runs": [described(name, rank, run) for name, rank, run in processes],
        "differences": differences(ranks, arrays),
        **timeline(step_times(ranks[0]) if ranks else [], reductions),
    }


def described(name: str, rank: int, run: Run) -> dict[str, Any]:
    """The data of one process."""
    record = run.record
    told: dict[str, Any] = {"run": name, "rank": rank, "exit": run.exit_code}
    if record is None:
        return {**told, "steps": 0, "rates": [], "losses": [], "seconds": [], "samples_per_second": 0.0}
    most = max(record.optimizers, key=lambda each: each.steps, default=None)
    times = most.ended if most else []
    return {
        **told,
        "steps": most.steps if most else 0,
        "rates": [finite(rate) for rate in (most.rates if most else [])],
        "losses": [finite(loss) for loss in record.losses],
        "seconds": [round(late - early, 6) for early, late in zip(times, times[1:])],
        "samples_per_second": speed([record]).per_second,
    }


def timeline(times: Sequence[float], reductions: Sequence[Reduction]) -> dict[str, Any]:
    """The last steps of rank 0, and the times of Horovod's reductions in them; in seconds from their
    beginning.
    """
    if len(times) < 2:
        return {"timeline": {"steps": [], "reductions": []}, "reducing": None}
    shown = times[-MOST_SHOWN - 1 :]
    spans = [
        [round(max(early, shown[0]) - shown[0], 6), round(min(late, shown[-1]) - shown[0], 6)]
        for early, late in joined(reductions)
        if late > shown[0] and early < shown[-1]
    ]
    steps = [round(each - shown[0], 6) for each in shown]
    whole = times[min(WARM_UP, len(times) - 2) :]
    return {
        "timeline": {"steps": steps, "reductions": spans},
        "reducing": share(reductions, whole[0], whole[-1]),
    }


def step_times(run: Run) -> list[float]:
    """When the steps of the optimizer that took most of them ended."""
    optimizers = run.record.optimizers if run.record else []
    return max((each.ended for each in optimizers), key=len, default=[])


def finite(value: float) -> float | None:
    """A number in JSON form: null for NaN and infinity."""
    return value if abs(value) < float("inf") else None


def differences(ranks: Sequence[Run], arrays: Sequence[Any]) -> list[float | None]:
    """The largest difference of any weight between two ranks, after each step; None where not finite."""
    import numpy

    records = [run.record for run in ranks if run.record]
    if len(records) < len(ranks) or not records:
        return []
    found: list[float] = []
    for number in range(min(len(record.optimizers) for record in records)):
        names = [record.optimizers[number].number for record in records]
        for step in range(min(record.optimizers[number].steps for record in records)):
            own = [each.get(f"{name}/weights/{step}") for each, name in zip(arrays, names)]
            if any(each is None or each.shape != own[0].shape for each in own) or not own[0].size:
                break
            largest = max(float(numpy.max(numpy.abs(each - own[0]))) for each in own)
            while len(found) <= step:
                found.append(0.0)
            # The larger one, or NaN if either is NaN.
            found[step] = float(numpy.maximum(found[step], largest))
    return [*map(finite, found)]
