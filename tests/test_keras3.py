"""Scripts for Keras 3: converted, they are distributed, and nothing in them is for Keras 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from keras3 import SCRIPTS, converted, wrong

from trainshift.engine.conversion import Status, convert


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_for_keras_3_is_converted(path: Path) -> None:
    result = converted(path)
    assert (result.status, result.reason) == (Status.CONVERTED, "")
    assert "hvd.allreduce" in result.text
    assert "hvd.broadcast_variables" in result.text
    assert "Distributed" not in result.text
    assert "horovod.tensorflow.keras" not in result.text
    # A CPU does without XLA anyway: only the text shows that it is switched off.
    compiled = [each for each in result.text.splitlines() if ".compile(" in each and "super()" not in each]
    assert result.text.count("jit_compile = False") >= bool(compiled)
    assert convert(result.text).status is Status.ALREADY_DISTRIBUTED
    assert [*wrong(result.text)]
