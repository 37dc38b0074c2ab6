"""Starts observed processes: each as a Python of its own, or forked from one that has all imported."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol

from proof.zygote import LARGEST_PACKET

# How long importing everything may take.
IMPORT_LIMIT = 120.0

# The zygotes of this process, by rank.
_ZYGOTES: dict[int, Zygote] = {}
_STARTING = Lock()


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


def forked(launch: Launch, rank: int) -> Started:
    """Fork it from the zygote of its rank, which is started where there is none.

    Each rank has one of its own, since forks of one have strings hashed, and so sets ordered, alike.
    """
    with _STARTING:
        zygote = _ZYGOTES.get(rank)
        if zygote is None or not zygote.alive():
            zygote = _ZYGOTES[rank] = Zygote(launch.environment)
    return zygote.fork(launch)


def end(process: Started) -> None:
    """End a process and what it started; its log says where it was."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGUSR1)
            time.sleep(0.5)
            os.killpg(process.pid, signal.SIGKILL)
        while process.poll() is None:
            time.sleep(0.01)


class Zygote:
    """One process that has all imported, as seen from outside; it ends with this one."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        own = {name: value for name, value in environment.items() if not name.startswith("HOROVOD_")}
        self.lock = Lock()
        self.ended: dict[int, int] = {}
        self.log = tempfile.TemporaryFile()  # noqa: SIM115
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        atexit.register(self.close)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", "from proof.zygote import main; main()", str(theirs.fileno())],
                env=own | {"HOME": str(Path.home()), "TMPDIR": tempfile.gettempdir()},
                stdin=subprocess.DEVNULL,
                stdout=self.log,
                stderr=self.log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def alive(self) -> bool:
        """Whether it can still fork."""
        return self.process.poll() is None

    def fork(self, launch: Launch) -> Forked:
        """Have it fork a process."""
        request = {
            "arguments": [*launch.arguments],
            "directory": str(launch.directory),
            "environment": {**launch.environment},
            "outputs": [str(launch.stdout), str(launch.stderr)],
        }
        with self.lock:
            self.channel.settimeout(IMPORT_LIMIT)
            try:
                with suppress(ConnectionError):
                    self.channel.send(json.dumps(request).encode())
                while True:
                    answer = self._receive()
                    if answer.get("error"):
                        raise RuntimeError(answer["error"])
                    if "status" not in answer:
                        self.ended.pop(answer["pid"], None)
                        return Forked(self, answer["pid"])
            except TimeoutError:
                self.process.kill()
                raise

    def status(self, pid: int) -> int | None:
        """How a forked process has ended; None while it runs."""
        with self.lock:
            self.channel.settimeout(0)
            with suppress(BlockingIOError):
                while pid not in self.ended:
                    self._receive()
            return self.ended.get(pid)

    def _receive(self) -> dict[str, Any]:
        """The next packet; how a process has ended is kept."""
        packet = b""
        with suppress(ConnectionError):
            packet = self.channel.recv(LARGEST_PACKET)
        if not packet:
            self.process.wait()
            self.log.seek(0)
            log = self.log.read().decode(errors="replace")
            raise RuntimeError(f"what all is forked from has ended with {self.process.returncode}:\n{log}")
        answer: dict[str, Any] = json.loads(packet)
        if "status" in answer:
            self.ended[answer["pid"]] = answer["status"]
        return answer

    def close(self) -> None:
        """End it, and all that it has forked."""
        self.channel.close()
        self.process.wait()


class Forked:
    """A process that a zygote has forked."""

    def __init__(self, zygote: Zygote, pid: int) -> None:
        self.zygote = zygote
        self.pid = pid

    def poll(self) -> int | None:
        """Its exit status, negative if a signal ended it; None while it runs."""
        return self.zygote.status(self.pid)
