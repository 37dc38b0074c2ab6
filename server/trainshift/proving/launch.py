"""Start observed processes, wait for them, and end them with all of their children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

PACKAGE = Path(__file__).parents[1]
# Seconds that a process may continue after another one has failed.
GRACE = 10.0


class Launch(NamedTuple):
    """A process to start: arguments of the observer, directory, variables, output files."""

    arguments: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    stdout: Path
    stderr: Path


class Started(Protocol):
    """A started process, which leads a session of its own."""

    @property
    def pid(self) -> int:
        """Its number."""

    def poll(self) -> int | None:
        """The exit status, negative if a signal ended it; None while it runs."""


def bootstrap(module: str) -> str:
    """The code for `python -c` that runs `main` of one of our modules next to the Python's own packages."""
    return (
        "import sys, types, importlib; ours = types.ModuleType('trainshift'); "
        f"ours.__path__ = [{str(PACKAGE)!r}]; sys.modules['trainshift'] = ours; "
        f"importlib.import_module({module!r}).main()"
    )


def fresh(launch: Launch, python: str = sys.executable) -> Started:
    """Start a new interpreter."""
    with launch.stdout.open("wb") as stdout, launch.stderr.open("wb") as stderr:
        return subprocess.Popen(
            [python, "-c", bootstrap("trainshift.proving.observed.main"), *launch.arguments],
            cwd=launch.directory,
            env=launch.environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )


def wait(processes: Sequence[Started], time_limit: float) -> None:
    """Wait until all processes have ended; kill them at the limit, or soon after one has failed."""
    limit = time.monotonic() + time_limit
    failed = False
    try:
        while any(process.poll() is None for process in processes) and time.monotonic() < limit:
            if not failed and any(process.poll() for process in processes):
                failed = True
                limit = min(limit, time.monotonic() + GRACE)
            time.sleep(0.05)
    finally:
        end(processes)


def end(processes: Sequence[Started]) -> None:
    """End processes and their children; their logs show where they were."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGUSR1)
    if running:
        time.sleep(0.5)
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    for process in running:
        while process.poll() is None:
            time.sleep(0.01)
