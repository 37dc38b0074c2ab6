"""The results of the command line, for comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from support.fixtures import ROOT
from trainshift.cli.main import cli
from trainshift.engine.analysis import analyze_script
from trainshift.engine.conversion import carry_out
from trainshift.python.names.script import read_script
from trainshift.python.source.source import BOM
from trainshift.python.syntax.chunks import ParseFailure

SCRIPTS = ROOT / "scripts"
QUICK = ("mnist_tape", "emoji_bom", "crlf_tabs")
"""Scripts that stand for all others in the quick loop."""
ALL = sorted(path.parent.name for path in SCRIPTS.glob("*/before.py"))


class Place(NamedTuple):
    """A code with its line and column, from 0, in code points."""

    code: str
    line: int
    column: int


def run(*arguments: str | Path) -> bytes:
    """The standard output of a command."""
    result = CliRunner().invoke(cli, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout_bytes


@cache
def checked(path: Path) -> list[dict[str, Any]]:
    """The findings of `trainshift check`."""
    (file,) = json.loads(run("check", "--format", "json", path))["files"]
    assert file["error"] is None or file["error"]["kind"] == "syntax", file["error"]
    return list(file["diagnostics"])


@cache
def report(path: Path) -> dict[str, Any]:
    """The report of `trainshift convert`."""
    (file,) = json.loads(run("convert", "--format", "json", path))["files"]
    return dict(file)


def changes(path: Path) -> set[Place]:
    """The changes of `trainshift convert`, with their places."""
    return {Place(each["rule"], each["line"] - 1, each["column"] - 1) for each in report(path)["applied"]}


def converted(path: Path, line: int | None = None) -> str:
    """The result of `trainshift convert` for a file, or for the statement at a line, from 0."""
    at = () if line is None else ("--at", str(line + 1))
    return run("convert", "--quiet", *at, "-o", "-", path).decode("utf-8")


def statements(path: Path, lines: Iterable[int]) -> dict[int, str]:
    """The results of the engine, which reads the file once, for the statement at each of these lines,
    from 0.
    """
    text = text_of(path)
    script = read_script(text.removeprefix(BOM))
    assert not isinstance(script, ParseFailure)
    analysis = analyze_script(script)
    texts = {line: carry_out(analysis, at=("", line + 1)).text for line in lines}
    return {line: BOM * text.startswith(BOM) + each for line, each in texts.items()}


def text_of(path: Path) -> str:
    """The exact text of a file."""
    return path.read_bytes().decode("utf-8")
