"""Expanded static functions on real Paddle: they return the same as the source in dygraph."""

from __future__ import annotations

import pytest

from proof.paddle.real_paddle import agree, run
from support.expansion_fixtures import EXPANSION_CASES, ExpansionCase, expansion

pytestmark = [pytest.mark.proof, pytest.mark.paddle]
MODES = ["dygraph", "full", "sot", "program", "unknown"]
"""The last two build a program by hand, with known and with unknown sizes of its inputs."""


@pytest.mark.parametrize("case", [case for case in EXPANSION_CASES if case.run], ids=lambda case: case.name)
def test_expansion_gives_what_its_source_gives(case: ExpansionCase) -> None:
    source = run("calls", {"main.py": case.script}, case.run, ["dygraph"])["dygraph"]
    assert not source.how, source
    ended = run("calls", {"main.py": expansion(case.script).result}, case.run, MODES)
    for mode in MODES:
        assert not ended[mode].how, (mode, ended[mode])
        for expected, found in zip(source.values, ended[mode].values, strict=True):
            assert agree(expected["result"], found["result"]), (mode, expected, found)
            assert agree(expected["given"], found["given"]), (mode, "an argument was written to")
    gradients = [[each["gradients"] for each in way.values] for way in (source, ended["dygraph"])]
    assert agree(*gradients)
