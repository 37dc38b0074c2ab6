"""The allowed line length is that of the project's own tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainshift.cli.programs.request import Request
from trainshift.cli.report import Mode
from trainshift.host.configuration import Configurations
from trainshift.host.line_lengths import LineLengths


@pytest.mark.parametrize(
    ("name", "text", "length"),
    [
        ("pyproject.toml", "[tool.ruff]\nline-length = 100\n", 100),
        ("pyproject.toml", "[tool.black]\nline-length = 79\n", 79),
        ("pyproject.toml", "[tool.black]\npreview = true\n", 88),
        ("pyproject.toml", "[project]\nname = 'x'\n", 0),
        ("pyproject.toml", "[tool.ruff\n", 0),
        ("ruff.toml", "line-length = 120\n", 120),
        (".ruff.toml", "indent-width = 4\n", 88),
        (".flake8", "[flake8]\nmax-line-length = 99\n", 99),
        ("setup.cfg", "[flake8]\nmax_line_length = 95\n", 95),
        ("tox.ini", "[pycodestyle]\nmax-line-length = 90\n", 90),
        ("setup.cfg", "[flake8]\nmax-line-length = many\n", 0),
        (".editorconfig", "root = true\n[*]\nindent_size = 4\n[*.{py,pyi}]\nmax_line_length = 110\n", 110),
        (".editorconfig", "[*.js]\nmax_line_length = 110\n", 0),
    ],
)
def test_a_tool_s_setting_is_found_upwards(name: str, text: str, length: int, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(text)
    below = tmp_path / "src" / "training"
    below.mkdir(parents=True)
    assert LineLengths().of(str(below)) == length


def test_what_is_outside_of_a_repository_says_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "ruff.toml").write_text("line-length = 120\n")
    (tmp_path / "mine" / ".git").mkdir(parents=True)
    assert LineLengths().of(str(tmp_path / "mine")) == 0


def test_conversions_are_told_of_it(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "ruff.toml").write_text("line-length = 120\n")
    path = str(tmp_path / "train.py")
    for configurations, length in ((Configurations(), 120), (Configurations(isolated=True), 0)):
        request = Request((path,), Mode.DIFF, configurations=configurations)
        assert request.choices_of(path).line_length == length
