"""Prove a program: run it on one process and on several, and have the observations judged (spec.md 10).

There are three runs: the original; the ranks with different seeds, which must not make weights diverge; and
the ranks with the script's own seeds, which often decide the data.  All of them end after a number of steps.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainshift.proving.horovodrun import LOG, hosts_of, launched, take_leave, tell_launcher
from trainshift.proving.interpreter import Interpreter, Unfit
from trainshift.proving.interrupts import Interrupts, interruptible
from trainshift.proving.launch import GRACE, Launch, Started, bootstrap, end, fresh
from trainshift.proving.observed.data import ROWS
from trainshift.proving.observed.data import VARIABLE as DATA
from trainshift.proving.observed.details import THREADS
from trainshift.proving.observed.gpus import REAL
from trainshift.proving.observed.main import SETTINGS
from trainshift.proving.observed.record import Record
from trainshift.proving.project import Copier, Project

TOPS = ("work", "here", "tmp")
# A run counts as waiting if all of its processes together use less processor time than this within the
# window.  Horovod's own polling threads do not count.
IDLE = 0.2
IDLE_LIMIT = 45.0
# With fewer free bytes on the disk, the records of processes are incomplete.
LEAST_SPACE = 64 * 1024
# Marks all processes of a run, in their environment.
MARK = "TRAINSHIFT_PROVE_SCRATCH"

# Says that the output is shown as a terminal; the children do not inherit it.
TERMINAL = "TTY_COMPATIBLE"

Start = Callable[[Launch, str], Started]
"""Starts a process in a Python."""
Tell = Callable[[str, int, int, int], None]
"""Is told the run, the rank, its steps, and how many there are to be."""


@dataclass(frozen=True)
class Request:
    """A request for a proof, with its options.

    `before` is the program on one process, `after` the one on `ranks`; they are equal if it is already
    distributed.  `steps` is 0 to run to the end.  `limit` is the number of seconds allowed without a step.
    `variables` is the environment of the program.
    """

    before: Project
    after: Project
    interpreter: Interpreter
    ranks: int = 2
    steps: int = 20
    keep: str = ""
    hosts: str = ""
    limit: float = 300.0
    gpus: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_converted(self) -> bool:
        """Return whether the ranks run other code than the single process."""
        return self.before != self.after


@dataclass(frozen=True)
class Means:
    """The means of all runs in a proof: a scratch folder, a listener, a launcher, and the interrupts."""

    folder: Path
    tell: Tell
    start: Start
    interrupts: Interrupts


@dataclass
class Run:
    """One run: its name, the directory and exit of each process, and which ended by themselves."""

    name: str
    directories: list[Path]
    given: dict[str, str]
    statuses: list[int]
    stuck: str = ""
    alone: Sequence[int] = ()


def prove(request: Request, tell: Tell, start: Start = fresh) -> dict[str, Any]:
    """Run and judge; returns the result of `judging.main`. Raises Unfit if nothing could be run."""
    hosts = hosts_of(request.hosts, request.ranks)
    with interruptible() as interrupts, scratch(request.keep) as folder:
        means = Means(folder, tell, start, interrupts)
        limit, size = request.steps, request.ranks
        one, several = Copier(request.before, str(folder)), Copier(request.after, str(folder))
        # One process takes as many steps as all ranks together, so that data and rates can be compared.
        runs = [run(request, means, one, "original", 1, limit * size, "1")]
        if not (request.is_converted and has_failed(runs[0])):
            runs.append(run(request, means, several, "ranks", size, limit, ROWS))
        check_space(folder)
        if len(runs) > 1 and not any(runs[-1].statuses) and not runs[-1].stuck:
            runs.append(run(request, means, several, "data", size, limit, "1"))
        plan = {
            "size": size,
            "limit": limit,
            "converted": request.is_converted,
            "gpus": request.gpus,
            "hosts": hosts,
            "tops": TOPS,
            "folder": str(folder),
            "runs": [
                {**vars(each), "directories": [str(directory) for directory in each.directories]}
                for each in runs
            ],
            "changed": sorted({*one.changed(), *several.changed()}),
        }
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        with interrupts.window():
            return judged(request, folder)


def has_failed(original: Run) -> bool:
    """Return whether one process ended badly before it was stopped, so that there is nothing to
    compare with.
    """
    record = original.directories[0] / "record" / "record.json"
    is_stopped = record.exists() and Record.load(record).stopped
    return bool(original.stuck) or (any(original.statuses) and not is_stopped)


def check_space(folder: Path) -> None:
    """Raise Unfit if there is no room for the records of a run."""
    if shutil.disk_usage(folder).free < LEAST_SPACE:
        raise Unfit(
            f"The disk of {folder.parent} is full, so the observations could not be saved. Make room, "
            "or name another folder: TMPDIR=FOLDER or --keep FOLDER."
        )


def judged(request: Request, folder: Path) -> dict[str, Any]:
    """Run the judge in the user's Python, because it needs NumPy."""
    done = subprocess.run(
        [request.interpreter.path, "-c", bootstrap("trainshift.proving.judging.main"), str(folder)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", MARK: str(folder)},
    )
    if done.returncode:
        check_space(folder)
        raise Unfit(f"The observations could not be judged:\n{done.stderr.strip()[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def run(request: Request, means: Means, copier: Copier, name: str, ranks: int, steps: int, data: str) -> Run:
    """Run a program on some processes until it ends, has taken its steps, or makes no progress."""
    folder, window = means.folder, means.interrupts.window
    directories = [folder / name / f"rank{rank}" for rank in range(ranks)]
    given: dict[str, str] = {}
    for directory in directories:
        for part in ("record", "tmp"):
            (directory / part).mkdir(parents=True)
        with window():
            given = copier.copy(directory)
    settings = {"limit": steps, "start": copier.project.start}
    environment = surroundings(request) | {
        DATA: data,
        MARK: str(folder),
        SETTINGS: json.dumps(settings),
    }
    if name == "ranks":
        environment["HOROVOD_TIMELINE"] = str(directories[0] / "record" / "timeline.json")
    result = Run(name, directories, given, [])
    with started(request, means, copier.project, directories, environment, name == "original") as processes:
        watch = Watch(directories, processes, request.limit)
        try:
            while not watch.is_over():
                with window():
                    for rank, count in enumerate(watch.steps):
                        means.tell(name, rank, count, steps)
                    time.sleep(0.1)
        finally:
            result.stuck = watch.stuck
            codes = [process.poll() for process in processes]
            if len(processes) == ranks:
                result.alone = [rank for rank, code in enumerate(codes) if code is not None]
            if len(processes) < ranks:
                take_leave(processes[0])
            end(processes)
            end_strays(folder)
            result.statuses = [
                process.poll() or 0 if code is None else code
                for process, code in zip(processes, codes, strict=True)
            ]
    if len(result.statuses) < ranks:
        result.statuses = result.statuses * ranks
        tell_launcher(folder / name / LOG, directories)
    return result


@contextmanager
def started(
    request: Request,
    means: Means,
    project: Project,
    directories: Sequence[Path],
    environment: Mapping[str, str],
    alone: bool,
) -> Iterator[list[Started]]:
    """Start the processes of one run; by Horovod's launcher on other hosts, or without Gloo."""
    python = request.interpreter.path

    def start(rank: int, variables: Mapping[str, str]) -> Started:
        directory = directories[rank]
        record = directory / "record"
        launch = Launch(
            [str(record), str(rank), *project.arguments],
            directory / project.start,
            {**environment, "TMPDIR": str(directory / "tmp"), **variables},
            record / "stdout.txt",
            record / "native.txt",
        )
        return means.start(launch, python)

    if alone:
        yield [start(0, {})]
    elif request.hosts or not request.interpreter.has_gloo:
        folder = directories[0].parent
        arguments, hosts = project.arguments, request.hosts
        yield [launched(request.interpreter, arguments, request.ranks, hosts, folder, environment)]
    else:
        command = [python, "-c", bootstrap("trainshift.proving.observed.rendezvous"), str(len(directories))]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=dict(environment),
        ) as server:
            try:
                assert server.stdout
                assert server.stderr
                with means.interrupts.window():
                    line = server.stdout.readline()
                if not line:
                    raise Unfit(f"Horovod could not be started:\n{server.stderr.read().strip()[-2000:]}")
                yield [start(rank, variables) for rank, variables in enumerate(json.loads(line))]
            finally:
                server.kill()


class Watch:
    """Watches the processes of one run until they end."""

    def __init__(self, directories: Sequence[Path], processes: Sequence[Started], limit: float) -> None:
        self.files = [directory / "record" / "progress" for directory in directories]
        self.processes = processes
        self.limit = limit
        self.steps = [0] * len(directories)
        self.stuck = ""
        self.last_step = time.monotonic()
        self.last_busy = self.last_step
        self.cpu = 0.0
        self.looked = self.last_step
        self.deadline = float("inf")

    def is_over(self) -> bool:
        """Return whether all have ended, or will not; then `stuck` says why."""
        now = time.monotonic()
        running = [process for process in self.processes if process.poll() is None]
        if not running:
            return True
        steps = [progress(file) for file in self.files]
        if steps != self.steps:
            self.steps, self.last_step = steps, now
        if any(process.poll() for process in self.processes):
            self.deadline = min(self.deadline, now + GRACE)
        if now - self.looked >= 1:
            used = sum(processor_time(process.pid, waiting(self.files)) for process in running)
            if not self.cpu <= used <= self.cpu + IDLE:
                self.last_busy, self.cpu = now, used
            self.looked = now
        if now > self.deadline:
            return True
        # Processes that a launcher has started, perhaps on other hosts, are not seen computing.
        sees_all = len(self.processes) >= len(self.files)
        if sees_all and now - max(self.last_step, self.last_busy) > IDLE_LIMIT:
            self.stuck = f"nothing has moved for {IDLE_LIMIT:.0f} s"
        elif now - self.last_step > self.limit:
            self.stuck = f"no step was taken for {self.limit:.0f} s"
        return bool(self.stuck)


def progress(file: Path) -> int:
    """The current step of a process."""
    try:
        return int(file.read_bytes() or b"0")
    except (OSError, ValueError):
        return 0


def waiting(files: Sequence[Path]) -> set[str]:
    """The threads of a run's processes that compute nothing, from their progress files."""
    found = set()
    for file in files:
        with suppress(OSError):
            found.update(file.with_name(THREADS).read_text().split())
    return found


def processor_time(leader: int, besides: Collection[str]) -> float:
    """The processor time of a session's processes in seconds, without some threads; elsewhere the clock's."""
    if not os.path.isdir("/proc/self/task"):
        return time.monotonic()
    ticks = 0
    for process in os.scandir("/proc"):
        if not process.name.isdecimal():
            continue
        with suppress(OSError, IndexError, ValueError):
            if os.getsid(int(process.name)) == leader:
                for thread in os.scandir(os.path.join(process.path, "task")):
                    if thread.name not in besides:
                        fields = Path(thread.path, "stat").read_text().rpartition(")")[2].split()
                        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def end_strays(folder: Path) -> None:
    """End processes of a script that have left its session."""
    for number in marked(f"{MARK}={folder}\0"):
        with suppress(OSError):
            os.kill(number, signal.SIGKILL)


def marked(variable: str) -> list[int]:
    """The processes, none older than this one, that have a variable with this prefix in their environment."""
    found = []
    since = started_at("self")
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        # Older ones are not examined: that would wait for stopped processes.
        if name.isdecimal() and int(name) != os.getpid() and started_at(name) >= since:
            with suppress(OSError):
                if f"\0{variable}".encode() in b"\0" + Path("/proc", name, "environ").read_bytes():
                    found.append(int(name))
    return found


def started_at(process: str) -> int:
    """The start time of a process, in ticks of the system; -1 if it has ended."""
    with suppress(OSError, IndexError, ValueError):
        return int(Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[19])
    return -1


def surroundings(request: Request) -> dict[str, str]:
    """The environment of all processes: the user's, without windows and bytecode, with crash reports."""
    home = os.path.expanduser("~")
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HOROVOD_RANK") and name != TERMINAL
    }
    if request.gpus >= request.ranks:
        own[REAL] = str(request.gpus)
    else:
        own["CUDA_VISIBLE_DEVICES"] = ""
    return {
        "KERAS_HOME": os.path.join(home, ".keras"),
        "XDG_CACHE_HOME": os.path.join(home, ".cache"),
        "XDG_CONFIG_HOME": os.path.join(home, ".config"),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "MPLBACKEND": "Agg",
        "PYTHONFAULTHANDLER": "1",
        **own,
        **request.variables,
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@contextmanager
def scratch(keep: str) -> Iterator[Path]:
    """A folder for all output, which is removed unless it is to be kept."""
    if keep:
        path = Path(keep).absolute()
        path.mkdir(parents=True, exist_ok=True)
        try:
            yield path
        finally:
            end_strays(path)
        return
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="trainshift-prove-")))
    try:
        yield folder
    finally:
        end_strays(folder)
        shutil.rmtree(folder, onerror=make_writable)


def make_writable(remove: Callable[[str], None], path: str, _: object) -> None:
    """Retry to remove something that the script has protected."""
    with suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        remove(path)


def gpus_here() -> int:
    """The number of NVIDIA GPUs in this machine."""
    folder = Path("/proc/driver/nvidia/gpus")
    return sum(1 for _ in folder.iterdir()) if folder.is_dir() and sys.platform == "linux" else 0
