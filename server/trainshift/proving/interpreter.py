"""Find an interpreter that can run a proof, and the commands that install its missing parts."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from trainshift.host.pythons.recipe import (
    BUILDS,
    HOROVOD,
    LINES,
    TensorFlows,
    build_horovod,
    build_tensorflow,
    line_for,
    numbered,
    release,
)

TIME_LIMIT = 60
_SUPPORTED = f"{numbered(LINES[0].first)} to {numbered(LINES[-1].last)}"
_PYTHONS = f"{numbered(LINES[0].pythons[0])} to {numbered(LINES[-1].pythons[1])}"

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
    """The reason why a proof cannot be run, and the remedy, on lines of their own."""


@dataclass(frozen=True)
class Interpreter:
    """A Python: its path and its packages; versions are empty for missing ones."""

    path: str
    python: tuple[int, int, int] = (0, 0, 0)
    tensorflow: str = ""
    horovod: str = ""
    has_binding: bool = False
    has_gloo: bool = False
    problem: str = ""

    @property
    def lacks(self) -> str:
        """The missing parts, and the commands that help; empty if a proof can be run."""
        name = self.path
        if self.problem:
            return f"{name} cannot be run: {self.problem}"
        version = ".".join(map(str, self.python[:2]))
        line = line_for(self.python)
        if not self.tensorflow and line is None:
            return (
                f"{name} is Python {version}; TensorFlow {_SUPPORTED} needs Python {_PYTHONS}.\n"
                "Name another one: trainshift prove --python PYTHON ..."
            )
        if not self.tensorflow and line is not None:
            return f"{name} (Python {version}) has no TensorFlow. Install it there:\n{_install(name, line)}"
        if release(self.tensorflow) < LINES[0].first:
            return (
                f"{name} has TensorFlow {self.tensorflow}; Horovod {HOROVOD} runs on TensorFlow {_SUPPORTED}."
                f" Install one of these there:\n{_install(name, line or LINES[0])}"
            )
        if not self.horovod:
            commands = _horovod(name, self.tensorflow)
            return f"{name} (Python {version}) has no Horovod. Install it there:\n{commands}"
        if not self.has_binding:
            return (
                f"{name} has a Horovod {self.horovod} that was built without TensorFlow. "
                f"Build it again:\n{_horovod(name, self.tensorflow)}"
            )
        return ""

    @property
    def doubt(self) -> str:
        """A doubt about the versions; empty if they were tested with Horovod."""
        if release(self.tensorflow) <= LINES[-1].last:
            return ""
        return f"{self.path} has TensorFlow {self.tensorflow}; Horovod was tested with {_SUPPORTED}."


def _install(path: str, line: TensorFlows) -> str:
    """The commands that install a TensorFlow, and Horovod for it."""
    with_gpus = build_tensorflow(path, line, gpu=True).partition(" install ")[2]
    return (
        f"  {build_tensorflow(path, line, gpu=False)}\n  (with GPUs: {with_gpus})\n"
        f"{_horovod(path, line.choice)}"
    )


def _horovod(path: str, tensorflow: str) -> str:
    """The lines that build Horovod for a TensorFlow."""
    commands = "\n".join(f"  {command}" for command in build_horovod(path, tensorflow, BUILDS[0]))
    return f"{commands}\n  (with GPUs or MPI: trainshift doctor --python {shlex.quote(path)})"


def find(named: str) -> Interpreter:
    """Return the named interpreter, or the first that has everything; raises Unfit with the commands to
    install it.
    """
    candidates = [named] if named else [*dict.fromkeys(_candidates())]
    found = [ask(each) for each in candidates]
    for each in found:
        if not each.lacks:
            return each
    # The line that lacks the fewest packages is the one to complete.
    raise Unfit(max(found, key=lambda each: (bool(each.tensorflow), bool(each.horovod))).lacks)


def _candidates() -> Iterator[str]:
    """The Pythons that the user may mean: the active one's, then Trainshift's own."""
    for name in ("python", "python3"):
        path = shutil.which(name)
        if path:
            yield path
    yield sys.executable


def ask(path: str) -> Interpreter:
    """Inspect an interpreter."""
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
