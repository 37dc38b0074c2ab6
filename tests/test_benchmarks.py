"""What the benchmark measures with: its scripts, and its client against a server that is known to work."""

from __future__ import annotations

import ast

import pytest

from benchmarks.script import script
from benchmarks.server_speed import OURS, PEER, RUFF
from benchmarks.session import Session
from trainshift.engine.conversion import convert


@pytest.mark.parametrize("lines", [100, 101, 1000])
def test_scripts_have_their_length(lines: int) -> None:
    text = script(lines)
    assert text.count("\n") == lines
    assert text == script(lines)
    ast.parse(text)


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
