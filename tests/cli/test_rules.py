"""`rules` and `explain`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.conftest import Run
from trainshift import transforms


@dataclass(frozen=True)
class Rule:
    code: str
    name: str
    title: str
    doc: str


RULES = (
    Rule(
        "HV01",
        "import-horovod",
        "Import and start Horovod.",
        "Import and start Horovod.\n\nEvery rank *needs* it.\n",
    ),
    Rule("HV04", "wrap-tape", "Average the gradients.", "Wrap each `GradientTape`.\n\n- one\n- two\n"),
)


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transforms, "TRANSFORMS", RULES, raising=False)


def test_rules_are_aligned_text_in_a_pipe(run: Run) -> None:
    assert run("rules").stdout == (
        "HV01  import-horovod  Import and start Horovod.\nHV04  wrap-tape       Average the gradients.\n"
    )


def test_rules_as_json(run: Run) -> None:
    assert json.loads(run("rules", "--format", "json").stdout) == {
        "version": 1,
        "rules": [
            {"code": "HV01", "name": "import-horovod", "title": "Import and start Horovod."},
            {"code": "HV04", "name": "wrap-tape", "title": "Average the gradients."},
        ],
    }


@pytest.mark.parametrize("code", ["HV04", "hv04", "wrap-tape", "Wrap-Tape"])
def test_explain_prints_the_page(run: Run, code: str) -> None:
    assert run("explain", code).stdout == (
        "HV04 wrap-tape\n\nAverage the gradients.\n\nWrap each `GradientTape`.\n\n- one\n- two\n"
    )


def test_explain_does_not_say_the_title_twice(run: Run) -> None:
    assert run("explain", "HV01").stdout.count("Import and start Horovod.") == 1


def test_explain_renders_on_a_terminal(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = run("explain", "HV04").stdout
    assert "\x1b[" in text
    assert "• one" in text.replace("\x1b[0m", "").replace("\x1b[1;33m", "").replace("\x1b[33m", "")
    assert "What it does" in run("rules").stdout


@pytest.mark.parametrize(
    ("code", "hint"), [("HV40", "Did you mean HV04"), ("wraptape", "wrap-tape"), ("?", "rules")]
)
def test_explain_of_an_unknown_code_suggests(run: Run, code: str, hint: str) -> None:
    result = run("explain", code)
    assert (result.exit_code, result.stdout) == (2, "")
    assert hint in result.stderr
