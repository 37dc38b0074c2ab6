"""The messages about averaged gradients, and gradients that are not, in made-up runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest

from proof.made_up import RANKS, STEPS, arrays, judged, pair, record, run
from trainshift.proving.judging.timeline import Reduction, repeated


@pytest.mark.parametrize(
    ("factors", "noise", "reduced", "verdict"),
    [
        ([1.0] * STEPS, 0, ["average"], "holds"),
        ([1.0] * STEPS, 0, ["sum"], "holds"),
        ([2.0] * STEPS, 0, ["sum"], "fails"),
        ([1.0, 1.0, 2.0, 2.0, 2.0, 2.0], 0, ["average", "sum"], "fails"),
        ([0.5] * STEPS, 0, ["average"], "fails"),
        # A clipped gradient has the direction of the mean; one that is changed otherwise does not.
        ([1.0, 0.7, 0.4, 0.6, 0.3, 0.9], 0, ["average"], "holds"),
        ([1.0, 0.7, 0.4, 0.6, 0.3, 0.9], 0, ["sum"], "not seen"),
        ([1.0] * STEPS, 2, ["average"], "holds"),
        ([1.0] * STEPS, 2, ["average", "scaled average"], "not seen"),
        ([1.0] * STEPS, 2, ["sum"], "not seen"),
        ([1.0] * STEPS, 2, [], "not seen"),
    ],
)
def test_what_reached_the_optimizer(
    factors: list[float], noise: float, reduced: list[str], verdict: str
) -> None:
    assert judged(pair(reduced=reduced), arrays(factors, noise))["averaged"].verdict == verdict


def test_a_sum_of_losses_that_are_divided_may_be_an_average() -> None:
    for losses, verdict in (([1.0, 0.9], "fails"), ([0.5, 0.44], "not seen"), ([], "fails")):
        ranks = pair(reduced=["sum"], losses=losses)
        assert judged(ranks, arrays([2.0] * STEPS))["averaged"].verdict == verdict
    # Only rank 0 begins with the original's weights.
    for one, two, verdict in (([1.0, 0.9], [0.1, 0.1], "fails"), ([0.5, 0.44], [2.0, 1.9], "not seen")):
        ranks = [run(record(rank, reduced=["sum"], losses=each)) for rank, each in enumerate((one, two))]
        assert judged(ranks, arrays([2.0] * STEPS))["averaged"].verdict == verdict


def test_gradients_that_the_script_averages_once_more() -> None:
    ended = [step + 0.5 for step in range(STEPS)]

    def times(*by_script: str, late: float = 0.25) -> int:
        wrapped = [(f"DistributedGradientTape_Allreduce/{shape}", 0.0) for shape in ("[3, 2]", "[2]", "[]")]
        names = [*wrapped, *((f"HorovodAllreduce_x/{shape}", late) for shape in by_script)]
        reductions = [
            Reduction(name, name.rpartition("/")[2], step + start, step + start + 0.1)
            for step in range(STEPS)
            for name, start in names
        ]
        return repeated(reductions, ended)

    assert times() == times("[]") == times("[2]", "[]") == 1
    assert times("[3, 2]", "[2]", "[]", late=0.75) == 1  # The weights after the step.
    assert times("[3, 2]", "[2]", "[]") == times("[3, 2]", "[2]") == 2


def test_what_is_never_compared_does_not_hold_by_a_wrap() -> None:
    assert judged(pair(reduced=[]))["averaged"].verdict == "not seen"
    assert judged(pair(reduced=["sum"]))["averaged"].verdict == "not seen"


@pytest.mark.parametrize(
    ("kind", "alone", "together", "verdict"),
    [
        # Other uses of gradients in a script: it sums those of several batches, or scales them.
        ("sum", 1.0, 1.0, "holds"),
        ("sum", 0.5, 0.5, "holds"),
        ("sum", 0.25, 0.5, "fails"),
        ("sum", 0.25, 0.125, "fails"),
        ("1", 1.0, 1.0, "holds"),
        ("1", 1.0, 2.0, "fails"),
        ("", 3.0, 3.0, "holds"),
        ("", 0.5, 0.5, "holds"),
        ("", 0.01, 0.02, "fails"),
        ("", 1.0, 0.25, "fails"),
        ("", 1.0, 4.0, "fails"),
        # The factor by which it scales a loss, renewed after each overflow.
        ("", 2.0**-15, 2.0**-14, "not seen"),
        ("sum", 0.0, 0.5, "not seen"),
        ("", 0.0, 0.25, "not seen"),
    ],
)
def test_what_reached_the_optimizer_by_what_reaches_it_alone(
    kind: str, alone: float, together: float, verdict: str
) -> None:
    def samples(factor: float) -> list[dict[str, Any]]:
        made = arrays([factor] * STEPS)
        own = {name: value for name, value in made[0].items() if "/local/" in name}
        if not kind:
            return made
        return [
            {(f"{name}/{kind}" if name in own else name): value for name, value in each.items()}
            | {name: value[::-1].copy() for name, value in own.items()}
            for each in made
        ]

    (original, _) = samples(alone)
    # On its own, the mean is the value of the one process.
    for step in range(STEPS):
        local = original[f"1/local/{step}/{kind}".rstrip("/")]
        original[f"1/gradients/{step}"] = local * numpy.float32(alone)
    found = judged(pair(reduced=["scaled average"]), samples(together), original)
    assert found["averaged"].verdict == verdict, found["averaged"]


def test_what_horovod_is_given_twice() -> None:
    for twice in ("double_wraps", "double_averages"):
        assert judged(pair(**{twice: 1}))["averaged"].verdict == "fails"


def test_a_first_step_that_a_broadcast_replaces() -> None:
    def averaged(own: int, again: int) -> str:
        ranks = [
            run(
                record(
                    rank,
                    gradients=[f"{rank}" if step in (own, again) else str(step) for step in range(STEPS)],
                )
            )
            for rank in range(RANKS)
        ]
        return judged(ranks)["averaged"].verdict

    assert (averaged(0, 0), averaged(1, 1), averaged(0, 3)) == ("holds", "fails", "fails")


def test_an_original_by_which_nothing_is_compared() -> None:
    """It has clipped differently in each step, or has another optimizer."""
    ranks = pair(reduced=["scaled average"])
    (clipped, _) = arrays([1.0] * STEPS)
    for step, factor in enumerate([1.0, 0.7, 0.4, 0.6, 0.3, 0.9]):
        clipped[f"1/gradients/{step}"] = clipped[f"1/local/{step}"] * numpy.float32(factor)
    for alone in (clipped, {name.replace("1/", "2/"): value for name, value in clipped.items()}):
        assert judged(ranks, arrays([0.25] * STEPS), alone)["averaged"].verdict == "not seen"
    second = replace(ranks[0].record.optimizers[0], number=2)  # type: ignore[union-attr]
    for each in ranks:
        assert each.record
        each.record.optimizers.append(second)
    assert judged(ranks, arrays([1.0] * STEPS))["averaged"].verdict == "not seen"


def test_a_tensor_that_is_reduced_once_is_no_wrap() -> None:
    ended = [step + 0.5 for step in range(STEPS)]
    names = [(f"DistributedGradientTape_Allreduce/{step}", "[2]", step) for step in range(STEPS)]
    once = [(f"Distributed{number}_Allreduce/x", "[2]", 3) for number in range(3)]
    every = [("DistributedSGD_Allreduce/x", "[2]", step) for step in range(STEPS)]
    for more, times in (([], 1), (once, 1), (every, 2)):
        reductions = [Reduction(name, shape, at, at + 0.1) for name, shape, at in [*names, *more]]
        assert repeated(reductions, ended) == times
