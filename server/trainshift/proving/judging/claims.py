"""The nine claims of spec.md 10: each holds, fails with the line and the remedy, or was not seen.

A claim that was not seen never holds, and fewer than two steps show nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from trainshift.proving.judging import judge
from trainshift.proving.judging.averages import (
    Averaging,
    averaging,
    is_undone,
    shares_loss,
    unknown_reduction,
)
from trainshift.proving.judging.broadcasts import in_vain, without_made_equal
from trainshift.proving.judging.endings import (
    by_cause,
    error_places,
    how,
    is_failed,
    left,
    reason,
    remedy,
    stack_places,
    unawaited,
)
from trainshift.proving.judging.rates import longest_epochs, rate, share_of_epoch
from trainshift.proving.judging.seen import Claim, Found, Seen, counted, sentences
from trainshift.proving.judging.shares import ALSO_WHOLE, SHARE, Shares, judge_shares, uneven
from trainshift.proving.judging.speed import speed
from trainshift.proving.judging.timeline import repeated
from trainshift.proving.observed.record import Record

HOLDS, FAILS, NOT_SEEN = "holds", "fails", "not seen"
FEWEST_STEPS = 2
_KERAS_DOWNLOADS = "Downloading data from "
_KERAS_LISTS = re.compile(r"(Found|Using) \d+ (files|images|validated image filenames) ")
AVERAGE = "Wrap the tape: hvd.DistributedGradientTape(tape); for model.fit, the optimizer."
AVERAGE_ON_KERAS3 = "Give the optimizer the hvd.allreduce of each gradient: Horovod's wraps fail on Keras 3."
SET_ON_ALL = (
    "Something besides the steps sets them: do the same on all ranks, or set them before the broadcast."
)
AWAIT = "Let all ranks wait until one has written"
DOWNLOAD = (
    "Let rank 0 download first: run the line on rank 0, "
    "then hvd.broadcast(0, root_rank=0) on all ranks, then the line on every rank."
)
LISTED = "Leave it: every rank must read these files. Keras 3 prints nothing with verbose=False."
BY_HAND = "Gradients are computed, but neither an optimizer nor the script was seen to apply them."
UNTOLD = (
    "The script sets weights itself, and how it uses the gradients, such as momentum, "
    "could not be determined."
)
SUMMED = "Average them: leave op= out, or give op=hvd.Average."


def claims(seen: Seen) -> list[Claim]:
    """All claims, in the order of the specification."""
    few = "" if seen.steps >= FEWEST_STEPS else few_steps(seen)
    table: tuple[tuple[str, str, Callable[[Seen], Found], bool], ...] = (
        ("ends", f"It starts and {'trains' if seen.is_left else 'ends'} on every rank", ends, False),
        ("weights", "All ranks have the same weights", weights, True),
        ("averaged", "Gradients are averaged, once", averaged, not wraps_twice(seen)),
        ("broadcast", "All ranks start from rank 0's variables", broadcast, True),
        ("rate", f"The learning rate is {seen.size} times the original's", rate, True),
        ("data", "Each rank has its own share of the data", data, False),
        ("output", "Only rank 0 prints, saves and logs", output, False),
        ("gpu", "Each rank has a GPU of its own", gpu, False),
        ("worth", f"{seen.size} ranks are faster than one", worth, True),
    )
    return [claim_of(name, title, look(seen), few if counts else "") for name, title, look, counts in table]


def claim_of(name: str, title: str, found: Found, few: str) -> Claim:
    """A claim for its findings; with `few`, there were too few steps to show that it holds."""
    if found.fails and not few:
        return Claim(name, title, FAILS, " ".join(found.fails), found.do, found.code, tuple(found.places))
    if few or found.unseen:
        return Claim(name, title, NOT_SEEN, few or found.unseen)
    return Claim(name, title, HOLDS, found.says)


def few_steps(seen: Seen) -> str:
    """Return the reason why the observations prove nothing."""
    if len(seen.records) < seen.size:
        return "A rank ended before it could report what it had done."
    if all(record.local_gradients and not record.optimizers for record in seen.records):
        return BY_HAND
    return f"{seen.steps or 'No'} step{'s' * (seen.steps != 1)} of an optimizer: at least two are needed."


def ends(seen: Seen) -> Found:
    """Check the exit statuses and time limits, and that all ranks take the same steps."""
    found = Found(do="Make every rank run the same steps and calls of Horovod.", code="TL05")
    for rank, run in by_cause(seen.ranks, seen.alone):
        why = reason(run)
        if seen.stuck and run.exit_code < 0:
            continue
        found.places += error_places(run, rank) or stack_places(run, rank)
        if gone := left(run, seen.ranks):
            found.fails.append(f"Rank {listed(gone)} ended, and rank {rank} waited for it in vain.")
            break
        found.fails.append(f"Rank {rank} {how(run.exit_code)}{': ' + why if why else '.'}")
        found.do = remedy(run)
        found.code = ""
        if name := unawaited(run, seen.ranks):
            found.do = f"{AWAIT} {name}: call hvd.broadcast(0, root_rank=0) before it is read."
            found.code = "HV08"
        break
    if not found.fails and seen.stuck:
        ended = [rank for rank, run in enumerate(seen.ranks) if run.exit_code >= 0]
        who = (
            f"Rank {listed(ended)} ended, and the others wait for it: "
            if ended
            else "The ranks do not go on, or wait for each other: "
        )
        found.fails.append(f"{who}{seen.stuck}.")
        found.places += [place for rank, run in enumerate(seen.ranks) for place in stack_places(run, rank)]
    if found.fails or len(seen.records) < seen.size:
        return found
    if wraps_twice(seen):
        return replace(found, says="All ranks ended.")
    first, *others = [[each.steps for each in record.optimizers] for record in seen.records]
    for rank, other in enumerate(others, 1):
        if other != first and not joins(seen):
            found.fails.append(f"The optimizers took {first} steps on rank 0 and {other} on rank {rank}.")
    for rank, record in enumerate(seen.records[1:], 1):
        if metrics := sentences(judge.metrics_differ(seen.records[0], record, rank)):
            found.fails += metrics
            found.do, found.code = (
                "Average the metric that decides: add hvd.callbacks.MetricAverageCallback() on all ranks.",
                "HV09",
            )
    if not any(record.stopped for record in seen.records):
        found.says = f"All {seen.size} ranks ended."
        return found
    trained = f"All {seen.size} ranks took {seen.steps} steps, and none waited for another."
    rest = "was not run" if seen.is_left else "was run to its end"
    found.says = f"{trained} The code after the training {rest}."
    found.unseen = (not joins(seen) and uneven(seen.records)) or stopped_badly(seen)
    return found


def last_line(error: str) -> str:
    """The last line of a traceback; empty if there is none."""
    return (error.strip().splitlines() or [""])[-1][:300]


def joins(seen: Seen) -> bool:
    """Return whether ranks that have no more data wait for the others by `hvd.join`."""
    return bool(seen.records) and all("join" in record.collectives for record in seen.records)


def stopped_badly(seen: Seen) -> str:
    """The error on a rank after its training was stopped early; empty if there is none."""
    for rank, record in enumerate(seen.records):
        if record.error_after:
            why = last_line(record.error_after).rstrip(".")
            alone = "does so, too" if seen.before.error_after else "does not" if seen.before.finished else ""
            return (
                f"After its training was ended, rank {rank} stopped with an error: {why}. "
                f"{f'One process {alone}. ' * bool(alone)}"
                "Run with --steps 0 to see whether it also fails at the end."
            )
    return ""


def weights(seen: Seen) -> Found:
    """Check the values at the end, and find the first step after which they differ."""
    found = Found(do="Average the gradients of each step, and broadcast before the second.", code="HV04")
    first, *others = seen.records or [Record()]
    faults = [
        fault
        for rank, other in enumerate(others, 1)
        for fault in judge.values_differ(first, other, seen.ranks, rank)
    ]
    apart = first_apart(seen) if seen.records else 0
    steps = {tuple(each.steps for each in record.optimizers) for record in seen.records}
    if len(steps) > 1 or any(map(is_failed, seen.ranks)):
        found.unseen = "The ranks did not end after the same step."
        faults = faults if apart else []
    found.fails = sentences(faults)
    if faults:
        found.fails += [f"They differ from step {apart} on."] if apart else []
        if [*judge.rates_differ(seen.records)]:
            found.do, found.code = "Give all ranks the same learning rate at each step.", "HV09"
        elif is_set_otherwise(seen):
            found.do, found.code = SET_ON_ALL, "HV05"
        found.places = [(each.applied_at, "", 0) for each in first.optimizers[:1] if each.applied_at]
    count = sum(len(each.variables) for each in first.optimizers)
    changed = any(each.initial != each.final for each in first.optimizers)
    if any(not judge.finite(array) for run in seen.ranks for array in run.values.values()):
        found.unseen = "The weights are not finite: nothing can be compared."
    elif not count or not changed:
        found.unseen = "No step changed a weight."
    elif others and not differ_by_seed(seen):
        found.unseen = (
            "All ranks began with equal weights and computed equal gradients, whatever their seeds."
        )
    equal = f"All {count} variables are equal on {seen.size} ranks after {seen.steps} steps"
    found.says = f"{equal}, though their seeds differ."
    return found


def is_set_otherwise(seen: Seen) -> bool:
    """Return whether ranks differ although they take the same steps from the same weights: other code
    sets them.
    """
    first, *others = seen.records
    return not any(judge.not_broadcast(seen.records)) and not any(
        True for other in others for _ in judge.not_reduced(first, other, 1)
    )


def differ_by_seed(seen: Seen) -> bool:
    """Return whether anything on the ranks would differ without Horovod."""
    initial = [[each.initial for each in record.optimizers] for record in seen.records]
    gradients = [record.local_gradients for record in seen.records]
    return any(each != initial[0] for each in initial) or any(each != gradients[0] for each in gradients)


def first_apart(seen: Seen) -> int:
    """The first step, from 1, after which weights of two ranks differ for good; 0 if there is none."""
    found = 0
    for number in range(min(len(record.optimizers) for record in seen.records)):
        each = [record.optimizers[number].weights for record in seen.records]
        steps = [len(set(step)) > 1 for step in zip(*each)]
        last = next((index for index in range(len(steps) - 1, -1, -1) if not steps[index]), -1)
        if last + 1 < len(steps):
            found = min(found or last + 2, last + 2)
    return found


def wraps_twice(seen: Seen) -> bool:
    """Return whether Horovod got an object that it had wrapped or averaged already."""
    return any(record.double_wraps or record.double_averages for record in seen.records)


def averaged(seen: Seen) -> Found:
    """Compare the gradients that reached the optimizers with the mean of those that the ranks computed."""
    on_keras3 = any(record.keras3 for record in seen.records)
    found = Found(do=AVERAGE_ON_KERAS3 if on_keras3 else AVERAGE, code="HV04")
    first, *others = seen.records or [Record()]
    if wraps_twice(seen):
        times = max(record.double_wraps for record in seen.records)
        found.fails.append(
            f"A wrapped object is wrapped again ({times} times)."
            if times
            else "Gradients that were averaged already are averaged again."
        )
        found.do = "Wrap the tape or the optimizer, once." if times else "Average them once."
        return found
    for rank, other in enumerate(others, 1):
        if not seen.untold and not is_undone(first, other):
            found.fails += sentences(judge.not_reduced(first, other, rank))
        if found.fails:
            found.places = [
                (one.applied_at, "", 0)
                for one, two in zip(first.optimizers, other.optimizers)
                if one.gradients != two.gradients and one.applied_at
            ]
            return found
    count = min((len(record.optimizers) for record in seen.records), default=0)
    results = [averaging(number, seen) for number in range(count)]
    shared = any(result.kind is Averaging.SUMMED for result in results) and shares_loss(
        seen.before, first, seen.size
    )
    for optimizer, result in zip(first.optimizers, results):
        if result.kind is Averaging.SUMMED and shared:
            continue
        if result.kind is Averaging.SUMMED:
            found.fails.append(
                f"The gradients of {optimizer.kind} are summed: {result.factor:.3g} times their mean."
            )
            found.do = SUMMED
        elif result.kind is Averaging.TWICE:
            found.fails.append(
                f"The gradients of {optimizer.kind} are divided twice: {result.factor:.3g} times their mean."
            )
            found.do = "Average them once: wrap the tape or the optimizer, and divide by nothing else."
        if result.is_fault:
            found.places.append((optimizer.applied_at, "", 0))
    times = repeated(seen.reductions, first.optimizers[0].ended) if len(first.optimizers) == 1 else 1
    if not found.fails and times > 1:
        found.fails.append(f"Horovod reduces the gradients {times} times in each step.")
        found.do = "Average them once: wrap the tape or the optimizer, not both."
        found.places.append((first.optimizers[0].applied_at, "", 0))
    if not others or not differ_by_seed(seen) or not first.optimizers:
        found.unseen = "All ranks computed equal gradients, so averaging could not be observed."
    elif seen.untold:
        found.unseen = UNTOLD
    elif shared:
        found.unseen = (
            f"The gradients are summed, and the losses are about 1/{seen.size} of the original's: that is an "
            "average only if the script divides its loss by hvd.size()."
        )
    elif any(result.kind is Averaging.UNKNOWN for result in results):
        found.unseen = unknown_reduction(seen.records)
    compared = [result.steps for result in results if result.kind is Averaging.MEAN]
    what = "weights were changed by" if any(each.by_hand for each in first.optimizers) else "optimizer got"
    found.says = (
        f"In {counted(sum(compared), 'step')} each rank's {what} the mean over the ranks."
        if compared
        else f"Horovod averaged, and in all {seen.steps} steps every rank's optimizer got the same gradients."
    )
    return found


def broadcast(seen: Seen) -> Found:
    """Check the variables of each broadcast, and the values of each rank after the first step."""
    found = Found(
        do="Broadcast the model's and the optimizer's variables from rank 0 after the first step.",
        code="HV05",
    )
    first, *others = seen.records or [Record()]
    records = [without_made_equal(record, seen.records) for record in seen.records]
    faults = [*judge.not_broadcast(records)][:2]
    for rank, other in enumerate(others, 1):
        if not faults and not judge.values_differ(first, other, seen.ranks, rank):
            faults += judge.broadcast_late(first, other, rank)
        elif not faults:
            faults += in_vain(first, other, rank, seen.arrays)
    found.fails = sentences(faults)
    if faults:
        found.places = [(each.applied_at, "", 0) for each in first.optimizers[:1] if each.applied_at]
    count = sum(len(each.variables) + len(each.slots) for each in first.optimizers)
    found.says = f"All {count} variables of model and optimizer were set to rank 0's before the second step."
    return found


def data(seen: Seen) -> Found:
    """Check the data: a digest of each batch by rank, and the steps of an epoch."""
    found = Found(do=SHARE, code="HV15")
    records = [run.record for run in seen.data if run.record]
    counts = [[each.steps for each in record.optimizers] for record in seen.records]
    if seen.original.record and len(counts) == seen.size and not any(map(is_failed, seen.ranks)):
        if not any(map(any, counts)) and seen.before.optimizers:
            found.fails = ["No rank takes a step, and one process does: its steps are divided to nothing."]
            found.do, found.code = "Leave one of them at least: max(1, epochs // hvd.size()).", "HZ18"
        elif not seen.is_cut and all(each == counts[0] for each in counts):
            if steps := sentences(judge.steps_differ(seen.before, seen.records)):
                found.fails = steps
                found.do, found.code = "Divide the steps of an epoch by hvd.size(), once.", "HV06"
    if found.fails:
        return found
    if len(records) < seen.size or seen.original.record is None or seen.steps < FEWEST_STEPS:
        found.unseen = (
            few_steps(seen) if seen.steps < FEWEST_STEPS else "The data of the ranks could not be observed."
        )
        return found
    if joins(seen) and any(each != counts[0] for each in counts):
        found.unseen = "The ranks took different numbers of steps, as hvd.join() lets them."
        return found
    divided = share_of_epoch(seen.before, records)
    shares = judge_shares(seen.original, seen.data, divided, evaluates_whole=seen.is_converted)
    if shares.told_by_epochs and seen.is_cut and {True, False} <= {*longest_epochs(seen.before, records)}:
        shares = Shares(unseen=ALSO_WHOLE)
    found.fails, found.unseen, found.says = list(shares.fails), shares.unseen, shares.says
    found.places = [
        (each.applied_at, "", 0) for each in records[0].optimizers[:1] if each.applied_at and shares.fails
    ]
    return found


def output(seen: Seen) -> Found:
    """Check the output and the files of each rank, and name the lines that write them."""
    found = Found()
    # The standard error of a process that could not be finished shows the reason.
    ranks = [replace(run, native="", stderr="") if is_failed(run) else run for run in seen.ranks]
    faults = [*judge.printed(seen.original, ranks), *judge.wrote(seen.original, ranks)]
    if seen.is_cut or not seen.before.optimizers or any(map(is_failed, seen.ranks)):
        faults = [fault for fault in faults if not fault.startswith("rank0-")]
    found.fails = sentences(faults)
    found.do = _what_quietens(seen, faults)
    found.code = "HV08" if any("wrote-" in fault.partition(":")[0] for fault in faults) else "HV07"
    for rank, record in enumerate(seen.records):
        if rank and faults:
            found.places += [
                (at, what, rank) for at, what in {**record.printed_at, **record.wrote_at}.items()
            ]
    zero = seen.ranks[0]
    lines, files = len((zero.stdout + zero.stderr + zero.native).splitlines()), len(zero.files)
    elsewhere = len(zero.record.written_elsewhere) if zero.record else 0
    if not lines and not files and not elsewhere:
        found.unseen = silence(seen)
    elif any(map(is_failed, seen.ranks)):
        found.unseen = "A rank ended before all code that prints or writes had run."
    elif seen.is_left:
        found.unseen = "The code after these steps was not run, so its output is unknown: run with --steps 0."
    printed, wrote = counted(lines, "line"), counted(files + elsewhere, "file")
    rank_0 = f"In {counted(seen.steps, 'step')} rank 0" if seen.is_cut else "Rank 0"
    found.says = f"{rank_0} printed {printed} and wrote {wrote}, the others nothing."
    return found


def _what_quietens(seen: Seen, faults: list[str]) -> str:
    """The remedy for output and files of the other ranks."""
    printed = [what for record in seen.records[1:] for what in record.printed_at.values()]
    if printed and all(what.startswith(_KERAS_DOWNLOADS) for what in printed):
        return DOWNLOAD
    if printed and all(map(_KERAS_LISTS.match, printed)):
        return LISTED
    if faults and all("wrote to sys.stderr" in fault for fault in faults):
        return "Log on rank 0 only: put the logging, or the line that turns it on, under: if hvd.rank() == 0:"
    return "Put it under: if hvd.rank() == 0:"


def silence(seen: Seen) -> str:
    """Return why no output or file was observed."""
    if any(map(is_failed, seen.ranks)):
        return "A rank ended before anything was printed or written."
    if seen.is_cut:
        return "Nothing was printed or written before the training was stopped."
    return "The script prints and writes nothing."


def by_host(seen: Seen) -> dict[str, list[Record]]:
    """The records of the ranks by host, because GPUs are counted on each host."""
    found: dict[str, list[Record]] = {}
    for run, host in zip(seen.ranks, seen.hosts or [""] * seen.size):
        found.setdefault(host, []).extend([run.record] if run.record else [])
    return found


def gpu(seen: Seen) -> Found:
    """Check the devices that each rank requested."""
    found = Found(
        do="Make one GPU visible to each rank: the one with the number hvd.local_rank().", code="HV01"
    )
    for host, records in by_host(seen).items():
        told = sentences(judge.gpus_shared(records))
        found.fails += [f"Of the ranks on {host}, counted there: {each}" if host else each for each in told]
    if len(seen.records) < seen.size:
        found.unseen = few_steps(seen)
    elif not all(record.gpus for record in seen.records):
        found.unseen = "No rank started TensorFlow's devices."
    elif not any(any(record.gpus) for record in seen.records):
        found.fails, found.unseen = [], "The script hides all GPUs."
    simulated = "" if seen.gpus >= seen.size else " (GPUs were simulated: this machine has too few)"
    found.says = f"Each rank asked for the GPU of its own number{simulated}."
    return found


def worth(seen: Seen) -> Found:
    """Compare the samples per second on one process and on all ranks."""
    found = Found(do="Give each rank larger batches, or train on one process.")
    one, several = speed([seen.before]), speed(seen.records)
    if not one.seconds or not several.seconds:
        found.unseen = "Too few steps to time."
        return found
    ratio = (
        several.per_second / one.per_second if one.per_second else one.seconds / several.seconds * seen.size
    )
    unit = "samples" if one.per_second else "steps"
    rates = (
        (one.per_second, several.per_second)
        if one.per_second
        else (1 / one.seconds, seen.size / several.seconds)
    )
    before, after = (f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}" for rate in rates)
    told = f"{before} {unit} a second on one process, {after} on {seen.size}: {ratio:.2f} times."
    found.says = told
    if not any(record.reduced for record in seen.records):
        found.unseen = f"{told} The ranks reduce no gradients, so each of them trains by itself."
    elif seen.gpus < seen.size:
        found.unseen = f"{told} Here all ranks share the cores of one machine; time it on your GPUs."
    elif ratio > seen.size:
        found.unseen = (
            f"{told} That is more than {seen.size} ranks can gain: the two runs are not comparable."
        )
    elif ratio <= 1:
        found.fails.append(told)
    return found


def listed(ranks: Sequence[int]) -> str:
    """Numbers of ranks."""
    return " and ".join(map(str, ranks))
