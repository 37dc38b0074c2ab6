"""The run of an original is cached until anything that decides it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof import originals
from proof.code import Code, code_of
from trainshift.proving.observed.record import Record, Run

TEXT = code_of("text")


class Runner:
    """Returns a run, and counts the calls."""

    def __init__(self, exit_code: int = 0) -> None:
        self.count = 0
        self.exit_code = exit_code

    def __call__(self) -> Run:
        self.count += 1
        return Run(self.exit_code, f"{self.count}", "", "", "", (), Record(), {})


@pytest.fixture(autouse=True)
def own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Cache the runs of the test at a private place."""
    monkeypatch.setattr(originals, "KEPT", tmp_path)


def test_the_same_is_run_once() -> None:
    run = Runner()
    first, second = (originals.kept(TEXT, ["1"], single=False, run=run) for _ in range(2))
    assert first == second
    assert run.count == 1


def test_what_differs_is_run() -> None:
    run = Runner()
    pair = {"one.py": b"a", "two.py": b"b"}
    for code, arguments, single in (
        (code_of("a"), [], False),
        (code_of("b"), [], False),
        (code_of("a"), ["1"], False),
        (code_of("a"), [], True),
        (Code(pair, ("one.py",)), [], False),
        (Code(pair, ("two.py",)), [], False),
        (Code(pair, ("-m", "one")), [], False),
        (Code(pair | {"two.py": b"c"}, ("one.py",)), [], False),
        (Code({"one.py": b"a", "three.py": b"b"}, ("one.py",)), [], False),
        (Code({"one.py": b"a"}, ("one.py",)), ["two.py", "b"], False),
    ):
        originals.kept(code, arguments, single=single, run=run)
    assert run.count == 10


def test_what_failed_is_run_again() -> None:
    run = Runner(exit_code=1)
    for _ in range(2):
        originals.kept(TEXT, [], single=False, run=run)
    assert run.count == 2


def test_another_harness_runs_all_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = Runner()
    originals.kept(TEXT, [], single=False, run=run)
    monkeypatch.setattr(originals, "SOURCES", originals.SOURCES[1:])
    originals.surroundings.cache_clear()
    try:
        originals.kept(TEXT, [], single=False, run=run)
    finally:
        originals.surroundings.cache_clear()
    assert run.count == 2
    assert len([*tmp_path.iterdir()]) == 1


def test_an_edit_of_prose_proves_nothing_anew(tmp_path: Path) -> None:
    module = '"""One."""\n\n\ndef f(x):\n    """Two."""\n    return x  # three\n'
    edits = {
        "docstring": module.replace("Two.", "Two,\n    on two lines."),
        "comment": module.replace("  # three", ""),
        "code": module.replace("return x", "return x + 1"),
        "depth": module.replace("    return x  # three", "    if x:\n        return x"),
        "string": module.replace("return x", 'return "x"'),
    }
    digests = dict[str, bytes]()
    for name, text in {"module": module, **edits}.items():
        (tmp_path / f"{name}.py").write_text(text)
        (digests[name],) = originals.sources([tmp_path / f"{name}.py"])
    assert digests["docstring"] == digests["comment"] == digests["module"]
    assert len(set(digests.values())) == 4
