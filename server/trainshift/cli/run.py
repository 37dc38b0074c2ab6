"""Convert the inputs one after another, deliver each result, and continue after failures."""

from __future__ import annotations

import os
from typing import NamedTuple

from msgspec.structs import replace

from trainshift.cli.diff import STANDARD_INPUT_NAME
from trainshift.cli.documents import Document, existing, read_document
from trainshift.cli.programs.changes import changed_files, described, is_program
from trainshift.cli.programs.delivery import deliver_program, deliver_text
from trainshift.cli.programs.request import Request
from trainshift.cli.programs.sources import Sources, home
from trainshift.cli.programs.units import Unit, units
from trainshift.cli.report import ERROR, INTERNAL_ERROR, FileDiff, FileReport, Mode, Reporter, listed, place
from trainshift.cli.terminal import ProgressBar, describe_defect
from trainshift.engine import conversion
from trainshift.engine.cells import Spot
from trainshift.engine.conversion import Conversion, Status
from trainshift.engine.own_codes import SYNTAX_ERROR
from trainshift.host.configuration import ConfigurationProblem
from trainshift.host.files import FileProblem, shown_path
from trainshift.host.walk import STANDARD_INPUT, Input, collect
from trainshift.python.garbage import uncollected

INTERRUPTED = 130


class Outcome(NamedTuple):
    """The outcome for one unit, and the diffs of its files."""

    report: FileReport
    diffs: tuple[FileDiff, ...] = ()


def run(request: Request, reporter: Reporter) -> int:
    """Convert all inputs of `request`, report to `reporter`, and return the exit status."""
    status = 0
    try:
        inputs = _inputs(request)
        with ProgressBar(len(inputs), wanted=request.show_progress) as progress, uncollected():
            sources = Sources(progress.reading, request.choices_of)
            found = units(inputs, sources)
            progress.expect(len(found))
            for unit in found:
                progress.show(unit.item.path)
                progress.start_late()
                report, diffs = _process(unit, request, sources)
                status = max(status, report.exit_status(request.mode))
                if diffs:
                    with progress.hidden():
                        reporter.file(report, diffs)
                else:
                    reporter.file(report, diffs)
                progress.advance()
                sources.parsed.release()
    except KeyboardInterrupt:
        reporter.finish(interrupted=True)
        return INTERRUPTED
    reporter.finish()
    return status


def _inputs(request: Request) -> list[Input]:
    """The inputs, without files of an earlier run below an -o DIR in a walked directory."""
    inputs = list(collect(request.paths, request.exclude))
    output = os.path.join(os.path.realpath(request.output), "")
    if not request.output or os.path.join(os.path.realpath(request.folder), "").startswith(output):
        return inputs
    return [each for each in inputs if each.named or not os.path.realpath(each.path).startswith(output)]


def _process(unit: Unit, request: Request, sources: Sources) -> Outcome:
    """Convert one unit and deliver the result; never raises because of the input."""
    item = unit.item
    path = STANDARD_INPUT_NAME if item.path == STANDARD_INPUT else item.path
    is_partial = request.at is not None or bool(request.only)
    report = FileReport(path, ERROR, named=item.named, modules=unit.modules, is_partial=is_partial)
    if item.problem:
        return Outcome(replace(report, error=item.problem))
    if item.nothing or unit.reason:
        status, reason = Status.NOTHING_FOUND.value, item.nothing or unit.reason
        return Outcome(replace(report, status=status, reason=reason, is_directory=bool(item.nothing)))
    outcome = Outcome(report)
    try:
        known = sources.known(unit.path)
        document = Document(replace(known, path=path)) if known else read_document(item, path)
        result = _conversion(document, unit, request, sources)
        if is_program(result):
            result, after = document.converted(result)
            report = described(report, document, result)
            changed = changed_files(document, after, result, sources)
            outcome = Outcome(report, tuple(each.diff for each in changed))
            named = [item.path, *unit.modules]
            written = deliver_program(document, after, changed, result, request, named, sources.parsed)
            for each in changed:
                sources.change(each.path, each.file, each.text, written and request.mode is Mode.WRITE)
        else:
            result, after = document.converted(result)
            outcome = _of_one_text(document, after, result, report)
            written = deliver_text(document, after, result, request)
            if unit.path and outcome.report.differs:
                is_written = written and request.mode is Mode.WRITE
                sources.change(unit.path, document.file, after.file.text, is_written)
        parts = tuple(replace(part, written=written and part.differs) for part in outcome.report.parts)
        return Outcome(replace(outcome.report, written=written, parts=parts), outcome.diffs)
    except FileProblem as problem:
        return Outcome(_problem(outcome.report, problem), outcome.diffs)
    except ConfigurationProblem as problem:
        return Outcome(replace(report, error=str(problem)))
    except Exception as error:
        return Outcome(
            replace(outcome.report, status=INTERNAL_ERROR, error=describe_defect(error)), outcome.diffs
        )


def _conversion(document: Document, unit: Unit, request: Request, sources: Sources) -> Conversion:
    """The conversion of a program, or of its requested part."""
    runtime = request.declarations.of(unit.item.path) if request.declarations else None
    choices = request.choices_of(unit.path or unit.item.path)
    at = _statement(document, unit, request, sources)
    only = home(request.only) if request.only else ""
    if not unit.path:
        if only:
            raise FileProblem("is a single script or notebook; --only needs a program of several files")
        line = at[1] if at else None
        return conversion.convert(
            document.text, line=line, runtime=runtime, choices=choices, apart=document.starts
        )
    result = conversion.convert_program(
        document.text,
        unit.path,
        sources.parsed,
        at=at,
        only=only,
        runtime=runtime,
        claims=sources.claims,
        choices=choices,
        apart=document.starts,
    )
    read = [each.path for each in result.files]
    for wanted in filter(None, (only, at[0] if at else "")):
        if read and wanted not in read:
            names = listed([shown_path(each) for each in read])
            raise FileProblem(f"does not import {shown_path(wanted)}; its program is {names}")
    if only and result.status is Status.CONVERTED and not result.applied:
        reason = f"nothing in {shown_path(only)} needs a change"
        return replace(result, status=Status.NOTHING_FOUND, reason=reason)
    return result


def _statement(document: Document, unit: Unit, request: Request, sources: Sources) -> tuple[str, int] | None:
    """The file and the line for --at; raises FileProblem if the line does not exist."""
    at = request.at
    if at is None:
        return None
    named = at.file or (unit.modules[0] if unit.modules else unit.item.path)
    path = home(named)
    if path == (unit.path or home(unit.item.path)):
        return unit.path, document.line_at(at.cell, at.line)
    if not unit.path:
        raise FileProblem(f"is a single script or notebook, and has no {named} (--at)")
    code = sources.parsed.read(path)
    if code is None:
        raise FileProblem("cannot be read as Python (--at)", path=named)
    try:
        return path, existing(code.source.text, at.line)
    except FileProblem as problem:
        raise FileProblem(problem.message, path=named) from problem


def _of_one_text(document: Document, after: Document, result: Conversion, report: FileReport) -> Outcome:
    """The outcome for a single script, a notebook or standard input."""
    spot = document.spot(*result.position) if result.position else None
    report = replace(
        report,
        status=result.status.value,
        applied=document.notes(result.applied),
        decisions=document.notes(result.decisions),
        doubts=document.notes(result.doubts),
        withheld=document.notes(result.withheld),
        hazards=document.notes(result.hazards),
        reason=result.reason,
        position=spot,
        excerpt=(document.shown().line(spot) or "") if spot and result.status is Status.REFUSED else "",
        differs=result.text != document.text,
        unresolved=result.unresolved,
        is_unread=result.code == SYNTAX_ERROR.code,
    )
    diffs = document.diff(after)
    return Outcome(report, (FileDiff(report.path, diffs, document.file.encoding),) if diffs else ())


def _problem(report: FileReport, problem: FileProblem) -> FileReport:
    """The report of a file or program that could not be read or written."""
    position = Spot(*problem.position) if problem.position else None
    message = problem.message
    if problem.path and problem.path != report.path:
        message = f"{place(problem.path, position)} {message}"
        position = None
    if report.parts:
        report = FileReport(report.path, ERROR, named=report.named, modules=report.modules)
    return replace(report, status=ERROR, error=message, position=position)
