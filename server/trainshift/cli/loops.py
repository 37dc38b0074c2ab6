"""Loops: the training loops of a program, as a short tree for people or as JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from trainshift.cli.diff import STANDARD_INPUT_NAME
from trainshift.cli.documents import Document, read_document
from trainshift.cli.programs.sources import home
from trainshift.cli.programs.units import is_script
from trainshift.cli.report import place, plural, short_place
from trainshift.cli.terminal import Printer, ProgressBar, Segment, visible, wants_colour
from trainshift.core.program import Program
from trainshift.engine.cells import Spot
from trainshift.engine.checking import Region
from trainshift.engine.programs import Programs
from trainshift.engine.workspace import ParsedFiles, read_linked
from trainshift.host.disk import absolute, files_on_disk
from trainshift.host.files import FileProblem, shown_path
from trainshift.host.walk import STANDARD_INPUT, Input, collect
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import Script
from trainshift.python.source.source import Span, one_line
from trainshift.python.syntax.chunk_syntax import Scope
from trainshift.python.syntax.chunks import ParseFailure
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.training.loops.loop_kinds import KNOWN_PATTERNS, Loop, header
from trainshift.training.loops.loops import LOOKED_FOR, Loops

_VERSION = 1


@dataclass(frozen=True)
class _Failure:
    """A file that could not be read, and the reason."""

    path: str
    reason: str


class _Read(Struct, frozen=True):
    """A program, and the document that it starts in.

    `starts` are the start files of the programs that contain this one, if any.
    """

    item: Input
    document: Document
    program: Program
    starts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The user's name for it."""
        is_stream = self.item.path == STANDARD_INPUT
        return STANDARD_INPUT_NAME if is_stream else shown_path(absolute(self.item.path))

    def file(self, script: Script) -> str:
        """The user's name for one of its scripts."""
        return self.name if script is self.program.script else shown_path(script.path)

    def region(self, script: Script, span: Span) -> Region:
        """A region of one of its scripts."""
        region = Region.of(script.source, span)
        return self.document.region(region) if script is self.program.script else region

    @property
    def reason(self) -> str:
        """The reason why it has no loops."""
        return self.document.nothing or LOOKED_FOR


def show_loops(paths: Sequence[str], exclude: Sequence[str], output_format: str, colour: str) -> int:
    """Print the loops of every program in `paths`; 2 if a file could not be read, else 0."""
    files = files_on_disk()
    workspace = Programs(files)
    programs: list[_Read] = []
    failures: list[_Failure] = []
    empty: list[_Failure] = []
    inputs = list(collect(paths, exclude))
    with ProgressBar(len(inputs), label="Reading") as progress:
        for item in inputs:
            progress.show(item.path)
            read = _read(item, files)
            if isinstance(read, _Failure):
                (empty if item.nothing else failures).append(read)
            else:
                path = home(item.path)
                starts = workspace.starts(path) if is_script(item) else [path]
                programs.append(replace(read, starts=() if path in starts else tuple(starts)))
            progress.advance()
    # A file of another program is shown with that program, unless it was named on the command line.
    paths_read = {absolute(each.item.path) for each in programs}
    shown = [each for each in programs if each.item.named or paths_read.isdisjoint(each.starts)]
    if output_format == "json":
        document = {
            "version": _VERSION,
            "programs": [_program_entry(read) for read in shown],
            "errors": [{"path": each.path, "reason": each.reason} for each in failures],
        }
        print(json.dumps(document, indent=2))
    else:
        for part in shown if len(inputs) == 1 else ():
            if part.starts:
                whose = " and ".join(map(shown_path, part.starts))
                print(f"{visible(part.name)} belongs to the program of {visible(whose)}.", file=sys.stderr)
        _print_programs(shown, Printer(sys.stdout, wants_colour(sys.stdout, colour)))
        for each in empty:
            print(f"{visible(each.path)}: {visible(each.reason)}", file=sys.stderr)
        for each in failures:
            print(f"{visible(each.path)}: error: {visible(each.reason)}", file=sys.stderr)
    return 2 if failures else 0


def _read(item: Input, files: ParsedFiles) -> _Read | _Failure:
    name = STANDARD_INPUT_NAME if item.path == STANDARD_INPUT else item.path
    if item.problem:
        return _Failure(name, item.problem)
    if item.nothing:
        return _Failure(name, item.nothing)
    try:
        document = read_document(item, name)
    except FileProblem as problem:
        position = Spot(*problem.position) if problem.position else None
        return _Failure(place(name, position), problem.message)
    script = read_linked(document.text, absolute(name), files)
    if isinstance(script, ParseFailure):
        where = place(name, document.spot(script.line, script.column))
        return _Failure(where, f"not Python: {script.message}")
    return _Read(item, document, Program(script))


# The tree


def _print_programs(programs: list[_Read], printer: Printer) -> None:
    silent = 0
    for read in programs:
        if not read.program.fact(Loops).all and len(programs) > 1:
            silent += 1
            continue
        _print_program(read, printer)
    if silent:
        printer.line((f"{plural(silent, 'other file')} without a training loop.", "dim"))


def _print_program(read: _Read, printer: Printer) -> None:
    loops = read.program.fact(Loops).all
    if not loops:
        printer.line((visible(read.name), "bold"), (f": {read.reason}", "yellow"))
        return
    printer.line((visible(read.name), "bold"), (": ", ""), (_joined(loops), "green"))
    for index, loop in enumerate(loops):
        last = index == len(loops) - 1
        rows = list(_rows(read, loop))
        first, *others = rows
        printer.line(_branch(last), *first)
        for row_index, row in enumerate(others):
            printer.line(_stem(last), _branch(row_index == len(others) - 1), *row)


def _rows(read: _Read, loop: Loop) -> Iterator[list[Segment]]:
    home, span = _around(loop)
    yield [
        (f"{_place(read, home, span)}  ", "dim"),
        (_one_line(home.source.text[span.start : span.end]), "bold"),
    ]
    site = loop.sites[0]
    step = loop.script.span(site.node, site)
    if step != span:
        where = f"  {_place(read, loop.script, step)}{_function(read.program, loop)}"
        yield [("trains     ", "dim"), (_one_line(loop.call), ""), (where, "dim")]
    for label, names in (
        ("model      ", _texts(loop.script, loop.models)),
        ("optimizer  ", _texts(loop.script, loop.optimizers)),
        ("tape       ", list(dict.fromkeys(tape.name or "(no name)" for tape in loop.tapes))),
    ):
        if names:
            yield [(label, "dim"), (", ".join(names), "")]
    if not loop.certain:
        yield [("unsure     ", "dim"), ("this may not be a Keras model", "yellow")]


def _around(loop: Loop) -> tuple[Script, Span]:
    """The script and the span of a loop's header, or of its call."""
    home = loop.script.home(loop.statement.scope)
    if loop.is_call or not isinstance(loop.statement.node, LOOPS):
        site = loop.sites[0]
        return loop.script, loop.script.span(site.node, site)
    return home, header(home, loop.statement)


def _place(read: _Read, script: Script, span: Span) -> str:
    file = "" if script is read.program.script else f"{read.file(script)}:"
    return f"{file}{short_place(read.region(script, span))}"


def _function(program: Program, loop: Loop) -> str:
    function = loop.function
    inside = f" in {_qualified(function)}()" if function is not None and function.name else ""
    uncalled = function is not None and not program.names.callers(function)[0]
    return inside + (", which nothing calls by name" if inside and uncalled else "")


def _branch(last: bool) -> Segment:
    return ("└── " if last else "├── ") if _takes_boxes() else ("`-- " if last else "|-- "), "dim"


def _stem(last: bool) -> Segment:
    return "    " if last else ("│   " if _takes_boxes() else "|   "), "dim"


def _takes_boxes() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def _one_line(text: str) -> str:
    return visible(one_line(text))


def _joined(loops: Sequence[Loop]) -> str:
    return " and ".join(dict.fromkeys(loop.pattern.words for loop in loops))


def _texts(script: Script, places: Sequence[Occurrence]) -> list[str]:
    return list(dict.fromkeys(_one_line(script.text(place.node, place.scope)) for place in places))


def _qualified(scope: Scope) -> str:
    owner = scope.owner()
    return f"{owner.name}.{scope.name}" if owner is not None else scope.name


# JSON


def _program_entry(read: _Read) -> dict[str, object]:
    program = read.program
    loops = program.fact(Loops).all
    patterns = list(dict.fromkeys(loop.pattern.value for loop in loops))
    functions = {
        _qualified(scope): sorted(pattern.value for pattern in summary)
        for scope in program.script.scopes
        if scope.kind == "function" and scope.name and (summary := program.fact(Loops).summary(scope))
    }
    workspace = program.script.workspace
    reached = workspace.reachable if workspace is not None else [program.script]
    return {
        "path": read.name,
        "files": [read.file(script) for script in reached],
        "belongs_to": [shown_path(path) for path in read.starts],
        "pattern": _lattice(patterns),
        "patterns": patterns,
        "runs": sorted(pattern.value for pattern in program.fact(Loops).summary(None)),
        "loops": [_loop_entry(read, loop) for loop in loops],
        "functions": functions,
        "reason": "" if loops else read.reason,
    }


def _lattice(patterns: Sequence[str]) -> str:
    """The loop type of spec.md 2: none, the one pattern, or "several"."""
    return patterns[0] if len(patterns) == 1 else "several" if patterns else "none"


def _loop_entry(read: _Read, loop: Loop) -> dict[str, object]:
    function = loop.function
    home, span = _around(loop)
    steps = (read.region(loop.script, loop.script.span(site.node, site)) for site in loop.sites)
    return {
        "path": read.file(loop.script),
        **read.region(loop.script, loop.span).as_json(),
        "loop": {"path": read.file(home), **read.region(home, span).as_json()},
        "pattern": loop.pattern.value,
        "convertible": loop.pattern in KNOWN_PATTERNS,
        "call": _one_line(loop.call),
        "function": _qualified(function) if function is not None and function.name else None,
        "models": _texts(loop.script, loop.models),
        "optimizers": _texts(loop.script, loop.optimizers),
        "tapes": [tape.name for tape in loop.tapes],
        "steps": [step.as_json() for step in steps],
        "certain": loop.certain,
    }
