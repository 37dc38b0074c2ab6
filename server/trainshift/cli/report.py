"""Report: the outcome of every file, as text for people or as JSON for programs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, TextIO

from msgspec import Struct

from trainshift.cli.diff import decoded, is_text, lies_outside, print_diffs, root
from trainshift.cli.terminal import Printer, Segment, visible, wants_colour, width_of
from trainshift.engine.cells import Spot
from trainshift.engine.checking import Region
from trainshift.engine.conversion import Note, Status
from trainshift.training.loops.loop_kinds import Pattern

ERROR = "error"
INTERNAL_ERROR = "internal error"
JSON_VERSION = 1


class Mode(Enum):
    """The destination of the converted text."""

    DIFF = "diff"
    WRITE = "write"
    OUTPUT = "output"
    CHECK = "check"


_EXCERPT_WIDTH = 100
_MANY = 3
# The largest number of a program's files to name in one line.
_FEW_NAMES = 6
_STATUS_STYLES = {
    Status.CONVERTED.value: "green",
    Status.ALREADY_DISTRIBUTED.value: "cyan",
    Status.NOTHING_FOUND.value: "yellow",
    Status.REFUSED.value: "red",
    ERROR: "bold red",
    INTERNAL_ERROR: "bold red",
}
# The next step after a run that wrote nothing: with one file, with several, with several of one program.
_NEXT_STEPS = {
    Mode.DIFF: (
        "Add --write to change the file, or -o OUT to write a new one.",
        "Add --write to change the files.",
        "Add --write to change all {number} files, or -o DIR to write them elsewhere.",
    ),
    Mode.CHECK: ("Run without --check to see the changes.",) * 3,
}


class FileReport(Struct, frozen=True):
    """The result for one input.

    `status` is a Status value, ERROR (it could not be read or written) or INTERNAL_ERROR, and `error` says
    why in the last two.  `applied`, `decisions`, `doubts`, `withheld`, `hazards`, `reason` and `position` are
    the engine's; `excerpt` is the source line at `position`.  `differs`: the converted text is different;
    `written`: it was written to its destination.  `named` is false for a file that was found in a directory.
    `is_directory`: a directory stands here because there was no file to convert.

    Of a program of several files, `path` is the start file, the notes name their files, and `parts` are the
    reports on the single files, the start file's first, including those without notes.  `home` is the file
    that `position` is in, if it is another one.  `loops` are the training loops, `unresolved` the imports
    that could not be followed, and `modules` files that the user named in the start file's stead.
    `is_partial`: only a part of the program was to be converted.  `is_unread`: it, or a file that it imports,
    is not valid Python.
    """

    path: str
    status: str
    applied: tuple[Note, ...] = ()
    decisions: tuple[Note, ...] = ()
    doubts: tuple[Note, ...] = ()
    withheld: tuple[Note, ...] = ()
    hazards: tuple[Note, ...] = ()
    reason: str = ""
    position: Spot | None = None
    error: str = ""
    excerpt: str = ""
    differs: bool = False
    written: bool = False
    named: bool = True
    is_directory: bool = False
    parts: tuple[FileReport, ...] = ()
    home: str = ""
    loops: tuple[Note, ...] = ()
    unresolved: tuple[Note, ...] = ()
    modules: tuple[str, ...] = ()
    is_partial: bool = False
    is_unread: bool = False

    @property
    def is_idle(self) -> bool:
        """Return whether there is nothing to report about a part."""
        notes = (self.applied, self.decisions, self.doubts, self.withheld, self.hazards)
        return not (self.differs or any(notes))

    @property
    def files(self) -> list[str]:
        """The files that were read."""
        return [each.path for each in self.parts or (self,)]

    @property
    def changed(self) -> list[str]:
        """The files with a new text."""
        return [each.path for each in self.parts or (self,) if each.differs]

    def exit_status(self, mode: Mode) -> int:
        """Return 2 for an input that could not be read or written, 1 for a refusal or a difference under
        --check, else 0.
        """
        if self.status == ERROR or self.is_unread:
            return 2
        refused = self.status in (Status.REFUSED.value, INTERNAL_ERROR) or bool(self.withheld or self.hazards)
        return int(refused or (mode is Mode.CHECK and self.differs))


class FileDiff(NamedTuple):
    """The diffs of one file, bytes in its encoding: one of a script, several of a notebook."""

    path: str
    diffs: tuple[bytes, ...]
    encoding: str


class Reporter(Protocol):
    """Takes the files one by one, and finishes the report."""

    def file(self, report: FileReport, diffs: Sequence[FileDiff]) -> None:
        """Report one file or program, with the diffs of its changed files."""

    def finish(self, *, interrupted: bool = False) -> None:
        """No more files."""


class Both:
    """Reports everything to two reporters."""

    def __init__(self, *reporters: Reporter) -> None:
        self._reporters = reporters

    def file(self, report: FileReport, diffs: Sequence[FileDiff]) -> None:
        """Report one file or program."""
        for each in self._reporters:
            each.file(report, diffs)

    def finish(self, *, interrupted: bool = False) -> None:
        """No more files."""
        for each in self._reporters:
            each.finish(interrupted=interrupted)


class TextReporter:
    """Diffs to standard output as they come, the report to standard error at the end.

    With a `file`, the report goes there, and there is no diff.
    """

    def __init__(
        self,
        mode: Mode,
        *,
        output: str = "",
        colour: str = "auto",
        quiet: bool,
        verbose: bool,
        file: TextIO | None = None,
    ) -> None:
        self._mode = mode
        self._output = output
        self._quiet = quiet
        self._verbose = verbose
        self._diff_colour = wants_colour(sys.stdout, colour)
        self._file = file
        self._printer = Printer(file or sys.stderr, wants_colour(sys.stderr, colour))
        self._reports: list[FileReport] = []
        self._anything_shown = False

    def file(self, report: FileReport, diffs: Sequence[FileDiff]) -> None:
        """Print the diffs (in diff mode), and remember the report."""
        self._reports.append(report)
        for each in diffs if self._mode is Mode.DIFF and self._file is None else ():
            self._anything_shown = True
            print_diffs(each.diffs, each.encoding, self._diff_colour)

    def finish(self, *, interrupted: bool = False) -> None:
        """Print the report, the totals, and the next step."""
        reports = [report for report in self._reports if not self._quiet or self._is_trouble(report)]
        if reports and self._anything_shown and is_text(self._diff_colour):
            self._printer.line()
        collapsed = Counter() if self._verbose else self._collapsible()
        for report in reports:
            if not (_may_collapse(report) and collapsed[report.reason]):
                self._print_file(report)
        for reason, number in collapsed.items():
            self._print_outcome(
                plural(number, "file"), Status.NOTHING_FOUND.value, f"{reason} (-v lists them)"
            )
        if not self._quiet:
            self._print_totals()
        if interrupted:
            self._printer.line(("Interrupted: files that are not listed above were left alone.", "bold red"))
        sys.stderr.flush()

    def _is_trouble(self, report: FileReport) -> bool:
        return report.exit_status(Mode.DIFF) != 0

    def _collapsible(self) -> Counter[str]:
        """The reasons shared by many files of directories, each with the number of files."""
        reasons = Counter(report.reason for report in self._reports if _may_collapse(report))
        return Counter(
            {reason: number for reason, number in reasons.items() if number > _MANY and not self._quiet}
        )

    def _print_file(self, report: FileReport) -> None:
        for module in report.modules if not self._quiet else ():
            self._printer.line((f"{visible(module)} belongs to the program of {visible(report.path)}.", ""))
        detail = report.error or report.reason
        if report.status == Status.CONVERTED.value:
            self._print_outcome(report.path, *self._converted(report))
        elif report.home:
            found = f"{place(report.home, report.position)}: {detail}"
            self._print_outcome(report.path, report.status, found)
        else:
            if report.status == Status.NOTHING_FOUND.value and report.parts and not report.is_partial:
                names = listed([each.path for each in report.parts])
                detail += f"; {plural(len(report.parts), 'file')} were read: {names}"
            self._print_outcome(place(report.path, report.position), report.status, detail)
        if report.excerpt and report.position:
            for line in excerpt(report.excerpt, report.position.column):
                self._printer.line(("    ", ""), line)
        if report.parts and not self._quiet:
            self._print_parts(report)
        else:
            self._print_all_notes(report, report.reason)
        if not self._quiet:
            self._print_unresolved(report)

    def _print_unresolved(self, report: FileReport) -> None:
        """Print the imports that could not be followed and may hide a training loop."""
        imports = [f"{place(each.path or report.path, each)} {each.text}" for each in report.unresolved]
        if imports:
            self._printer.line(("    not followed: ", "yellow"), (listed(imports), ""))

    def _print_parts(self, report: FileReport) -> None:
        """Print the outcome for each file of a program, and its training loops."""
        for pattern in dict.fromkeys(loop.text for loop in report.loops):
            places = [place(each.path or report.path, each) for each in report.loops if each.text == pattern]
            self._printer.line(
                (f"    {Pattern(pattern).words}", "green"),
                (f" {_plural_of('loop', places)} at {listed(places)}", ""),
            )
        for part in report.parts:
            if not part.is_idle:
                told = "needed by the others" if part.differs else "no change"
                told = plural(len(part.applied), "change") if part.applied else told
                self._printer.line((f"    {visible(part.path)}", "bold"), (f": {told}", ""))
                self._print_all_notes(part, report.reason, "        ")
        idle = [part.path for part in report.parts if part.is_idle]
        if idle and report.status == Status.CONVERTED.value and not report.is_partial:
            self._printer.line((f"    {listed(idle)}: nothing to change", "dim"))

    def _print_all_notes(self, report: FileReport, reason: str, indent: str = "    ") -> None:
        """Print all notes except the one already printed as the outcome's `reason`."""
        if self._verbose:
            self._print_notes(report.path, report.applied, "", "green", indent)
        if not self._quiet:
            self._print_notes(report.path, report.decisions, "decided: ", "cyan", indent)
            self._print_notes(report.path, report.doubts, "please check: ", "yellow", indent)
        withheld = tuple(note for note in report.withheld if f"{note.rule}: {note.text}" != reason)
        self._print_notes(report.path, withheld, "withheld: ", "red", indent)
        self._print_notes(report.path, report.hazards, "", "red", indent)

    def _converted(self, report: FileReport) -> tuple[str, str]:
        number = plural(len(report.applied), "change")
        changes = f"({number})"
        if report.parts:
            changes = f"({number} in {len(report.changed)} of {len(report.parts)} files)"
        if report.written and self._output:
            return report.status, f"{changes}, written to {self._output}"
        if report.written:
            return report.status, f"{changes}, written"
        if self._mode is Mode.CHECK:
            return "would be converted", changes
        return report.status, changes

    def _print_outcome(self, place: str, status: str, detail: str) -> None:
        separator = " " if detail.startswith("(") else ": " if detail else ""
        self._printer.line(
            (visible(place), "bold"),
            (": ", ""),
            (status, _STATUS_STYLES.get(status, "green")),
            (separator + visible(detail), ""),
        )

    def _print_notes(
        self, path: str, notes: tuple[Note, ...], label: str, style: str, indent: str = "    "
    ) -> None:
        alike: dict[tuple[object, ...], list[Note]] = {}
        for note in notes:
            alike.setdefault((note.rule, note.text, note.path, note.cell), []).append(note)
        for note, *more in alike.values():
            lines = [str(each) for each in sorted({each.line for each in more} - {note.line})]
            self._printer.line(
                (indent + visible(place(note.path or path, note)) + ": ", ""),
                (note.rule + " " if note.rule else "", "bold"),
                (label, style),
                (visible(note.text), ""),
                (
                    f" (also in {'line' if len(lines) == 1 else 'lines'} {listed(lines)})" if lines else "",
                    "dim",
                ),
            )

    def _print_totals(self) -> None:
        summary = summarize(self._reports)
        if summary["files"] > 1:
            counts = {status: summary[_key(status)] for status in _STATUS_STYLES}
            parts = [
                plural(number, status) if status in (ERROR, INTERNAL_ERROR) else f"{number} {status}"
                for status, number in counts.items()
                if number
            ]
            of = plural(summary["files"], "file")
            if any(report.parts for report in self._reports):
                of = f"{plural(len(self._reports), 'program')} of {of}"
            if len(self._reports) > 1:
                self._printer.line((f"{of}: {', '.join(parts)}", "bold"))
        changed = [path for report in self._reports if not report.written for path in report.changed]
        if changed and self._mode in _NEXT_STEPS:
            one, several, together = _NEXT_STEPS[self._mode]
            step = several
            if len(self._reports) == 1:
                step = one if len(changed) == 1 else together.format(number=len(changed))
            self._printer.line((f"Nothing was written. {step}", "dim"))
        if any(lies_outside(path) for path in changed) and self._mode is Mode.DIFF:
            self._printer.line(
                (f"Paths in the diff are relative to {root()}: apply it with `patch -d {root()} -p1`.", "dim")
            )


class JsonReporter:
    """One JSON document on standard output, written file by file."""

    def __init__(self) -> None:
        self._entries = 0
        self._files: set[str] = set()
        self._programs: list[dict[str, object]] = []
        self._totals: Counter[str] = Counter()
        self._written = False

    def file(self, report: FileReport, diffs: Sequence[FileDiff]) -> None:
        """Write the entry of a file, or of each file of a program with notes."""
        self._totals.update(summarize([report]))
        self._files |= _files_of([report])
        self._written = self._written or report.written
        by_path = {each.path: each for each in diffs}
        if report.parts or report.unresolved or report.modules:
            self._programs.append(_program_entry(report))
        for part in (report, *(each for each in report.parts[1:] if not each.is_idle)):
            sys.stdout.write(",\n" if self._entries else f'{{"version": {JSON_VERSION}, "files": [\n')
            self._entries += 1
            told = _entry(part, by_path.get(part.path))
            json.dump({**told, "program": report.path} if report.parts else told, sys.stdout)

    def finish(self, *, interrupted: bool = False) -> None:
        """Write the totals and close the document."""
        if not self._entries:
            sys.stdout.write(f'{{"version": {JSON_VERSION}, "files": [')
        summary = {key: self._totals[key] for key in summarize([])} | {"files": len(self._files)}
        tail: dict[str, object] = {"programs": self._programs} if self._programs else {}
        tail |= {"summary": summary, "written": self._written}
        tail |= {"interrupted": True} if interrupted else {}
        sys.stdout.write("\n], " + json.dumps(tail)[1:] + "\n")
        sys.stdout.flush()


def summarize(reports: list[FileReport]) -> dict[str, int]:
    """The number of files, of programs per status (its spaces as underscores), and of each kind of note."""
    files = [report for report in reports if not report.is_directory or report.status == ERROR]
    statuses = Counter(report.status for report in files)
    return {
        "files": len(_files_of(files)),
        **{_key(status): statuses[status] for status in _STATUS_STYLES},
        "changes": sum(len(report.applied) for report in files),
        "decisions": sum(len(report.decisions) for report in files),
        "doubts": sum(len(report.doubts) for report in files),
        "withheld": sum(len(report.withheld) for report in files),
        "hazards": sum(len(report.hazards) for report in files),
    }


def _files_of(reports: Iterable[FileReport]) -> set[str]:
    """The files in some reports; one file may be in several programs."""
    return {path for report in reports if not report.is_directory for path in report.files}


def _may_collapse(report: FileReport) -> bool:
    quiet = report.status == Status.NOTHING_FOUND.value and not report.named and not report.is_directory
    return quiet and not report.doubts and not report.withheld


def _program_entry(report: FileReport) -> dict[str, object]:
    def told(note: Note) -> dict[str, object]:
        return {"path": note.path or report.path, **place_entry(note)}

    return {
        "path": report.path,
        "status": report.status,
        "files": report.files,
        "changed": report.changed,
        "loops": [{**told(each), "pattern": each.text} for each in report.loops],
        "unresolved": [{**told(each), "text": each.text} for each in report.unresolved],
        "asked_for": list(report.modules),
        "reason": report.reason,
        "error": report.error or None,
    }


def _entry(report: FileReport, diff: FileDiff | None) -> dict[str, object]:
    own = report.parts[0] if report.parts else report
    position = place_entry(report.position) if report.position else None
    return {
        "path": report.path,
        "status": report.status,
        "applied": [_note(note) for note in own.applied],
        "decisions": [_note(note) for note in own.decisions],
        "doubts": [_note(note) for note in own.doubts],
        "withheld": [_note(note) for note in own.withheld],
        "hazards": [_note(note) for note in own.hazards],
        "reason": report.reason,
        "position": {"path": report.home, **(position or {})} if report.home else position,
        "diff": "".join(decoded(each, diff.encoding) for each in diff.diffs) if diff else "",
        "written": own.written,
        "error": report.error or None,
    }


def _note(note: Note) -> dict[str, object]:
    return {"rule": note.rule, **place_entry(note), "text": note.text}


def place_entry(where: Spot | Note) -> dict[str, int | str]:
    """A place for programs."""
    cell = {} if where.cell is None else {"cell": where.cell}
    return {**cell, "line": where.line, "column": where.column}


def place(path: str, where: Spot | Note | Region | None) -> str:
    """Format `path` and the 1-based line and column like a compiler."""
    return f"{path}:{short_place(where)}" if where else path


def short_place(where: Spot | Note | Region) -> str:
    """A place in a file: `12:5`, or `cell 3:12:5` in a notebook."""
    cell = "" if where.cell is None else f"cell {where.cell}:"
    return f"{cell}{where.line}:{where.column}"


def excerpt(line: str, column: int, end: int | None = None) -> Iterator[Segment]:
    """The source line without its indentation, and a caret under the 1-based `column`.

    With `end`, the column after the last one meant, the whole stretch is underlined with tildes.
    A long line is cut around the mark.
    """
    indentation = len(line) - len(line.lstrip())
    line = line[indentation:]
    at = max(0, min(column - 1 - indentation, len(line)))
    start = max(0, at - _EXCERPT_WIDTH // 2) if len(line) > _EXCERPT_WIDTH else 0
    before = visible(line[start:at].replace("\t", "    "))
    meant = max(at, min(end - 1 - indentation, start + _EXCERPT_WIDTH)) if end is not None else at
    within = visible(line[at:meant].replace("\t", "    "))
    after = visible(line[meant : start + _EXCERPT_WIDTH].replace("\t", "    "))
    lead = "… " if start else ""
    trail = " …" if start + _EXCERPT_WIDTH < len(line) else ""
    yield lead + before + within + after + trail, ""
    mark = "^" if end is None else "~" * max(1, width_of(within))
    yield " " * width_of(lead + before) + mark, "bold red"


def _key(status: str) -> str:
    return status.replace(" ", "_")


def plural(number: int, noun: str) -> str:
    """The number with its noun: "1 file", "2 files"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _plural_of(noun: str, things: Sequence[object]) -> str:
    return noun if len(things) == 1 else f"{noun}s"


def listed(names: Sequence[str]) -> str:
    """Join names up to a limit, and count the rest."""
    shown = [visible(name) for name in names[:_FEW_NAMES]]
    if len(names) > _FEW_NAMES + 1:
        return f"{', '.join(shown)} and {len(names) - _FEW_NAMES} more"
    return ", ".join(visible(name) for name in names)
