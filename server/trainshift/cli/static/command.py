"""The command `static`: writes the graph code of Paddle's static functions."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct, field

from trainshift.cli.options import (
    STANDARD_STREAM,
    SectionedCommand,
    Wanted,
    announce_standard_input,
    as_json,
    check_patterns,
    color,
    exclude,
    quiet,
)

if TYPE_CHECKING:
    from trainshift.cli.documents import Document
    from trainshift.core.program import Program
    from trainshift.engine.workspace import ParsedFiles
    from trainshift.host.walk import Input
    from trainshift.python.source.edit import Edit
    from trainshift.python.source.source import Source
    from trainshift.static_graphs.expanding.door import Expansion

_JSON_VERSION = 1
_NOTHING = "nothing to expand"
_SHOWN = ("kind", "becomes", "code", "function", "mode", "why")


class _StaticCommand(SectionedCommand):
    sections = {  # noqa: RUF012
        "What to do with the result (the default is to print a diff)": ("write", "output", "check"),
        "What to do": ("make", "at", "function", "exclude"),
        "What to print": ("show", "format_", "color", "quiet"),
    }


@click.command(cls=_StaticCommand)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option("--write", is_flag=True, help="Rewrite the files.")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    type=click.Path(),
    help="Write the result of one FILE to OUT ('-' is standard output), and keep FILE.",
)
@click.option(
    "--check", is_flag=True, help="Write nothing; exit with status 1 if there is something to expand."
)
@click.option(
    "--at",
    metavar="LINE",
    type=click.IntRange(1),
    help="Expand only the `if` or loop that begins on this line, as a whole.",
)
@click.option("--function", metavar="NAME", default="", help="Expand only this function: f, or Net.forward.")
@click.option(
    "--make",
    is_flag=True,
    help="Expand nothing; put `paddle.jit.to_static` above the function that --function or --at names.",
)
@click.option("--show", is_flag=True, help="Expand nothing; list what each statement becomes.")
@exclude
@as_json
@color
@quiet
@click.pass_context
def static(ctx: click.Context, /, **options: Any) -> None:
    """Expand static Paddle functions to graph code, for reading.

    FILE is a script or a notebook that uses PaddlePaddle, or a directory. What `paddle.jit.to_static`
    turns into `cond` and `while_loop` is written so, in Paddle's public API: you can read, run and debug it.
    Your file is read, never run. For production, keep your code and use `to_static`, as Paddle recommends.

    By default nothing is written: the diff goes to standard output, the report to standard error. A function
    that cannot be expanded safely is refused, with the place and the reason.

    \b
    Examples:
      trainshift static model.py                        show the graph code, write nothing
      trainshift static --function Net.forward model.py  of one function
      trainshift static --at 42 model.py                of one statement
      trainshift static --show model.py                 list what each statement becomes
      trainshift static --make --function Net model.py  make a layer's forward static
      trainshift static -o graph.py model.py            keep the original

    \b
    Exit status:
      0  done, or nothing to expand
      1  something was refused, or --check found something to expand
      2  wrong usage, or a file that could not be read, parsed or written
    """
    ctx.exit(_static(_Options(**options)))


class _Options(Wanted, frozen=True):
    """The options of the command line, by parameter name."""

    paths: tuple[str, ...]
    at: int | None
    function: str
    show: bool
    make: bool
    exclude: tuple[str, ...]


class _Outcome(Struct):
    """The outcome for one file, with the keys of the JSON document."""

    path: str
    status: str = _NOTHING
    applied: list[dict[str, object]] = field(default_factory=list)
    doubts: list[dict[str, object]] = field(default_factory=list)
    withheld: list[dict[str, object]] = field(default_factory=list)
    reason: str = ""
    position: list[int] | None = None
    diffs: tuple[bytes, ...] = ()
    encoding: str = "utf-8"
    written: bool = False
    error: str | None = None
    statements: list[dict[str, object]] | None = None

    def exit_status(self, *, check: bool) -> int:
        """Return 0 for success, 1 for a refusal or (with --check) a change, 2 for an unreadable file."""
        if self.status == "error":
            return 2
        if self.status in ("refused", "internal error") or self.withheld:
            return 1
        return int(check and self.status == "expanded")

    def entry(self) -> dict[str, object]:
        """The file's entry in the JSON document."""
        from trainshift.cli.diff import decoded

        return {
            "path": self.path,
            "status": self.status,
            "applied": self.applied,
            "decisions": [],
            "doubts": self.doubts,
            "withheld": self.withheld,
            "reason": self.reason,
            "position": self.position,
            "diff": decoded(b"".join(self.diffs), self.encoding) if self.diffs else "",
            "written": self.written,
            "error": self.error,
            **({} if self.statements is None else {"statements": self.statements}),
        }


def _static(given: _Options) -> int:
    """Expand every named file; return the exit status."""
    _check_usage(given)
    check_patterns(given.exclude)
    announce_standard_input(given.paths)
    from trainshift.host.disk import files_on_disk
    from trainshift.host.walk import collect

    inputs = list(collect(given.paths, given.exclude))
    if given.output is not None and len(inputs) != 1:
        raise click.UsageError("--output takes the result of one file.")
    files = files_on_disk()
    found = []
    report = _Report(given)
    for item in inputs:
        outcome = _processed(item, given, files)
        found.append(outcome)
        report.file(outcome)
    report.finish(found)
    return max((each.exit_status(check=given.check) for each in found), default=0)


def _check_usage(given: _Options) -> None:
    """Raise click's UsageError for options that contradict each other or the input."""
    given.check_usage()
    if given.show and not given.is_shown:
        raise click.UsageError("--show expands nothing; leave out --write, --output and --check.")
    if given.make and given.show:
        raise click.UsageError("--make and --show exclude each other.")
    if given.make and not (given.function or given.at):
        raise click.UsageError("--make needs --function NAME or --at LINE.")


def _processed(item: Input, given: _Options, files: ParsedFiles) -> _Outcome:
    """Expand one file and deliver the result; never raises because of the file."""
    from trainshift.cli.diff import STANDARD_INPUT_NAME
    from trainshift.cli.documents import read_document
    from trainshift.cli.terminal import describe_defect
    from trainshift.host.files import FileProblem
    from trainshift.host.walk import STANDARD_INPUT

    outcome = _Outcome(STANDARD_INPUT_NAME if item.path == STANDARD_INPUT else item.path)
    if item.problem or item.nothing:
        outcome.status, outcome.error = ("error", item.problem) if item.problem else (_NOTHING, None)
        outcome.reason = item.nothing
        return outcome
    try:
        document = read_document(item, outcome.path)
        outcome.encoding = document.file.encoding
        program = _program(document, given, files)
        if given.show:
            outcome.statements = _statements(document, program, given) if program is not None else []
            return outcome
        if given.make:
            _make(outcome, document, given, files)
            return outcome
        expansion = _expansion(document, program, given, files)
        if expansion is None:
            outcome.reason = document.nothing or "the file does not use Paddle"
            _deliver(document, document, given)
            return outcome
        _describe(outcome, document, expansion)
        if _is_hindered(outcome, document, expansion.edits):
            return outcome
        after = document.after(document.body.edited(expansion.edits)) if expansion.edits else document
        outcome.diffs = document.diff(after)
        if outcome.status != "refused":
            outcome.written = _deliver(document, after, given)
    except FileProblem as problem:
        outcome.status, outcome.error = "error", problem.message
        outcome.position = list(problem.position) if problem.position else None
    except OSError:  # Standard output cannot be written.
        raise
    except Exception as error:
        outcome.status, outcome.error = "internal error", describe_defect(error)
    return outcome


def _program(document: Document, given: _Options, files: ParsedFiles) -> Program | None:
    """The program of a file; None for one that does not use Paddle.  Raises FileProblem."""
    from trainshift.cli.documents import existing
    from trainshift.static_graphs.codes import has_signs

    if given.at is not None:
        existing(document.text, given.at)
    program = _read(document, document.text, files)
    return program if has_signs(document.text) else None


def _read(document: Document, text: str, files: ParsedFiles) -> Program:
    """The program of a file with some text.  Raises FileProblem."""
    from trainshift.core.program import Program
    from trainshift.engine.workspace import read_linked
    from trainshift.host.disk import absolute
    from trainshift.host.files import FileProblem
    from trainshift.python.syntax.chunks import ParseFailure

    is_file = os.path.exists(document.file.path)
    path = absolute(document.file.path) if is_file else ""
    script = read_linked(text, path, files if is_file else None)
    if isinstance(script, ParseFailure):
        raise FileProblem(f"is not valid Python: {script.message}", (script.line, script.column))
    return Program(script)


def _make(outcome: _Outcome, document: Document, given: _Options, files: ParsedFiles) -> None:
    """Make a function of a file static, and deliver the result. Raises FileProblem."""
    from functools import partial

    from trainshift.static_graphs.decorate import make_static, makeable, named

    read = partial(_read, document, files=files)
    program = read(document.text)
    script = program.script
    function = named(script, given.function) if given.function else makeable(script, given.at or 1)
    if function is None:
        where = f"`{given.function}`" if given.function else f"line {given.at}"
        outcome.status, outcome.reason = "refused", f"there is no function or layer for {where}"
        outcome.withheld.append({"code": "", "line": given.at or 1, "column": 1, "message": outcome.reason})
        return
    made = make_static(program, function, read)
    place = _place(document, script.code.source, made.offset)
    if made.reason:
        outcome.status, outcome.reason = "refused", f"`{made.function}` is not made static: {made.reason}"
        outcome.position = [place["line"], place["column"]]
        outcome.withheld.append({"code": "", **place, "message": outcome.reason})
        return
    outcome.reason = f"`{made.function}` is static already"
    after = document
    if _is_hindered(outcome, document, made.edits):
        return
    if made.edits:
        outcome.status, outcome.reason = "expanded", ""
        after = document.after(document.body.edited(made.edits))
        outcome.applied.append({"code": "", **place, "message": f"{made.decorator} on `{made.function}`"})
    for each in made.in_the_way:
        what = f"prevents a full graph: {each.message}"
        spot = _place(document, script.code.source, each.offset)
        outcome.doubts.append({"code": each.code, **spot, "message": what})
    outcome.diffs = document.diff(after)
    outcome.written = _deliver(document, after, given)


def _is_hindered(outcome: _Outcome, document: Document, edits: list[Edit]) -> bool:
    """Return whether a notebook's cells prevent edits, which are then refused."""
    from trainshift.engine.cells import Cells
    from trainshift.engine.conversion import hindrance

    cells = document.body
    found = hindrance(cells, edits) if edits and isinstance(cells, Cells) else None
    if found is None or not isinstance(cells, Cells):
        return False
    reason, offset = found
    place = _place(document, cells.source, offset)
    outcome.status, outcome.reason = "refused", reason
    outcome.position = [place["line"], place["column"]]
    outcome.applied = []
    outcome.withheld.append({"code": "", **place, "message": reason})
    return True


def _place(document: Document, source: Source, offset: int) -> dict[str, int]:
    """A place in a document's program, for the JSON document."""
    spot = document.spot(*source.position(offset))
    cell = {} if spot.cell is None else {"cell": spot.cell}
    return {**cell, "line": spot.line, "column": spot.column}


def _expansion(
    document: Document, program: Program | None, given: _Options, files: ParsedFiles
) -> Expansion | None:
    """The expansion of a file; None if it does not use Paddle."""
    from functools import partial

    from trainshift.static_graphs.expanding.piecewise import expand_at

    if program is None:
        return None
    return expand_at(program, given.function, given.at, partial(_read, document, files=files))


def _statements(document: Document, program: Program, given: _Options) -> list[dict[str, object]]:
    """The graph operations of a file's statements, for the JSON document."""
    from trainshift.static_graphs.expanding.explain import shown

    source = program.script.code.source
    found: list[dict[str, object]] = []
    for each in shown(program, given.function):
        place = _place(document, source, each.offset)
        if given.at in (None, place["line"]):
            found.append({**place, **{name: getattr(each, name) for name in _SHOWN}})
    return found


def _describe(outcome: _Outcome, document: Document, expansion: Expansion) -> None:
    """Describe the changes of a file, and the refusals."""
    from trainshift.python.source.source import Source

    source = Source(expansion.text)

    for each in expansion.applied:
        where = _place(document, source, each.offset)
        outcome.applied.append({"code": each.code, **where, "message": f"in `{each.function}`"})
    for refused in expansion.refused:
        where = _place(document, source, refused.offset)
        message = f"`{refused.function}`: {refused.reason}"
        outcome.withheld.append({"code": refused.code, **where, "message": message})
    if expansion.edits:
        outcome.status = "expanded"
    elif expansion.refused:
        outcome.status = "refused"
        first = expansion.refused[0]
        outcome.reason = f"`{first.function}` cannot be expanded: {first.reason}"
        place = _place(document, source, first.offset)
        outcome.position = [place["line"], place["column"]]
    else:
        outcome.reason = "no static function has control flow on tensors"


def _deliver(document: Document, after: Document, given: _Options) -> bool:
    """Deliver the result; return whether it was written. Raises FileProblem."""
    from trainshift.cli.diff import STANDARD_INPUT_NAME
    from trainshift.cli.streams import print_bytes
    from trainshift.host.writing import write_in_place, write_output

    file = document.file
    is_changed = after.file.text != file.text
    if given.output is not None and given.output != STANDARD_STREAM:
        write_output(given.output, file, after.content(given.output))
    elif given.output is not None or (given.write and file.path == STANDARD_INPUT_NAME):
        print_bytes(file.encode(after.file.text))
    elif given.write and is_changed:
        write_in_place(file, after.file.text, "; use -o OUT")
    else:
        return False
    return True


def _where(told: dict[str, object]) -> str:
    """A place, in the format of a terminal."""
    cell = f"cell {told['cell']}:" if "cell" in told else ""
    return f"{cell}{told['line']}:{told['column']}"


class _Report:
    """The report, as text for people or as JSON for programs."""

    def __init__(self, given: _Options) -> None:
        from trainshift.cli.terminal import Printer, visible, wants_colour

        self._given = given
        self._visible = visible
        self._colour = wants_colour(sys.stdout, given.color)
        self._printer = Printer(sys.stderr, wants_colour(sys.stderr, given.color))

    def file(self, outcome: _Outcome) -> None:
        """Print the diff of a file, and its outcome."""
        if self._given.format_ == "json":
            return
        from trainshift.cli.diff import is_text, print_diffs

        if self._given.is_shown and outcome.diffs:
            print_diffs(outcome.diffs, outcome.encoding, self._colour)
            if is_text(self._colour) and not self._given.quiet:
                self._printer.line()
        path = self._visible(outcome.path)
        for each in outcome.statements or ():
            place = f"{path}:{_where(each)}"
            told = f" {each['kind']} in {each['function']}: {each['becomes']} {each['code']}".rstrip()
            self._printer.line((place, "bold"), (self._visible(told), ""))
        if outcome.statements:
            return
        for each in (*outcome.doubts, *outcome.withheld):
            place = f"{path}:{_where(each)}"
            self._printer.line((place, "bold"), (f" {self._visible(str(each['message']))}", ""))
        style = {"expanded": "green", "refused": "red", "error": "bold red"}.get(outcome.status, "dim")
        if self._given.quiet and outcome.status in ("expanded", _NOTHING):
            return
        detail = outcome.error or (outcome.reason if outcome.status == _NOTHING else "")
        where = (
            f"{path}:{':'.join(map(str, outcome.position))}" if outcome.error and outcome.position else path
        )
        self._printer.line(
            (where, "bold"),
            (": ", ""),
            (outcome.status, style),
            (f": {self._visible(detail)}" if detail else "", ""),
        )
        rules = {str(each["code"] or each["message"]) for each in outcome.applied}
        codes = ", ".join(sorted(rules))
        if codes:
            self._printer.line((f"    {codes}", ""))

    def finish(self, found: list[_Outcome]) -> None:
        """Print the JSON document, or the next step."""
        if self._given.format_ == "json":
            statuses = ("expanded", _NOTHING, "refused", "error", "internal error")
            summary: dict[str, int] = {"files": len(found)}
            for status in statuses:
                summary[status.replace(" ", "_")] = sum(each.status == status for each in found)
            told = {"version": _JSON_VERSION, "files": [each.entry() for each in found], "summary": summary}
            json.dump(told, sys.stdout, indent=2)
            sys.stdout.write("\n")
        elif self._given.is_shown and not self._given.quiet and any(each.diffs for each in found):
            step = "Add --write to change the file, or -o OUT to write a new one."
            self._printer.line((f"Nothing was written. {step}", "dim"))
