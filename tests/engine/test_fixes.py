"""Invariants for every script under `fixtures`: the check terminates, and so do its fixes."""

from __future__ import annotations

import pytest

from finding_fixtures import FINDING_CASES
from fixtures import SCRIPTS, TRANSFORM_CASES
from trainshift.engine.checking import fix
from trainshift.engine.compiling import compiles
from trainshift.engine.own_codes import INTERNAL_ERROR
from trainshift.engine.settings import Severity
from turns import Turns

TEXTS = [case.script for case in FINDING_CASES]
TEXTS += [case.text for case in TRANSFORM_CASES]
TEXTS += [(folder / "before.py").read_bytes().decode("utf-8-sig") for folder in SCRIPTS]


@pytest.mark.parametrize(("newline", "every"), [("\n", 1), ("\r\n", 3), ("\r", 4)])
def test_fixes_come_to_an_end_and_leave_a_script(newline: str, every: int, quick: bool, turns: Turns) -> None:
    for text in TEXTS[::60] if quick else turns.of(TEXTS[::every], 2):
        script = text.replace("\r\n", "\n").replace("\n", newline)
        fixed = fix(script, least=Severity.HINT)
        assert not [each for each in fixed.report.diagnostics if each.code == INTERNAL_ERROR.code], script
        assert not [each for each in fixed.report.diagnostics if each.fix and not each.asks], script
        assert compiles(fixed.text) or not compiles(script)
        if newline != "\n":
            assert "\n" not in fixed.text.replace(newline, ""), script


def test_only_warnings_are_mended_unless_more_is_asked_for() -> None:
    script = (
        "import tensorflow as tf\nrelu = tf.nn.relu\nAdam = tf.keras.optimizers.Adam\nx = relu(Adam(0.1))\n"
    )
    assert "relu = tf.nn.relu" in fix(script).text
    assert "Adam = " not in fix(script).text
    assert "relu = " not in fix(script, least=Severity.HINT).text
