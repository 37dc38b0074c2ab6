"""The run of an original is kept as long as nothing changes that decides it."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof import originals
from proof.record import Record, Run


class Runner:
    """Gives a run, and counts how often."""

    def __init__(self, exit_code: int = 0) -> None:
        self.count = 0
        self.exit_code = exit_code

    def __call__(self) -> Run:
        self.count += 1
        return Run(self.exit_code, f"{self.count}", "", "", "", (), Record(), {})


@pytest.fixture(autouse=True)
def own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the runs of the test where no other sees them."""
    monkeypatch.setattr(originals, "KEPT", tmp_path)


def test_the_same_is_run_once() -> None:
    run = Runner()
    first, second = (originals.kept(b"text", ["1"], single=False, run=run) for _ in range(2))
    assert first == second
    assert run.count == 1


def test_what_differs_is_run() -> None:
    run = Runner()
    for script, arguments, single in (
        (b"a", [], False),
        (b"b", [], False),
        (b"a", ["1"], False),
        (b"a", [], True),
    ):
        originals.kept(script, arguments, single=single, run=run)
    assert run.count == 4


def test_what_failed_is_run_again() -> None:
    run = Runner(exit_code=1)
    for _ in range(2):
        originals.kept(b"text", [], single=False, run=run)
    assert run.count == 2


def test_another_harness_runs_all_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = Runner()
    originals.kept(b"text", [], single=False, run=run)
    monkeypatch.setattr(originals, "SOURCES", originals.SOURCES[1:])
    originals.surroundings.cache_clear()
    try:
        originals.kept(b"text", [], single=False, run=run)
    finally:
        originals.surroundings.cache_clear()
    assert run.count == 2
    assert len([*tmp_path.iterdir()]) == 1
