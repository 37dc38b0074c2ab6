"""The committed data equal those of the installed TensorFlow and Horovod."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

from trainshift.libraries import api
from trainshift.training.horovod import horovod_api

PRINT = "import sys; from trainshift.dev import {0}; sys.stdout.write({0}.render())"


@pytest.mark.proof
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="TensorFlow is not installed")
@pytest.mark.parametrize(
    ("generator", "path"), [("generate_api", api.PATH), ("generate_horovod_api", horovod_api.PATH)]
)
def test_the_committed_file_is_up_to_date(generator, path) -> None:  # type: ignore[no-untyped-def]
    code = PRINT.format(generator)
    generated = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout
    # Not compared inside the assertion: pytest would explain the difference of two such texts for minutes.
    same = generated == path.read_bytes()
    assert same, f"run python -m trainshift.dev.{generator}"
