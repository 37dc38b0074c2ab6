"""Runs code under the observer: the original in one process, its conversion in two of Horovod.

Each process has a directory of its own, with a working directory that holds its code, a home and a place
for temporary files in it, so that what one process writes can be told from what the other one writes.
"""

from __future__ import annotations

import importlib
import os
import re
import socket
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from proof.code import Code, code_of
from proof.data import VARIABLE as DATA
from proof.forks import forked
from proof.judge import judge
from proof.judge_data import judge_data
from proof.launch import Launch, end, fresh
from proof.originals import kept
from proof.record import Record, Run

__all__ = ["Code", "Run", "judge", "prove", "prove_data", "run_converted", "run_original"]

RANKS = 2
# Only this ends a stall: the stall check of Horovod 0.28.1 was seen to do nothing on Gloo.
TIME_LIMIT = 120.0
# How long a process may live on after another one has failed.
GRACE = 10.0

ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": str(Path(__file__).parent.parent),
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "TF_NUM_INTRAOP_THREADS": "1",
}

# Lines that TensorFlow, XLA and Horovod log on the native streams, where `tf.print` writes too.
NATIVE_LOG = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] .*"
    r"|[IWEF]\d{4} .*"
    r"|WARNING: All log messages before absl.*"
    r"|\[\d{4}-\d\d-\d\d .*"
)

# TensorFlow's converted functions and what a run leaves besides the script's own files.
NOT_OUTPUT = re.compile(r"(^|/)(__autograph_generated_file[^/]*|__pycache__/.*|[^/]*\.pyc)$")


def run_original(
    script: Path | str | Code,
    arguments: Sequence[str] = (),
    *,
    time_limit: float = TIME_LIMIT,
    single: bool = False,
    data: bool = False,
) -> Run:
    """Run a script (its path, or its text) or code as one process; Horovod, if it uses it, has size 1.

    A `single` run is a Python of its own; any other is forked from one that has TensorFlow imported.
    With `data` it has its own seeds, and its data are noted.  One that ended well is kept, and not run
    again while nothing has changed.
    """

    code = code_of(script)
    environment = {DATA: "1"} if data else {}

    def run() -> Run:
        with tempfile.TemporaryDirectory(prefix="trainshift-proof-") as directory:
            process = Process(
                Path(directory), code, arguments, rank=0, environment=environment, single=single
            )
            wait([process], time_limit)
            return process.result()

    return kept(code, arguments, single=single, data=data, run=run)


def run_converted(
    script: Path | str | Code,
    arguments: Sequence[str] = (),
    *,
    ranks: int = RANKS,
    time_limit: float = TIME_LIMIT,
    single: bool = False,
    data: bool = False,
) -> tuple[Run, ...]:
    """Run a script (its path, or its text) or code as Gloo processes of Horovod; one Run per rank.

    `single` and `data` are what they are for `run_original`.
    """
    http_server: Any = importlib.import_module("horovod.runner.http.http_server")
    hosts: Any = importlib.import_module("horovod.runner.common.util.hosts")
    gloo_run: Any = importlib.import_module("horovod.runner.gloo_run")

    loopback = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
    plan = hosts.get_host_assignments(hosts.parse_hosts(f"localhost:{ranks}"), ranks)
    server = http_server.RendezvousServer()
    port = server.start()
    server.init(plan)
    shared = gloo_run.create_run_env_vars("127.0.0.1", [loopback], str(port))
    try:
        with tempfile.TemporaryDirectory(prefix="trainshift-proof-") as directory:
            processes = [
                Process(
                    Path(directory) / f"rank{slot.rank}",
                    code_of(script),
                    arguments,
                    rank=slot.rank,
                    environment={
                        **shared,
                        **gloo_run.create_slot_env_vars(slot),
                        **({DATA: "1"} if data else {}),
                    },
                    single=single,
                )
                for slot in plan
            ]
            wait(processes, time_limit)
            return tuple(process.result() for process in processes)
    finally:
        server.stop()


def prove(before: Path | str | Code, after: Path | str | Code, arguments: Sequence[str] = ()) -> list[str]:
    """Run a script, or code, and its conversion, and return the faults of the conversion."""
    with ThreadPoolExecutor() as pool:
        original = pool.submit(run_original, before, arguments)
        ranks = pool.submit(run_converted, after, arguments)
        return judge(original.result(), ranks.result())


def prove_data(
    before: Path | str | Code, after: Path | str | Code, arguments: Sequence[str] = (), *, ranks: int
) -> list[str]:
    """The faults of a conversion that divides its data: those of `prove`, and of what each rank sees."""
    with ThreadPoolExecutor() as pool:
        original = pool.submit(run_original, before, arguments, data=True)
        runs = pool.submit(run_converted, after, arguments, ranks=ranks, data=True)
        return judge(original.result(), runs.result()) + judge_data(original.result(), runs.result())


class Process:
    """Running code, with its own directory."""

    def __init__(
        self,
        directory: Path,
        code: Code,
        arguments: Sequence[str],
        *,
        rank: int,
        environment: dict[str, str],
        single: bool,
    ) -> None:
        self.directory = directory
        for name in ("work", "home", "tmp", "record"):
            (directory / name).mkdir(parents=True)
        self.given = {directory / "work" / path: content for path, content in code.files.items()}
        for path, content in self.given.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        record = directory / "record"
        launch = Launch(
            [str(record), str(rank), *code.command, *arguments],
            directory / "work",
            self.environment() | environment,
            record / "stdout.txt",
            record / "native.txt",
        )
        self.process = fresh(launch) if single else forked(launch, rank)

    def environment(self) -> dict[str, str]:
        """The environment of the process: its own home, but the user's caches."""
        home = Path.home()
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HOROVOD_", "PYTHON", "TF_"))
        }
        return {
            "KERAS_HOME": str(home / ".keras"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "XDG_CONFIG_HOME": str(home / ".config"),
            **kept,
            **ENVIRONMENT,
            "HOME": str(self.directory / "home"),
            "TMPDIR": str(self.directory / "tmp"),
        }

    def result(self) -> Run:
        """What the process left; to be called once it has ended."""
        record = self.directory / "record"
        saved = (record / "record.json").exists()
        values: dict[str, Any] = {}
        if saved:
            numpy: Any = importlib.import_module("numpy")
            with numpy.load(record / "values.npz") as archive:
                values = dict(archive)
        return Run(
            exit_code=self.exit_code,
            stdout=without_log(self.text("stdout.txt")),
            stderr=self.text("stderr.txt"),
            native=without_log(self.text("native.txt")),
            log=self.text("noise.txt") + self.text("native.txt"),
            files=tuple(self.files()),
            record=Record.load(record / "record.json") if saved else None,
            values=values,
        )

    @property
    def exit_code(self) -> int:
        """How it has ended."""
        status = self.process.poll()
        assert status is not None
        return status

    def text(self, name: str) -> str:
        """The text of one file of the record; empty if there is none."""
        path = self.directory / "record" / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def files(self) -> list[str]:
        """The files that the process left, relative to its directory; its code only where it was changed."""
        found = []
        for top in ("work", "home", "tmp"):
            for path in sorted((self.directory / top).rglob("*")):
                name = path.relative_to(self.directory).as_posix()
                if not path.is_file() or NOT_OUTPUT.search(name):
                    continue
                if path not in self.given or path.read_bytes() != self.given[path]:
                    found.append(name)
        return found


def without_log(text: str) -> str:
    """The text without the lines that TensorFlow, XLA and Horovod logged."""
    return "".join(line for line in text.splitlines(keepends=True) if not NATIVE_LOG.match(line))


def wait(processes: Sequence[Process], time_limit: float) -> None:
    """Wait until all processes have ended; kill them at the limit, or soon after one has failed."""
    limit = time.monotonic() + time_limit
    failed = False
    try:
        while any(process.process.poll() is None for process in processes) and time.monotonic() < limit:
            if not failed and any(process.process.poll() for process in processes):
                failed = True
                limit = min(limit, time.monotonic() + GRACE)
            time.sleep(0.05)
    finally:
        for process in processes:
            end(process.process)
