"""The parts of the benchmark: its scripts, and its client against a working server."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from perf.repository_speed import append, package, write
from perf.script import script
from perf.server_speed import OURS, PEER, RUFF
from perf.session import Session
from perf.static_speed import ON_PADDLE, RUFF_ON_PADDLE, layers
from perf.suite_times import last
from trainshift.engine.checking import check
from trainshift.engine.conversion import convert


@pytest.mark.parametrize("lines", [100, 101, 1000])
def test_scripts_have_their_length(lines: int) -> None:
    text = script(lines)
    assert text.count("\n") == lines
    assert text == script(lines)
    ast.parse(text)


def test_packages_have_their_files_and_are_read(tmp_path: Path) -> None:
    lines = write(tmp_path, package(20))
    texts = [path.read_text() for path in tmp_path.rglob("*.py")]
    assert len(texts) == 19
    assert 18 * 290 < lines < 18 * 310
    assert all(map(ast.parse, texts))
    for number in range(2):
        append(tmp_path / "figures.csv", 20, lines, {"cold": 1.0, "warm": 0.5 + number})
    assert len((tmp_path / "figures.csv").read_text().splitlines()) == 3


def test_layers_are_static_functions_without_a_finding_but_the_one_that_is_typed() -> None:
    text = layers(200)
    assert 200 <= text.count("\n") < 260
    assert {each.code for each in check(text).diagnostics} <= {"PD27"}
    for server in (ON_PADDLE, RUFF_ON_PADDLE):
        assert text.count(server.line) == 1
    typed = text.replace(f"{ON_PADDLE.line}{ON_PADDLE.harmless}", f"{ON_PADDLE.line}{ON_PADDLE.problem}")
    assert ON_PADDLE.code in {each.code for each in check(typed).diagnostics}


def test_scripts_hold_what_is_edited_and_distributed() -> None:
    text = script(1000)
    for server in (OURS, RUFF, PEER):
        assert text.count(server.line + server.harmless + "\n") == 1
        assert server.statement in text
    assert convert(text).text != text


def test_an_editing_session() -> None:
    session = Session(RUFF, script(100))
    try:
        assert session.start() > 0
        assert session.open() > 0
        assert session.edit(problem=False) > 0
        assert not any(finding["code"] == RUFF.code for finding in session.found)
        assert session.burst(3) > 0
        assert [finding["code"] for finding in session.found].count(RUFF.code) == 1
        assert session.statement_action() > 0
        assert session.file_action() > 0
        assert session.memory() > 1
    finally:
        session.close()
    assert session.client.process.returncode == 0


def test_times_of_the_last_run_are_told_part_by_part(tmp_path: Path) -> None:
    times = tmp_path / "times"
    assert "not run" in last(times)[0]
    times.write_text("set-up 90 0\nproof 500 1\n")
    assert "was ended" in last(times)[0]
    times.write_text("set-up 90 0\nproof 500 1\nmake-test 700 2\n")
    total, *parts = last(times)
    assert total.startswith("make test     700 s, FAILED")
    assert parts == ["  set-up       90 s", "  proof       500 s, FAILED"]
