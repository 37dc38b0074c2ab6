"""Decisions of the judge that no sample script shows, on made-up records; nothing is run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proof.harness import Run, judge
from trainshift.proving.observed.record import OptimizerRecord, Record


def run(rates: list[float], *, rank: int = 0, stdout: str = "", **changes: object) -> Run:
    """One process that trained one optimizer; rank 1 began with other weights and saw other data."""
    optimizer = OptimizerRecord(
        "SGD",
        rates=rates,
        gradients=[str(step) for step in range(len(rates))],
        weights=[str(step) for step in range(len(rates))],
        variables=["w"],
        initial=[f"initial {rank}"],
        final=["final"],
    )
    for name, value in changes.items():
        setattr(optimizer, name, value)
    record = Record(
        optimizers=[optimizer], local_gradients=[f"rank {rank}, {step}" for step in range(len(rates))]
    )
    return Run(0, stdout, "", "", "", (), record, {})


def noted(process: Run, **changes: object) -> Run:
    """The process with a changed record."""
    assert process.record
    return replace(process, record=replace(process.record, **changes))  # type: ignore[arg-type]


def ids(original: Run, *ranks: Run) -> list[str]:
    """The ids of the faults that the judge finds."""
    return [fault.partition(":")[0] for fault in judge(original, ranks)]


def test_right_conversion() -> None:
    assert ids(run([0.1] * 4), run([0.2] * 4), run([0.2] * 4, rank=1)) == []


def test_half_of_the_steps() -> None:
    assert ids(run([0.1] * 5), run([0.2] * 2), run([0.2] * 2, rank=1)) == []
    assert ids(run([0.1] * 5), run([0.2] * 3), run([0.2] * 3, rank=1)) == []
    assert ids(run([0.1] * 5), run([0.2] * 4), run([0.2] * 4, rank=1)) == ["steps-differ"]
    assert ids(run([0.1] * 5), run([0.2] * 2), run([0.2] * 3, rank=1)) == ["steps-differ"]


def test_half_of_the_steps_of_each_epoch() -> None:
    assert ids(run([0.1] * 15), run([0.2] * 6), run([0.2] * 6, rank=1)) == []
    assert ids(run([0.1] * 15), run([0.2] * 9), run([0.2] * 9, rank=1)) == []
    assert ids(run([0.1] * 15), run([0.2] * 11), run([0.2] * 11, rank=1)) == ["steps-differ"]
    assert ids(run([0.1] * 15), run([0.2] * 3), run([0.2] * 3, rank=1)) == ["steps-differ"]


def test_a_metric_ends_the_training() -> None:
    before, after, other = [0.4] * 4 + [0.2] * 4, [0.8] * 6 + [0.4] * 2 + [0.2], [0.8] * 6 + [0.6]
    stops = noted(run(before), stops=True)
    assert ids(stops, run(after), run(after, rank=1)) == []
    assert ids(stops, run(after), run(after[:-1], rank=1)) == ["steps-differ"]
    assert ids(stops, run(other), run(other, rank=1)) == ["rate-not-scaled"]
    assert ids(run(before), run(after), run(after, rank=1)) == ["steps-differ", "rate-not-scaled"]


def test_a_metric_changes_the_rate() -> None:
    before, after = [0.4] * 4 + [0.2] * 4, [0.8] * 6 + [0.4] * 2
    adapts = noted(run(before), adapts=True)
    assert ids(adapts, run(after), run(after, rank=1)) == []
    assert ids(run(before), run(after), run(after, rank=1)) == ["rate-not-scaled"]
    one, two = (noted(run(after, rank=rank), monitored=[f"{rank}.5"]) for rank in (0, 1))
    assert ids(adapts, one, two) == ["metrics-differ"]


def test_broadcast_after_an_execution_of_several_steps() -> None:
    first, second = run([0.2] * 4), run([0.2] * 4, rank=1, weights=["a", "b", "2", "3"])
    assert ids(run([0.1] * 4), first, second) == ["broadcast-late"]
    assert ids(run([0.1] * 4), noted(first, steps_per_execution=2), second) == []


def test_one_optimizer_that_trains_two_models_in_turn() -> None:
    first, second = run([0.2] * 4), run([0.2] * 4, rank=1, weights=["a", "b", "2", "3"])
    other = run([0.2] * 4, rank=1, weights=["a", "b", "c", "3"])
    for each in (first, second, other):
        assert each.record
        each.record.optimizers[0].began = [1]
    assert ids(run([0.1] * 4), first, second) == []
    assert ids(run([0.1] * 4), first, other) == ["broadcast-late"]


def test_files_in_a_temporary_directory() -> None:
    first, second = run([0.2]), replace(run([0.2], rank=1), files=("tmp/abc/graph.pbtxt",))
    assert ids(run([0.1]), first, second) == ["rank1-wrote-file"]
    assert ids(run([0.1]), first, noted(second, temporary=["tmp/abc"])) == []


def test_rate_that_changes_with_the_epoch_when_epochs_are_halved() -> None:
    before, after = [0.4] * 4 + [0.2] * 4, [0.8] * 2 + [0.4] * 2
    assert ids(run(before), run(after), run(after, rank=1)) == []


def test_rate_that_changes_with_the_step_when_steps_are_halved() -> None:
    before = [1 - step / 40 for step in range(40)]
    paced, as_before, twice = ([2 * (1 - step * pace / 40) for step in range(20)] for pace in (2, 1, 4))
    assert ids(run(before), run(paced), run(paced, rank=1)) == []
    assert ids(run(before), run(as_before), run(as_before, rank=1)) == ["schedule-not-divided"]
    assert ids(run(before), run(twice), run(twice, rank=1)) == ["rate-not-scaled"]
    half = [rate / 2 for rate in paced]
    assert ids(run(before), run(half), run(half, rank=1)) == ["rate-not-scaled"]


def test_schedule_of_which_no_step_tells() -> None:
    def scheduled(pace: int) -> dict[str, float]:
        return {str(step): 2.0 if step * pace < 200 else 1.0 for step in range(0, 1000, 10)}

    before = run([1.0] * 4, schedule={step: rate / 2 for step, rate in scheduled(1).items()})
    for pace, faults in ((2, []), (1, ["schedule-not-divided"]), (4, ["rate-not-scaled"])):
        first, second = (run([2.0] * 2, rank=rank, schedule=scheduled(pace)) for rank in (0, 1))
        assert ids(before, first, second) == faults
    first, second = (run([2.0] * 4, rank=rank, schedule=scheduled(1)) for rank in (0, 1))
    assert ids(before, first, second) == []


def test_three_ranks() -> None:
    first, second, third = (run([0.3] * 3, rank=rank) for rank in range(3))
    assert ids(run([0.1] * 8), first, second, third) == []
    assert ids(run([0.1] * 9), first, second, run([0.3] * 4, rank=2)) == ["steps-differ"]
    odd = run([0.3] * 3, rank=2, gradients=["0", "1", "3"])
    assert ids(run([0.1] * 8), first, second, odd) == ["not-reduced"]
    loud = run([0.3] * 3, rank=2, stdout="a")
    assert ids(run([0.1] * 8), first, second, loud) == ["rank2-printed"]


def test_optimizer_without_a_rate() -> None:
    nan = float("nan")
    assert ids(run([nan] * 2), run([nan] * 2), run([nan] * 2, rank=1)) == []


def test_an_optimizer_is_missing() -> None:
    empty = replace(run([]), record=Record())
    assert ids(run([0.1]), empty, empty) == ["proof-is-vacuous", "steps-differ"]


@pytest.mark.parametrize(
    ("original", "rank0", "faults"),
    [
        pytest.param(run([]), run([]), ["proof-is-vacuous"], id="no-step"),
        pytest.param(
            run([0.1]), run([0.2], initial=["final"]), ["proof-is-vacuous"], id="weights-did-not-move"
        ),
        pytest.param(run([0.1]), replace(run([0.2]), exit_code=1), ["did-not-finish"], id="failed"),
        pytest.param(run([0.1]), replace(run([0.2]), record=None), ["did-not-finish"], id="no-record"),
        pytest.param(run([0.1], stdout="a\n"), run([0.2], stdout="\n"), ["rank0-silent"], id="silent"),
    ],
)
def test_fault_on_rank_0(original: Run, rank0: Run, faults: list[str]) -> None:
    assert ids(original, rank0, run([0.2] * len(original.record.optimizers[0].rates), rank=1)) == faults  # type: ignore[union-attr]
