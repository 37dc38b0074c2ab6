"""The committed data is what the installed TensorFlow says."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

from trainshift.core.names import api

PRINT = "import sys; from trainshift.dev import generate_api; sys.stdout.write(generate_api.render())"


@pytest.mark.proof
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="TensorFlow is not installed")
def test_the_committed_file_is_up_to_date() -> None:
    generated = subprocess.run([sys.executable, "-c", PRINT], stdout=subprocess.PIPE, check=True).stdout
    # Not compared inside the assertion: pytest would explain the difference of two such texts for minutes.
    same = generated == api.PATH.read_bytes()
    assert same, "run python -m trainshift.dev.generate_api"
