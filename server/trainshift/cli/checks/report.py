"""Check report: the checker's report on each file, as text, JSON or GitHub annotations."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from trainshift.cli.diff import print_diffs
from trainshift.cli.documents import Shown
from trainshift.cli.report import (
    INTERNAL_ERROR,
    excerpt,
    place,
    place_entry,
    plural,
    short_place,
)
from trainshift.cli.terminal import Printer, Segment, visible, wants_colour
from trainshift.core.finding import Verdict
from trainshift.engine.cells import Spot
from trainshift.engine.checking import Diagnostic, Region
from trainshift.engine.settings import Severity
from trainshift.python.source.edit import Change

JSON_VERSION = 1

_WIDTH = 120
# The number of slowest files to list, and the least seconds that a listed file takes.
_MOST_SLOW = 10
_LEAST_SHOWN = 0.01

_STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "yellow",
    Severity.INFORMATION: "cyan",
    Severity.HINT: "dim",
}
_SUBJECTS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "informational finding",
    Severity.HINT: "hint",
}


@dataclass(frozen=True)
class FileCheck:
    """The result for one input.

    `diagnostics` are about what is `shown` (nothing when there are none), which is the text after the fixes
    if they were written; `applied` counts the fixes by code, and `diffs` (bytes in `encoding`) show them.
    `error` says why the file could not be read or written, with its place; `is_defect` tells that it is a
    failure of ours.  `nothing` is what to say of a directory that holds no Python file, or of a notebook in
    another language.  `by_hand` tells how the program that it starts was distributed already, `forecast`
    what a conversion of it does.  `programs` are the start files of the programs that a module belongs to,
    where something was found in it.  `seconds` of the processor's time were spent on it, None where it was
    looked up.
    """

    path: str
    shown: Shown = Shown()  # noqa: RUF009
    diagnostics: tuple[Diagnostic, ...] = ()
    suppressed: int = 0
    applied: Mapping[str, int] = field(default_factory=dict)
    diffs: tuple[bytes, ...] = ()
    encoding: str = "utf-8"
    error: str = ""
    position: Spot | None = None
    is_defect: bool = False
    nothing: str = ""
    programs: tuple[str, ...] = ()
    by_hand: str = ""
    forecast: str = ""
    seconds: float | None = field(default=None, compare=False)

    @property
    def is_silent(self) -> bool:
        """Return whether nothing is to be said of it."""
        return not (self.diagnostics or self.error or self.diffs or self.nothing or self.applied)

    def exit_status(self, fail_on: Severity | None) -> int:
        """Return 2 for a file that was not (fully) checked, 1 for a finding at or above `fail_on`, else 0."""
        if self.error or any(each.is_error_of_ours for each in self.diagnostics):
            return 2
        return int(fail_on is not None and any(each.severity >= fail_on for each in self.diagnostics))


class CheckReporter(Protocol):
    """Takes the files one by one, and finishes the report."""

    def file(self, result: FileCheck) -> None:
        """Add a file to the report."""

    def finish(self, *, interrupted: bool = False) -> None:
        """No more files."""


@dataclass
class Totals:
    """The sums over a run; findings below `least` do not count as fixable."""

    least: Severity = Severity.HINT
    files: int = 0
    with_findings: int = 0
    errors: int = 0
    suppressed: int = 0
    fixable: int = 0
    severities: Counter[Severity] = field(default_factory=Counter)
    codes: Counter[tuple[str, str, Verdict]] = field(default_factory=Counter)
    applied: Counter[str] = field(default_factory=Counter)

    def add(self, result: FileCheck) -> None:
        """Add a file to the totals."""
        self.files += not result.nothing
        self.errors += bool(result.error)
        self.with_findings += bool(result.diagnostics)
        self.suppressed += result.suppressed
        self.applied.update(result.applied)
        for each in result.diagnostics:
            self.severities[each.severity] += 1
            self.codes[each.code, each.name, each.verdict] += 1
            self.fixable += each.is_mended(self.least)

    def as_json(self) -> dict[str, object]:
        """The sums for programs."""
        codes: dict[str, dict[str, int]] = {}
        for (code, _, verdict), number in sorted(self.codes.items(), key=lambda item: item[0][0]):
            codes.setdefault(code, dict.fromkeys((each.value for each in Verdict), 0))[verdict.value] = number
        return {
            "files": self.files,
            "files_with_findings": self.with_findings,
            "files_with_errors": self.errors,
            **{severity.label: self.severities[severity] for severity in _STYLES},
            "suppressed": self.suppressed,
            "fixable": self.fixable,
            "fixed": sum(self.applied.values()),
            "codes": codes,
        }


class TextCheckReporter:
    """Print the findings file by file on standard output, and problems on standard error.

    `least` is the severity from which on findings are shown; the others are only counted.
    `diff` shows the diffs instead, and the report goes to standard error; `aside` sends the report
    there because standard output takes the fixed script.
    """

    def __init__(
        self,
        *,
        colour: str = "auto",
        quiet: bool = False,
        least: Severity = Severity.WARNING,
        statistics: bool = False,
        diff: bool = False,
        aside: bool = False,
    ) -> None:
        stream = sys.stderr if diff or aside else sys.stdout
        self._stream = stream
        self._printer = Printer(stream, wants_colour(stream, colour))
        self._errors = Printer(sys.stderr, wants_colour(sys.stderr, colour))
        self._colour = wants_colour(stream, colour)
        self._diff_colour = wants_colour(sys.stdout, colour)
        self._quiet = quiet
        self._least = least
        self._statistics = statistics
        self._diff = diff
        self._totals = Totals(least)
        self._shown: set[tuple[int, str]] = set()
        self._nothing: list[tuple[str, str]] = []
        self._spent: list[tuple[float, str]] = []
        self._looked_up = 0
        self._forecasts: list[str] = []

    def file(self, result: FileCheck) -> None:
        """Show the findings of a file whose severity is high enough."""
        self._totals.add(result)
        if result.forecast:
            self._forecasts.append(result.forecast)
        if result.seconds is None:
            self._looked_up += 1
        else:
            self._spent.append((result.seconds, result.path))
        if result.nothing:
            self._nothing.append((result.path, result.nothing))
        if result.error:
            self._show_error(result)
        if self._diff:
            print_diffs(result.diffs, result.encoding, self._diff_colour)
            return
        shown = [each for each in result.diagnostics if each.severity >= self._least]
        # In verbose mode, the way in which a program was distributed gets a line of its own.
        summary = result.by_hand or result.forecast
        tells = bool(summary) and self._least <= Severity.INFORMATION and not self._quiet
        if not (shown or tells) or self._statistics:
            return
        self._shown.update((-each.severity, each.code) for each in shown)
        if not self._quiet:
            whose = f" (program of {visible(' and '.join(result.programs))})" if result.programs else ""
            self._printer.line((visible(result.path), "bold underline"), (whose, "dim"))
            if summary:
                self._printer.line((f"  {visible(summary)}", "dim"))
        for each in shown:
            if self._quiet:
                self._show_line(result.path, each)
            else:
                self._show(result, each)
        if not self._quiet:
            self._printer.line()
        self._stream.flush()

    def finish(self, *, interrupted: bool = False) -> None:
        """Show the totals and the next steps."""
        for path, reason in self._nothing if not self._quiet else ():
            self._errors.line((visible(path), "bold"), (f": {reason}", ""))
        if self._statistics:
            self._show_statistics()
        if not self._quiet:
            self._show_summary()
        if self._statistics and not self._quiet:
            self._show_times()
        self._stream.flush()
        if interrupted:
            self._errors.line(("Interrupted: later files were not checked.", "bold red"))
        sys.stderr.flush()

    def _show(self, result: FileCheck, each: Diagnostic) -> None:
        self._printer.line(
            (f"  {short_place(each.region)} ", ""),
            (each.code, self._linked("bold", each)),
            (" ", ""),
            (each.severity.label, _STYLES[each.severity]),
            (f" {self._wrapped(each)}", ""),
        )
        for segment in _underlined(result.shown, each.region):
            self._printer.line(("      | ", "dim"), segment)
        for other in each.related:
            home = "" if other.path == result.path else f"{visible(other.path)}:"
            where = f"{home}{short_place(other.region)}"
            self._printer.line((f"      {where} {visible(other.message)}", "dim"))
        if each.fix is not None:
            self._printer.line(("      fix: ", "green"), (visible(each.fix.title), ""))

    def _wrapped(self, each: Diagnostic) -> str:
        """Wrap the message; on a terminal, indent further lines like the source line."""
        message = visible(each.message)
        if not self._stream.isatty():
            return message
        start = f"  {short_place(each.region)} {each.code} {each.severity.label} "
        width = max(60, min(shutil.get_terminal_size().columns, _WIDTH))
        filled = textwrap.fill(
            message,
            width,
            initial_indent="x" * len(start),
            subsequent_indent="      ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        return filled[len(start) :]

    def _show_line(self, path: str, each: Diagnostic) -> None:
        where = place(path, each.region)
        self._printer.line(
            (visible(where), "bold"),
            (": ", ""),
            (each.code, self._linked("bold", each)),
            (" ", ""),
            (each.severity.label, _STYLES[each.severity]),
            (f": {visible(each.message)}", ""),
        )

    def _linked(self, style: str, each: Diagnostic) -> str:
        """The style, with a link to the code's page if the terminal supports links."""
        return f"{style} link {each.url}" if self._colour and each.url else style

    def _show_error(self, result: FileCheck) -> None:
        sys.stdout.flush()
        kind = INTERNAL_ERROR if result.is_defect else "error"
        self._errors.line(
            (visible(place(result.path, result.position)), "bold"),
            (": ", ""),
            (kind, "bold red"),
            (f": {visible(result.error)}", ""),
        )
        sys.stderr.flush()

    def _show_statistics(self) -> None:
        by_code: dict[tuple[str, str], Counter[Verdict]] = {}
        for (code, name, verdict), number in self._totals.codes.items():
            by_code.setdefault((code, name), Counter())[verdict] = number
        width = max((len(name) for _, name in by_code), default=0)
        if by_code:
            heads = "".join(f"{verdict.value:>10}" for verdict in Verdict)
            self._printer.line((f"{'':4}  {'':{width}}{heads}", "dim"))
        for (code, name), verdicts in sorted(by_code.items()):
            cells = "".join(f"{verdicts[verdict] or '-':>10}" for verdict in Verdict)
            self._printer.line((code, "bold"), (f"  {name:<{width}}{cells}", ""))
        if by_code and not self._quiet:
            self._printer.line()

    def _show_times(self) -> None:
        """Print the times on standard error, since they differ from run to run."""
        slowest = sorted((each for each in self._spent if each[0] >= _LEAST_SHOWN), reverse=True)[:_MOST_SLOW]
        if slowest:
            self._errors.line(("The slowest files:", "dim"))
        for seconds, path in slowest:
            self._errors.line((f"{seconds:8.2f} s  {visible(path)}", "dim"))
        if self._looked_up:
            self._errors.line((f"{plural(self._looked_up, 'file')} looked up in the cache.", "dim"))

    def _show_summary(self) -> None:
        totals = self._totals
        loud = [
            plural(totals.severities[severity], noun)
            for severity, noun in _SUBJECTS.items()
            if totals.severities[severity] and (severity >= self._least or self._statistics)
        ]
        hidden = sum(number for severity, number in totals.severities.items() if severity < self._least)
        checked = plural(totals.files, "file")
        where = checked if totals.with_findings == totals.files else f"{totals.with_findings} of {checked}"
        if loud:
            text = f"{_listed(loud)} in {where}"
            style = "bold"
        else:
            text = f"Nothing found in {checked}{self._forecast()}"
            style = "bold green" if totals.files and not totals.errors else "bold"
        if hidden and not self._statistics:
            text += f" (+ {hidden} informational; -v shows {'them' if hidden > 1 else 'it'})"
        if totals.suppressed:
            text += f", {totals.suppressed} suppressed"
        if totals.errors:
            text += f", {plural(totals.errors, 'file')} not checked"
        fixed = sum(totals.applied.values())
        if fixed and self._diff:
            text += f"; --fix would make {fixed} {'fix' if fixed == 1 else 'fixes'}. Nothing was written"
        elif fixed:
            done = ", ".join(f"{number} {code}" for code, number in sorted(totals.applied.items()))
            text = f"Fixed {fixed} ({done}). {text} now"
        elif totals.fixable and not self._diff:
            text += f"; {totals.fixable} can be fixed with --fix"
        self._printer.line((f"{text}.", style))
        if self._shown:
            _, code = min(self._shown)
            self._printer.line((f"`trainshift explain {code}` says why it matters and what to do.", "dim"))

    def _forecast(self) -> str:
        """The forecast of the conversion, for a run without findings."""
        forecasts = self._forecasts
        if len(forecasts) < 2:
            return f": {forecasts[0]}" if forecasts else ""
        number = sum("`convert` distributes" in each for each in forecasts)
        which = "them" if number == len(forecasts) else f"{number} of them"
        return f": {len(forecasts)} programs train; `convert` distributes {which}" if number else ""


class JsonCheckReporter:
    """One JSON document on standard output, written file by file."""

    def __init__(self) -> None:
        self._totals = Totals()
        self._files = 0

    def file(self, result: FileCheck) -> None:
        """Write the file's entry."""
        if result.nothing:
            return
        sys.stdout.write(",\n" if self._files else f'{{"version": {JSON_VERSION}, "files": [\n')
        self._files += 1
        self._totals.add(result)
        json.dump(_entry(result), sys.stdout)

    def finish(self, *, interrupted: bool = False) -> None:
        """Write the sums and close the document."""
        if not self._files:
            sys.stdout.write(f'{{"version": {JSON_VERSION}, "files": [')
        tail = {"summary": self._totals.as_json()} | ({"interrupted": True} if interrupted else {})
        sys.stdout.write("\n], " + json.dumps(tail)[1:] + "\n")
        sys.stdout.flush()


class GithubReporter:
    """GitHub annotations: one workflow command per finding."""

    _COMMANDS = {  # noqa: RUF012
        Severity.ERROR: "error",
        Severity.WARNING: "warning",
        Severity.INFORMATION: "notice",
        Severity.HINT: "notice",
    }

    def file(self, result: FileCheck) -> None:
        """Write the annotations of a file."""
        if result.error:
            kind = INTERNAL_ERROR if result.is_defect else "error"
            line, column, _ = result.position or Spot(1, 1)
            self._write(
                "error", result.path, Region(line, column, line, column), f"trainshift {kind}", result.error
            )
        for each in result.diagnostics:
            # An annotation needs a line of the file; for a notebook, that is a line of its JSON.
            region = result.shown.in_file(each.region)
            cell = f" (cell {each.region.cell}, line {each.region.line})" if each.region.cell else ""
            title = f"{each.code} {each.name}{cell}"
            self._write(self._COMMANDS[each.severity], result.path, region, title, each.message)
        sys.stdout.flush()

    def finish(self, *, interrupted: bool = False) -> None:
        """Add nothing at the end."""

    def _write(self, command: str, path: str, region: Region, title: str, message: str) -> None:
        properties = {
            "file": path.replace("\\", "/"),
            "line": region.line,
            "col": region.column,
            "endLine": region.end_line,
            "endColumn": region.end_column,
            "title": title,
        }
        listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
        sys.stdout.write(f"::{command} {listed}::{_data(message)}\n")


def _underlined(shown: Shown, region: Region) -> Iterator[Segment]:
    """The first source line of a region, with the region underlined."""
    line = shown.line(region)
    if line is None:
        return
    end = region.end_column if region.end_line == region.line else len(line) + 1
    yield from excerpt(line, region.column, end)


def _entry(result: FileCheck) -> dict[str, object]:
    return {
        "path": result.path,
        "error": result.error or None,
        "position": place_entry(result.position) if result.position else None,
        "diagnostics": [_diagnostic(each, result.shown) for each in result.diagnostics],
        "suppressed": result.suppressed,
        "fixed": sum(result.applied.values()),
        **({"programs": list(result.programs)} if result.programs else {}),
        **({"distribution": result.by_hand} if result.by_hand else {}),
        **({"conversion": result.forecast} if result.forecast else {}),
    }


def _diagnostic(each: Diagnostic, shown: Shown) -> dict[str, object]:
    return {
        "code": each.code,
        "name": each.name,
        "severity": each.severity.label,
        "verdict": each.verdict.value,
        **each.region.as_json(),
        "message": each.message,
        "related": [
            {"path": other.path, **other.region.as_json(), "message": other.message} for other in each.related
        ],
        "url": each.url or None,
        "fix": None if each.fix is None else _fix(each.fix, shown),
    }


def _fix(change: Change, shown: Shown) -> dict[str, object]:
    return {
        "title": change.title,
        "edits": [{**region.as_json(), "text": text} for region, text in shown.edits(change)],
    }


def _data(text: str) -> str:
    """The message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
