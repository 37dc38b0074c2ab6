"""Run: convert the inputs one after another, deliver each result, and never let one sink the others."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from typing import NamedTuple

from trainshift.cli.diff import STANDARD_INPUT_NAME
from trainshift.cli.documents import Document, read_document
from trainshift.cli.report import ERROR, INTERNAL_ERROR, FileReport, Mode, Reporter
from trainshift.cli.terminal import ProgressBar
from trainshift.engine import conversion
from trainshift.engine.cells import Spot
from trainshift.engine.conversion import Conversion, Status
from trainshift.host.declarations import Declarations
from trainshift.host.files import FileProblem
from trainshift.host.walk import STANDARD_INPUT, Input, collect
from trainshift.host.writing import write_in_place, write_output

INTERRUPTED = 130


class At(NamedTuple):
    """The place of a statement: a line, in a notebook that of a cell, both from 1."""

    line: int
    cell: int | None = None


@dataclass(frozen=True)
class Request:
    """What the user asked for; `output` (a path, or "-") goes with Mode.OUTPUT only.

    `at` is a line of the one input, and its cell if that is a notebook.  `declarations` tell what
    versions the projects declare; without them none are looked for.
    """

    paths: tuple[str, ...]
    mode: Mode
    output: str = ""
    at: At | None = None
    exclude: tuple[str, ...] = ()
    show_progress: bool = True
    declarations: Declarations | None = None


def run(request: Request, reporter: Reporter) -> int:
    """Convert everything that `request` names, tell `reporter`, and return the exit status."""
    status = 0
    try:
        inputs = list(collect(request.paths, request.exclude))
        with ProgressBar(len(inputs), wanted=request.show_progress) as progress:
            for item in inputs:
                progress.show(item.path)
                report, diff, encoding = _process(item, request)
                status = max(status, report.exit_status(request.mode))
                if diff:
                    with progress.hidden():
                        reporter.file(report, diff, encoding)
                else:
                    reporter.file(report, diff, encoding)
                progress.advance()
    except KeyboardInterrupt:
        reporter.finish(interrupted=True)
        return INTERRUPTED
    reporter.finish()
    return status


def _process(item: Input, request: Request) -> tuple[FileReport, tuple[bytes, ...], str]:
    """What became of one input, its diffs, and the encoding that they are in."""
    path = STANDARD_INPUT_NAME if item.path == STANDARD_INPUT else item.path
    if item.problem:
        return FileReport(path, ERROR, error=item.problem, named=item.named), (), "utf-8"
    if item.nothing:
        status = Status.NOTHING_FOUND.value
        return FileReport(path, status, reason=item.nothing, is_directory=True), (), "utf-8"
    try:
        document = read_document(item, path)
        line = document.line_at(request.at.cell, request.at.line) if request.at else None
    except FileProblem as problem:
        return _problem(FileReport(path, ERROR, named=item.named), problem), (), "utf-8"
    return _convert(document, item, request, line)


def _convert(
    document: Document, item: Input, request: Request, line: int | None
) -> tuple[FileReport, tuple[bytes, ...], str]:
    report = FileReport(document.file.path, ERROR, named=item.named)
    diff: tuple[bytes, ...] = ()
    try:
        runtime = request.declarations.of(item.path) if request.declarations else None
        result, after = document.converted(conversion.convert(document.text, line=line, runtime=runtime))
        report = _described(document, item, result)
        diff = document.diff(after)
        if _deliver(document, after, result, request):
            report = replace(report, written=True)
    except FileProblem as problem:
        report = _problem(report, problem)
    except Exception as error:
        report = replace(report, status=INTERNAL_ERROR, error=describe_defect(error))
    return report, diff, document.file.encoding


def _described(document: Document, item: Input, result: Conversion) -> FileReport:
    spot = document.spot(*result.position) if result.position else None
    return FileReport(
        document.file.path,
        result.status.value,
        applied=document.notes(result.applied),
        decisions=document.notes(result.decisions),
        doubts=document.notes(result.doubts),
        withheld=document.notes(result.withheld),
        reason=result.reason,
        position=spot,
        excerpt=(document.shown().line(spot) or "") if spot and result.status is Status.REFUSED else "",
        differs=result.text != document.text,
        named=item.named,
    )


def _deliver(document: Document, after: Document, result: Conversion, request: Request) -> bool:
    """Put the converted text where the request wants it; whether that was done.  Raises FileProblem.

    A file that nothing changes is not touched; a filter or -o gets the text all the same, but
    nothing at all when the script is refused.
    """
    if result.status is Status.REFUSED or request.mode in (Mode.DIFF, Mode.CHECK):
        return False
    file = document.file
    if request.mode is Mode.OUTPUT and request.output != STANDARD_INPUT:
        write_output(request.output, file, after.content(request.output))
    elif request.mode is Mode.OUTPUT or file.path == STANDARD_INPUT_NAME:
        print_bytes(file.encode(after.file.text))
    elif after.file.text != file.text:
        write_in_place(file, after.file.text, "; use -o OUT")
    else:
        return False
    return True


def print_bytes(data: bytes) -> None:
    """Write bytes to standard output, after what it holds already."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _problem(report: FileReport, problem: FileProblem) -> FileReport:
    position = Spot(*problem.position) if problem.position else None
    return replace(report, status=ERROR, error=problem.message, position=position)


def describe_defect(error: Exception) -> str:
    """One line that lets a maintainer find the defect: the exception and where it was raised."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    place = ""
    if frames is not None:
        code = frames.tb_frame.f_code
        place = f" at {os.path.basename(code.co_filename)}:{frames.tb_lineno}"
    detail = f": {error}" if str(error) else ""
    what = f"{type(error).__name__}{detail}{place}"
    return f"{what}; please report this with the script, the file was left alone"
