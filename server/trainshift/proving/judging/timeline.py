"""Horovod's reductions and their times, from the timeline that it writes itself."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The shape of a tensor that is a number.
NUMBER = "[]"


@dataclass(frozen=True)
class Reduction:
    """One reduction of one tensor: the tensor's name and shape, and its time, in seconds."""

    name: str
    shape: str
    start: float
    end: float


def read_timeline(path: Path) -> list[Reduction]:
    """The reductions in a timeline, which may be truncated; none if there is no file."""
    if not path.exists():
        return []
    names: dict[int, str] = {}
    open_spans: dict[int, list[tuple[str, float]]] = {}
    origin, found = 0.0, []
    for event in events(path.read_text(encoding="utf-8", errors="replace")):
        tensor, arguments = event.get("pid", 0), event.get("args", {})
        if event.get("ph") == "M":
            origin = arguments.get("start_time_since_epoch_in_micros", origin)
            names[tensor] = arguments.get("name", names.get(tensor, ""))
        elif event.get("ph") == "B":
            open_spans.setdefault(tensor, []).append((event["name"], event["ts"]))
        elif event.get("ph") == "E" and open_spans.get(tensor):
            name, start = open_spans[tensor].pop()
            if name == "ALLREDUCE":
                times = ((origin + start) / 1e6, (origin + event["ts"]) / 1e6)
                found.append(Reduction(names.get(tensor, ""), arguments.get("shape", ""), *times))
    return found


def events(text: str) -> list[dict[str, Any]]:
    """The events of a list that may be truncated."""
    body = text.strip().rstrip("],").strip()
    while body:
        try:
            listed: list[dict[str, Any]] = json.loads(f"{body}]")
            return listed
        except ValueError:
            body = body[: max(0, body.rfind("},", 0, len(body) - 1) + 1)]
    return []


def joined(reductions: Sequence[Reduction]) -> list[tuple[float, float]]:
    """The time spans with any reduction in progress."""
    found: list[tuple[float, float]] = []
    for each in sorted(reductions, key=lambda each: each.start):
        if found and each.start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], each.end))
        else:
            found.append((each.start, each.end))
    return found


def share(reductions: Sequence[Reduction], start: float, end: float) -> float:
    """The part of a time span that was spent in reductions."""
    spent = sum(max(0.0, min(late, end) - max(early, start)) for early, late in joined(reductions))
    return spent / (end - start) if end > start else 0.0


def repeated(reductions: Sequence[Reduction], ended: Sequence[float]) -> int:
    """Return the number of times that Horovod reduces tensors with the shapes of the gradients in every step;
    at least 1.

    A wrap reduces all gradients, and so may another wrap or the script itself. Averaged losses and metrics
    are numbers, and the statistics of a layer do not have the shapes of all gradients. Reductions between a
    step, whose time is in `ended`, and the next gradients may be of weights.
    """
    steps = len(ended)
    groups: dict[str, Counter[str]] = {}
    by_script: Counter[str] = Counter()
    wrapped = -1  # The step of the last gradients that a wrap has reduced.
    for each in sorted(reductions, key=lambda each: each.start):
        group, marked, _ = each.name.partition("_Allreduce")
        step = bisect_left(ended, each.start)
        if marked and group.startswith("Distributed"):
            groups.setdefault(group, Counter())[each.shape] += 1
            wrapped = step
        elif step == wrapped:
            by_script[each.shape] += 1
    often = [counts for counts in groups.values() if max(counts.values()) >= max(2, steps - 1)]
    times = max((sum(counts == other for other in often) for counts in often), default=1)
    for counts in often:
        arrays = {shape: count for shape, count in counts.items() if shape != NUMBER}
        if arrays and all(by_script[shape] * steps >= count * (steps - 1) for shape, count in arrays.items()):
            return times + 1
    return times
