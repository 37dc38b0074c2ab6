"""Starts observed processes, and ends them."""

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


class Launch(NamedTuple):
    """What a process is started with: arguments of the observer, directory, variables, output files."""

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
        """Its exit status, negative if a signal ended it; None while it runs."""


def fresh(launch: Launch) -> Started:
    """Start a new interpreter."""
    with launch.stdout.open("wb") as stdout, launch.stderr.open("wb") as stderr:
        return subprocess.Popen(
            [sys.executable, "-c", "from proof.observer import main; main()", *launch.arguments],
            cwd=launch.directory,
            env=launch.environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )


def end(process: Started) -> None:
    """End a process and what it started; its log says where it was."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGUSR1)
            time.sleep(0.5)
            os.killpg(process.pid, signal.SIGKILL)
        while process.poll() is None:
            time.sleep(0.01)
