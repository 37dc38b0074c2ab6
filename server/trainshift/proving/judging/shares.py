"""Find the data of each rank: shares of one epoch, as far as the run shows it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from trainshift.proving.judging.data import (
    Walk,
    faults_of,
    in_epochs,
    is_data,
    judge_data,
    look,
    looks,
    walk_of,
)
from trainshift.proving.judging.drawn import faults_of_drawing, faults_of_turns, is_fewer, walks_drawn
from trainshift.proving.observed.record import Record, Run

# Shares of a rank's elements that others also saw: below the first, by chance; above the second, not by
# chance.
SOME, MOST = 0.02, 0.75
# With more in common, the parts of the ranks do not come from one partition.
SEVERAL = 0.1
# An epoch of all ranks is longer than the original's if it has this many times its elements.
MORE = 1.25
UNDIVIDED = "An epoch of each rank has as many batches as the original's: it is not divided."
LEFT_OUT = "An epoch of all ranks together is {:.0%} of the original's: they never see the rest."
ALSO_WHOLE = (
    "The script also reads all of its data, and was stopped: the batches that it trains on "
    "are unknown. Run with --steps 0."
)
SHARE = (
    "Give each rank its part: dataset.shard(hvd.size(), hvd.rank()), or x[hvd.rank()::hvd.size()] of "
    "an array; where each draws by itself, a seed of its own."
)
NO_GAIN = "give each rank rows of its own, or more ranks save no time."
WAITS = "if each reads all of its own data, the others wait. Run with --steps 0."
MADE_ANEW = (
    " What one process trained on was not found on the ranks: data that each process draws at random "
    "can be compared where the script sets a seed."
)
STRANGE = "Rank {} trains on data that one process did not reach, so epochs cannot be compared."


@dataclass(frozen=True)
class Shares:
    """The result: a fault, the reason why nothing is known, or the evidence.

    With `told_by_epochs`, the fault is in the batches of an epoch, wherever they are used.
    """

    fails: tuple[str, ...] = ()
    unseen: str = ""
    says: str = ""
    told_by_epochs: bool = False


def judge_shares(
    original: Run, ranks: Sequence[Run], divided: bool | None, *, evaluates_whole: bool = True
) -> Shares:
    """Judge the data of the ranks; `divided` is whether a rank's epoch is a share of the original's.

    With `evaluates_whole`, each rank must evaluate on all of the original's data; a script distributed by
    hand may divide them.
    """
    before, records = original.record, [run.record for run in ranks if run.record]
    assert before is not None
    if same := same_batches(records):
        return Shares((same,))
    is_cut = any(record.stopped for record in [before, *records])
    together, rounded_up = (part_of_epoch(before, records, each) for each in (0, 1))
    if is_cut and rounded_up < MOST:
        return Shares((LEFT_OUT.format(together),))
    if divided is False and together < MORE:
        divided = True  # Each rank takes as many batches, but smaller ones.
    if strange := strangers(before, records):
        return Shares(unseen=strange)
    sharded = any(record.shards for record in records)
    are_parts = has_parts(before, records)
    parts = [each for each in walks_drawn(before, records) if is_distinct(each)]
    common = max((overlap(each) for each in parts if are_parts or keeps_part(each)), default=0.0)
    if common > SEVERAL:
        return Shares((seen_on_others(common),))
    if not sharded and (drawn := drawn_apart(before, records, divided)):
        return drawn
    walks = [walk for kind in looks(before) if (walk := walk_of(kind, before, records))]
    if not walks:
        rows = always_the_same([before, *records])
        more = f" Each step of each rank was computed from the same {rows} rows: {NO_GAIN}" if rows else ""
        if not rows and looks(before):
            more = MADE_ANEW
        return Shares(unseen=f"The batches do not show which data they contain.{more}")
    if strange := next(filter(None, map(strangers_in, walks)), ""):
        return Shares(unseen=strange)
    if divided is False and any(record.stopped for record in records):
        return Shares((UNDIVIDED,))
    common = max(overlap(walk) for walk in walks)
    if SOME < common < MOST and not sharded:
        return Shares(
            unseen=f"{common:.0%} of a rank's elements were seen on another, but no batch was: each draws "
            "from all data by itself. shard() would give each its own."
        )
    walks = [walk.reached() if is_cut else walk for walk in walks]
    # If optimizers do not take turns, each run was stopped at a different place.
    uneven = any(len({each.steps for each in record.optimizers}) > 1 for record in [before, *records])
    if is_cut and (uneven or any(len(walk.epochs) == 1 for walk in walks)):
        return partly(walks, common, divided, ended=not any(record.stopped for record in records))
    faults = [each for walk in walks for each in faults_of(walk)] if is_cut else judge_data(original, ranks)
    if not evaluates_whole:
        faults = [fault for fault in faults if not fault.startswith("evaluation-divided")]
    vacuous = [fault for fault in faults if fault.startswith(("proof-is-vacuous", "data-not-seen"))]
    texts = [fault.partition(": ")[2] for fault in faults if fault not in vacuous]
    if texts:
        return Shares(tuple(f"{text[:1].upper()}{text[1:]}." for text in texts), told_by_epochs=True)
    if vacuous:
        return Shares(unseen=f"{vacuous[0].partition(': ')[2].capitalize()}.")
    return Shares(says="Each rank saw its own elements, and together they make up the original's epoch.")


def part_of_epoch(before: Record, records: Sequence[Record], more: int = 0) -> float:
    """The part of the original's longest epoch that all ranks cover, with some more batches of each.

    If the length of an epoch is unknown, the loops' iterations count. It is NaN if nothing is known.
    """
    whole, *own = (each.epochs or each.turns for each in (before, *records))
    longest, rows = max(whole, default=0), median(before.rows or [0])
    alike = all(len(each) == len(whole) for each in own) and all(each.rows for each in records)
    if not alike or longest * rows <= 0:
        return math.nan
    at = [index for index, length in enumerate(whole) if length == longest]
    batches = (
        [(lengths[index] + more) * median(each.rows) for lengths, each in zip(own, records)] for index in at
    )
    return max(map(sum, batches)) / (longest * rows)


def part_come_again(walk: Walk) -> float:
    """The part of the original's elements that all ranks used before their first elements recurred.

    It is 1 if they did not recur on one rank, or if last batches may have been dropped.
    """
    known = {element for epoch in walk.epochs for batch in epoch for element in batch}
    seen = {element for rank in walk.ranks for batch in rank for element in batch}
    again = all(len(in_epochs(rank)) > 1 for rank in walk.ranks)
    return len(seen) / len(known) if again and len(seen) + walk.slack < MOST * len(known) else 1.0


def drawn_apart(before: Record, records: Sequence[Record], divided: bool | None) -> Shares | None:
    """The result for ranks that each sample from the full data; None if they do not."""
    walks = walks_drawn(before, records)
    common = max(map(overlap, walks), default=0.0)
    if common <= SOME or any(True for walk in walks for _ in faults_of_drawing(walk)):
        return None
    says = (
        f"Each rank drew batches of its own from all data: {common:.0%} of its elements were seen on another "
        "one, as expected by chance."
    )
    if not any(record.stopped for record in [before, *records]):
        faults = [fault for walk in walks for fault in faults_of_turns(walk)]
        return Shares(tuple(f"{fault.partition(': ')[2].capitalize()}." for fault in faults), says=says)
    if divided is False:
        return Shares((UNDIVIDED,))
    if not has_all(before, records) and not any(map(comes_again, walks)):
        return Shares(unseen=f"{says[:-1]}, or their shards overlap. Run with --steps 0.")
    return Shares(says=says if divided else f"{says} A run to its end will show how many: --steps 0.")


def seen_on_others(common: float) -> str:
    """The message about shares with this overlap."""
    return f"{common:.0%} of the elements that a rank saw were seen on another rank, too."


def has_parts(before: Record, records: Sequence[Record]) -> bool:
    """Return whether each rank got only a part of the original's longest data."""
    longest, size = max(before.lengths, default=0), len(records)
    at = [index for index, length in enumerate(before.lengths) if length == longest]
    return longest >= size > 1 and all(
        len(record.lengths) == len(before.lengths)
        and all(longest // size <= record.lengths[index] <= -(-longest // size) for index in at)
        for record in records
    )


def has_all(before: Record, records: Sequence[Record]) -> bool:
    """Return whether each rank got as much data as the original."""
    return bool(before.lengths) and all(record.lengths == before.lengths for record in records)


def keeps_part(walk: Walk) -> bool:
    """Return whether ranks iterate the same elements repeatedly, and only a part of the original's."""
    known = {element for epoch in walk.epochs for batch in epoch for element in batch}
    for rank in walk.ranks:
        first, *others = [{element for batch in epoch for element in batch} for epoch in in_epochs(rank)]
        again = set().union(*others)
        if not again or len(again - first) > SOME * len(again) or len(first) > MOST * len(known):
            return False
    return True


def comes_again(walk: Walk) -> bool:
    """Return whether elements recur on a rank, so that it samples them one by one."""
    own = [[element for batch in rank for element in batch] for rank in walk.ranks]
    return any(len(each) - len({*each}) > SOME * len(each) for each in own)


def is_distinct(walk: Walk) -> bool:
    """Return whether an element of the original seldom comes twice in an epoch."""
    rows = [element for batch in walk.epochs[0] for element in batch]
    return len(rows) - len({*rows}) <= SOME * len(rows)


def are_divided(original: Run, ranks: Sequence[Run]) -> bool | None:
    """Return whether no element was used by two ranks, so that they share an epoch; None if unknown."""
    before, records = original.record, [run.record for run in ranks if run.record]
    if before is None or len(records) < len(ranks) or len(records) < 2:
        return None
    walks = [walk for kind in looks(before) if (walk := walk_of(kind, before, records))]
    if not walks or same_batches(records):
        return None
    return True if max(overlap(walk) for walk in walks) <= SOME else None


def uneven(records: Sequence[Record]) -> str:
    """The message that an epoch is longer on one rank, whose end no rank has reached; or nothing."""
    for what, counts in (
        ("An epoch has {} batches", [record.epochs for record in records]),
        ("A loop has {} iterations", [record.turns for record in records]),
    ):
        first, *others = counts
        for rank, other in enumerate(others, 1):
            for one, two in zip(first, other) if len(first) == len(other) else ():
                if one != two:
                    counted = f"{what.format(one)} on rank 0 and {two} on rank {rank}"
                    return f"{counted}, and the training was stopped: {WAITS}"
    return ""


def partly(walks: Sequence[Walk], common: float, divided: bool | None, *, ended: bool) -> Shares:
    """Judge runs some of which were cut within their first epoch; with `ended`, the ranks were not."""
    if common > SOME:
        return Shares((seen_on_others(common),))
    if (part := min(map(part_come_again, walks))) < MOST:
        return Shares((LEFT_OUT.format(part),))
    seen = {element for walk in walks for rank in walk.ranks for batch in rank for element in batch}
    known = {element for walk in walks for epoch in walk.epochs for batch in epoch for element in batch}
    steps = len(walks[0].ranks[0])
    ranks = len(walks[0].ranks)
    largest = max((len(batch) for walk in walks for rank in walk.ranks for batch in rank), default=0)
    if ended and len(known) - len(seen) > largest * ranks:
        ends = (
            f"The ranks ended after {len(seen)} elements, though one process had {len(known)} when it was cut"
        )
        if len(seen) * ranks <= len(known) + largest * ranks:
            return Shares((f"{ends}: the data are divided twice.",))
        return Shares(unseen=f"{ends}: give more --steps.")
    if divided or seen <= known:
        share = (
            "An epoch of each is its share of the original's." if divided else "The original has all of them."
        )
        return Shares(says=f"No element was seen on two ranks in {steps} steps. {share}")
    if all(map(are_apart, walks)):
        return Shares(
            says=f"No element was seen on two ranks in {steps} steps: each has a shard of the data."
        )
    return Shares(
        unseen="No element was seen on two ranks, but the run is too short for an epoch: give more --steps."
    )


def are_apart(walk: Walk) -> bool:
    """Return whether ranks share fewer elements than expected by chance if each sampled from the full data.

    The expected number follows from the elements that the ranks share with the original.
    """
    known = {element for epoch in walk.epochs for batch in epoch for element in batch}
    own = [{element for batch in rank for element in batch} for rank in walk.ranks]
    size = max(len(each) * len(known) / max(1, len(each & known)) for each in own)
    pairs = [*combinations(own, 2)]
    seen = sum(len(one & two) for one, two in pairs)
    return is_fewer(seen, sum(len(one) * len(two) for one, two in pairs) / size)


def overlap(walk: Walk) -> float:
    """The largest part of a rank's elements that others also used, within one epoch."""
    own = [{element for batch in rank for element in batch} for rank in walk.ranks]
    if len(walk.epochs) > 1:
        first = max(1, len(walk.epochs[0]) // len(own))
        own = [{element for batch in rank[:first] for element in batch} for rank in walk.ranks]
    seen = Counter(element for each in own for element in each)
    return max(sum(seen[element] > 1 for element in each) / max(1, len(each)) for each in own)


def same_batches(records: Sequence[Record]) -> str:
    """The message that ranks saw the same batches at the same steps; empty if they did not."""
    first, *others = records
    for rank, other in enumerate(others, 1):
        pairs = [
            (one, two) for one, two in zip(first.data, other.data) if any(len(rows) > 1 for _, rows in one)
        ]
        changing = [
            [
                place
                for place in range(len(one))
                if any(each[0][place] != one[place] for each in pairs if len(each[0]) > place)
            ]
            for one, _ in pairs
        ]
        judged = [(one, two, places) for (one, two), places in zip(pairs, changing) if places]
        same = sum(
            all(place < len(two) and one[place] == two[place] for place in places)
            for one, two, places in judged
        )
        if judged and 2 * same > len(judged):
            return f"Ranks 0 and {rank} saw the same batch in {same} of {len(judged)} steps."
    return ""


def always_the_same(records: Sequence[Record]) -> int:
    """The number of rows of the largest tensor that every step of every process used; or 0."""
    seen = [{(kind, tuple(rows)) for kind, rows in columns} for record in records for columns in record.data]
    common = set.intersection(*seen) if seen else set()
    return max((len(rows) for _, rows in common if len(rows) > 1), default=0)


def strangers(before: Record, records: Sequence[Record]) -> str:
    """The message that the ranks' data are not the original's; empty if they are, or if that is unknown."""
    for kind in looks(before) if not before.stopped else ():
        theirs = [each for each in before.data if look(each) == kind]
        changing = [
            place for place in range(len(kind)) if len({tuple(columns[place][1]) for columns in theirs}) > 1
        ]
        for rank, record in enumerate(records[1:], 1):
            ours = [each for each in record.data if look(each) == kind]
            if ours and changing and not any(is_data(place, theirs, ours) for place in changing):
                return STRANGE.format(rank)
    return ""


def strangers_in(walk: Walk) -> str:
    """The same message for data that recurred, so that all of the original's elements are known."""
    known = {element for epoch in walk.epochs for batch in epoch for element in batch}
    for rank, own in enumerate(walk.ranks):
        elements = [element for batch in own for element in batch]
        if len(walk.epochs) > 1 and 2 * sum(element in known for element in elements) < len(elements):
            return STRANGE.format(rank)
    return ""
