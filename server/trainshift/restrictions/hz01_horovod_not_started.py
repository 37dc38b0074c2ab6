"""Horovod must be started before it is asked.

    lr = 0.01 * hvd.size()                  hvd.init()
    hvd.init()                              lr = 0.01 * hvd.size()

## Why it matters

Horovod raises a ValueError: it does not know the other ranks yet.

## What to do

Call `hvd.init()` right after the imports.

## What is reported

The first call that needs a started Horovod and runs before any `hvd.init()`, or without one. Unknown: a
call in a function that nothing calls. Wrapping an optimizer or a tape needs no start.
"""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.values import Unknown
from trainshift.python.source.edit import Change
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.restrictions.fixes.moves import moved
from trainshift.restrictions.fixes.places import text_of
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.horovod_api import COLLECTIVE, RANK, SIZE
from trainshift.training.loops.execution_order import Course

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_STARTING = ("init", "setup", "set_up", "hvd", "horovod", "distribut")


def check(program: Program, report: Report) -> Findings:
    """Yield at most one finding: the first call that comes too early."""
    horovod = program.fact(Horovod)
    needing = set(horovod.calls(*RANK, *SIZE, *COLLECTIVE))
    if horovod.calls("is_initialized"):
        needing = {site for site in needing if not _is_asked_first(site)}
    if not needing:
        return
    starts = set(horovod.calls("init"))
    for site in program.fact(Course).calls():
        if site in starts or _may_start(program, site):
            return
        if site in needing:
            text = text_of(program, site.node.func, site)
            message = f"{text}() runs before hvd.init(): Horovod raises ValueError here."
            if not starts:
                message = f"{text}() runs and nothing calls hvd.init(): Horovod raises ValueError here."
            yield report.violated(site, message, fix=_started_above(program, report, site, starts))
            return
    if not starts:
        first = min(needing, key=lambda each: program.script.span(each.node, each))
        message = "Nothing in this program calls hvd.init(). Check that its caller does."
        yield report.unknown(first, message)


def _started_above(program: Program, report: Report, site: Site, starts: set[Site]) -> Change | None:
    """Move the start above the statement of its block through which the program reaches a call."""
    if len(starts) != 1:
        return None
    (start,) = starts
    if not isinstance(start.statement.node, ast.Expr) or start.statement.node.value is not start.node:
        return None
    order = program.fact(Course).index
    before = {each.statement for each, place in order.items() if place <= order[site]}
    block, index = program.script.siblings(start.statement)
    come = [
        each
        for each in block[:index]
        if not isinstance(each.node, _DEFINITIONS) and not before.isdisjoint(each.walk())
    ]
    return moved(report, "Start Horovod first", [start.statement], come[-1]) if come else None


def _may_start(program: Program, site: Site) -> bool:
    """Return whether a call of an unknown function may start Horovod, judged by its name."""
    if not any(word in site.name.lower() for word in _STARTING):
        return False
    callee = program.names.callee(site)
    return not callee or any(isinstance(each, Unknown) for each in callee)


def _is_asked_first(site: Site) -> bool:
    """Return whether the code tests whether Horovod is started before it makes a call."""
    tests = [each.node.test for each in site.statement.path() if isinstance(each.node, ast.If)]
    tests += [each for each in ast.walk(site.statement.node) if isinstance(each, ast.IfExp)]
    return any("is_initialized" in ast.unparse(each) for each in tests)
