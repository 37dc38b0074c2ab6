"""The rates of all steps, against those of the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainshift.proving.judging import judge
from trainshift.proving.judging.averages import constant
from trainshift.proving.judging.endings import is_failed
from trainshift.proving.judging.seen import Found, Seen, sentences
from trainshift.proving.judging.shares import are_divided
from trainshift.proving.observed.record import Record

# A warm-up is over after this many steps with the same rate.
SETTLED = 3
BY_HAND = "The script sets weights itself, and its rate could not be determined."


def rate(seen: Seen) -> Found:
    """The rates of all steps, against those of the original."""
    found = Found(do="Multiply the learning rate by hvd.size() where the optimizer is made.", code="HV02")
    before, records = seen.before, seen.records
    is_by_hand = any(each.by_hand for record in records for each in record.optimizers)
    if is_by_hand:
        found.do = "Multiply the learning rate by hvd.size() where the script sets the weights."
    if not any(each.rates for each in before.optimizers):
        found.unseen = "The original took no step on one process, so its rate is unknown."
        return found
    if any(record.adasum for record in records):
        halved = [scaled(record, seen.size) for record in records]
        faults = fewest(seen, halved)
        found.do = "Leave the rate as it was: Adasum scales the steps itself."
    else:
        faults = fewest(seen, records)
    differ = [*judge.rates_differ(records)]
    if faults and not differ and any(record.warms_up for record in records):
        if all(is_warming(before, record, seen.size) for record in records):
            if not all(map(is_warm, records)):
                found.unseen = "The warm-up of the rate had not ended: give more --steps."
                return found
            if all(
                judge.close(record.optimizers[0].rates[-1], goal(before, seen.size)) for record in records
            ):
                faults = []
    if faults and is_failed(seen.original) and max(each.steps for each in before.optimizers) < seen.steps:
        found.unseen = (
            "The script fails on one process, after fewer steps than here, so rates cannot be compared."
        )
        faults = []
    if faults and is_by_hand and not is_steady(before, records):
        # For example, if gradients are clipped.
        found.unseen, faults = BY_HAND, []
    faults = [*differ, *faults]
    found.fails = sentences(faults[:2])
    found.places = [
        (place, "", 0)
        for record in records[:1]
        for each in record.optimizers[:1]
        if faults and (place := each.applied_at if is_by_hand else each.made_at)
    ]
    if differ:
        found.do, found.code = (
            "Let all ranks change the rate alike: by the step, or by an averaged metric.",
            "HV09",
        )
    elif any(fault.startswith("schedule-not-divided") for fault in faults):
        found.do, found.code = "Divide the counts of the schedule by hvd.size(), as the steps are.", "HV06"
    rates = judge.changes(records[0].optimizers[0].rates) if records and records[0].optimizers else []
    if rates and all(rate != rate for rate in rates):
        found.unseen = BY_HAND if is_by_hand else "The optimizer has no learning rate that can be read."
    old = judge.changes(before.optimizers[0].rates)
    found.says = f"{judge.shorten(rates)} on every rank; the original's is {judge.shorten(old)}."
    return found


def is_steady(before: Record, records: Sequence[Record]) -> bool:
    """Return whether all rates are one number of times the original's."""
    return all(
        constant([new / old for new, old in zip(ours.rates, theirs.rates)])
        for record in records
        for ours, theirs in zip(record.optimizers, before.optimizers)
    )


def fewest(seen: Seen, records: Sequence[Record]) -> list[str]:
    """The fewest possible faults of the rates, if it is unknown whether the ranks share the steps."""
    before = seen.before
    readings = [[*judge.rates_not_scaled(before, records)]]
    if any(record.stopped for record in [before, *records]) and readings[0]:
        counts = [each.steps for each in records[0].optimizers]
        short = replace(
            before,
            optimizers=[
                replace(each, rates=each.rates[:count]) for each, count in zip(before.optimizers, counts)
            ],
        )
        divided = share_of_epoch(before, records)
        if divided is None:
            divided = are_divided(seen.original, seen.data)
        if divided is not True:
            readings.append([*judge.rates_not_scaled(short, records)])
    return min(readings, key=len)


def share_of_epoch(before: Record, records: Sequence[Record]) -> bool | None:
    """Return whether an epoch of a rank is its share of the original's; None if unknown.

    It is unknown if their lengths are, or if only some of the longest are shares.
    """
    found = set(longest_epochs(before, records))
    return found.pop() if len(found) == 1 else None


def longest_epochs(before: Record, records: Sequence[Record]) -> list[bool | None]:
    """Return, for each longest epoch, whether a rank's is its share (True), as long (False), or neither.

    A script may also iterate over all of its data, to plot or to measure them.
    """
    size, whole, own = len(records), before.epochs, records[0].epochs if records else []
    if not whole or not all(record.epochs for record in records):
        return []
    longest = max(whole)
    same = len(whole) == len(own)
    lengths = [two for one, two in zip(whole, own) if one == longest] if same else [max(own)]
    least, most = longest // size, min(-(-longest // size) + 1, longest - 1)
    return [
        True if longest >= size > 1 and least <= each <= most else False if each >= longest else None
        for each in lengths
    ]


def scaled(record: Record, factor: float) -> Record:
    """A record with all rates multiplied by a factor."""
    optimizers = [
        replace(
            each,
            rates=[rate * factor for rate in each.rates],
            schedule={step: rate * factor for step, rate in each.schedule.items()},
        )
        for each in record.optimizers
    ]
    return replace(record, optimizers=optimizers)


def is_warming(before: Record, record: Record, size: int) -> bool:
    """Return whether rates are rising towards their goal."""
    rates = record.optimizers[0].rates if record.optimizers else []
    return all(one <= two * (1 + judge.TOLERANCE) for one, two in zip(rates, rates[1:])) and max(
        rates, default=0
    ) <= goal(before, size) * (1 + judge.TOLERANCE)


def is_warm(record: Record) -> bool:
    """Return whether rates have risen, and do so no more."""
    last = record.optimizers[0].rates[-SETTLED:] if record.optimizers else []
    return len(last) == SETTLED and all(judge.close(rate, last[0]) for rate in last)


def goal(before: Record, size: int) -> float:
    """The goal of rising rates."""
    return max(before.optimizers[0].rates) * size
