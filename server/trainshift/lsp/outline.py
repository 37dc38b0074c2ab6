"""Outline: what could be made distributed in one version of a program, and its training loops."""

from __future__ import annotations

import ast
import logging
from collections.abc import Callable
from dataclasses import dataclass

from trainshift.core.names.script import Script
from trainshift.core.text.edit import Change, Withheld
from trainshift.core.text.source import Span
from trainshift.core.training.loop_kinds import Loop, Pattern
from trainshift.core.training.loops import Loops
from trainshift.engine.analysis import Analysis, analyze_script
from trainshift.engine.conversion import Conversion, Status, obstacle
from trainshift.engine.versions.runtime import Runtime
from trainshift.lsp.text.documents import Paper

log = logging.getLogger(__name__)

_NAMES = {
    Pattern.GRAD_TAPE: "GradientTape",
    Pattern.OPTIMIZER: "Keras",
    Pattern.ESTIMATOR: "Estimator",
    Pattern.SESSION: "Session",
    Pattern.MONITORED_SESSION: "MonitoredSession",
}


@dataclass(eq=False)
class Outline:
    """What could be made distributed.

    `analysis` is None where there is none, and once there is a newer version.  `obstacle` is what a
    conversion comes to where there is nothing to change; then `changes` is empty.
    `loops` are the headers of training loops, or the calls that train, with what each is called.
    """

    paper: Paper
    analysis: Analysis | None
    runtime: Runtime | None
    obstacle: Conversion | None
    changes: tuple[Change, ...]
    withheld: tuple[Withheld, ...]
    loops: tuple[tuple[Span, str], ...]


def outline_of(
    paper: Paper,
    script: Script | None,
    runtime_of: Callable[[], Runtime | None] = lambda: None,
    pause: Callable[[], None] = lambda: None,
) -> Outline:
    """The outline of a program, of which `script` is the reading, None if it is not Python.

    `pause` may raise to give up, and nothing else raises.
    """
    runtime = None
    try:
        runtime = runtime_of()
        return _outline_of(paper, script, runtime, pause)
    except Exception as error:
        log.exception("what could be made distributed cannot be told")
        deep = isinstance(error, RecursionError)
        reason = "the code is nested too deeply to be read" if deep else f"an internal error: {error}"
        return _without(paper, runtime, reason)


def _outline_of(
    paper: Paper, script: Script | None, runtime: Runtime | None, pause: Callable[[], None]
) -> Outline:
    if script is None:
        return _without(paper, runtime, "not Python")
    analysis = analyze_script(script, pause)
    found = obstacle(analysis, runtime)
    loops = tuple(
        (_above(script, loop), _NAMES.get(loop.pattern, "Training"))
        for loop in analysis.program.fact(Loops).own
        if loop.script is script
    )
    changes = analysis.changes if found is None else ()
    return Outline(paper, analysis, runtime, found, changes, analysis.withheld, loops)


def _above(script: Script, loop: Loop) -> Span:
    """What a lens stands above: the `for` or `while`, whichever function it is in."""
    if isinstance(loop.statement.node, ast.For | ast.While) and script.home(loop.statement.scope) is script:
        return script.header_span(loop.statement)
    return loop.span


def _without(paper: Paper, runtime: Runtime | None, reason: str) -> Outline:
    return Outline(paper, None, runtime, refused(paper, reason), (), (), ())


def refused(paper: Paper, reason: str) -> Conversion:
    """What a conversion comes to that cannot even be tried."""
    return Conversion(Status.REFUSED, paper.text, reason=reason)
