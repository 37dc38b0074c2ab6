"""Interpreters: which Python has what a proof needs, and what installs it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

OLDEST, NEWEST = (3, 9), (3, 11)
TENSORFLOW = ((2, 12), (2, 15))
TIME_LIMIT = 60

_ASK = """
import glob, json, mmap, os, sys
from importlib.util import find_spec
try:
    from importlib.metadata import version
except ImportError:
    version = None
def of(*names):
    for name in names:
        try:
            return version(name)
        except Exception:
            pass
    return ""
def where(name):
    found = find_spec(name)
    return bool(found and found.origin)
told = {"python": sys.version_info[:3], "tensorflow": "", "horovod": "", "gloo": False, "binding": False}
if where("tensorflow"):
    kinds = ("", "-cpu", "-gpu", "-intel", "-macos")
    told["tensorflow"] = of(*("tensorflow" + kind for kind in kinds)) or "0"
if where("horovod"):
    told["horovod"] = of("horovod") or "0"
    folder = os.path.dirname(find_spec("horovod").origin)
    for library in glob.glob(os.path.join(folder, "tensorflow", "mpi_lib*")):
        told["binding"] = True
        with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            told["gloo"] = data.find(b"4gloo") >= 0
print(json.dumps(told))
"""


class Unfit(Exception):
    """Why a proof cannot be run, and what to do about it, on lines of their own."""


@dataclass(frozen=True)
class Interpreter:
    """A Python: its path and what it has; versions are empty where something is missing."""

    path: str
    python: tuple[int, int, int] = (0, 0, 0)
    tensorflow: str = ""
    horovod: str = ""
    has_binding: bool = False
    has_gloo: bool = False
    problem: str = ""

    @property
    def lacks(self) -> str:
        """What it lacks, and the commands that help; empty if a proof can be run with it."""
        name, command = self.path, shlex.quote(self.path)
        if self.problem:
            return f"{name} cannot be run: {self.problem}"
        version = ".".join(map(str, self.python[:2]))
        if not OLDEST <= self.python[:2] <= NEWEST:
            return (
                f"{name} is Python {version}; TensorFlow 2.12 to 2.15 needs Python 3.9 to 3.11.\n"
                "Name another one: trainshift prove --python PYTHON ..."
            )
        if not self.tensorflow:
            return f"{name} (Python {version}) has no TensorFlow. Install it there:\n{_install(command)}"
        numbers = tuple(int(part) for part in self.tensorflow.split(".")[:2] if part.isdecimal())
        if not TENSORFLOW[0] <= numbers <= TENSORFLOW[1]:
            return (
                f"{name} has TensorFlow {self.tensorflow}; Horovod 0.28.1 runs on TensorFlow 2.12 to 2.15. "
                f"Install one of these there:\n{_install(command)}"
            )
        if not self.horovod:
            return f"{name} (Python {version}) has no Horovod. Install it there:\n{_horovod(command)}"
        if not self.has_binding:
            return (
                f"{name} has a Horovod {self.horovod} that was built without TensorFlow. "
                f"Build it again:\n{_horovod(command)}"
            )
        return ""


def _install(command: str) -> str:
    return (
        f'  {command} -m pip install "tensorflow-cpu==2.15.1"\n'
        '  (with GPUs: "tensorflow[and-cuda]==2.15.1")\n'
        f"{_horovod(command)}"
    )


def _horovod(command: str) -> str:
    return (
        f'  {command} -m pip install "setuptools<81" wheel "cmake<4" cffi cloudpickle psutil pyyaml\n'
        "  export HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_PYTORCH=1 "
        "HOROVOD_WITHOUT_MXNET=1\n"
        f"  {command} -m pip install --no-build-isolation --no-cache-dir horovod==0.28.1\n"
        "  (with GPUs, before the last line: export HOROVOD_GPU_OPERATIONS=NCCL)"
    )


def find(named: str) -> Interpreter:
    """The interpreter that was named, or the first that has all; raises Unfit, with what to install."""
    candidates = [named] if named else [*dict.fromkeys(_candidates())]
    found = [ask(each) for each in candidates]
    for each in found:
        if not each.lacks:
            return each
    # The one that lacks least is the one to complete.
    raise Unfit(max(found, key=lambda each: (bool(each.tensorflow), bool(each.horovod))).lacks)


def _candidates() -> Iterator[str]:
    """The Pythons that a person may mean: the active one's, then our own."""
    for name in ("python", "python3"):
        path = shutil.which(name)
        if path:
            yield path
    yield sys.executable


def ask(path: str) -> Interpreter:
    """What an interpreter has."""
    whole = os.path.abspath(shutil.which(path) or path)
    try:
        done = subprocess.run(
            [whole, "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            stdin=subprocess.DEVNULL,
        )
        told = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return Interpreter(path, problem=f"it did not answer within {TIME_LIMIT} s")
    except OSError as error:
        return Interpreter(path, problem=error.strerror or str(error))
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        return Interpreter(path, problem=last)
    return Interpreter(
        whole,
        tuple(told["python"]),
        told["tensorflow"],
        told["horovod"],
        told["binding"],
        told["gloo"],
    )
