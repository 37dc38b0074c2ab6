"""Import TensorFlow, Keras and Horovod, and fork one observed process after another.

    python -c BOOTSTRAP FILE_DESCRIPTOR

TensorFlow's runtime must not start here: its threads and its context would be broken in forks.  Requests, and
the exit statuses of forks, are JSON packets on the socket of the file descriptor; `proof.forks` is at its
other end.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

MODULES = (
    "numpy",
    "tensorflow",
    "tensorflow_estimator",
    "tensorflow.python.training.monitored_session",
    "keras.src.mixed_precision.loss_scale_optimizer",
    "horovod.keras",
    "horovod.tensorflow",
    "horovod.tensorflow.keras",
    "trainshift.proving.observed.main",
)
# Functions that AutoGraph converts in nearly every process: a third of its time.
CONVERTED = {
    "DistributedGradientTape",
    "_allreduce",
    "_allreduce_cond",
    "_executing_eagerly",
    "_make_broadcast_group_fn",
    "_make_subgraph",
    "_normalize_name",
    "_process_set_size",
    "allgather",
    "allreduce",
    "allreduce_grads",
    "broadcast",
    "broadcast_variables",
    "compress",
    "decompress",
    "gradient",
    "impl",
    "included",
    "predict_function",
    "rank",
    "rocm_built",
    "size",
    "test_function",
    "train_function",
    "wrapper",
}
# The module that defines it.
CONVERTING = (
    "horovod.common.",
    "horovod.tensorflow",
    "keras.src.engine.training",
    "trainshift.proving.observed.",
)
# If this is set, it names the folder of the package that observes in place of ours.
PACKAGE = "TRAINSHIFT_PROOF_PACKAGE"
LARGEST_PACKET = 1 << 20
# The interval at which running processes are polled for their end.
INTERVAL = 0.02
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Import, and fork on request until the end; a forked process continues with its script."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    given = {**os.environ}
    for module in MODULES:
        with suppress(ModuleNotFoundError):  # One line has no Estimators, the other no legacy optimizers.
            importlib.import_module(module)
    convert()
    set_by_imports = dict(os.environ.items() - given.items())
    # Permanent objects are frozen: otherwise collecting them takes half a second at the end of each
    # process.
    gc.collect()
    gc.freeze()
    tell(channel, ready=True)
    request = serve(channel)
    if request is not None:
        request["environment"].update(set_by_imports)
        become(**request)
        if PACKAGE in os.environ:
            observe_by(os.environ.pop(PACKAGE))
        importlib.import_module("trainshift.proving.observed.main").main()


def convert() -> None:
    """Make AutoGraph convert the functions that it would otherwise convert in each forked process."""
    convert_one = importlib.import_module("tensorflow.python.autograph.impl.api")._convert_actual
    converter = importlib.import_module("tensorflow.python.autograph.core.converter")
    found = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
    for function in found:
        if not str(function.__module__).startswith(CONVERTING):
            continue
        for code in codes(function.__code__):
            if code.co_name in CONVERTED:
                cells = tuple(CellType() for _ in code.co_freevars)
                same = FunctionType(code, function.__globals__, closure=cells)
                for requested in {False, code is not function.__code__}:
                    options = converter.ConversionOptions(True, requested, optional_features=None)
                    convert_one(same, converter.ProgramContext(options))


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of its inner functions."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes(each)


def serve(channel: socket.socket) -> dict[str, Any] | None:
    """Fork requested processes and report ended ones; return a forked process's request.

    Returns None when the other end is closed; all running forks are then ended.
    """
    running: set[int] = set()
    while True:
        if select.select([channel], [], [], INTERVAL if running else None)[0]:
            packet = channel.recv(LARGEST_PACKET)
            if not packet:
                for pid in running:
                    end_group(pid)
                return None
            if error := started():
                tell(channel, error=error)
                continue
            child = os.fork()
            if not child:
                channel.close()
                request: dict[str, Any] = json.loads(packet)
                return request
            running.add(child)
            tell(channel, pid=child)
        for pid in [*running]:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                # Until it is waited for, no other process can get its number.
                end_group(pid)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                running.remove(pid)
                tell(channel, pid=pid, status=status)


def end_group(pid: int) -> None:
    """End a forked process, and its children."""
    os.kill(pid, signal.SIGKILL)
    # A process that was only just forked leads no group yet.
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def tell(channel: socket.socket, **answer: int | str) -> None:
    """Send one answer."""
    channel.send(json.dumps(answer).encode())


def started() -> str:
    """The parts of a runtime started in this process that would not survive a fork; empty if none."""
    if sys.modules["tensorflow.python.eager.context"]._context is not None:
        return "TensorFlow's eager context exists where all shall be forked from"
    threads = len(os.listdir("/proc/self/task"))
    return f"{threads} threads run where all shall be forked from" if threads > 1 else ""


def become(arguments: list[str], directory: str, environment: dict[str, str], outputs: list[str]) -> None:
    """Make this forked process equal to a new one with these arguments, streams and other settings."""
    os.setsid()
    for number, path in enumerate((os.devnull, *outputs)):
        file = os.open(path, os.O_RDWR | os.O_CREAT | (os.O_TRUNC if number else 0), 0o644)
        os.dup2(file, number)
        os.close(file)
    # It must not outlive the process that reports its end.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    sys.path.remove(str(Path(__file__).parents[1]))
    tempfile.tempdir = None


def observe_by(package: str) -> None:
    """Forget our imported package, and import it from a folder."""
    for name in [name for name in sys.modules if name.startswith("trainshift.")]:
        del sys.modules[name]
    sys.modules["trainshift"].__path__ = [package]
