"""The ecosystem run, on a folder of a few files."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest
from msgspec.structs import force_setattr

from ecosystem import crowd
from ecosystem.__main__ import main
from ecosystem.judge import CRASH, Outcome, judge
from support.fixtures import SCRIPTS
from trainshift.engine import conversion
from trainshift.engine.conversion import Conversion, Status

CLEAN = next(folder / "before.py" for folder in SCRIPTS if folder.name == "mnist_tape")
REFUSED = (
    "import tensorflow as tf\nfrom steps import step\n\nwith tf.Session() as sess:\n    sess.run(step)\n"
)
NOT_PYTHON = "import tensorflow as tf\nif\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a script that is converted, one that is refused, and one that is not Python."""
    below = tmp_path / "public"
    below.mkdir()
    (below / "train.py").write_bytes(CLEAN.read_bytes())
    (below / "session.py").write_text(REFUSED)
    (below / "broken.py").write_text(NOT_PYTHON)
    return below


def _run(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    status = main([str(folder), "--jobs", "2", *options])
    return status, capsys.readouterr().out


def test_it_tells_what_came_of_each_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = _run(folder, capsys)
    assert status == 0
    for line in ("3 files", "crashes: 0", "unclean results: 0", "TF1 session", "1  converted", "2  refused"):
        assert line in told
    assert "against the last run" not in told
    kept = json.loads((folder.parent / "public.ecosystem.json").read_text())
    assert {path: each["status"] for path, each in kept.items()} == {
        "train.py": "converted",
        "session.py": "refused",
        "broken.py": "refused",
    }


@pytest.mark.slow
def test_it_tells_what_differs_from_the_last_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(folder, capsys)
    (folder / "session.py").write_text(CLEAN.read_text() + "tf2 = tf\nprint(mystery())\n")
    (folder / "new.py").write_text("")
    (folder / "broken.py").unlink()
    status, told = _run(folder, capsys, "--sample", "1")
    assert status == 0
    for line in (
        "1 files are new, 1 are gone",
        "- session.py: refused",
        "+ session.py: converted",
        "TF02 violated",
        "1 of 1 warnings",
    ):
        assert line in told
    assert "train.py: converted" not in told.partition("against the last run")[2]


def test_a_state_can_be_kept_elsewhere(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(folder, capsys, "--state", str(tmp_path / "state.json"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["public", "state.json"]
    before = (tmp_path / "state.json").read_bytes()
    _run(folder, capsys, "--state", str(tmp_path / "state.json"), "--only", "train")
    assert (tmp_path / "state.json").read_bytes() == before


@pytest.mark.slow
def test_a_file_that_ends_its_process_or_takes_too_long_sinks_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def judged(path: str) -> Outcome:
        if path == "dies":
            os._exit(3)
        while path == "hangs":
            pass
        return Outcome("converted")

    monkeypatch.setattr(crowd, "judge", judged)
    monkeypatch.setattr(crowd, "_CONTEXT", multiprocessing.get_context("fork"))
    found = dict(crowd.outcomes(["a", "dies", "b", "hangs", "c"], 2, 2.0))
    assert {path: each.crash for path, each in found.items() if each.crash} == {
        "dies": "the process ended with exit status 3",
        "hangs": "no end after 2 s",
    }
    assert {path for path, each in found.items() if each.status == CRASH} == {"dies", "hangs"}
    assert set(found) == {"a", "dies", "b", "hangs", "c"}


def test_an_unclean_result_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    convert = conversion.convert_program

    def spoilt(text: str, *others: object, **options: object) -> Conversion:
        result = convert(text, *others, **options)  # type: ignore[arg-type]
        if result.status is Status.CONVERTED:
            for each in result.files:
                force_setattr(each, "text", each.text.replace("# ", "# a ") + "tf2 = tf\nprint(tf2)\n")
            force_setattr(result, "text", result.files[0].text)
        return result

    monkeypatch.setattr(conversion, "convert_program", spoilt)
    unclean = judge(str(folder / "train.py")).unclean
    assert any("a comment" in each for each in unclean)
    assert any("new TF02" in each for each in unclean)
    assert any("second conversion" in each for each in unclean)


def test_a_defect_of_ours_is_a_crash(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> Conversion:
        raise LookupError("no such thing")

    monkeypatch.setattr(conversion, "convert_program", fail)
    monkeypatch.setattr(crowd, "_CONTEXT", multiprocessing.get_context("fork"))
    status, told = _run(folder, capsys)
    assert status == 1
    assert "train.py: convert: LookupError: no such thing" in told
