"""Judge spec.md 8 on the training data: an epoch of all ranks is one of the original."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from trainshift.proving.observed.record import Column, Record, Run

Batch = list[str]
# The share of the ranks' rows that the original has seen, whether it read all of them or was stopped.
MOST, LEAST = 0.5, 0.1
# Batches whose sizes differ by less than this have one size, except for the last of an epoch.
ALIKE = 1.5


def judge_data(original: Run, ranks: Sequence[Run]) -> list[str]:
    """The faults of a conversion that divides its data: sentences that begin with the fault's id.

    Runs that did not finish have no such faults.
    """
    before, records = original.record, [run.record for run in ranks if run.record]
    if before is None or len(records) < len(ranks) or any(run.exit_code for run in (original, *ranks)):
        return []
    walks = [walk for look in looks(before) if (walk := walk_of(look, before, records))]
    if not walks:
        return ["data-not-seen: no batch of the original has elements that identify the ranks' data"]
    return [fault for walk in walks for fault in faults_of(walk)] + [*evaluation(before, records)]


@dataclass(frozen=True)
class Walk:
    """The sequence of elements at a place of the training: the original's by epoch, and each rank's."""

    epochs: list[list[Batch]]
    ranks: list[list[Batch]]

    @property
    def slack(self) -> int:
        """The number of elements that an epoch may lack: one batch on each rank."""
        return len(self.ranks) * max(len(batch) for epoch in self.epochs for batch in epoch)

    @property
    def finer(self) -> float:
        """The factor by which a rank's batches are smaller, if a script divides their size; else 1."""
        theirs, ours = (
            median(len(batch) for batches in each for batch in batches) for each in (self.epochs, self.ranks)
        )
        ratio = theirs / ours if ours else 1.0
        return 1.0 if 1 / ALIKE < ratio < ALIKE else ratio

    def reached(self) -> Walk:
        """The walk without the original's elements that no rank reached because the run was stopped early."""
        if self.finer == 1.0:
            return self
        batches = round(max(map(len, self.ranks)) * len(self.ranks) / self.finer)
        epochs = []
        for epoch in self.epochs:
            epochs += [epoch[:batches]] if batches > 0 else []
            batches -= len(epoch)
        return Walk(epochs, self.ranks)


def looks(record: Record) -> list[tuple[str, ...]]:
    """The kinds of batches in a process, one for each place that takes gradients."""
    return [*dict.fromkeys(look(columns) for columns in record.data)]


def look(columns: Sequence[Column]) -> tuple[str, ...]:
    """The types and shapes of the rows of a batch."""
    return tuple(kind for kind, _ in columns)


def walk_of(kind: tuple[str, ...], before: Record, records: Sequence[Record]) -> Walk | None:
    """The walk of the batches of a kind; None if their contents are unknown.

    Tensors that change from batch to batch and recur on the ranks are data; weights, noise and constants are
    not.  The first batch of a rank does not count: weights may start with the same values everywhere.
    """
    theirs, *ours = ([each for each in record.data if look(each) == kind] for record in (before, *records))
    if not theirs or not all(ours):
        return None
    rows = [columns for own in ours for columns in own[1:] or own]
    # An original that was stopped has not seen all data.
    least = LEAST if before.stopped else MOST
    places = [place for place in range(len(kind)) if is_data(place, theirs, rows, least)]
    places = [place for place in places if len(theirs[0][place][1]) == len(theirs[0][places[0]][1])]
    if not places:
        return None
    epochs = in_epochs(batches(theirs, places))
    walk = Walk(epochs, [batches(own, places) for own in ours])
    return walk if max(map(len, epochs)) > 1 else None


def is_data(
    place: int, theirs: Sequence[list[Column]], ours: Sequence[list[Column]], least: float = MOST
) -> bool:
    """Return whether a place in each batch contains data, at least a part of which the original used."""
    if len({tuple(columns[place][1]) for columns in theirs}) < 2:
        return False
    known = {row for columns in theirs for row in columns[place][1]}
    rows = [row for columns in ours for row in columns[place][1]]
    return sum(row in known for row in rows) >= least * len(rows)


def batches(steps: Sequence[list[Column]], places: Sequence[int]) -> list[Batch]:
    """The elements of each step, once if several gradients are taken of the same ones."""
    found: list[Batch] = []
    for columns in steps:
        rows = [" ".join(row) for row in zip(*(columns[place][1] for place in places), strict=False)]
        if not found or rows != found[-1]:
            found.append(rows)
    return found


def in_epochs(walk: Sequence[Batch]) -> list[list[Batch]]:
    """Group the batches by epoch: a new one begins where most elements of a batch occurred in this one
    already.
    """
    epochs: list[list[Batch]] = []
    seen: set[str] = set()
    for batch in walk:
        if not epochs or 2 * sum(element in seen for element in batch) > len(batch):
            epochs.append([])
            seen = set()
        epochs[-1].append(batch)
        seen.update(batch)
    return epochs


def faults_of(walk: Walk) -> Iterator[str]:
    """Yield all faults of one walk: in its length, and in the contents of each epoch."""
    size, steps = len(walk.ranks), [len(own) for own in walk.ranks]
    if len({*steps}) > 1:
        yield f"epochs-differ: the ranks took {', '.join(map(str, steps))} batches"
        return
    count, longest = len(walk.epochs), max(map(len, walk.epochs))
    total = sum(map(len, walk.epochs))
    shares = [len(epoch) * walk.finer / size for epoch in walk.epochs]
    fewest, most = sum(map(math.floor, shares)), sum(map(math.ceil, shares))
    if not fewest <= steps[0] <= most:
        yield (
            f"epoch-not-divided: the original took {total} batches in {count} epochs, each of {size} ranks "
            f"{steps[0]}"
        )
    sizes = Counter(element for epoch in walk.epochs for batch in epoch for element in {*batch})
    elements = len(sizes)
    if elements < 3 * walk.slack:
        yield f"proof-is-vacuous: {elements} elements are too few for {size} ranks to be told apart"
    # If training ends within an epoch, its steps do not show the length of a rank's epoch.
    share = longest * walk.finer / size
    lengths = (steps[0] / (total / longest), math.floor(share), math.ceil(share))
    yield from min((list(contents(walk, length)) for length in lengths), key=len)


def contents(walk: Walk, steps: float) -> Iterator[str]:
    """Yield `data-unknown`, `data-shared` and `data-missing`, for the data of all ranks in each epoch."""
    known = {element for epoch in walk.epochs for batch in epoch for element in batch}
    strange = {element for own in walk.ranks for batch in own for element in batch} - known
    if len(strange) > walk.slack:
        yield f"data-unknown: the ranks saw {len(strange)} elements that the original did not have"
    several: Counter[str] = Counter()
    for epoch in walk.epochs:
        several |= Counter(element for batch in epoch for element in batch)
    shared, missing = [], []
    for number, epoch in enumerate(walk.epochs):
        theirs = Counter(element for batch in epoch for element in batch)
        ours = [
            Counter(e for batch in own[round(number * steps) : round((number + 1) * steps)] for e in batch)
            for own in walk.ranks
        ]
        common = Counter(element for own in ours for element in own)
        shared.append(sum(several[element] == 1 and times > 1 for element, times in common.items()))
        missing.append((theirs - sum(ours, Counter())).total())
    if any(shared):
        yield f"data-shared: {shared} elements of each epoch were seen on several ranks"
    if len(walk.epochs) > 1 and len(walk.epochs[-1]) < len(walk.epochs[0]):
        missing.pop()  # Training ends within this epoch.
    if any(count > walk.slack for count in missing):
        yield f"data-missing: {missing} elements of each epoch were seen on no rank, {walk.slack} may be"


def evaluation(before: Record, records: Sequence[Record]) -> Iterator[str]:
    """Yield `evaluation-divided`: each rank must evaluate on as many elements as the original, or none."""
    for rank, record in enumerate(records):
        others = {*record.evaluated} - {*before.evaluated}
        if others:
            yield (
                f"evaluation-divided: rank {rank} went through {sorted(others)} elements where the original "
                f"went through {sorted({*before.evaluated})}"
            )
