"""Judge the check and the conversion of one file, and list violated properties."""

from __future__ import annotations

import os
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from support.lossless import assert_lossless
from trainshift.cli.checks.check import Job, check_file
from trainshift.cli.documents import Document, read_document
from trainshift.cli.programs.sources import home
from trainshift.core.finding import Verdict
from trainshift.core.program import Program
from trainshift.engine import checking, conversion
from trainshift.engine.conversion import Conversion, Status
from trainshift.engine.findings import find
from trainshift.engine.programs import Programs
from trainshift.engine.workspace import ParsedFiles, is_test
from trainshift.host.disk import files_on_disk
from trainshift.host.files import FileProblem
from trainshift.host.walk import Input

UNREADABLE = "cannot be read"
MODULE = "a module of a program"
CRASH = "crash"


class Found(NamedTuple):
    """A finding: its line is that of a notebook's cell, if it has one."""

    code: str
    verdict: str
    effect: str
    severity: str
    cell: int | None
    line: int
    message: str
    quoted: str

    @property
    def kind(self) -> str:
        """The kind under which it is counted."""
        return (
            f"{self.code} {self.verdict}{self.effect and ', the conversion ' + self.effect}, {self.severity}"
        )


@dataclass(frozen=True)
class Outcome:
    """The outcome for one file.

    `status` is that of its conversion if it starts a program; otherwise the reason why it has none.  `reason`
    is that of a refusal, `crash` an internal failure, `unclean` a violated property of a result.  `checked`
    and `converted` are processor seconds, `memory` (MB) is the peak of its process so far.
    """

    status: str
    reason: str = ""
    findings: tuple[Found, ...] = ()
    rules: tuple[str, ...] = ()
    doubts: int = 0
    unclean: tuple[str, ...] = ()
    crash: str = ""
    checked: float = 0.0
    converted: float = 0.0
    memory: int = 0

    @property
    def seconds(self) -> float:
        """The time of both."""
        return self.checked + self.converted

    def as_json(self) -> dict[str, Any]:
        """The outcome for the next run."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outcome:
        """The outcome of a run that was written down."""
        lists = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
        return cls(**{**data, **lists, "findings": tuple(Found(*each) for each in data["findings"])})


def judge(path: str) -> Outcome:
    """Check and convert the file at `path`; never raises because of its contents."""
    item = Input(path)
    started = time.process_time()
    check = check_file(Job(item, path))
    checked = time.process_time() - started
    findings = tuple(
        Found(
            each.code,
            each.verdict.value,
            each.effect.name.lower() if each.effect else "",
            each.severity.name.lower(),
            each.region.cell,
            each.region.line,
            each.message,
            (check.shown.line(each.region) or "").strip(),
        )
        for each in check.diagnostics
    )
    crash = f"check: {check.error}" if check.is_defect else ""
    crash = crash or next((f"check: {each.message}" for each in check.diagnostics if each.code == "TS04"), "")
    outcome = Outcome(CRASH, findings=findings, crash=crash, checked=checked)
    if check.error and not crash:
        return replace(outcome, status=UNREADABLE, reason=check.error, memory=_memory())
    try:
        outcome = _converted(path, outcome)
    except FileProblem as problem:
        outcome = replace(outcome, status=UNREADABLE, reason=problem.message)
    except Exception as error:
        outcome = replace(outcome, crash=crash or f"convert: {type(error).__name__}: {error}")
    return replace(outcome, memory=_memory())


def _converted(path: str, outcome: Outcome) -> Outcome:
    """The outcome with the conversion of the file."""
    started = time.process_time()
    document = read_document(Input(path), path)
    result = _conversion(document, home(path))
    outcome = replace(outcome, converted=time.process_time() - started)
    if result is None:
        return replace(outcome, status=MODULE)
    ours = f"convert: {result.reason}" if "internal error" in result.reason else ""
    return replace(
        outcome,
        status=result.status.value,
        reason=result.reason if result.status is Status.REFUSED else "",
        rules=tuple(sorted({note.rule for note in result.applied})),
        doubts=len(result.doubts),
        unclean=tuple(_unclean(document, home(path), result)) if result.status is Status.CONVERTED else (),
        crash=outcome.crash or ours,
    )


def normal(reason: str) -> str:
    """A reason without the script's names, so that equal reasons are counted together."""
    return re.sub(r"`[^`]*`|'[^']*'|\b\w+\.py\b|\b\d+\b", "…", reason)


@cache
def _shared() -> tuple[ParsedFiles, Programs]:
    """The files around those that this process judges, and their programs."""
    files = files_on_disk()
    return files, Programs(files)


def _conversion(document: Document, path: str) -> Conversion | None:
    """The conversion of the file; None if it starts no program."""
    files, programs = _shared()
    if path not in programs.starts(path) or (is_test(path) and len(programs.reached(path)) > 1):
        return None
    result = conversion.convert_program(document.text, path, files, apart=document.starts)
    return document.converted(result)[0]


def _unclean(document: Document, path: str, result: Conversion) -> Iterator[str]:
    """Yield the violated properties of a result: lost text, a different second result, a new violation."""
    texts = {each.path: each.text for each in result.files}
    files, later = _shared()[0], files_on_disk(texts.get)
    yield from _defects(result, os.path.basename)
    again = conversion.convert_program(result.files[0].text, path, later)
    if again.status is Status.REFUSED or any(each.text != each.before for each in again.files):
        yield f"a second conversion differs: {_why(again)}"
    for each in result.files:
        if each.text != each.before:
            yield from _violations(each.before, each.text, each.path, files, later)


def _why(again: Conversion) -> str:
    rules = ", ".join(sorted({note.rule for note in again.applied}))
    return normal(again.reason) or f"{again.status.value} by {rules}"


def _defects(result: Conversion, name: Callable[[str], str]) -> Iterator[str]:
    for each in result.files:
        try:
            assert_lossless(each.before, each.edits, each.text, name(each.path))
        except AssertionError:
            yield "text was lost outside the edits, or a comment"


def _violations(
    before: str, after: str, path: str, files: ParsedFiles | None, later: ParsedFiles | None
) -> Iterator[str]:
    """The codes with more violations in a result than in the original."""
    old, new = _violated(before, path, files), _violated(after, path, later)
    for code, number in sorted((new - old).items()):
        yield f"{number} new {code}"


def _violated(text: str, path: str, files: ParsedFiles | None) -> Counter[str]:
    program = checking.program_of(text, path, files)
    if not isinstance(program, Program):
        return Counter()
    return Counter(each.code for each in find(program).found if each.verdict is Verdict.VIOLATED)


def _memory() -> int:
    """The peak memory (MB) of this process."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit >> 20
