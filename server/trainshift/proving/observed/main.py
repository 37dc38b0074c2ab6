"""Run one script or module unmodified, and record its use of TensorFlow and Horovod.

    python -c BOOTSTRAP DIRECTORY RANK (SCRIPT | -m MODULE) [ARGUMENT...]

The hooks are installed before the script starts (`trainshift.proving.observed.observer`).  If RANK is ``-``,
the process was started by Horovod's launcher, and DIRECTORY contains one for each rank.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import importlib
import json
import os
import runpy
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainshift.proving.observed.details import Details, Told
from trainshift.proving.observed.kerases import follow_flag
from trainshift.proving.observed.loops import Loops
from trainshift.proving.observed.observer import Observer, install
from trainshift.proving.observed.stopping import Stopped, Stopping
from trainshift.proving.observed.surroundings import route_logs, set_seeds, shift_seeds, show_warning

# Set if a person requested the observations: as JSON, the step to stop after (`limit`, 0 for never), and
# the folders of the script (`roots`).
SETTINGS = "TRAINSHIFT_PROVE"
PR_SET_PDEATHSIG = 1
RANK_VARIABLES = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
# The process of a script is observed.
_EXIT = os._exit


def starter() -> tuple[Callable[[], object], str]:
    """The function that runs the command in `sys.argv` like Python does, and the folder of its modules."""
    if sys.argv[0] == "-m":
        module = sys.argv.pop(1)
        return lambda: runpy.run_module(module, run_name="__main__", alter_sys=True), os.getcwd()
    script = Path(sys.argv[0]).absolute()
    return lambda: runpy.run_path(str(script), run_name="__main__"), str(script.parent)


def main() -> None:
    """Run the script or module named on the command line; the exit status is its own."""
    directory, rank = place()
    if SETTINGS in os.environ:
        # It must not outlive its observer.
        with suppress(Exception):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.stderr = noise = (directory / "noise.txt").open("w", encoding="utf-8", buffering=1)
    faulthandler.register(signal.SIGUSR1, noise)
    follow_flag(sys.argv[3:])
    tf: Any = importlib.import_module("tensorflow")
    np: Any = importlib.import_module("numpy")
    tf.get_logger()
    observer = Observer(tf, np)
    install(observer)
    set_seeds(np, rank)
    if not observer.data or observer.data.rows_only:
        shift_seeds(tf, np, rank)
    warnings.showwarning = show_warning(noise)
    sys.stderr = (directory / "stderr.txt").open("w", encoding="utf-8", buffering=1)
    route_logs(noise, sys.stderr)
    if SETTINGS in os.environ:
        look_closer(observer, directory, json.loads(os.environ.pop(SETTINGS)))
    sys.argv = sys.argv[3:]
    run, folder = starter()
    sys.path[0] = folder
    observer.hook_files(directory.parent)

    status: Any = 0
    try:
        run()
        observer.record.finished = True
    except SystemExit as stop:
        status = stop.code
        if isinstance(status, str):
            observer.record.error = status
        observer.record.finished = not status
    except Stopped:
        pass
    except BaseException:
        observer.record.error = traceback.format_exc()
        status = 1
    with suppress(Exception):
        sys.stdout.flush()
    if status and observer.stopping and observer.stopping.is_due:
        observer.record.error_after = observer.record.error or f"SystemExit: {status}"
        observer.record.error, status = "", 0
    observer.finish(directory)
    leave(status)


def leave(status: Any) -> None:
    """End like Python, with the script's exit handlers, but without tearing down the interpreter.

    A thread of TensorFlow or Horovod may be in native code then.  If it returns to Python, the process
    aborts, about once in a thousand processes, and the script is not to blame.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    _EXIT(status & 0xFF if isinstance(status, int) else int(status is not None))


def place() -> tuple[Path, int]:
    """The directory and the rank of this process; moves a process started by a launcher there first."""
    directory, rank = Path(sys.argv[1]), sys.argv[2]
    if rank != "-":
        return directory, int(rank)
    number = int(next(os.environ[name] for name in RANK_VARIABLES if name in os.environ))
    record = directory / f"rank{number}" / "record"
    for stream, name in ((1, "stdout.txt"), (2, "native.txt")):
        file = os.open(record / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, stream)
        os.close(file)
    os.environ["TMPDIR"] = str(record.parent / "tmp")
    os.chdir(record.parent / json.loads(os.environ[SETTINGS])["start"])
    return record, number


def look_closer(observer: Observer, directory: Path, settings: dict[str, Any]) -> None:
    """Record the details for the report, and end the training after some steps."""

    def finish() -> None:
        with suppress(Exception):
            sys.stdout.flush()
        observer.finish(directory)

    roots = [str(directory.parent / name / "") for name in ("work", "here")]
    details = Details(observer.np, roots, directory / "progress")
    observer.details = details
    observer.hook_making()
    observer.hook_setting()
    observer.stopping = Stopping(observer.tf, settings["limit"], finish, observer.kerases)
    Loops(observer.stopping, [os.path.join(root, "") for root in roots])
    sys.stdout, sys.stderr = Told(sys.stdout, details), Told(sys.stderr, details)
    leave = os._exit

    def observed_exit(status: int) -> None:
        observer.record.finished = not status and not (observer.stopping and observer.stopping.is_left)
        finish()
        leave(status)

    os._exit = observed_exit  # type: ignore[assignment]
