"""Run code under the observer: the original in one process, its conversion in two of Horovod.

Each process has a directory of its own, with a working directory for its code, a home and a place for
temporary files, so that the outputs of different processes can be distinguished.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from proof.code import Code, code_of
from proof.forks import forked
from proof.originals import kept
from trainshift.proving.judging.data import judge_data
from trainshift.proving.judging.judge import judge
from trainshift.proving.judging.runs import fingerprint, read_run
from trainshift.proving.launch import Launch, Started, fresh, wait
from trainshift.proving.observed.data import VARIABLE as DATA
from trainshift.proving.observed.record import Run
from trainshift.proving.observed.rendezvous import rendezvous

__all__ = ["Code", "Run", "judge", "prove", "prove_data", "run_converted", "run_original"]

RANKS = 2
# Only this ends a stall: the stall check of Horovod 0.28.1 had no effect on Gloo.
TIME_LIMIT = 120.0
# A folder that a process may write to.
TOPS = ("work", "home", "tmp")

ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    # In milliseconds; with a poll each millisecond, a waiting rank takes a tenth of a processor.
    "HOROVOD_CYCLE_TIME": "5",
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "TF_NUM_INTRAOP_THREADS": "1",
}


class Place(NamedTuple):
    """A Python for running code, and its environment."""

    python: str = sys.executable
    variables: Mapping[str, str] = {}


HERE = Place()


def run_original(
    script: Path | str | Code,
    arguments: Sequence[str] = (),
    *,
    time_limit: float = TIME_LIMIT,
    single: bool = False,
    data: bool = False,
    place: Place = HERE,
) -> Run:
    """Run a script (its path, or its text) or code as one process; Horovod, if it uses it, has size 1.

    A `single` run is a new Python process; any other is forked from one that has imported TensorFlow. With
    `data`, it keeps its own seeds, and its data are recorded.  A successful result is cached and not run
    again while nothing has changed, except at another `place`.
    """

    code = code_of(script)
    environment = {**place.variables, **({DATA: "1"} if data else {})}

    def run() -> Run:
        with tempfile.TemporaryDirectory(prefix="trainshift-proof-") as directory:
            process = Process(
                Path(directory),
                code,
                arguments,
                rank=0,
                environment=environment,
                single=single,
                python=place.python,
            )
            wait([process.process], time_limit)
            return process.result()

    if place != HERE:
        return run()
    return kept(code, arguments, single=single, data=data, run=run)


def run_converted(
    script: Path | str | Code,
    arguments: Sequence[str] = (),
    *,
    ranks: int = RANKS,
    time_limit: float = TIME_LIMIT,
    single: bool = False,
    data: bool = False,
    place: Place = HERE,
) -> tuple[Run, ...]:
    """Run a script (its path, or its text) or code as Gloo processes of Horovod; one Run per rank.

    `single`, `data` and `place` are as for `run_original`.
    """
    with (
        rendezvous(ranks) as environments,
        tempfile.TemporaryDirectory(prefix="trainshift-proof-") as directory,
    ):
        processes = [
            Process(
                Path(directory) / f"rank{rank}",
                code_of(script),
                arguments,
                rank=rank,
                environment={**environment, **place.variables, **({DATA: "1"} if data else {})},
                single=single,
                python=place.python,
            )
            for rank, environment in enumerate(environments)
        ]
        wait([process.process for process in processes], time_limit)
        return tuple(process.result() for process in processes)


def prove(
    before: Path | str | Code, after: Path | str | Code, arguments: Sequence[str] = (), place: Place = HERE
) -> list[str]:
    """Run a script, or code, and its conversion, and return the faults of the conversion."""
    with ThreadPoolExecutor() as pool:
        original = pool.submit(run_original, before, arguments, place=place)
        ranks = pool.submit(run_converted, after, arguments, place=place)
        return judge(original.result(), ranks.result())


def prove_data(
    before: Path | str | Code, after: Path | str | Code, arguments: Sequence[str] = (), *, ranks: int
) -> list[str]:
    """The faults of a conversion that divides its data: those of `prove`, and those in each rank's data."""
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
        python: str,
    ) -> None:
        self.directory = directory
        for name in (*TOPS, "record"):
            (directory / name).mkdir(parents=True)
        self.given = {f"work/{path}": fingerprint(content) for path, content in code.files.items()}
        for name, content in code.files.items():
            path = directory / "work" / name
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
        self.process: Started = fresh(launch, python) if single else forked(launch, rank, python)

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
        """The result of the process; call this after its end."""
        status = self.process.poll()
        assert status is not None
        return read_run(self.directory, status, self.given, TOPS)
