"""Test whether ranks that sample from the full data sample independently, so that they overlap only by
chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from trainshift.proving.judging.data import Walk, batches, in_epochs, look, looks
from trainshift.proving.observed.record import Column, Record

# The share of a rank's rows that the original must also have drawn for the data to count as the same.
SEEN = 0.05
# The number of standard deviations above the expectation that is not chance.
DEVIATIONS = 5.0


def walks_drawn(before: Record, records: Sequence[Record]) -> list[Walk]:
    """Return the walk of each tensor at each place, for data that every process draws itself.

    Tensors that change from batch to batch and recur on some rank are drawn: data on all ranks, and on the
    first rank also values made with the seed of the original.  Tensors with too few values to distinguish two
    draws, such as labels, are left out, and of the data on all ranks, only the tensor with the most values is
    used.
    """
    found: list[Walk] = []
    for kind in looks(before):
        theirs, *ours = (
            [each for each in record.data if look(each) == kind] for record in (before, *records)
        )
        known: list[Walk] = []
        for place in range(len(kind)) if all(ours) else ():
            by_rank = [is_drawn(place, theirs, own) for own in ours]
            if any(by_rank):
                walk = Walk(in_epochs(batches(theirs, [place])), [batches(own, [place]) for own in ours])
                if is_mixed(walk) and tells_apart(walk):
                    (known if all(by_rank) else found).append(walk)
        found += sorted(known, key=lambda walk: len(elements(walk)))[-1:]
    return found


def is_drawn(place: int, theirs: Sequence[list[Column]], ours: Sequence[list[Column]]) -> bool:
    """Return whether a place in each batch changes, and has rows that the original had, too.

    The first batch does not count: weights may start with the same values everywhere.
    """
    if len({tuple(columns[place][1]) for columns in theirs}) < 2:
        return False
    known = {row for columns in theirs for row in columns[place][1]}
    rows = [row for columns in ours[1:] for row in columns[place][1]]
    return bool(rows) and sum(row in known for row in rows) >= SEEN * len(rows)


def is_mixed(walk: Walk) -> bool:
    """Return whether elements of a batch rarely recur in the next one, as padding and anchors would."""
    own = [{*batch} for epoch in walk.epochs for batch in epoch]
    size = len(elements(walk))
    next_to = [(len(one & two), len(one) * len(two) / size) for one, two in pairwise(own)]
    return not is_more(sum(seen for seen, _ in next_to), sum(chance for _, chance in next_to))


def tells_apart(walk: Walk) -> bool:
    """Return whether two ranks that saw the same batches would overlap more than by chance."""
    together = [(min(len({*one}), len({*two})), chance) for one, two, chance in pairs(walk)]
    return is_more(sum(least for least, _ in together), sum(chance for _, chance in together))


def pairs(walk: Walk) -> Iterator[tuple[list[str], list[str], float]]:
    """Yield the batches of the first two ranks at each step, and the overlap expected by chance."""
    size = len(elements(walk))
    for one, two in zip(*walk.ranks[:2]):
        yield one, two, len({*one}) * len({*two}) / size


def elements(walk: Walk) -> set[str]:
    """All elements that any process used."""
    return {element for each in (*walk.epochs, *walk.ranks) for batch in each for element in batch}


def faults_of_drawing(walk: Walk) -> Iterator[str]:
    """Yield `data-alike`: two ranks used more common elements, overall or at the same step, than chance
    explains.
    """
    size, first = len(elements(walk)), share_of_first(walk)
    for (rank, own), (other, theirs) in combinations(enumerate(walk.ranks), 2):
        sets = [({*one}, {*two}) for one, two in zip(own, theirs)]
        seen = sum(len(one & two) for one, two in sets)
        if is_more(seen, sum(len(one) * len(two) for one, two in sets) / size):
            yield f"data-alike: at the same steps ranks {rank} and {other} saw {seen} elements alike"
        one, two = ({element for batch in each[:first] for element in batch} for each in (own, theirs))
        if is_more(len(one & two), len(one) * len(two) / size):
            yield f"data-alike: ranks {rank} and {other} have {len(one & two)} elements in common"


def faults_of_turns(walk: Walk) -> Iterator[str]:
    """Yield `epochs-differ` and `epoch-not-divided`: compare each rank's number of batches, less those lost
    in epochs.
    """
    size, steps = len(walk.ranks), [len(own) for own in walk.ranks]
    total = sum(map(len, walk.epochs))
    if len({*steps}) > 1:
        yield f"epochs-differ: the ranks took {', '.join(map(str, steps))} batches"
    elif not total <= 2 * steps[0] * size <= 2 * (total + size * len(walk.epochs)):
        yield f"epoch-not-divided: the original took {total} batches, each of {size} ranks {steps[0]}"


def share_of_first(walk: Walk) -> int:
    """Return the number of a rank's batches in its share of the original's first epoch; all if there is only
    one.
    """
    if len(walk.epochs) > 1:
        return max(1, len(walk.epochs[0]) // len(walk.ranks))
    return max(map(len, walk.ranks))


def is_more(seen: float, chance: float) -> bool:
    """Return whether the observed overlap is larger than chance explains."""
    return seen > chance + DEVIATIONS * max(1.0, math.sqrt(chance))


def is_fewer(seen: float, chance: float) -> bool:
    """Return whether the observed overlap is smaller than chance explains."""
    return seen < chance - DEVIATIONS * max(1.0, math.sqrt(chance))
