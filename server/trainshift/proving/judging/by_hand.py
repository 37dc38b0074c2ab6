"""Judge steps without an optimizer: find the rate and the gradients that explain the change of the weights.

If all elements of a change are one factor times the mean of the ranks' gradients, the step used that mean,
and the factor is its rate. If they are a factor times a rank's own gradients, it used these. Otherwise both
are unknown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trainshift.proving.judging.averages import SLACK, Fit, constant, fits
from trainshift.proving.judging.seen import Seen
from trainshift.proving.observed.record import OptimizerRecord, Record, Run

# Rates are measured, and reported to this many digits.
DIGITS = 3
# A fit whose gain is smaller than this improves by rounding only.
ROUNDING = 1e-4


def measured(seen: Seen) -> Seen:
    """The observations, with the rates and the gradients of steps without an optimizer."""
    counts = [len(record.optimizers) for record in (seen.before, *seen.records)]
    for number in range(max(counts) if len(seen.records) == seen.size else 0):
        own = [record.optimizers[number : number + 1] for record in (seen.before, *seen.records)]
        if any(each.by_hand for optimizers in own for each in optimizers):
            seen = with_steps(number, seen)
    return seen


def with_steps(number: int, seen: Seen) -> Seen:
    """The observations with the rates and gradients of one set of sources."""
    theirs = fits(number, [seen.before], [seen.samples])
    ranks = [taken(number, rank, seen) for rank in range(seen.size)]
    told = [[fit for fit, _ in steps] for steps in ranks]
    kinds = {fit.kind if fit else None for fit in (*theirs, *(fit for steps in told for fit in steps))}
    has_rates = len(kinds) == 1 and None not in kinds and all([theirs, *told])
    # Beyond its rate, the script's use of a sum is unknown.
    manners = {how for record in seen.records for how in record.reduced}
    ratio = constant(
        [new.factor / old.factor for steps in told for new, old in zip(steps, theirs) if new and old]
    )
    is_sum = has_rates and manners == {"sum"} and abs(ratio / seen.size**2 - 1) <= SLACK
    factor = float(seen.size) if is_sum else 1.0
    runs, arrays = [], []
    is_told = all(told) and all(fit for steps in told for fit in steps)
    is_sure = is_told and (manners <= {"average"} or (has_rates and bool(ratio)))
    for rank, (run, steps) in enumerate(zip(seen.ranks, ranks)):
        changed = [fit.factor / factor if fit else math.nan for fit, _ in steps]
        names = [f"{step}" if of_all else f"{rank} {step}" for step, (_, of_all) in enumerate(steps)]
        runs.append(with_optimizer(run, number, changed if has_rates else [], names if is_told else []))
        samples = seen.arrays[rank] if seen.arrays else {}
        arrays.append(divided(samples, run.record, number, changed if reduces(seen) else []))
    rates = [fit.factor if fit else math.nan for fit in theirs]
    return replace(
        seen,
        original=with_optimizer(seen.original, number, rates if has_rates else [], []),
        ranks=runs,
        arrays=arrays if seen.arrays else seen.arrays,
        samples=divided(seen.samples, seen.before, number, rates),
        untold=seen.untold if is_sure or not reduces(seen) else seen.untold | {number},
    )


def taken(number: int, rank: int, seen: Seen) -> list[tuple[Fit | None, bool]]:
    """The fit of a rank's change in each step, and whether it is a factor of the mean of all ranks'
    gradients.
    """
    if len(seen.arrays) < seen.size:
        return []
    order = [rank, *(each for each in range(seen.size) if each != rank)]
    records, arrays = [seen.records[each] for each in order], [seen.arrays[each] for each in order]
    found: list[tuple[Fit | None, bool]] = []
    for mean, alone in zip(
        fits(number, records, arrays), fits(number, records[:1], arrays[:1]), strict=False
    ):
        is_alone = alone and (not mean or (mean.off > ROUNDING and alone.off < mean.off / 2))
        found.append((alone, False) if is_alone else (mean, True))
    return found


def reduces(seen: Seen) -> bool:
    """Return whether the ranks reduce any values, which may have been gradients."""
    used = {name for record in seen.records for name in record.collectives}
    return any("all" in name or "reduce" in name for name in used)


def with_optimizer(run: Run, number: int, rates: Sequence[float], gradients: Sequence[str]) -> Run:
    """A run with the rates and gradient names of its steps without an optimizer."""
    if run.record is None or number >= len(run.record.optimizers):
        return run
    old = run.record.optimizers[number]
    new = replace(old, rates=rounded(rates, old), gradients=[*gradients] or old.gradients)
    optimizers = [*run.record.optimizers]
    optimizers[number] = new
    return replace(run, record=replace(run.record, optimizers=optimizers))


def rounded(rates: Sequence[float], optimizer: OptimizerRecord) -> list[float]:
    """The rates for the report: a constant rate as one number, an unknown one as NaN."""
    middle = constant(rates)
    told = [float(f"{middle or rate:.{DIGITS}g}") for rate in rates]
    return told + [math.nan] * (optimizer.steps - len(told))


def divided(
    samples: dict[str, Any], record: Record | None, number: int, rates: Sequence[float]
) -> dict[str, Any]:
    """The samples of a process, with its changes divided by the rates; without steps that have no rate."""
    if record is None or number >= len(record.optimizers):
        return samples
    name = f"{record.optimizers[number].number}/gradients/"
    found = {key: value for key, value in samples.items() if not key.startswith(name)}
    for step, rate in enumerate(rates):
        if f"{name}{step}" in samples and math.isfinite(rate):
            found[f"{name}{step}"] = samples[f"{name}{step}"] / rate
    return found
