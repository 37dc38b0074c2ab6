"""Crowd: judges many files side by side, in processes that may die or take too long."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from ecosystem.judge import CRASH, Outcome, judge

# A process checks this many files, mostly of one folder, which share their imports.
_BATCH = 10
_CONTEXT = multiprocessing.get_context()


@dataclass
class _Worker:
    """A process, its remaining files, and the deadline for the first of them."""

    process: BaseProcess
    results: Connection
    files: list[str]
    until: float


def outcomes(paths: Sequence[str], processes: int, limit: float) -> Iterator[tuple[str, Outcome]]:
    """Yield each file with its outcome, as they become ready.

    A file that takes more than `limit` seconds, or ends its process, is a crash; the others are judged.
    """
    batches = [list(paths[at : at + _BATCH]) for at in range(0, len(paths), _BATCH)]
    workers: list[_Worker] = []
    try:
        while batches or workers:
            while batches and len(workers) < processes:
                workers.append(_start(batches.pop(0), limit))
            now = time.monotonic()
            wait([each.results for each in workers], max(0.0, min(each.until for each in workers) - now))
            for worker in list(workers):
                problem = yield from _received(worker, limit)
                if problem or not worker.files:
                    workers.remove(worker)
                    _end(worker)
                if problem:
                    yield worker.files.pop(0), Outcome(CRASH, crash=problem)
                    if worker.files:
                        batches.insert(0, worker.files)
    finally:
        for worker in workers:
            _end(worker)


def _start(files: list[str], limit: float) -> _Worker:
    mine, theirs = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_work, args=(files, theirs), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, mine, files, time.monotonic() + limit)


def _work(files: Sequence[str], results: Connection) -> None:
    for path in files:
        results.send(judge(path))


def _received(worker: _Worker, limit: float) -> Generator[tuple[str, Outcome], None, str]:
    """Receive a worker's outcomes; returns the problem with its current file, if there is one."""
    while worker.files and worker.results.poll():
        try:
            outcome = worker.results.recv()
        except EOFError:
            worker.process.join()
            return f"the process ended with exit status {worker.process.exitcode}"
        yield worker.files.pop(0), outcome
        worker.until = time.monotonic() + limit
    return f"no end after {limit:g} s" if worker.files and time.monotonic() > worker.until else ""


def _end(worker: _Worker) -> None:
    worker.results.close()
    if worker.files:
        worker.process.kill()
    worker.process.join()
