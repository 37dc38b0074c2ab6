"""The report as text and as JSON, and colours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from e2e.cli.conftest import SCRIPT, Run

COUNTS = {
    "files": 0,
    "converted": 0,
    "already_distributed": 0,
    "nothing_found": 0,
    "refused": 0,
    "error": 0,
    "internal_error": 0,
    "changes": 0,
    "decisions": 0,
    "doubts": 0,
    "withheld": 0,
    "hazards": 0,
}


@pytest.fixture
def project(here: Path) -> Path:
    """Write one file for each possible outcome of a conversion."""
    (here / "train.py").write_text(SCRIPT + "# decide\n# doubt\n# withhold\n")
    (here / "done.py").write_text("import horovod\n")
    (here / "util.py").write_text("x = 1\n")
    (here / "bad.py").write_text("x = (\n")
    (here / "crash.py").write_text("# crash\n")
    return here


def document(result: Result) -> Any:
    return json.loads(result.stdout)


def test_what_is_told_of_several_lines_is_told_once(run: Run, here: Path) -> None:
    (here / "train.py").write_text(SCRIPT + "# doubt\n" * 3)
    lines = run("convert", "train.py").stderr.splitlines()
    told = "    train.py:2:3: HV02 please check: `opt` is an optimizer (also in lines 3, 4)"
    assert [line for line in lines if "please check" in line] == [told]


def test_text_lists_every_outcome_and_the_totals(run: Run, project: Path) -> None:
    lines = run("convert", ".", "gone.py").stderr.splitlines()
    assert lines[:3] == [
        "bad.py:1:5: refused: does not parse: '(' was never closed",
        "    x = (",
        "        ^",
    ]
    assert lines[3].startswith("crash.py: internal error: RecursionError")
    assert lines[4:] == [
        "done.py: already distributed",
        "train.py: converted (1 change)",
        "    train.py:2:1: HV06 decided: the steps are divided",
        "    train.py:2:3: HV02 please check: `opt` is an optimizer",
        "    train.py:3:5: HV05 withheld: the variables cannot be seen",
        "util.py: nothing found: looked for a TensorFlow training loop",
        "gone.py: error: cannot be read: no such file or directory",
        "6 files: 1 converted, 1 already distributed, 1 nothing found, 1 refused, 1 error, 1 internal error",
        "Nothing was written. Add --write to change the files.",
    ]


def test_verbose_lists_the_changes(run: Run, script: Path) -> None:
    assert "    train.py:1:1: HV01 Import Horovod\n" in run("convert", "-v", "train.py").stderr


def test_quiet_reports_only_what_makes_it_fail(run: Run, project: Path) -> None:
    result = run("convert", "-q", ".", "gone.py")
    assert result.exit_code == 2
    assert [line.partition(": ")[0].strip() for line in result.stderr.splitlines() if ": " in line] == [
        "bad.py:1:5",
        "crash.py",
        "train.py",
        "train.py:3:5",
        "gone.py",
    ]
    (project / "train.py").write_text(SCRIPT)
    assert run("convert", "-q", "train.py", "done.py", "util.py").stderr == ""


def test_json_describes_a_conversion(run: Run, project: Path) -> None:
    result = run("convert", "--format", "json", "train.py")
    assert (result.exit_code, result.stderr) == (1, "")
    found = document(result)
    diff = found["files"][0].pop("diff")
    assert diff.startswith("--- a/train.py\n+++ b/train.py\n@@ -1,6 +1,7 @@\n")
    assert found == {
        "version": 1,
        "files": [
            {
                "path": "train.py",
                "status": "converted",
                "applied": [{"rule": "HV01", "line": 1, "column": 1, "text": "Import Horovod"}],
                "decisions": [{"rule": "HV06", "line": 2, "column": 1, "text": "the steps are divided"}],
                "doubts": [{"rule": "HV02", "line": 2, "column": 3, "text": "`opt` is an optimizer"}],
                "withheld": [
                    {"rule": "HV05", "line": 3, "column": 5, "text": "the variables cannot be seen"}
                ],
                "hazards": [],
                "reason": "",
                "position": None,
                "written": False,
                "error": None,
            }
        ],
        "summary": {
            **COUNTS,
            "files": 1,
            "converted": 1,
            "changes": 1,
            "decisions": 1,
            "doubts": 1,
            "withheld": 1,
        },
        "written": False,
    }


def test_json_describes_trouble(run: Run, project: Path) -> None:
    result = run("convert", "--format", "json", "bad.py", "crash.py", "gone.py", "util.py")
    found = document(result)
    refused, crashed, missing, nothing = found["files"]
    assert (result.exit_code, result.stderr) == (2, "")
    assert refused["status"] == "refused"
    assert refused["position"] == {"line": 1, "column": 5}
    assert refused["reason"] == "does not parse: '(' was never closed"
    assert crashed["status"] == "internal error"
    assert crashed["error"].startswith("RecursionError")
    assert missing["status"] == "error"
    assert missing["error"] == "cannot be read: no such file or directory"
    assert (nothing["status"], nothing["diff"], nothing["error"]) == ("nothing found", "", None)
    assert found["summary"]["files"] == 4


def test_json_says_what_was_written(run: Run, project: Path) -> None:
    found = document(run("convert", "--format", "json", "--write", "train.py", "done.py"))
    assert found["written"] is True
    assert [entry["written"] for entry in found["files"]] == [True, False]
    assert "hvd" in (project / "train.py").read_text()


def test_json_with_check_and_with_nothing_to_report_on(run: Run, project: Path) -> None:
    (project / "empty").mkdir()
    result = run("convert", "--format", "json", "--check", "empty")
    assert (result.exit_code, document(result)["summary"]) == (0, COUNTS)
    assert run("convert", "--format", "json", "--check", "train.py").exit_code == 1


@pytest.mark.parametrize("name", ["\udcff.py", "a\nb.py"])
def test_json_is_valid_for_any_name(run: Run, here: Path, name: str) -> None:
    (here / name).write_text(SCRIPT)
    assert document(run("convert", "--format", "json", "."))["files"][0]["path"] == name


def test_json_diff_is_text_in_any_encoding(run: Run, here: Path) -> None:
    (here / "é.py").write_bytes("# coding: latin-1\nimport tensorflow as tf\ny = 'é'\n".encode("latin-1"))
    diff = document(run("convert", "--format", "json", "."))["files"][0]["diff"]
    assert diff.startswith("--- a/é.py\n")
    assert "y = 'é'\n" in diff


def test_a_piped_diff_is_in_the_encoding_of_the_file(run: Run, script: Path) -> None:
    script.write_bytes("# coding: latin-1\r\nimport tensorflow as tf\r\ny = 'é'\r\n".encode("latin-1"))
    assert b" y = '\xe9'\r\n" in run("convert", "train.py").stdout_bytes


class TestColour:
    def test_is_absent_in_a_pipe(self, run: Run, script: Path) -> None:
        result = run("convert", "train.py")
        assert "\x1b" not in result.stdout + result.stderr

    def test_can_be_forced(self, run: Run, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        result = run("convert", "--color", "always", "train.py")
        assert "\x1b[32m+import horovod.tensorflow as hvd\x1b[0m\n" in result.stdout
        assert "\x1b[32mconverted\x1b[0m" in result.stderr
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b" in run("convert", "--color", "always", "train.py").stdout
        assert "\x1b" not in run("convert", "train.py").stdout
        monkeypatch.delenv("NO_COLOR")
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert "\x1b" in run("convert", "train.py").stdout
        assert "\x1b" not in run("convert", "--color", "never", "train.py").stdout
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b" not in run("convert", "train.py").stdout

    def test_does_not_let_the_script_steer_the_terminal(self, run: Run, script: Path) -> None:
        script.write_text("import tensorflow as tf\n# \x1b]0;owned\x07\n")
        assert "\x1b]" not in run("convert", "--color", "always", "train.py").stdout


def test_a_report_goes_to_a_file_with_every_change(run: Run, project: Path) -> None:
    shown = run("convert", ".", "gone.py")
    result = run("convert", "--report", "report.txt", ".", "gone.py")
    assert (result.exit_code, result.stdout, result.stderr) == (2, shown.stdout, shown.stderr)
    report = (project / "report.txt").read_text()
    verbose = run("convert", "-v", ".", "gone.py").stderr
    assert report == verbose


@pytest.mark.parametrize("name", ["", "-", "gone/report.txt"])
def test_a_report_has_to_be_a_file(run: Run, project: Path, name: str) -> None:
    before = (project / "train.py").read_text()
    assert run("convert", "--write", "--report", name, "train.py").exit_code == 2
    assert (project / "train.py").read_text() == before


def test_a_diff_of_files_outside_names_its_root(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "sub").mkdir()
    monkeypatch.chdir(project / "sub")
    assert "relative to /: apply it with `patch -d / -p1`." in run("convert", "../train.py").stderr
    assert "patch" not in run("convert", "--check", "../train.py").stderr
