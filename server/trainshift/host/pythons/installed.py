"""Installed: the TensorFlow, Keras and Horovod of a Python, found by running it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

_PROBE = Path(__file__).with_name("probe.py")
_TIME_LIMIT = 180


class NoAnswer(Exception):
    """The reason why a Python cannot be inspected, as a sentence without its full stop."""


class Installed(Struct, frozen=True):
    """The packages installed in the Python at `path`; a version is empty if the package is missing.

    With `loads`, Horovod could be imported with this TensorFlow; otherwise `problem` is the reason, if both
    are installed.  `built` are its means of communication: gloo, mpi, nccl.
    """

    path: str
    python: tuple[int, int, int]
    tensorflow: str = ""
    keras: str = ""
    tf_keras: str = ""
    horovod: str = ""
    loads: bool = False
    problem: str = ""
    tensorflow_problem: str = ""
    built: tuple[str, ...] = ()
    programs: frozenset[str] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict)


def ask(python: str) -> Installed:
    """Inspect a Python, given by path or by name; raises NoAnswer if it cannot be run.

    TensorFlow and Horovod are loaded only if both are installed, in a process that may crash.
    """
    path = shutil.which(python)
    if path is None:
        raise NoAnswer(f"{python} is not a program" if os.path.exists(python) else f"{python} is not there")
    told = _told(path, "packages")
    installed = Installed(
        os.path.abspath(path),
        tuple(told["python"]),
        told["tensorflow"],
        told["keras"],
        told["tf_keras"],
        told["horovod"],
        programs=frozenset(told["programs"]),
        variables=told["variables"],
    )
    return _with_horovod(installed) if installed.tensorflow and installed.horovod else installed


def _with_horovod(installed: Installed) -> Installed:
    try:
        told = _told(installed.path, "horovod")
    except NoAnswer as error:
        return replace(installed, problem=str(error))
    return replace(
        installed,
        tensorflow=told.get("version", installed.tensorflow),
        loads="built" in told,
        built=tuple(told.get("built", ())),
        problem=told.get("problem", ""),
        tensorflow_problem=told.get("tensorflow_problem", ""),
    )


def _told(path: str, question: str) -> dict[str, Any]:
    """The answer of the probe to one question; raises NoAnswer."""
    try:
        done = subprocess.run(
            [path, str(_PROBE), question],
            capture_output=True,
            text=True,
            timeout=_TIME_LIMIT,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONDONTWRITEBYTECODE": "1"},
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"{path} did not answer within {_TIME_LIMIT} seconds") from None
    except OSError as error:
        raise NoAnswer(f"{path} cannot be run: {error.strerror or error}") from None
    if done.returncode < 0:
        raise NoAnswer(f"{path} crashed (signal {-done.returncode})")
    try:
        told = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        told = None
    if not isinstance(told, dict):
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise NoAnswer(f"{path} does not work as a Python: {last}")
    return told
