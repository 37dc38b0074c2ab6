"""Runs one script or module unmodified and writes down what TensorFlow and Horovod did in it.

    python -c BOOTSTRAP DIRECTORY RANK (SCRIPT | -m MODULE) [ARGUMENT...]

The hooks are laid before the script starts (`trainshift.proving.observed.observer`).
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import runpy
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainshift.proving.observed.observer import Observer, install
from trainshift.proving.observed.surroundings import route_logs, set_seeds, shift_seeds, show_warning


def starter() -> tuple[Callable[[], object], str]:
    """What runs the command in `sys.argv` as Python does, and the folder where it looks for modules."""
    if sys.argv[0] == "-m":
        module = sys.argv.pop(1)
        return lambda: runpy.run_module(module, run_name="__main__", alter_sys=True), os.getcwd()
    script = Path(sys.argv[0]).absolute()
    return lambda: runpy.run_path(str(script), run_name="__main__"), str(script.parent)


def main() -> None:
    """Run the script or module named on the command line; the exit status is its own."""
    directory, rank = Path(sys.argv[1]), int(sys.argv[2])
    sys.stderr = noise = (directory / "noise.txt").open("w", encoding="utf-8", buffering=1)
    faulthandler.register(signal.SIGUSR1, noise)
    tf: Any = importlib.import_module("tensorflow")
    np: Any = importlib.import_module("numpy")
    tf.get_logger()
    observer = Observer(tf, np)
    install(observer)
    set_seeds(np, rank)
    if not observer.data:
        shift_seeds(tf, np, rank)
    warnings.showwarning = show_warning(noise)
    sys.stderr = (directory / "stderr.txt").open("w", encoding="utf-8", buffering=1)
    route_logs(noise, sys.stderr)
    sys.argv = sys.argv[3:]
    run, folder = starter()
    sys.path[0] = folder
    observer.hook_files(directory.parent)

    status: Any = 0
    try:
        run()
    except SystemExit as stop:
        status = stop.code
        if isinstance(status, str):
            observer.record.error = status
    except BaseException:
        observer.record.error = traceback.format_exc()
        status = 1
    with suppress(Exception):
        sys.stdout.flush()
    observer.finish(directory)
    sys.exit(1 if isinstance(status, str) else status)
