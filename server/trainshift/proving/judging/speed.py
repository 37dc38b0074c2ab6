"""The speed of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from trainshift.proving.observed.record import Record

# The first steps trace and compile.
WARM_UP = 2


@dataclass(frozen=True)
class Speed:
    """Seconds per step, and samples per second of all ranks together; 0 if unknown."""

    seconds: float = 0.0
    per_second: float = 0.0


def speed(records: Sequence[Record]) -> Speed:
    """The speed of one run, from the times between the steps of the optimizer with the most steps."""
    seconds, rows = [], 0.0
    for record in records:
        most = max(record.optimizers, key=lambda each: len(each.ended), default=None)
        times = most.ended[WARM_UP:] if most else []
        if len(times) < 2:
            return Speed()
        seconds.append(median(late - early for early, late in zip(times, times[1:])))
        rows += median(record.rows) if record.rows else 0
    slowest = max(seconds, default=0.0)
    return Speed(slowest, rows / slowest if slowest else 0.0)
