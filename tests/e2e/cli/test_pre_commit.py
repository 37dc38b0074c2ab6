"""The hooks for pre-commit run, and fail when they should."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cli.notebooks import CHECKED, notebook

pytestmark = pytest.mark.slow

HOOKS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[3] / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
)
SAMPLE = Path(__file__).parents[3] / "fixtures" / "scripts" / "mnist_tape"


def run(hook: dict[str, Any], *names: str) -> int:
    """Run the hook like pre-commit: its entry, then the names of files."""
    command, *args = shlex.split(hook["entry"])
    assert command == "trainshift"
    done = subprocess.run([sys.executable, "-m", command, *args, *names], capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
    return done.returncode


def test_there_are_two_for_python_files_and_notebooks() -> None:
    assert [hook["id"] for hook in HOOKS] == ["trainshift-check", "trainshift-convert-check"]
    assert {hook["language"] for hook in HOOKS} == {"python"}
    assert all(hook["types_or"] == ["python", "jupyter"] for hook in HOOKS)
    assert all(hook["name"] and hook["description"] for hook in HOOKS)


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_passes_what_is_done(hook: dict[str, Any]) -> None:
    assert run(hook, str(SAMPLE / "after.py")) == 0


def test_check_fails_for_a_finding(here: Path) -> None:
    (here / "a.py").write_text("import tensorflow as tf\nx = 1  # trainshift: ignore[TF33]\n")
    assert run(HOOKS[0], "a.py", str(SAMPLE / "after.py")) == 1


def test_convert_fails_for_what_is_not_converted() -> None:
    assert run(HOOKS[1], str(SAMPLE / "after.py"), str(SAMPLE / "before.py")) == 1


def test_notebooks_are_taken_too(here: Path) -> None:
    (here / "clean.ipynb").write_text(notebook([("code", "%time x = 1")]), encoding="utf-8")
    (here / "found.ipynb").write_text(notebook(CHECKED), encoding="utf-8")
    (here / "left.ipynb").write_text(notebook(), encoding="utf-8")
    (here / "trainshift.toml").write_text('restrictions = "letter"\n')
    assert [run(HOOKS[0], name) for name in ("clean.ipynb", "found.ipynb", "left.ipynb")] == [0, 1, 0]
    assert [run(HOOKS[1], name) for name in ("clean.ipynb", "left.ipynb")] == [0, 1]
