"""Scripts that were distributed by hand, and rightly: a conversion leaves them as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainshift.engine.conversion import Status, convert

SCRIPTS = sorted((Path(__file__).parents[2] / "fixtures" / "distributed").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_right_script_is_left_alone(script: Path) -> None:
    text = script.read_bytes().decode()
    conversion = convert(text)
    assert (conversion.text, conversion.status) == (text, Status.ALREADY_DISTRIBUTED)
    assert conversion.withheld == ()
