"""`make rule` creates passing files, in a copy of the repository: the author continues from there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.turns import Turns
from trainshift.dev.new_rule import LAYOUTS, UsageError, lay_out, next_code

ROOT = Path(__file__).parents[2]
# Only the author of a restriction can write these: enough cases that violate it.
FOR_THE_AUTHOR = (
    "tests/house/test_docs.py::test_the_page_of_a_restriction_shows_wrong_and_right_code[{code}]",
    "tests/cases/test_restrictions.py::test_every_restriction_has_enough_cases_of_each_kind[{code}]",
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of the repository in a separate folder, whose `.venv` uses the tools of this Python."""
    root = tmp_path / "repository"
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, root / name)
    tools = root / ".venv" / "bin"
    tools.mkdir(parents=True)
    for tool, started in (("python", ""), ("pytest", "-m pytest"), ("ruff", "-m ruff")):
        (tools / tool).write_text(f'#!/bin/sh\nexec "{sys.executable}" {started} "$@"\n', encoding="utf-8")
        (tools / tool).chmod(0o755)
    (root / ".venv" / ".dev").touch()
    run(root, "git", "init", "-q")
    run(root, "git", "add", "-A")
    return root


def run(root: Path, *command: str, status: int = 0) -> str:
    """The output of a command that runs in the copy with the copy's modules."""
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "PYTEST"))
    }
    done = subprocess.run(
        command,
        cwd=root,
        env=kept | {"PYTHONPATH": str(root / "server")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == status, done.stdout
    return done.stdout


@pytest.mark.slow
def test_what_was_laid_out_passes(copy: Path, turns: Turns) -> None:
    both = (next_code("HV"), "made-up-thing", ()), (next_code("TF"), "made-up-state", FOR_THE_AUTHOR)
    chosen = turns.of(both, 2)
    for code, name, _ in chosen:
        laid_out = run(copy, "make", "rule", f"CODE={code}", f"NAME={name}")
        assert len(re.findall(r"^new +\S+$", laid_out, re.M)) == 2
        assert "1 passed" in laid_out, "the expectation of its one case is written"
    for code, _, missing in chosen:
        printed = run(copy, "make", "test-rule", f"RULE={code.lower()}", status=2 if missing else 0)
        failed = set(re.findall(r"^FAILED (\S+)", printed, re.M))
        assert failed == {name.format(code=code) for name in missing}
        assert int(re.findall(r"(\d+) passed", printed)[-1]) > 15
    run(copy, ".venv/bin/pytest", "-q", "tests/house/test_tidy.py")
    run(copy, ".venv/bin/ruff", "check", "-q", ".")
    run(copy, ".venv/bin/ruff", "format", "--check", "-q", ".")


@pytest.mark.slow
@pytest.mark.parametrize(("code", "name"), [("PD", "made-up-clock"), ("math.cbrt", "x")])
def test_a_finding_of_paddle_and_a_derivative_are_laid_out_whole(copy: Path, code: str, name: str) -> None:
    assert "pages in server/docs/rules" in run(copy, "make", "rule", f"CODE={code}", f"NAME={name}")


@pytest.mark.slow
def test_the_expectations_of_one_rule_are_rewritten_alone(copy: Path) -> None:
    fixtures = [
        copy / "fixtures" / "transforms" / f"{name}.md" for name in ("hv04_wrap_tape", "hv06_divide_steps")
    ]
    wanted = [path.read_text(encoding="utf-8") for path in fixtures]
    for path, text in zip(fixtures, wanted, strict=True):
        lost = re.sub(r"\n```python after\n.*?^```\n", "", text, flags=re.M | re.S)
        path.write_text(lost, encoding="utf-8")
    run(copy, "make", "fixtures", "RULE=hv04")
    assert fixtures[0].read_text(encoding="utf-8") == wanted[0]
    assert fixtures[1].read_text(encoding="utf-8") != wanted[1]
    run(copy, "make", "fixtures", "RULE=divide-steps")
    assert fixtures[1].read_text(encoding="utf-8") == wanted[1]


@pytest.mark.parametrize(
    ("code", "name", "complaint"),
    [
        ("", "", "CODE is to be one of"),
        ("HV1", "clip-gradients", "CODE is to be one of"),
        ("XX01", "clip-gradients", "CODE is to be one of"),
        ("hv04", "clip-gradients", "HV04 is wrap-tape already; the next code is HV"),
        ("HV98", "clip-gradients", "HV98 would be out of order: the next code is HV"),
        ("TL98", "clip-gradients", "TL98 would be out of order: the next code is TL"),
        (next_code("TF"), "", "NAME is to be small letters"),
        (next_code("TF"), "Divide_data", "NAME is to be small letters"),
        (next_code("TF"), "wrap-tape", "HV04 is called wrap-tape already"),
        ("math.sin", "x", "has a row of math.sin already"),
        ("math.made_up", "d", "NAME is to be the parameters of math.made_up"),
    ],
)
def test_what_cannot_be_laid_out_is_told(code: str, name: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        lay_out(code, name)


@pytest.mark.parametrize("family", LAYOUTS)
def test_every_family_can_be_laid_out(family: str) -> None:
    code = next_code(family).lower()
    files = lay_out(family, "made-up-thing")
    new = [path for path in files if not (ROOT / path).exists()]
    assert [path.stem for path in new] == [f"{code}_made_up_thing"] * (1 if family == "TS" else 2)
    assert len(files) <= 4
    for path in set(files) - set(new):
        assert code in files[path].lower()
        assert set((ROOT / path).read_text(encoding="utf-8").splitlines()) < set(files[path].splitlines())


@pytest.mark.parametrize("function", ["math.made_up", "numpy.made_up", "tensorflow.made_up"])
def test_a_derivative_is_one_row_of_one_table(function: str) -> None:
    ((path, text),) = lay_out(function, "a b").items()
    old = (ROOT / path).read_text(encoding="utf-8")
    row = f'    slope("{function}", "a b", {{"a": "d", "b": "d"}}),\n'
    assert text.replace(row, "", 1) == old != text
