"""The scripts of `fixtures/libraries`: the refusals, and that a conversion leaves nothing to convert."""

from __future__ import annotations

import pytest

from proof.test_libraries import REFUSED, SCRIPTS
from trainshift.engine.conversion import Status, convert


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_library_trains_itself_is_refused(name: str) -> None:
    script = next(path for path in SCRIPTS if path.stem == name)
    result = convert(script.read_text("utf-8"))
    assert result.status is Status.REFUSED
    assert REFUSED[name] in result.reason


def test_a_converted_script_is_converted_no_further() -> None:
    for path in SCRIPTS:
        if path.stem not in REFUSED:
            text = convert(path.read_text("utf-8")).text
            assert convert(text).text == text, path.stem
