"""Fork observed processes from zygotes, which have already done the slow imports."""

from __future__ import annotations

import atexit
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from proof.zygote import LARGEST_PACKET
from trainshift.proving.launch import Launch, bootstrap
from trainshift.proving.observed.kerases import FLAG

TESTS = str(Path(__file__).parents[1])
RANKS = 2
# How long importing everything may take.
IMPORT_LIMIT = 120.0

# The zygotes of this process, by rank, Python and preloaded modules.
_ZYGOTES: dict[tuple[int, str, str], Zygote] = {}
_STARTING = Lock()


def forked(launch: Launch, rank: int, python: str = sys.executable) -> Forked:
    """Fork a process from the zygote of its rank and Python; missing zygotes are started.

    Each rank has its own zygote, because forks of one have the same string hashes, and so the same order of
    sets.
    """
    flag = launch.environment.get(FLAG, "")
    with _STARTING:
        for each in range(max(RANKS, int(launch.environment.get("HOROVOD_SIZE", 1)))):
            if (each, python, flag) not in _ZYGOTES or not _ZYGOTES[each, python, flag].alive():
                _ZYGOTES[each, python, flag] = Zygote(launch.environment, python)
        # One rank would not wait for the other one as long as importing may take.
        for zygote in _ZYGOTES.values():
            zygote.wait_until_ready()
    return _ZYGOTES[rank, python, flag].fork(launch)


class Zygote:
    """A process with all imports done, as seen from outside; it ends with this one."""

    def __init__(self, environment: Mapping[str, str], python: str = sys.executable) -> None:
        own = {name: value for name, value in environment.items() if not name.startswith("HOROVOD_")}
        self.lock = Lock()
        self.ready = False
        self.ended: dict[int, int] = {}
        self.log = tempfile.TemporaryFile()  # noqa: SIM115
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        atexit.register(self.close)
        with theirs:
            self.process = subprocess.Popen(
                [python, "-c", bootstrap("proof.zygote"), str(theirs.fileno())],
                env={"PYTHONPATH": TESTS, **own, "HOME": str(Path.home()), "TMPDIR": tempfile.gettempdir()},
                stdin=subprocess.DEVNULL,
                stdout=self.log,
                stderr=self.log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def alive(self) -> bool:
        """Return whether it can still fork."""
        return self.process.poll() is None

    def wait_until_ready(self) -> None:
        """Wait until it has done all imports."""
        with self.lock:
            while not self.ready:
                self._receive(IMPORT_LIMIT)

    def fork(self, launch: Launch) -> Forked:
        """Make it fork a process."""
        request = {
            "arguments": [*launch.arguments],
            "directory": str(launch.directory),
            "environment": {**launch.environment},
            "outputs": [str(launch.stdout), str(launch.stderr)],
        }
        with self.lock:
            with suppress(ConnectionError):
                self.channel.send(json.dumps(request).encode())
            while True:
                answer = self._receive(IMPORT_LIMIT)
                if answer.get("error"):
                    raise RuntimeError(answer["error"])
                if answer.keys() == {"pid"}:
                    self.ended.pop(answer["pid"], None)
                    return Forked(self, answer["pid"])

    def status(self, pid: int) -> int | None:
        """The exit status of a forked process; None while it runs."""
        with self.lock:
            with suppress(BlockingIOError):
                while pid not in self.ended:
                    self._receive(0)
            return self.ended.get(pid)

    def _receive(self, limit: float) -> dict[str, Any]:
        """The next packet; keeps its news about this zygote and about ended processes."""
        self.channel.settimeout(limit)
        packet = b""
        try:
            packet = self.channel.recv(LARGEST_PACKET)
        except TimeoutError:
            self.process.kill()
            raise TimeoutError(f"what all is forked from said nothing for {limit:.0f} s") from None
        except ConnectionError:
            pass
        if not packet:
            self.process.wait()
            self.log.seek(0)
            log = self.log.read().decode(errors="replace")
            raise RuntimeError(f"what all is forked from has ended with {self.process.returncode}:\n{log}")
        answer: dict[str, Any] = json.loads(packet)
        self.ready |= "ready" in answer
        if "status" in answer:
            self.ended[answer["pid"]] = answer["status"]
        return answer

    def close(self) -> None:
        """End it, and all of its forks."""
        self.channel.close()
        self.process.wait()


class Forked:
    """A process forked from a zygote."""

    def __init__(self, zygote: Zygote, pid: int) -> None:
        self.zygote = zygote
        self.pid = pid

    def poll(self) -> int | None:
        """The exit status, negative if a signal ended it; None while it runs."""
        return self.zygote.status(self.pid)
