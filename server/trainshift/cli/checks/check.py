"""Run the checker over the inputs, on several processes if there are many, with results in order."""

from __future__ import annotations

import dataclasses
import gc
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import closing, suppress
from enum import Enum
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from trainshift.cli.checks.report import CheckReporter, FileCheck
from trainshift.cli.diff import STANDARD_INPUT_NAME
from trainshift.cli.documents import Document, Shown, read_document
from trainshift.cli.programs.sources import home
from trainshift.cli.programs.units import is_script
from trainshift.cli.run import INTERRUPTED
from trainshift.cli.streams import print_bytes
from trainshift.cli.terminal import ProgressBar, describe_defect
from trainshift.engine import checking
from trainshift.engine.cells import Spot
from trainshift.engine.own_codes import INTERNAL_ERROR
from trainshift.engine.programs import Programs
from trainshift.engine.settings import GRAPH_CODES, LETTER, Settings, Severity
from trainshift.engine.verdicts import Verdict, Verdicts, fingerprint
from trainshift.engine.workspace import Answers, ParsedFiles
from trainshift.host.configuration import Configurations
from trainshift.host.disk import absolute, files_on_disk
from trainshift.host.files import FileProblem, shown_path
from trainshift.host.kept_verdicts import Kept, Learning, asked_under
from trainshift.host.walk import STANDARD_INPUT, Input, collect
from trainshift.host.writing import write_in_place
from trainshift.python.garbage import uncollected

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.synchronize import Event

    from trainshift.engine.versions.runtime import Runtime
    from trainshift.host.declarations import Declarations

MANY_FILES = 80
"""The number of files from which further processes are worth their start, half a second."""

_BATCH = 8
_BATCHES_AHEAD = 3
# Windows cannot wait for more handles.
_MOST_PROCESSES = 61
# Abandoned processes have this many seconds to finish their current task.
_PATIENCE = 3.0
_PROCESS_DIED = "the process that checked this file ended unexpectedly; check it alone with --jobs 1"

_UNREAD = "not checked, since it cannot be read as Python (TS00 is off)"

# Set in the processes that check: whether their parent was interrupted.
_stopped: Event | None = None


class Action(Enum):
    """The action to take with fixes."""

    NONE = "none"
    FIX = "fix"
    DIFF = "diff"


Results: TypeAlias = Generator[tuple["Job", FileCheck], None, None]


class CheckRequest(Struct, frozen=True):
    """The request of the user.

    `select` (None when not given) and `ignore` are codes or prefixes of codes; `stdin_name` is what
    standard input is called, and whose settings it gets.  Harmless findings below `least` are not fixed;
    with `is_strict` severity goes by the letter of the restrictions.  A run that `keeps` verdicts has them in
    `cache_folder`, or in that of the project.
    """

    paths: tuple[str, ...]
    configurations: Configurations
    action: Action = Action.NONE
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    stdin_name: str = ""
    least: Severity = Severity.WARNING
    fail_on: Severity | None = Severity.WARNING
    jobs: int = 1
    show_progress: bool = True
    is_strict: bool = False
    keeps: bool = False
    cache_folder: str = ""


class Job(Struct, frozen=True):
    """One file to check, with its settings: everything that a process needs.

    `name` is the name in reports, relative to which imports are resolved. `under` is the key of the settings
    if the verdict is to be kept.
    """

    item: Input
    name: str
    settings: Settings = field(default_factory=Settings)
    action: Action = Action.NONE
    least: Severity = Severity.WARNING
    under: str = ""


def run_check(request: CheckRequest, reporter: CheckReporter) -> int:
    """Check all inputs of `request`, report to `reporter`, and return the exit status.

    Raises ConfigurationProblem before anything is checked.
    """
    status = 0
    for shared in (_shared_declarations, _shared_files, _shared_programs, _shared_learning, _learn):
        shared.cache_clear()
    kept = None
    try:
        jobs = list(_jobs(request))
        if request.keeps and request.action is Action.NONE:
            kept = Kept(_shared_files(), request.cache_folder, os.getcwd())
            jobs = _kept_under(jobs)
        with (
            ProgressBar(len(jobs), wanted=request.show_progress, label="Checking") as progress,
            closing(_results(jobs, request.jobs, kept, progress.show)) as results,
            uncollected(),
        ):
            for job, result in results:
                progress.show(job.name)
                status = max(status, result.exit_status(request.fail_on))
                if result.is_silent:
                    reporter.file(result)
                else:
                    with progress.hidden():
                        reporter.file(result)
                progress.advance()
    except KeyboardInterrupt:
        reporter.finish(interrupted=True)
        return INTERRUPTED
    finally:
        if kept is not None:
            kept.save()
    reporter.finish()
    return status


def _jobs(request: CheckRequest) -> Iterator[Job]:
    for item in collect(request.paths, request.exclude):
        is_stream = item.path == STANDARD_INPUT
        name = (request.stdin_name or STANDARD_INPUT_NAME) if is_stream else item.path
        configuration = request.configurations.of(name)
        if not item.named and configuration.excludes(item.path):
            continue
        settings = configuration.for_file(name, request.select, request.ignore)
        if request.is_strict:
            settings = dataclasses.replace(settings, restrictions=LETTER)
        yield Job(item, name, settings, request.action, request.least)


def _kept_under(jobs: Sequence[Job]) -> list[Job]:
    """The jobs with a key for their settings; an input that is not a file is judged anew each time."""
    under: dict[int, str] = {}
    for each in jobs:
        if id(each.settings) not in under:
            under[id(each.settings)] = asked_under(each.settings)
    return [
        each
        if each.item.path == STANDARD_INPUT or each.item.problem or each.item.nothing
        else replace(each, under=under[id(each.settings)])
        for each in jobs
    ]


def _results(jobs: Sequence[Job], processes: int, kept: Kept | None, show: Callable[[str], None]) -> Results:
    """Yield each job with its result, in the order of the jobs; `show` what is read before the first one."""
    known = [
        kept.of(absolute(job.name), job.under, partial(_demanded, job)) if kept and job.under else None
        for job in jobs
    ]
    left = [job for job, found in zip(jobs, known, strict=True) if found is None]
    with closing(_fresh(left, processes, kept, show)) as fresh:
        for job, found in zip(jobs, known, strict=True):
            yield (job, _retold(job, found)) if found is not None else next(fresh)


def _fresh(jobs: Sequence[Job], processes: int, kept: Kept | None, show: Callable[[str], None]) -> Results:
    """Compute the result of each job, in the order of the jobs.

    Programs come first: those with files in common ask for each other's changes.
    """
    has_stream = any(job.item.path == STANDARD_INPUT for job in jobs)
    if processes > 1 and len(jobs) >= MANY_FILES and not has_stream:
        yield from _in_processes(jobs, processes, kept, show)
    else:
        for job in jobs:
            if _may_start(job):
                show(job.name)
                _look_ahead(job)
        for job in jobs:
            result = check_file(job)
            if kept is not None:
                kept.take(_shared_learning().hand_over())
            yield job, result


def _in_processes(
    jobs: Sequence[Job], processes: int, kept: Kept | None, show: Callable[[str], None]
) -> Results:
    """Compute the results in a pool; only a few batches are ahead of the report, so memory stays flat."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    starts = [job for job in jobs if _may_start(job)]
    answers: bytes | None = None
    batches = [jobs[at : at + _BATCH] for at in range(0, len(jobs), _BATCH)]
    at = sent = 0
    while at < len(batches):
        pool = stop = None
        try:
            # A fork inherits all loaded modules; a thread, such as a progress bar's, cannot be forked.
            is_copied = sys.platform == "linux" and threading.active_count() == 1
            context = multiprocessing.get_context("fork" if is_copied else "spawn")
            stop = context.Event()
            pool = ProcessPoolExecutor(
                min(processes, len(batches) - at, _MOST_PROCESSES),
                context,
                initializer=_start_process,
                initargs=(stop,),
            )
            if answers is None:
                answers = b""  # A file that ends its process here is met once.
                answers = _found_ahead(pool, starts, show)
            ahead: deque[Future[tuple[list[FileCheck], Verdicts]]] = deque()
            while at < len(batches):
                while sent < len(batches) and len(ahead) < processes * _BATCHES_AHEAD:
                    ahead.append(pool.submit(_check_batch, batches[sent], answers))
                    sent += 1
                results, learned = ahead.popleft().result()
                if kept is not None:
                    kept.take(learned)
                yield from zip(batches[at], results, strict=True)
                at += 1
        except BrokenProcessPool:
            # A file of the pending batches ended its process; report these files and continue with the
            # rest.
            for batch in batches[at:sent]:
                yield from ((job, FileCheck(job.name, error=_PROCESS_DIED, is_defect=True)) for job in batch)
            at = sent
        except (ImportError, NotImplementedError, OSError):
            # This system has no more processes or semaphores.
            yield from _fresh([job for batch in batches[at:] for job in batch], 1, kept, show)
            at = len(batches)
        except BaseException:
            if stop is not None:
                stop.set()
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
            until = time.monotonic() + _PATIENCE
            # A process that is killed while it takes a job keeps the queue locked, and all others would
            # wait.
            for process in multiprocessing.active_children():
                process.join(max(0.0, until - time.monotonic()))
                if jobs[0].action is not Action.FIX:  # A process that may be replacing a file ends by itself.
                    process.terminate()
            raise
        finally:
            if pool is not None:
                pool.shutdown(wait=True, cancel_futures=True)


def _found_ahead(pool: ProcessPoolExecutor, starts: Sequence[Job], show: Callable[[str], None]) -> bytes:
    """The answers of all processes about the programs that some files start, packed."""
    answers: Answers = {}
    for job, found in zip(starts, pool.map(_looked_ahead, starts), strict=True):
        show(job.name)
        answers |= found
    return pickle.dumps(answers)


def _start_process(stop: Event) -> None:
    """Ignore interrupts in a worker: the parent tells its workers when to `stop`."""
    global _stopped
    _stopped = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    gc.freeze()  # What the parent has loaded stays, and is not looked at.


def _check_batch(jobs: Sequence[Job], answers: bytes) -> tuple[list[FileCheck], Verdicts]:
    """The results of a few jobs, and the verdicts to be kept; `answers` are what was found ahead.

    The batch ends early once the run is stopped.
    """
    _learn(answers)
    results = [check_file(job) for job in jobs if _stopped is None or not _stopped.is_set()]
    return results, _shared_learning().hand_over()


def _look_ahead(job: Job) -> Hashable | None:
    """Forecast the program that a file starts; what goes wrong is reported by the check of the file."""
    path, demanded = absolute(job.name), partial(_demanded, job)
    question = None
    with suppress(Exception):
        question = checking.forecast_ahead(path, job.settings, _shared_files(), demanded)
    _shared_files().release()
    return question


def _looked_ahead(job: Job) -> Answers:
    """The answer of `_look_ahead`, for all processes."""
    return _shared_files().answers(_look_ahead(job))


def _may_start(job: Job) -> bool:
    """Return whether a file may start a program, by words of its text and of imports alone."""
    if job.action is not Action.NONE or not is_script(job.item):
        return False
    files, path = _shared_files(), absolute(job.name)
    return not files.naming(path) or files.says(path, "__main__")


@cache
def _learn(answers: bytes) -> None:
    """Take over what other processes have found ahead, once."""
    if answers:
        _shared_files().learn(pickle.loads(answers))


def check_file(job: Job) -> FileCheck:
    """Check one input and time it; never raises, whatever the input is."""
    start = time.process_time()
    result = _check_file(job)
    _shared_files().release()
    return dataclasses.replace(result, seconds=time.process_time() - start)


def _check_file(job: Job) -> FileCheck:
    item = job.item
    result = FileCheck(job.name)
    if item.problem:
        return dataclasses.replace(result, error=item.problem)
    if item.nothing:
        return dataclasses.replace(result, nothing=item.nothing)
    try:
        document = read_document(item, job.name)
        return _checked(
            document, job, dataclasses.replace(result, nothing=document.nothing if item.named else "")
        )
    except FileProblem as problem:
        return _failed(result, problem)
    except Exception as error:
        return dataclasses.replace(result, error=describe_defect(error), is_defect=True)


def _failed(result: FileCheck, problem: FileProblem) -> FileCheck:
    position = Spot(*problem.position) if problem.position else None
    return dataclasses.replace(result, error=problem.message, position=position)


def _checked(document: Document, job: Job, result: FileCheck) -> FileCheck:
    path = absolute(job.name)
    if job.action is Action.NONE:
        return _retold(job, _verdict(document, job, path), document, result)
    from trainshift.engine import fixing

    files, demanded = files_on_disk(), partial(_demanded, job)
    fixed = fixing.fixed(document.body, job.settings, path, files, job.least, demanded)
    before = dataclasses.replace(
        _with_report(result, path, document, fixed.before), encoding=document.file.encoding
    )
    applied = dict(fixed.applied)
    after = document.after(fixed.body) if applied else document
    if job.action is Action.DIFF:
        return dataclasses.replace(before, applied=applied, diffs=document.diff(after))
    try:
        if job.item.path == STANDARD_INPUT:
            print_bytes(document.file.encode(after.file.text))
        elif after.file.text != document.file.text:
            write_in_place(document.file, after.file.text)
    except FileProblem as problem:
        return _failed(before, problem)
    result = dataclasses.replace(result, applied=applied, encoding=document.file.encoding)
    return _with_report(result, path, after, fixed.report)


def _verdict(document: Document, job: Job, path: str) -> Verdict:
    """Check a file, and record the verdict if it is to be cached."""
    files = _shared_files()
    asked = []

    def demanded() -> Runtime | None:
        runtime = _demanded(job)
        asked.append(fingerprint(runtime))
        return runtime

    if is_script(job.item) and files.naming(path):
        files.read(path)  # One reading serves all programs that import it, too.
    with files.noting() as noted:
        report = checking.check(document.text, job.settings, path, files, demanded)
        programs: tuple[str, ...] = ()
        # The start file of a program does not change how Paddle reads its functions, and finding it reads
        # many files.
        is_asked = any(each.code not in GRAPH_CODES for each in report.diagnostics) and is_script(job.item)
        if is_asked and files.naming(path):
            starts = _shared_programs().starts(home(job.item.path))
            programs = () if path in starts else tuple(starts)
    found = Verdict(report, programs)
    has_failed = any(each.code == INTERNAL_ERROR.code for each in report.diagnostics)
    if job.under and not has_failed and not document.nothing:
        demand = asked[0] if asked else None
        _shared_learning().add(path, document.file.text, job.under, noted, demand, found)
    return found


def _retold(
    job: Job, found: Verdict, document: Document | None = None, result: FileCheck | None = None
) -> FileCheck:
    """Return a verdict as the report shows it; read the file only if it must be quoted."""
    result = dataclasses.replace(
        result or FileCheck(job.name), programs=tuple(map(shown_path, found.programs))
    )
    if document is None and any(each.severity for each in found.report.diagnostics):
        try:
            document = read_document(job.item, job.name)
        except FileProblem as problem:
            return _failed(result, problem)
    return _with_report(result, absolute(job.name), document, found.report)


def _demanded(job: Job) -> Runtime | None:
    return _shared_declarations().of(job.name)


@cache
def _shared_learning() -> Learning:
    """The verdicts that this process has not returned yet."""
    return Learning(_shared_files())


@cache
def _shared_files() -> ParsedFiles:
    """The files around the scripts of this process, read once as long as nothing is written."""
    files = files_on_disk()
    files.stay()
    return files


@cache
def _shared_programs() -> Programs:
    """The programs of these files."""
    return Programs(_shared_files())


@cache
def _shared_declarations() -> Declarations:
    """The requirements of the projects in this process; files are read once."""
    from trainshift.host.declarations import Declarations
    from trainshift.host.environment import environment

    return Declarations(environment=environment)


def _with_report(
    result: FileCheck, path: str, document: Document | None, report: checking.CheckReport
) -> FileCheck:
    """The result with the checker's report; absolute paths become the names that the user gave."""

    def named(other: checking.OtherPlace) -> checking.OtherPlace:
        return replace(other, path=result.path if other.path == path else shown_path(other.path))

    found = tuple(each for each in report.diagnostics if each.severity)
    return dataclasses.replace(
        result,
        shown=document.shown() if found and document is not None else Shown(),
        diagnostics=tuple(
            dataclasses.replace(each, related=tuple(map(named, each.related))) if each.related else each
            for each in (document.diagnostics(found) if document is not None else ())
        ),
        suppressed=report.suppressed,
        by_hand=report.by_hand,
        forecast=report.forecast,
        nothing=result.nothing if len(found) == len(report.diagnostics) else _UNREAD,
    )
