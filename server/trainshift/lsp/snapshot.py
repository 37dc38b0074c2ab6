"""Snapshot: one program as of one moment, analysed once for all of its open documents."""

from __future__ import annotations

import ast
import logging
import posixpath
from collections.abc import Callable, Iterable

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.engine.analysis import Analysis
from trainshift.engine.conversion import Conversion, Status, obstacle, without_gaps
from trainshift.engine.effects.asking import outcomes_of
from trainshift.engine.effects.outcomes import Outcome
from trainshift.engine.own_codes import UNSUPPORTED_VERSION
from trainshift.engine.versions.runtime import Runtime
from trainshift.engine.workspace import ParsedFiles
from trainshift.python.names.script import Script
from trainshift.python.source.edit import Change, Withheld
from trainshift.python.source.source import Source, Span
from trainshift.training.keras_version.target import Target
from trainshift.training.loops.loop_kinds import Loop, Pattern
from trainshift.training.loops.loops import Loops

log = logging.getLogger(__name__)

_NAMES = {
    Pattern.GRAD_TAPE: "GradientTape",
    Pattern.OPTIMIZER: "Keras",
    Pattern.ESTIMATOR: "Estimator",
    Pattern.SESSION: "Session",
    Pattern.MONITORED_SESSION: "MonitoredSession",
}


class Place(Struct, frozen=True):
    """A stretch of one file of a program."""

    path: str
    span: Span


class Whole(Struct, eq=False):
    """The possible changes in one program, by file path; the start file comes first.

    `analysis` is None if there is none, or if one of the files has changed (`is_dated`). `obstacle` is the
    outcome of a conversion with nothing to change; then `changes` is empty. `changing` are the files that a
    conversion changes, if necessary one that ignores the required versions.  `paths` are all files that were
    read. `loops` are the headers of training loops, or the calls that train, with their names. `outcomes` are
    the effects of findings, `written_for` is the target Keras of a conversion, with the reason.
    """

    sources: dict[str, Source]
    paths: frozenset[str]
    analysis: Analysis | None
    runtime: Runtime | None
    obstacle: Conversion | None
    changes: tuple[tuple[Place, Change], ...] = ()
    withheld: tuple[tuple[Place, Withheld], ...] = ()
    loops: tuple[tuple[Place, str], ...] = ()
    changing: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    written_for: str = ""
    is_dated: bool = False

    @property
    def start(self) -> str:
        """The file that starts the program; "" for a document without a file."""
        return next(iter(self.sources))

    @property
    def trains(self) -> bool:
        """Return whether a training loop was found."""
        return self.obstacle is None or self.obstacle.status is not Status.NOTHING_FOUND

    def name_of(self, path: str) -> str:
        """The name of a file in messages: its path relative to the start file's directory."""
        return posixpath.relpath(path, posixpath.dirname(self.start)) if path else "the script"

    def retire(self) -> list[Program]:
        """Retire the conversion data after a change of a file; the caller frees them."""
        analysis, self.analysis, self.is_dated = self.analysis, None, True
        return [*analysis.programs] if analysis is not None else []


def whole_of(
    script: Script,
    analyze: Callable[[Script], Analysis],
    files: ParsedFiles,
    runtime_of: Callable[[], Runtime | None] = lambda: None,
) -> Whole:
    """The whole program that a script starts, which reads `files`.

    `analyze` may raise Superseded to give up, and nothing else is raised.
    """
    runtime = None
    with files.noting() as noted:
        try:
            runtime = runtime_of()
            analysis = analyze(script)
            found = _obstacle(analysis, script, files, runtime)
        except Exception as error:
            log.exception("the conversion of an open program failed")
            deep = isinstance(error, RecursionError)
            reason = "the code is nested too deeply to be read" if deep else f"an internal error: {error}"
            known = refused(script.source, reason)
            return Whole({script.path: script.source}, frozenset(noted.paths), None, runtime, known)
    changes = analysis.changes if found is None else ()
    wanted = analysis.changes if found is None or found.code == UNSUPPORTED_VERSION.code else ()
    return Whole(
        {each.path: each.source for each in analysis.scripts},
        frozenset(noted.paths),
        analysis,
        runtime,
        found,
        tuple((_place(analysis, each.target), each) for each in changes),
        tuple((_place(analysis, each.target), each) for each in analysis.withheld),
        tuple(_loops(analysis)),
        _changing(analysis, wanted),
        outcomes_of(analysis),
        analysis.read.fact(Target).told if analysis.read.fact(Loops).own else "",
    )


def _obstacle(
    analysis: Analysis, script: Script, files: ParsedFiles, runtime: Runtime | None
) -> Conversion | None:
    """The outcome if a conversion has nothing to change, or a file is missing."""
    found = obstacle(analysis, runtime)
    gaps = without_gaps(found or Conversion(Status.CONVERTED, ""), script, files)
    return None if gaps.status is Status.CONVERTED else gaps


def _place(analysis: Analysis, span: Span) -> Place:
    script, inside = analysis.place(span)
    return Place(script.path, inside)


def _changing(analysis: Analysis, changes: Iterable[Change]) -> tuple[str, ...]:
    """The files that changes touch, in the program's order."""
    starts = {edit.start for change in changes for edit in (*change.edits, *change.requires)}
    touched = {analysis.file_at(start)[0] for start in starts}
    return tuple(script.path for script in analysis.scripts if script in touched)


def _loops(analysis: Analysis) -> Iterable[tuple[Place, str]]:
    script = analysis.read.script
    for loop in analysis.read.fact(Loops).own:
        yield _place(analysis, analysis.given(_above(script, loop))), _NAMES.get(loop.pattern, "Training")


def _above(script: Script, loop: Loop) -> Span:
    """The place of a lens: the `for` or `while`, in any function."""
    statement = loop.statement
    if isinstance(statement.node, ast.For | ast.While):
        if script.home(statement.scope) in script.scripts:
            return script.header_span(statement)
    return loop.span


def refused(source: Source, reason: str) -> Conversion:
    """The outcome of a conversion that cannot even be tried."""
    return Conversion(Status.REFUSED, source.text, reason=reason)
