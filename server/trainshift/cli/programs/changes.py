"""Changes: the files of a program after a conversion, and their reports."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from trainshift.cli.diff import unified_diff
from trainshift.cli.documents import Document, Shown
from trainshift.cli.programs.sources import Sources
from trainshift.cli.report import FileDiff, FileReport
from trainshift.engine.cells import Spot
from trainshift.engine.conversion import Conversion, Note, Status
from trainshift.engine.own_codes import SYNTAX_ERROR
from trainshift.host.files import FileProblem, SourceFile, shown_path


class ChangedFile(Struct, frozen=True):
    """A file of a program: its absolute path, its content, and its new content."""

    path: str
    file: SourceFile
    text: str
    cells: tuple[bytes, ...] = ()
    """The diffs of its cells, of a notebook."""

    @property
    def diff(self) -> FileDiff:
        """The diff of the two contents; raises FileProblem if the file's encoding lacks a character."""
        name = self.file.path
        if self.cells:
            return FileDiff(name, self.cells, self.file.encoding)
        try:
            after = self.file.encode(self.text)
        except FileProblem as problem:
            raise FileProblem(problem.message, path=name) from problem
        return FileDiff(name, (unified_diff(self.file.data, after, name),), self.file.encoding)


def is_program(result: Conversion) -> bool:
    """Return whether a conversion is about more than one file, be it one that could not be read."""
    return len(result.files) > 1 or bool(result.path) or any(note.path for note in result.withheld)


def changed_files(
    document: Document, after: Document, result: Conversion, sources: Sources
) -> list[ChangedFile]:
    """The files that a conversion changes: the start file `document` first, then those of `after`.

    Raises FileProblem if one of them has changed since the conversion.
    """

    def found() -> Iterator[ChangedFile]:
        start = result.files[0]
        for each in result.files:
            if each.text == each.before:
                continue
            if each is start:
                cells = document.diff(after) if document.starts else ()
                yield ChangedFile(each.path, document.file, after.file.text, cells)
            else:
                yield ChangedFile(each.path, sources.file(each.path, each.before), each.text)

    return list(found())


def described(report: FileReport, document: Document, result: Conversion) -> FileReport:
    """The report with the outcome of a program of several files, as a whole and file by file."""
    start = result.files[0].path
    notes = (*result.applied, *result.decisions, *result.doubts, *result.withheld, *result.unresolved)
    notes = (*notes, *result.hazards)
    paths = [*(each.path for each in result.files), *(note.path for note in notes), result.path]
    names = {path: shown_path(path) for path in paths if path} | {start: report.path}

    def told(notes: tuple[Note, ...]) -> tuple[Note, ...]:
        here = [document.notes((note,))[0] if note.path in ("", start) else note for note in notes]
        return tuple(replace(note, path=names[note.path or start]) for note in here)

    elsewhere = result.path if result.path != start else ""
    position = result.position
    spot = (Spot(*position) if elsewhere else document.spot(*position)) if position else None
    report = replace(
        report,
        status=result.status.value,
        applied=told(result.applied),
        decisions=told(result.decisions),
        doubts=told(result.doubts),
        withheld=told(result.withheld),
        hazards=told(result.hazards),
        reason=result.reason,
        position=spot,
        home=names[elsewhere] if elsewhere else "",
        excerpt=_excerpt(document, result, spot, elsewhere) if result.status is Status.REFUSED else "",
        differs=result.status is Status.CONVERTED,
        is_unread=result.code == SYNTAX_ERROR.code,
        loops=told(result.loops),
        unresolved=told(result.unresolved),
    )
    changed = {each.path for each in result.files if each.text != each.before}
    parts = tuple(
        FileReport(
            name,
            report.status,
            applied=_of(report.applied, name),
            decisions=_of(report.decisions, name),
            doubts=_of(report.doubts, name),
            withheld=_of(report.withheld, name),
            hazards=_of(report.hazards, name),
            differs=path in changed,
        )
        for path, name in names.items()
    )
    return replace(report, parts=parts)


def _of(notes: tuple[Note, ...], name: str) -> tuple[Note, ...]:
    return tuple(note for note in notes if note.path == name)


def _excerpt(document: Document, result: Conversion, spot: Spot | None, elsewhere: str) -> str:
    """The line of a place, in the document or in another file."""
    if spot is None:
        return ""
    if not elsewhere:
        return document.shown().line(spot) or ""
    texts = {each.path: each.before for each in result.files}
    return Shown(texts.get(elsewhere, "")).line(spot) or ""
