"""Which variables were made rank 0's: by Horovod's broadcast, or otherwise before the second step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trainshift.proving.judging import judge
from trainshift.proving.observed.record import Record


def in_vain(first: Record, second: Record, rank: int) -> Iterator[str]:
    """Variables that were broadcast, and are apart from the first step on though all steps are the same."""
    start = first.steps_per_execution
    for one, two in zip(first.optimizers, second.optimizers):
        weights = [*zip(one.weights, two.weights)][start:]
        alike = one.gradients[start:] == two.gradients[start:] and judge.same(one.rates, two.rates)
        if alike and weights and all(here != there for here, there in weights):
            yield (
                f"broadcast-in-vain: what {one.kind} trains differs between ranks 0 and {rank} from the "
                "first step on, though it was broadcast: something sets it again"
            )


def without_made_equal(record: Record, records: Sequence[Record]) -> Record:
    """A record in which a variable counts as broadcast that was made equal by the first step.

    Where nothing but that has made the ranks equal, the slots that began so are, too.
    """
    optimizers = []
    for number, optimizer in enumerate(record.optimizers):
        same = [each.optimizers[number] for each in records if number < len(each.optimizers)]
        after = [each.weights[record.steps_per_execution : record.steps_per_execution + 1] for each in same]
        equal = all(after) and all(each == after[0] for each in after)
        # Values that were broadcast otherwise are told by those with which the variables were made.
        known = [each.born if "broadcast" in record.collectives else each.initial for each in same]
        began = {
            name
            for index, name in enumerate(optimizer.variables)
            if len({values[index] for values in known if index < len(values)}) > 1
        }
        if equal and began and not any(each.broadcasts for each in records):
            optimizer = replace(optimizer, unbroadcast_variables=[], unbroadcast_slots=[])
        made = equal and not began.isdisjoint(optimizer.unbroadcast_variables)
        # What made those equal that began apart was given the others too, zeros on every rank.
        missing = [] if made else optimizer.unbroadcast_variables
        optimizers.append(replace(optimizer, unbroadcast_variables=missing))
    return replace(record, optimizers=optimizers)
