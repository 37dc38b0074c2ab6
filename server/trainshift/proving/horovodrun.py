"""Horovod's launcher, which starts ranks on other hosts, or if Horovod was built without Gloo."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from trainshift.proving.interpreter import Interpreter, Unfit
from trainshift.proving.launch import Started, bootstrap

# The launcher's output, beside the directories of the ranks.
LOG = "launcher.txt"
# The part of the output to repeat if no rank starts.
MOST_LINES = 12
# Seconds for the launcher to end its processes, here and on other hosts.
GRACE = 3.0
# A line without information: a rule, or a line of a traceback.
_EMPTY = re.compile(r"[-=\s]*|\s*Traceback \(most recent call last\):|\s*File \".*|\s{4}.*")


def hosts_of(hosts: str, ranks: int) -> list[str]:
    """The host of each rank, for `HOST:SLOTS,...`; raises Unfit if there are too few slots.

    Without hosts, all are here: the empty name.
    """
    if not hosts:
        return [""] * ranks
    found: list[str] = []
    for each in hosts.split(","):
        host, _, slots = each.strip().rpartition(":")
        if not host or not slots.isdecimal():
            raise Unfit(f"--hosts is HOST:SLOTS,..., as in host1:2,host2:2; it is {hosts!r}.")
        found += [host] * int(slots)
    if len(found) < ranks:
        slots = f"{len(found)} slot{'s' * (len(found) != 1)}"
        raise Unfit(f"--hosts {hosts} has {slots} for {ranks} ranks: name more hosts, or give a smaller -np.")
    return found[:ranks]


def launched(
    interpreter: Interpreter,
    arguments: Sequence[str],
    ranks: int,
    hosts: str,
    folder: Path,
    environment: Mapping[str, str],
) -> Started:
    """All ranks of a program, started by `horovodrun`; the folder has to be the same on all hosts."""
    beside = os.path.join(os.path.dirname(interpreter.path), "horovodrun")
    launcher = beside if os.path.exists(beside) else shutil.which("horovodrun")
    if not launcher:
        raise Unfit("horovodrun was not found beside that Python; install Horovod there.")
    command = [launcher, "-np", str(ranks)]
    command += ["-H", hosts] if hosts else []
    command += [] if interpreter.has_gloo else ["--mpi"]
    code = bootstrap("trainshift.proving.observed.main")
    command += [interpreter.path, "-c", code, str(folder), "-", *arguments]
    with (folder / LOG).open("wb") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(environment),
            start_new_session=True,
        )


def take_leave(launcher: Started) -> None:
    """Have the launcher end its ranks and remove its files, before it is killed."""
    limit = time.monotonic() + GRACE
    with suppress(ProcessLookupError, PermissionError):
        if launcher.poll() is None:
            os.killpg(launcher.pid, signal.SIGTERM)
        # MPI's own launcher is a process of its group, and outlives it.
        while time.monotonic() < limit:
            launcher.poll()
            os.killpg(launcher.pid, 0)
            time.sleep(0.05)


def tell_launcher(log: Path, directories: Sequence[Path]) -> None:
    """Copy the launcher's output into the log of each rank that recorded nothing.

    Raises Unfit if it started no rank: then its output is the only information.
    """
    records = [directory / "record" for directory in directories]
    if not any((record / "stdout.txt").exists() for record in records):
        raise Unfit(f"Horovod's launcher started no rank. It printed:\n{indented(log)}")
    for record in records:
        if not (record / "record.json").exists():
            with (record / "noise.txt").open("ab") as file:
                file.write(log.read_bytes())


def indented(log: Path) -> str:
    """The last lines of a log that say something."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    said = [line.rstrip() for line in lines if not _EMPTY.fullmatch(line)]
    return "\n".join(f"  {line}" for line in said[-MOST_LINES:]) or "  nothing"
