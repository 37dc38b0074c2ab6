"""Judges spec.md 6.7 on what the observer wrote down: one original, two ranks of its conversion."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sequence

from proof.record import OptimizerRecord, Record, Run

RANKS = 2
TOLERANCE = 1e-6


def judge(original: Run, ranks: tuple[Run, Run]) -> list[str]:
    """The faults of a conversion: sentences that start with the fault's id and a colon."""
    faults = list(unfinished(original, ranks))
    records = [run.record for run in (original, *ranks)]
    if faults or None in records:
        return faults
    before, first, second = (record for record in records if record)
    faults += vacuous(before, first, second, ranks)
    faults += steps_differ(before, first, second)
    faults += rates_not_scaled(before, first, second)
    faults += metrics_differ(first, second)
    faults += not_reduced(first, second)
    faults += not_broadcast(first, second)
    faults += values_differ(first, second, ranks) or broadcast_late(first, second)
    faults += printed(original, ranks)
    faults += wrote(original, ranks)
    faults += gpus_shared(first, second)
    return faults


def unfinished(original: Run, ranks: tuple[Run, Run]) -> Iterator[str]:
    """`did-not-finish` and `wrapped-twice`: what ends a run early."""
    runs = [("the original", original), ("rank 0", ranks[0]), ("rank 1", ranks[1])]
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


def vacuous(before: Record, first: Record, second: Record, ranks: tuple[Run, Run]) -> Iterator[str]:
    """`proof-is-vacuous`: the run could not have shown a wrong conversion."""
    if not any(optimizer.steps for optimizer in before.optimizers):
        yield "proof-is-vacuous: the original took no optimizer step"
        return
    initial = [[optimizer.initial for optimizer in record.optimizers] for record in (first, second)]
    if initial[0] == initial[1] and first.local_gradients == second.local_gradients:
        yield "proof-is-vacuous: both ranks began with equal weights and saw equal gradients"
    for number, optimizer in enumerate(first.optimizers):
        if optimizer.initial == optimizer.final:
            yield f"proof-is-vacuous: {name(number, optimizer)} changed none of its variables"
    if any(not finite(array) for run in ranks for array in run.values.values()):
        yield "proof-is-vacuous: the training ended with values that are not finite"


def steps_differ(before: Record, first: Record, second: Record) -> Iterator[str]:
    """`steps-differ`: both ranks take the same steps, the original's or half of them (HV06).

    A training that a metric may end takes as many as it takes, but at least one.
    """
    counts = [[optimizer.steps for optimizer in record.optimizers] for record in (before, first, second)]
    if counts[1] != counts[2]:
        yield f"steps-differ: the optimizers took {counts[1]} steps on rank 0 and {counts[2]} on rank 1"
    elif len(counts[0]) != len(counts[1]):
        yield f"steps-differ: the optimizers took {counts[0]} steps in the original, {counts[1]} converted"
    else:
        for number, (expected, actual) in enumerate(zip(counts[0], counts[1], strict=True)):
            stopped = before.stops and expected and actual
            if not stopped and actual not in (expected, *halves(expected)):
                who = name(number, first.optimizers[number])
                yield f"steps-differ: {who} took {expected} steps in the original, {actual} converted"


def halves(steps: int) -> set[int]:
    """Half of the steps, rounded down in each of any number of equal epochs.

    In several ones rounded up too: their last batches need not be full.
    """
    epochs = [count for count in range(1, steps // RANKS + 1) if steps % count == 0]
    down = {count * (steps // count // RANKS) for count in epochs}
    up = {count * -(-steps // count // RANKS) for count in epochs if count > 1}
    return down | up or {steps // RANKS}


def rates_not_scaled(before: Record, first: Record, second: Record) -> Iterator[str]:
    """`rate-not-scaled`: every learning rate is the original's times the number of ranks."""
    for number, old in enumerate(before.optimizers):
        for rank, record in enumerate((first, second)):
            new = record.optimizers[number] if number < len(record.optimizers) else None
            if new is None:
                continue
            if not scaled(old.rates, new.rates, by_metric=before.stops or before.adapts):
                rates = shorten(changes(new.rates))
                yield (
                    f"rate-not-scaled: the learning rate of {name(number, new)} is {rates} on rank {rank}, "
                    f"the original's is {shorten(changes(old.rates))}"
                )
                break
            samples = [(step, rate, new.schedule.get(step, 0.0)) for step, rate in old.schedule.items()]
            wrong = [sample for sample in samples if not close(sample[2], sample[1] * RANKS)]
            if wrong:
                step, rate, actual = wrong[0]
                yield (
                    f"rate-not-scaled: at step {step} the schedule of {name(number, new)} gives "
                    f"{actual:g} on rank {rank}, the original's gives {rate:g}"
                )
                break


def scaled(old: Sequence[float], new: Sequence[float], *, by_metric: bool) -> bool:
    """Whether `new` is `old` times the number of ranks.

    With fewer steps than the original, it may either stop early or change at other steps.  Where a
    metric decides when the rate changes or the training ends, the one may also take more of the same
    changes than the other.
    """
    expected = [rate * RANKS for rate in old]
    if same(new, expected[: len(new)]):
        return True
    ours, theirs = changes(new), changes(expected)
    if by_metric:
        common = min(len(ours), len(theirs))
        return same(ours[:common], theirs[:common])
    return len(new) < len(old) and same(ours, theirs)


def metrics_differ(first: Record, second: Record) -> Iterator[str]:
    """`metrics-differ`: callbacks that steer a training by a metric are given the same on both ranks."""
    if first.monitored != second.monitored:
        one, two = (shorten(record.monitored) or "nothing" for record in (first, second))
        yield f"metrics-differ: EarlyStopping and ReduceLROnPlateau got {one} on rank 0, {two} on rank 1"


def not_reduced(first: Record, second: Record) -> Iterator[str]:
    """`not-reduced`: the gradients that reach an optimizer are the same on both ranks, at every step."""
    for number, (one, two) in enumerate(zip(first.optimizers, second.optimizers, strict=False)):
        steps = list(zip(one.gradients, two.gradients, strict=False))
        bad = sum(here != there for here, there in steps)
        if bad:
            yield (
                f"not-reduced: the gradients that reached {name(number, one)} differ between the ranks "
                f"in {bad} of {len(steps)} steps"
            )


def not_broadcast(first: Record, second: Record) -> Iterator[str]:
    """`not-broadcast`: every trained variable and every slot was in an executed broadcast."""
    for rank, record in enumerate((first, second)):
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


def broadcast_late(first: Record, second: Record) -> Iterator[str]:
    """`broadcast-late`: once the first step, or execution of several, is over, the weights are the same."""
    for number, (one, two) in enumerate(zip(first.optimizers, second.optimizers, strict=False)):
        steps = list(zip(one.weights, two.weights, strict=False))[first.steps_per_execution :]
        bad = sum(here != there for here, there in steps)
        if bad:
            yield (
                f"broadcast-late: what {name(number, one)} trains ended equal, but after the first step "
                f"it differed between the ranks for {bad} of {len(steps)} steps"
            )


def values_differ(first: Record, second: Record, ranks: tuple[Run, Run]) -> list[str]:
    """`weights-differ` and `slots-differ`: both ranks end with the same values."""
    faults = []
    for number, (one, two) in enumerate(zip(first.optimizers, second.optimizers, strict=False)):
        for fault, kind, names, others in (
            ("weights-differ", "variables", one.variables, two.variables),
            ("slots-differ", "slots", one.slots, two.slots),
        ):
            if len(names) != len(others):
                faults.append(
                    f"{fault}: {name(number, one)} has {len(names)} {kind} on rank 0, {len(others)} on rank 1"
                )
                continue
            bad = []
            for index, variable in enumerate(names):
                key = f"{number}/{kind}/{index}"
                distance = difference(ranks[0].values.get(key), ranks[1].values.get(key))
                if distance:
                    bad.append(f"{variable} (by {distance:.3g})")
            if bad:
                faults.append(
                    f"{fault}: {len(bad)} of the {len(names)} {kind} of {name(number, one)} differ between "
                    f"the ranks at the end: {shorten(bad)}"
                )
    return faults


def printed(original: Run, ranks: tuple[Run, Run]) -> Iterator[str]:
    """`rank1-printed`, `rank1-logged` and `rank0-silent`: only rank 0 prints, and it does."""
    for fault, channel, texts in (
        ("rank1-printed", "standard output", [run.stdout for run in (original, *ranks)]),
        (
            "rank1-printed",
            "native standard error, as tf.print does",
            [run.native for run in (original, *ranks)],
        ),
        ("rank1-logged", "sys.stderr", [run.stderr for run in (original, *ranks)]),
    ):
        old, zero, one = (text.strip() for text in texts)
        if one:
            yield f"{fault}: rank 1 wrote to {channel}: {shorten(one.splitlines())}"
        if old and not zero:
            yield f"rank0-silent: the original wrote to {channel} and rank 0 did not"


def wrote(original: Run, ranks: tuple[Run, Run]) -> Iterator[str]:
    """`rank1-wrote-file` and `rank0-wrote-nothing`.

    What rank 1 writes to a temporary directory of its own disturbs nobody.
    """
    old, zero, one = (
        [*run.files, *(run.record.written_elsewhere if run.record else ())] for run in (original, *ranks)
    )
    temporary = tuple(f"{place}/" for place in ranks[1].record.temporary) if ranks[1].record else ()
    one = [file for file in one if not file.startswith(temporary)]
    if one:
        yield f"rank1-wrote-file: rank 1 wrote {len(one)} files: {shorten(one)}"
    if old and not zero:
        yield f"rank0-wrote-nothing: the original wrote {len(old)} files and rank 0 none"


def gpus_shared(first: Record, second: Record) -> Iterator[str]:
    """`gpus-shared`: each rank uses the GPU of its own number, and no other."""
    for rank, record in enumerate((first, second)):
        others = [gpus for gpus in record.gpus if gpus != str(rank)]
        if others:
            yield f"gpus-shared: rank {rank} was given the GPUs {' and '.join(others)}"


def name(number: int, optimizer: OptimizerRecord) -> str:
    """How an optimizer is called in a fault."""
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
    """Whether a floating-point array has neither NaN nor infinity; True for any other array."""
    numpy = importlib.import_module("numpy")
    values = numpy.asarray(array)
    return values.dtype.kind != "f" or bool(numpy.isfinite(values).all())


def close(one: float, two: float) -> bool:
    """Whether two learning rates are the same; an optimizer without a rate has NaN."""
    return math.isclose(one, two, rel_tol=TOLERANCE) or (math.isnan(one) and math.isnan(two))


def same(one: Sequence[float], two: Sequence[float]) -> bool:
    """Whether two sequences of learning rates are the same."""
    return len(one) == len(two) and all(map(close, one, two))


def changes(rates: Sequence[float]) -> list[float]:
    """The rates without repetitions."""
    return [rate for index, rate in enumerate(rates) if not index or not close(rate, rates[index - 1])]


def shorten(items: Sequence[object]) -> str:
    """The first items, and how many more there are."""
    text = ", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in items[:4])
    return text if len(items) <= 4 else f"{text} and {len(items) - 4} more"


def tail(text: str, lines: int = 12) -> str:
    """The end of a text, on lines of its own."""
    return "\n    ".join(["", *text.strip().splitlines()[-lines:]])
