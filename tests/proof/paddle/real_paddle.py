"""Runs snippets on real Paddle, which has an environment of its own (`make test-paddle` sets it up)."""

from __future__ import annotations

import json
import math
import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-paddle" / "bin" / "python"
LIMIT = 30
"""Seconds of the processor's time that a snippet may take in one mode."""
HANGS = 2
"""The seconds after which a case that is expected to hang counts as hanging."""


@dataclass(frozen=True)
class Ended:
    """The end of a snippet in a mode: with `values`, or by `how` ("fails", "hangs", "dies") and `why`."""

    values: Any
    how: str
    why: str


def run(way: str, files: dict[str, str], code: str, modes: list[str], limit: int = LIMIT) -> dict[str, Ended]:
    """Run ``main.py`` of some files in each mode, in separate processes.

    `way` is the type of `code`: "statements" or "calls", see `proof.paddle.observer`.
    """
    process = _observer()
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"way": way, "files": files, "run": code, "modes": modes, "limit": limit}
    print(json.dumps(request), file=process.stdin, flush=True)
    answer = process.stdout.readline()
    assert answer, "what has Paddle imported has ended"
    found = json.loads(answer)
    return {
        mode: Ended(told.get("values"), told.get("ended", ""), told.get("why", ""))
        for mode, told in found.items()
    }


@cache
def _observer() -> subprocess.Popen[str]:
    """The observer of this process, which has imported Paddle; it ends with its standard input."""
    environment = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "GLOG_minloglevel": "3",
        # Otherwise SOT runs functions with fewer than ten operations as Python, unlike in a real program.
        "MIN_GRAPH_SIZE": "0",
        "PYTHONWARNINGS": "ignore",
    }
    environment.pop("PYTHONPATH", None)
    process = subprocess.Popen(
        [PYTHON, Path(__file__).with_name("observer.py")],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline(), "Paddle cannot be imported"
    return process


def agree(one: Any, other: Any) -> bool:
    """Return whether two results are equal up to rounding; a number is a tensor without dimensions."""
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return False
        if "array" in one:
            return bool(one["shape"] == other["shape"]) and _near(one["array"], other["array"])
        return all(agree(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(agree, one, other))
    return bool(one == other)


def _near(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return isinstance(other, list) and all(map(_near, one, other))
    both_missing = math.isnan(one) and math.isnan(other)
    return both_missing or math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-5)
