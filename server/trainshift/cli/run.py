"""Run: convert the inputs one after another, deliver each result, and never let one sink the others."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace

from trainshift.cli.diff import STANDARD_INPUT_NAME, unified_diff
from trainshift.cli.report import ERROR, INTERNAL_ERROR, FileReport, Mode, Reporter, count_lines, line_at
from trainshift.cli.terminal import ProgressBar
from trainshift.engine import conversion
from trainshift.engine.conversion import Conversion, Status
from trainshift.host import files
from trainshift.host.declarations import Declarations
from trainshift.host.files import FileProblem, SourceFile
from trainshift.host.walk import STANDARD_INPUT, Input, collect

INTERRUPTED = 130


@dataclass(frozen=True)
class Request:
    """What the user asked for; `output` (a path, or "-") goes with Mode.OUTPUT only.

    `declarations` tell what versions the projects declare; without them none are looked for.
    """

    paths: tuple[str, ...]
    mode: Mode
    output: str = ""
    line: int | None = None
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


def _process(item: Input, request: Request) -> tuple[FileReport, bytes, str]:
    """What became of one input, its diff, and the encoding that the diff is in."""
    path = STANDARD_INPUT_NAME if item.path == STANDARD_INPUT else item.path
    if item.problem:
        return FileReport(path, ERROR, error=item.problem, named=item.named), b"", "utf-8"
    if item.nothing:
        status = Status.NOTHING_FOUND.value
        return FileReport(path, status, reason=item.nothing, is_directory=True), b"", "utf-8"
    try:
        source = read_input(item, path)
        if request.line is not None and request.line > count_lines(source.text):
            raise FileProblem(
                f"has {count_lines(source.text)} lines, so there is no line {request.line} (--at)"
            )
    except FileProblem as problem:
        return _problem(FileReport(path, ERROR, named=item.named), problem), b"", "utf-8"
    return _convert(source, item, request)


def read_input(item: Input, name: str) -> SourceFile:
    """The file of an input, or standard input under `name`; raises FileProblem."""
    if item.path != STANDARD_INPUT:
        return files.read(item.path)
    if sys.stdin is None:
        raise FileProblem("standard input is closed")
    return files.read_stream(name, sys.stdin.buffer)


def _convert(source: SourceFile, item: Input, request: Request) -> tuple[FileReport, bytes, str]:
    try:
        runtime = request.declarations.of(item.path) if request.declarations else None
        result = conversion.convert(source.text, line=request.line, runtime=runtime)
    except Exception as error:
        report = FileReport(source.path, INTERNAL_ERROR, error=describe_defect(error), named=item.named)
        return report, b"", source.encoding
    report = _described(source, item, result)
    diff = b""
    try:
        diff = unified_diff(source.data, source.encode(result.text), source.path)
        if _deliver(source, result, request):
            report = replace(report, written=True)
    except FileProblem as problem:
        report = _problem(report, problem)
    return report, diff, source.encoding


def _described(source: SourceFile, item: Input, result: Conversion) -> FileReport:
    refused_at = result.position if result.status is Status.REFUSED else None
    return FileReport(
        source.path,
        result.status.value,
        applied=result.applied,
        decisions=result.decisions,
        doubts=result.doubts,
        withheld=result.withheld,
        reason=result.reason,
        position=result.position,
        excerpt=line_at(source.text, refused_at[0]) if refused_at else "",
        differs=result.text != source.text,
        named=item.named,
    )


def _deliver(source: SourceFile, result: Conversion, request: Request) -> bool:
    """Put the converted text where the request wants it; whether that was done.  Raises FileProblem.

    A file that nothing changes is not touched; a filter or -o gets the text all the same, but
    nothing at all when the script is refused.
    """
    if result.status is Status.REFUSED or request.mode in (Mode.DIFF, Mode.CHECK):
        return False
    if request.mode is Mode.OUTPUT and request.output != STANDARD_INPUT:
        files.write_output(request.output, source, result.text)
    elif request.mode is Mode.OUTPUT or source.path == STANDARD_INPUT_NAME:
        print_bytes(source.encode(result.text))
    elif result.text != source.text:
        files.write_in_place(source, result.text, "; use -o OUT")
    else:
        return False
    return True


def print_bytes(data: bytes) -> None:
    """Write bytes to standard output, after what it holds already."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _problem(report: FileReport, problem: FileProblem) -> FileReport:
    return replace(report, status=ERROR, error=problem.message, position=problem.position)


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
