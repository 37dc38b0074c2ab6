"""Judge spec.md 6.7 on the observer's records: one original, and the ranks of its conversion."""

from __future__ import annotations

import importlib
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from trainshift.proving.judging.seen import counted
from trainshift.proving.observed.record import OptimizerRecord, Record, Run

TOLERANCE = 1e-6
# The tolerance for rates that are measured by the changes of steps.
MEASURED = 0.02
# The tolerance for a divided schedule, relative to its steps: counts are rounded.
DRIFT = 0.05


def judge(original: Run, ranks: Sequence[Run]) -> list[str]:
    """The faults of a conversion: sentences that start with the fault's id and a colon."""
    faults = list(unfinished(original, ranks))
    before, records = original.record, [run.record for run in ranks if run.record]
    if faults or before is None or len(records) < len(ranks):
        return faults
    first, *others = records
    faults += vacuous(before, records, ranks)
    faults += steps_differ(before, records)
    faults += rates_not_scaled(before, records)
    for rank, other in enumerate(others, 1):
        faults += metrics_differ(first, other, rank)
        faults += not_reduced(first, other, rank)
    faults += not_broadcast(records)
    for rank, other in enumerate(others, 1):
        faults += values_differ(first, other, ranks, rank) or broadcast_late(first, other, rank)
    faults += printed(original, ranks)
    faults += wrote(original, ranks)
    faults += gpus_shared(records)
    return faults


def unfinished(original: Run, ranks: Sequence[Run]) -> Iterator[str]:
    """Yield `did-not-finish`, `wrapped-twice` and `averaged-twice`, for runs that ended early."""
    runs = [("the original", original), *((f"rank {rank}", run) for rank, run in enumerate(ranks))]
    # A process that was killed because another one had failed comes last.
    for who, run in sorted(runs, key=lambda pair: pair[1].exit_code < 0):
        if run.exit_code != 0 or run.record is None:
            why = run.record.error if run.record else ""
            output = tail(why or run.stderr + run.log)
            yield f"did-not-finish: {who} ended with status {run.exit_code}: {output}"
    for rank, run in enumerate(ranks):
        if run.record and run.record.double_wraps:
            times = run.record.double_wraps
            yield f"wrapped-twice: rank {rank} wrapped what was wrapped already, {times} times"
        if run.record and run.record.double_averages:
            yield f"averaged-twice: rank {rank} averaged gradients that were averaged already"


def vacuous(before: Record, records: Sequence[Record], ranks: Sequence[Run]) -> Iterator[str]:
    """Yield `proof-is-vacuous` if the run could not have shown a wrong conversion."""
    if not any(optimizer.steps for optimizer in before.optimizers):
        yield "proof-is-vacuous: the original took no optimizer step"
        return
    initial = [[optimizer.initial for optimizer in record.optimizers] for record in records]
    gradients = [record.local_gradients for record in records]
    if all(each == initial[0] for each in initial) and all(each == gradients[0] for each in gradients):
        yield "proof-is-vacuous: all ranks began with equal weights and saw equal gradients"
    for number, optimizer in enumerate(records[0].optimizers):
        if optimizer.initial == optimizer.final:
            yield f"proof-is-vacuous: {name(number, optimizer)} changed none of its variables"
    if any(not finite(array) for run in ranks for array in run.values.values()):
        yield "proof-is-vacuous: the training ended with values that are not finite"


def steps_differ(before: Record, records: Sequence[Record]) -> Iterator[str]:
    """Yield `steps-differ` unless all ranks take the same steps: the original's or their share of them (HV06,
    HV15).

    If a metric may end the training, any number of at least one is right.
    """
    theirs = [optimizer.steps for optimizer in before.optimizers]
    first, *others = [[optimizer.steps for optimizer in record.optimizers] for record in records]
    for rank, other in enumerate(others, 1):
        if other != first:
            yield f"steps-differ: the optimizers took {first} steps on rank 0 and {other} on rank {rank}"
            return
    if len(theirs) != len(first):
        yield f"steps-differ: the optimizers took {theirs} steps in the original, {first} converted"
        return
    for number, (expected, actual) in enumerate(zip(theirs, first, strict=True)):
        stopped = before.stops and expected and actual
        if not stopped and actual not in (expected, *shares(expected, len(records))):
            who = name(number, records[0].optimizers[number])
            yield f"steps-differ: {who} took {expected} steps in the original, {actual} converted"


def shares(steps: int, size: int) -> set[int]:
    """A share of the steps, rounded in each of any number of equal epochs: down, or up for a last batch."""
    epochs = [count for count in range(1, steps // size + 1) if steps % count == 0] or [1]
    return {
        count * (-(-steps // count // size) if up else steps // count // size)
        for count in epochs
        for up in (0, 1)
    }


def rates_not_scaled(before: Record, records: Sequence[Record]) -> Iterator[str]:
    """Yield `rate-not-scaled` and `schedule-not-divided`.

    Every learning rate is the original's times the number of ranks; if each rank takes its share of the
    steps, it is the original's rate after proportionally more steps.
    """
    size = len(records)
    for number, old in enumerate(before.optimizers):
        for rank, record in enumerate(records):
            new = record.optimizers[number] if number < len(record.optimizers) else None
            if new is None:
                continue
            pace = size if new.steps < old.steps and not before.stops else 1
            fault = wrong_rates(old, new, size, pace, by_metric=before.stops or before.adapts)
            if fault:
                rates = shorten(changes(new.rates))
                yield (
                    f"{fault}: the learning rate of {name(number, new)} is {rates} on rank {rank}, "
                    f"the original's is {shorten(changes(old.rates))}"
                )
                break
            theirs, ours = sampled(old), sampled(new)
            fault = wrong_samples(theirs, ours, size, pace)
            if fault and before.stops:  # The number of steps does not show whether they are divided.
                fault = wrong_samples(theirs, ours, size, size)
            if fault:
                yield (
                    f"{fault}: the schedule of {name(number, new)} gives {shorten([*ours.values()])} on "
                    f"rank {rank}, the original's gives {shorten([*theirs.values()])}"
                )
                break


def rates_differ(records: Sequence[Record]) -> Iterator[str]:
    """Yield `rates-differ` unless every rank takes each step at the same rate."""
    for rank, record in enumerate(records[1:], 1):
        for number, (one, two) in enumerate(zip(records[0].optimizers, record.optimizers)):
            for step, (here, there) in enumerate(zip(one.rates, two.rates), 1):
                if not close(here, there, tolerance(one, two)):
                    yield (
                        f"rates-differ: at step {step} the learning rate of {name(number, one)} is {here:g} "
                        f"on rank 0 and {there:g} on rank {rank}"
                    )
                    break


def wrong_rates(old: OptimizerRecord, new: OptimizerRecord, size: int, pace: int, *, by_metric: bool) -> str:
    """The fault in the rates of all steps, each with `pace` of the original's; empty if they are right.

    If a metric decides when the rate changes or the training ends, one run may also have more of the same
    changes than the other, unless a schedule sets the rate.
    """
    expected = [rate * size for rate in old.rates]
    slack = tolerance(old, new)
    as_before = same(new.rates, expected[: new.steps], slack)
    if by_metric:
        ours, theirs = changes(new.rates), changes(expected)
        common = min(len(ours), len(theirs))
        if as_before or same(ours[:common], theirs[:common], slack):
            return ""
        if not old.schedule:
            return "rate-not-scaled"
        pace = size
    if pace == 1:
        return "" if as_before else "rate-not-scaled"
    # A rate that changes with the epoch follows its rounded steps.
    paces = (pace, old.steps / new.steps) if new.steps and not by_metric else (pace,)
    later = {step: rate * size for step, rate in sampled(old).items() if step >= old.steps}
    if keeps_pace(dict(enumerate(expected)) | later, dict(enumerate(new.rates)), paces, slack):
        return ""
    return "schedule-not-divided" if as_before else "rate-not-scaled"


def wrong_samples(old: dict[int, float], new: dict[int, float], size: int, pace: int) -> str:
    """The fault in a schedule's values at some steps; empty if they are right."""
    expected = {step: rate * size for step, rate in old.items()}
    as_before = all(close(new.get(step, 0.0), rate) for step, rate in expected.items())
    if pace == 1 or not expected:
        return "" if as_before else "rate-not-scaled"
    if keeps_pace(expected, new, (pace,)):
        return ""
    return "schedule-not-divided" if as_before else "rate-not-scaled"


def keeps_pace(
    expected: dict[int, float], new: dict[int, float], paces: Sequence[float], off: float = TOLERANCE
) -> bool:
    """Return whether each new rate equals the expected one at about the pace times the step."""
    known, slack = sorted(expected), max(paces)
    for step, rate in new.items():
        early = step * min(paces) * (1 - DRIFT) - slack
        late = step * max(paces) * (1 + DRIFT) + slack
        if early > known[-1]:
            continue
        near = known[max(bisect_left(known, early) - 1, 0) : bisect_right(known, late) + 1]
        low, high = min(expected[at] for at in near), max(expected[at] for at in near)
        # After the last known value, the trend continues.
        margin = off * abs(high) + (high - low if late > known[-1] else 0.0)
        if not math.isnan(low) and not low - margin <= rate <= high + margin:
            return False
    return True


def sampled(optimizer: OptimizerRecord) -> dict[int, float]:
    """The values of an optimizer's schedule, by step."""
    return {int(step): rate for step, rate in optimizer.schedule.items()}


def metrics_differ(first: Record, second: Record, rank: int) -> Iterator[str]:
    """Yield `metrics-differ` unless callbacks that steer a training get the same metric on all ranks."""
    if first.monitored != second.monitored:
        one, two = (shorten(record.monitored) or "nothing" for record in (first, second))
        yield f"metrics-differ: EarlyStopping and ReduceLROnPlateau got {one} on rank 0, {two} on rank {rank}"


def not_reduced(first: Record, second: Record, rank: int) -> Iterator[str]:
    """Yield `not-reduced` unless the gradients that reach an optimizer are the same on all ranks, at every
    step.
    """
    for number, (one, two) in enumerate(zip(first.optimizers, second.optimizers, strict=False)):
        steps = list(zip(one.gradients, two.gradients, strict=False))
        bad = sum(here != there for here, there in steps)
        if bad:
            yield (
                f"not-reduced: the gradients that reached {name(number, one)} differ between ranks 0 "
                f"and {rank} in {bad} of {len(steps)} steps"
            )


def not_broadcast(records: Sequence[Record]) -> Iterator[str]:
    """Yield `not-broadcast` unless every trained variable and every slot was in an executed broadcast."""
    for rank, record in enumerate(records):
        for number, optimizer in enumerate(record.optimizers):
            for kind, missing, total in (
                ("variables trained by", optimizer.unbroadcast_variables, optimizer.variables),
                ("slots of", optimizer.unbroadcast_slots, optimizer.slots),
            ):
                if missing:
                    yield (
                        f"not-broadcast: {len(missing)} of the {len(total)} {kind} {name(number, optimizer)} "
                        f"were never broadcast on rank {rank}: {shorten(missing)}"
                    )


def broadcast_late(first: Record, second: Record, rank: int) -> Iterator[str]:
    """Yield `broadcast-late` unless the weights are the same after their first step, or the first execution
    of several.

    Weights made by different gradients are not.  One optimizer may train two models in turn.
    """
    for number, (one, two) in enumerate(zip(first.optimizers, second.optimizers, strict=False)):
        gradients = zip(one.gradients, two.gradients, strict=False)
        begun = {each + more for each in (0, *one.began) for more in range(first.steps_per_execution)}
        every = enumerate(zip(one.weights, two.weights, gradients, strict=False))
        steps = [step for index, step in every if index not in begun]
        bad = sum(here != there and given == got for here, there, (given, got) in steps)
        if bad:
            yield (
                f"broadcast-late: what {name(number, one)} trains ended equal, but after the first step "
                f"it differed between ranks 0 and {rank} for {bad} of {len(steps)} steps"
            )


def values_differ(first: Record, second: Record, ranks: Sequence[Run], rank: int) -> list[str]:
    """Yield `weights-differ` and `slots-differ` unless all ranks end with the same values."""
    faults = []
    for number, (one, two) in enumerate(zip(first.optimizers, second.optimizers, strict=False)):
        for fault, kind, names, others in (
            ("weights-differ", "variables", one.variables, two.variables),
            ("slots-differ", "slots", one.slots, two.slots),
        ):
            if len(names) != len(others):
                faults.append(
                    f"{fault}: {name(number, one)} has {len(names)} {kind} on rank 0, "
                    f"{len(others)} on rank {rank}"
                )
                continue
            bad = []
            for index, variable in enumerate(names):
                key = f"{number}/{kind}/{index}"
                distance = difference(ranks[0].values.get(key), ranks[rank].values.get(key))
                if distance:
                    bad.append(f"{variable} (by {distance:.3g})")
            if bad:
                faults.append(
                    f"{fault}: {len(bad)} of the {len(names)} {kind} of {name(number, one)} differ between "
                    f"ranks 0 and {rank} at the end: {shorten(bad)}"
                )
    return faults


def printed(original: Run, ranks: Sequence[Run]) -> Iterator[str]:
    """Yield `rank1-printed`, `rank1-logged` and `rank0-silent` unless rank 0 prints, and only rank 0."""
    for fault, channel, texts in (
        ("printed", "standard output", [run.stdout for run in (original, *ranks)]),
        ("printed", "native standard error, as tf.print does", [run.native for run in (original, *ranks)]),
        ("logged", "sys.stderr", [run.stderr for run in (original, *ranks)]),
    ):
        old, zero, *others = (text.strip() for text in texts)
        for rank, text in enumerate(others, 1):
            if text:
                yield f"rank{rank}-{fault}: rank {rank} wrote to {channel}: {shorten(text.splitlines())}"
        if old and not zero:
            yield f"rank0-silent: the original wrote to {channel} and rank 0 did not"


def wrote(original: Run, ranks: Sequence[Run]) -> Iterator[str]:
    """`rank1-wrote-file` and `rank0-wrote-nothing`.

    Writes of another rank to a temporary directory of its own are fine.
    """
    old, zero, *others = (
        [*run.files, *(run.record.written_elsewhere if run.record else ())] for run in (original, *ranks)
    )
    for rank, files in enumerate(others, 1):
        record = ranks[rank].record
        temporary = tuple(f"{place}/" for place in record.temporary) if record else ()
        files = [re.sub("^(work|here)/", "", file) for file in files if not file.startswith(temporary)]
        if files:
            yield f"rank{rank}-wrote-file: rank {rank} wrote {counted(len(files), 'file')}: {shorten(files)}"
    if old and not zero:
        yield f"rank0-wrote-nothing: the original wrote {counted(len(old), 'file')} and rank 0 none"


def gpus_shared(records: Sequence[Record]) -> Iterator[str]:
    """Yield `gpus-shared` unless each rank uses the GPU of its own number, and no other."""
    for rank, record in enumerate(records):
        others = [gpus for gpus in record.gpus if gpus != str(rank)]
        if others:
            yield f"gpus-shared: rank {rank} was given the GPUs {' and '.join(others)}"


def name(number: int, optimizer: OptimizerRecord) -> str:
    """The name of an optimizer in a fault."""
    return f"optimizer {number} ({optimizer.kind})"


def difference(one: object, two: object) -> float:
    """The largest difference of two arrays: 0.0 if they are equal, infinite if they do not compare."""
    if one is None and two is None:
        return 0.0
    numpy = importlib.import_module("numpy")
    left, right = numpy.asarray(one), numpy.asarray(two)
    if left.dtype != right.dtype or left.shape != right.shape:
        return math.inf
    if left.tobytes() == right.tobytes():
        return 0.0
    if left.dtype.kind not in "fiub":
        return math.inf
    largest = float(numpy.max(numpy.abs(left.astype("f8") - right.astype("f8"))))
    return math.inf if math.isnan(largest) else largest


def finite(array: object) -> bool:
    """Return whether a floating-point array has neither NaN nor infinity; True for any other array."""
    numpy = importlib.import_module("numpy")
    values = numpy.asarray(array)
    return values.dtype.kind != "f" or bool(numpy.isfinite(values).all())


def tolerance(*optimizers: OptimizerRecord) -> float:
    """The tolerance for differences between these rates."""
    return MEASURED if any(each.by_hand for each in optimizers) else TOLERANCE


def close(one: float, two: float, off: float = TOLERANCE) -> bool:
    """Return whether two learning rates are the same; an optimizer without a rate has NaN."""
    return math.isclose(one, two, rel_tol=off) or (math.isnan(one) and math.isnan(two))


def same(one: Sequence[float], two: Sequence[float], off: float = TOLERANCE) -> bool:
    """Return whether two sequences of learning rates are the same."""
    return len(one) == len(two) and all(close(here, there, off) for here, there in zip(one, two))


def changes(rates: Sequence[float]) -> list[float]:
    """The rates without repetitions."""
    return [rate for index, rate in enumerate(rates) if not index or not close(rate, rates[index - 1])]


def shorten(items: Sequence[object]) -> str:
    """The first items, and the number of others."""
    text = ", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in items[:4])
    return text if len(items) <= 4 else f"{text} and {len(items) - 4} more"


def tail(text: str, lines: int = 12) -> str:
    """The end of a text, on lines of its own."""
    return "\n    ".join(["", *text.strip().splitlines()[-lines:]])
