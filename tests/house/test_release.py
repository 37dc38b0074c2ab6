"""A release is one command, and workflows, templates and the action name existing files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

import trainshift
from trainshift.dev.release import ROOT, Mistake, check, notes, prepare, repository, versions

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
# Files that a release reads or changes.
FILES = (
    "CHANGELOG.md", "CITATION.cff", "Makefile", "action.yml", "pyproject.toml", "server/docs/checking.md",
    "server/trainshift/__init__.py", "server/trainshift/dev/release.py", ".github/ISSUE_TEMPLATE/config.yml",
    "vscode-extension/CHANGELOG.md", "vscode-extension/package-lock.json", "vscode-extension/package.json",
)  # fmt: skip


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `make release` in a folder."""
    command = ["make", "-s", "release", f"PYTHON={sys.executable}", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_all_files_have_the_version_of_the_tool() -> None:
    assert {version for _, version in versions(ROOT)} == {trainshift.__version__}
    assert notes(CHANGELOG, trainshift.__version__)
    check(ROOT, f"v{trainshift.__version__}", repository(ROOT))


def test_a_release_is_one_command(copy: Path) -> None:
    address = "https://github.com/somebody/fork"
    made = make(copy, "VERSION=9.8.0rc1", f"REPOSITORY={address}")
    assert made.returncode == 0, made.stderr
    assert "git tag v9.8.0rc1" in made.stdout
    assert {version for _, version in versions(copy)} == {"9.8.0rc1"}
    check(copy, "v9.8.0rc1", address)
    for name in FILES:
        text = (copy / name).read_text(encoding="utf-8")
        assert repository(ROOT) not in text, name
        if name.endswith(("package.json", "package-lock.json", "__init__.py")):
            assert text.replace("9.8.0rc1", trainshift.__version__) == (ROOT / name).read_text(
                encoding="utf-8"
            )
    text = (copy / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = notes(CHANGELOG, "Unreleased")
    assert (notes(text, "9.8.0rc1"), notes(text, "Unreleased")) == (unreleased, "")
    assert text.replace("\n## Unreleased\n", "", 1) in re.sub(
        r"\n## Unreleased\n", r"\n## 9.8.0rc1 (DAY)\n", CHANGELOG
    ).replace("DAY", re.findall(r"rc1 \((.*)\)", text)[0])
    assert (
        f"uses: {address.removeprefix('https://github.com/')}@v9.8.0rc1" in (copy / "action.yml").read_text()
    )
    assert notes((copy / "vscode-extension/CHANGELOG.md").read_text(), "9.8.0rc1")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "Which version?"),
        (("VERSION=next",), "'next' is no version"),
        (("VERSION=9.0.0", "REPOSITORY=fork"), "'fork' is no address"),
        ((f"VERSION={trainshift.__version__}",), "has a section"),
    ],
)
def test_what_cannot_be_released_changes_nothing(copy: Path, arguments: tuple[str, ...], reason: str) -> None:
    made = make(copy, *arguments)
    assert made.returncode == 2
    assert reason in made.stdout + made.stderr
    assert all((copy / name).read_bytes() == (ROOT / name).read_bytes() for name in FILES)


def test_nothing_new_is_no_release(copy: Path) -> None:
    make(copy, "VERSION=9.0.0")
    made = make(copy, "VERSION=9.0.1")
    assert made.returncode == 2
    assert 'nothing below "## Unreleased"' in made.stderr


def test_a_tag_that_differs_is_found(copy: Path) -> None:
    with pytest.raises(Mistake, match=r"__init__\.py has .*; .*CHANGELOG\.md has no section 9\.0\.0"):
        check(copy, "v9.0.0")
    with pytest.raises(Mistake, match=r"not https://github\.com/somebody/fork"):
        check(copy, f"v{trainshift.__version__}", "https://github.com/somebody/fork")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_what_is_there(path: Path) -> None:
    """The Makefile targets, files, and jobs that it names exist."""
    jobs = loaded(path)["jobs"]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for job in jobs.values():
        assert job.get("timeout-minutes", 0) or job["needs"] in jobs
        commands = [step["run"] for step in job["steps"] if "run" in step]
        assert {name for text in commands for name in re.findall(r"\bmake ([a-z]+)", text)} <= targets
        for name in re.findall(r"(?<![\w/])(?:\.ci|server)/[\w./]+", "\n".join(commands)):
            assert (ROOT / name).is_file()


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_for_the_environment_and_the_skeleton(form: Path) -> None:
    fields = {field["id"]: field for field in loaded(form)["body"]}
    for name in ("skeleton", "doctor"):
        assert fields[name]["validations"]["required"]
    assert "trainshift doctor" in fields["doctor"]["attributes"]["description"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "arguments", "status", "said"),
    [
        ("check", "--strict --select TF", 1, "::warning file=found.py,line=3"),
        ("check", "--select HZ", 0, ""),
        ("convert --check", "", 1, ""),
    ],
)
def test_the_action_runs(tmp_path: Path, command: str, arguments: str, status: int, said: str) -> None:
    (step,) = (
        step for step in loaded(ROOT / "action.yml")["runs"]["steps"] if "PATHS" in step.get("env", {})
    )
    (tmp_path / "found.py").write_text(
        "import tensorflow as tf\nopt = tf.keras.optimizers.SGD(0.1)\nother = opt\n"
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nfor x, y in [(1, 2)]:\n"
        "    with tf.GradientTape() as tape:\n        loss = model(x) - y\n"
        "    grads = tape.gradient(loss, model.trainable_variables)\n"
        "    other.apply_gradients(zip(grads, model.trainable_variables))\n"
    )
    tool = tmp_path / "trainshift" / "bin" / "trainshift"
    tool.parent.mkdir(parents=True)
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trainshift "$@"\n')
    tool.chmod(0o755)
    given = {"PATHS": "found.py", "COMMAND": command, "ARGUMENTS": arguments, "SARIF": "out.sarif"}
    environment = os.environ | given | {"RUNNER_TEMP": str(tmp_path)}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert said in done.stdout
    assert (tmp_path / "out.sarif").exists() == (command == "check")


def test_one_section_can_be_read_alone() -> None:
    text = (
        "# Changelog\n\n## Unreleased\n\n- a\n\n## 1.0.0 (2026-01-01)\n\n- b\n\n### More\n\n## 0.1.0\n\n- c\n"
    )
    assert notes(text, "1.0.0") == "- b\n\n### More"
    assert notes(text, "0.1.0") == "- c"
    assert notes(text, "1.0") == ""


def test_preparing_asks_for_all_places_first(copy: Path) -> None:
    (copy / "CITATION.cff").write_text("version: none\n")
    with pytest.raises(Mistake, match=r"CITATION\.cff has 0 versions, not 1"):
        prepare(copy, "9.0.0", date(2026, 1, 1))
    assert (copy / "CHANGELOG.md").read_text(encoding="utf-8") == CHANGELOG
