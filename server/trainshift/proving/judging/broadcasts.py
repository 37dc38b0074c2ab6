"""Find the variables that got rank 0's values: by Horovod's broadcast, or otherwise before the
second step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from trainshift.proving.judging import judge
from trainshift.proving.observed.record import OptimizerRecord, Record


def in_vain(first: Record, second: Record, rank: int, arrays: Sequence[Any] = ()) -> Iterator[str]:
    """Variables that were broadcast, but differ from the first step on although all steps are the same.

    If optimizers make different steps from the same gradients, they drift apart steadily.
    """
    start = first.steps_per_execution
    for one, two in zip(first.optimizers, second.optimizers):
        if len(arrays) > rank and drifts(one, two, (arrays[0], arrays[rank]), start):
            continue
        weights = [*zip(one.weights, two.weights)][start:]
        same = judge.same(one.rates, two.rates, judge.tolerance(one, two))
        alike = same and one.gradients[start:] == two.gradients[start:]
        if alike and weights and all(here != there for here, there in weights):
            yield (
                f"broadcast-in-vain: what {one.kind} trains differs between ranks 0 and {rank} from the "
                "first step on, though it was broadcast: something sets it again"
            )


def drifts(one: OptimizerRecord, two: OptimizerRecord, arrays: Sequence[Any], start: int) -> bool:
    """Return whether the weights of two ranks differ at least twice as much at the end as after the first
    step.
    """
    import numpy

    distances = []
    for step in (start, min(one.steps, two.steps) - 1):
        own = [each.get(f"{optimizer.number}/weights/{step}") for each, optimizer in zip(arrays, (one, two))]
        if any(each is None or each.shape != own[0].shape for each in own):
            return False
        distances.append(float(numpy.linalg.norm(own[0] - own[1])))
    return distances[1] > 2 * distances[0]


def without_made_equal(record: Record, records: Sequence[Record]) -> Record:
    """A record in which variables made equal by the first step count as broadcast.

    If only that made the ranks equal, slots with equal initial values count as well, and so do they if all
    variables of an optimizer were made equal before its first step.
    """
    optimizers = []
    for number, optimizer in enumerate(record.optimizers):
        same = [each.optimizers[number] for each in records if number < len(each.optimizers)]
        after = [each.weights[record.steps_per_execution : record.steps_per_execution + 1] for each in same]
        equal = all(after) and all(each == after[0] for each in after)
        # Values that were broadcast in another way are recognized by the initial values of the variables.
        is_set = "broadcast" in record.collectives
        began = apart(optimizer, [each.born if is_set else each.initial for each in same])
        missing, slots = optimizer.unbroadcast_variables, optimizer.unbroadcast_slots
        is_given = optimizer.given
        if is_set and not began.isdisjoint(missing):
            is_given = apart(optimizer, [each.initial for each in same]).isdisjoint(missing)
        # A call that made different values equal also received the others, which are zero on every rank.
        if (equal or is_given) and not began.isdisjoint(missing):
            missing = []
        if equal and began and not any(each.broadcasts for each in records):
            missing, slots = [], []
        if is_given and not any(slots_differ(same[0], each) for each in same):
            slots = []
        optimizers.append(replace(optimizer, unbroadcast_variables=missing, unbroadcast_slots=slots))
    return replace(record, optimizers=optimizers)


def apart(optimizer: OptimizerRecord, values: Sequence[Sequence[str | None]]) -> set[str]:
    """The variables whose values, one list for each rank, differ between ranks."""
    return {
        name
        for index, name in enumerate(optimizer.variables)
        if len({each[index] for each in values if index < len(each)}) > 1
    }


def slots_differ(one: OptimizerRecord, two: OptimizerRecord) -> bool:
    """Return whether two ranks compute different weights from the same gradients in a first step from equal
    weights.
    """
    return (
        bool(one.gradients) and one.gradients[:1] == two.gradients[:1] and one.weights[:1] != two.weights[:1]
    )
