"""The messages about learning rates, weights by step and files, in made-up runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy

from proof.made_up import RANKS, STEPS, judged, pair, record, run
from trainshift.proving.judging.claims import claims
from trainshift.proving.judging.runs import fingerprint, written
from trainshift.proving.judging.seen import Seen
from trainshift.proving.judging.series import differences


def test_adasum_scales_steps_itself() -> None:
    for rate, verdict in ((0.1, "holds"), (0.2, "fails")):
        found = judged(pair(rates=[rate] * STEPS, adasum=True))["rate"]
        assert found.verdict == verdict
    assert found.do == "Leave the rate as it was: Adasum scales the steps itself."


def test_a_schedule_that_is_not_divided_is_told_as_one() -> None:
    before = record(0, rates=[0.1 - 0.005 * step for step in range(STEPS * RANKS)])
    theirs = [0.2 - 0.01 * step for step in range(STEPS)]
    ours = [0.2 - 0.02 * step for step in range(STEPS)]
    for rates, verdict, code in (
        (theirs, "fails", "HV06"),
        (ours, "holds", ""),
        (theirs[::-1], "fails", "HV02"),
    ):
        found = judged(pair(rates=rates), before=before)["rate"]
        assert (found.verdict, found.code) == (verdict, code), found


def test_a_schedule_that_is_divided_though_the_steps_are_not() -> None:
    before = record(0, rates=[0.1] * STEPS, schedule={"0": 0.1, "2": 0.08, "4": 0.06})
    for schedule, verdict in (
        ({"0": 0.2, "2": 0.16, "4": 0.12}, "holds"),
        ({"0": 0.2, "2": 0.12, "4": 0.04}, "fails"),
    ):
        found = judged(pair(schedule=schedule, rates=[0.2] * STEPS), before=before)["rate"]
        assert found.verdict == verdict, found


def test_rates_are_not_compared_with_those_of_a_script_that_soon_fails_on_one_process() -> None:
    for steps, rate, verdict in ((1, 0.2, "not seen"), (STEPS, 0.1, "fails"), (STEPS, 0.2, "holds")):
        failed = replace(run(record(0, rates=[0.1] * steps)), exit_code=1)
        found = {each.id: each for each in claims(Seen(failed, pair(rates=[rate] * STEPS), limit=STEPS))}
        assert found["rate"].verdict == verdict, steps


def test_the_largest_difference_is_that_of_any_two_ranks() -> None:
    ranks = [run(record(rank)) for rank in range(3)]
    arrays = [
        {f"1/weights/{step}": numpy.array([1.0, value if step else 0.0]) for step in range(STEPS)}
        for value in (1.0, 4.0, 2.0)
    ]
    assert differences(ranks, arrays) == [0.0, *[3.0] * (STEPS - 1)]


def test_a_file_that_stays_as_it_was_is_not_written(tmp_path: Path) -> None:
    for name in ("same", "other", "new"):
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / "work" / name).write_text(name)
    given = {"work/same": fingerprint(b"same"), "work/other": fingerprint(b"before")}
    assert written(tmp_path, given, ("work", "tmp")) == ["work/new", "work/other"]
