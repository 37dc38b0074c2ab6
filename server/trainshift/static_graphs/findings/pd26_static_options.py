"""The options of `to_static` must have the effect that they suggest.

## Why it matters

Without `full_graph=True` an `input_spec` has no effect, unless the model is saved. For a method of a class
that is not a layer, or below `@classmethod`, Paddle raises.

## What to do

Add `full_graph=True`, or leave the `input_spec` out. Turn the method into a function.
"""

from __future__ import annotations

import ast

from trainshift.core.finding import Verdict
from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.rule import Findings
from trainshift.python.flow.def_use import names_bound, names_read
from trainshift.python.source.edit import Change
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Statement, argument
from trainshift.static_graphs.codes import STATIC_CODES
from trainshift.static_graphs.reading.entries import SAVING, Entry, no_place, saves
from trainshift.static_graphs.reading.function import Mode
from trainshift.static_graphs.reading.reading import Reading
from trainshift.static_graphs.reporting import Judge, calls, reached


def check(judge: Judge) -> Findings:
    program = judge.program
    reading = program.fact(Reading)
    # Saving uses the `input_spec` with which the function was made static.
    is_saving = any(True for _ in saves(program.script))
    for entry in reading.entries:
        function = reading.of(entry.function)
        statement = _statement(program, entry)
        if function is None or statement is None or program.script.home(entry.scope) is not program.script:
            continue
        problem = _place(judge, entry)
        if problem:
            do = "Make a function of it."
            start = program.script.span(entry.node, entry.scope).start
            at = Span(start, program.script.header_span(statement).end)
            yield from judge.say(statement, problem, do, at=at, always=True, function=function)
        elif entry.spec is not None and entry.mode is Mode.SOT and not is_saving:
            yield from judge.say(
                statement,
                "Without `full_graph=True` this `input_spec` has no effect",
                "Add it, or leave the `input_spec` out.",
                at=entry.node,
                function=function,
                always=True,
                sure=entry.is_decorator or not _is_handed_out(statement),
                fix=_fixed(judge, entry),
            )
    for function in judge.functions:
        if function.mode is Mode.SOT:
            for statement in reached(function):
                for call in calls(statement):
                    called = function.calls.get(call, ())
                    if any(each.is_entry and each.mode is Mode.FULL for each in called):
                        yield from judge.say(
                            statement,
                            "A function with `full_graph=True` is called by one without",
                            "Give both the same option.",
                            at=call,
                            always=True,
                        )


def _statement(program: Program, entry: Entry) -> Statement | None:
    if entry.is_decorator:
        return entry.function.statement
    if isinstance(entry.node, ast.Call):
        try:
            return program.script.site_of(entry.node).statement
        except KeyError:
            return None
    return None


def _is_handed_out(statement: Statement) -> bool:
    """Return whether a function returns or stores the static object, which may be saved elsewhere."""
    names = set(names_bound(statement.node))
    around = statement.scope.function()
    parts = ast.walk(around.node) if around is not None and around.node is not None else ()
    returned = (each.value for each in parts if isinstance(each, ast.Return) and each.value is not None)
    return isinstance(statement.node, ast.Return) or any(names & names_read(each) for each in returned)


def _place(judge: Judge, entry: Entry) -> str:
    """Return why `to_static` raises at its place."""
    if not entry.is_decorator:
        return ""
    return no_place(judge.script, entry.function, if_unseen="")


def _fixed(judge: Judge, entry: Entry) -> Change | None:
    """Add `full_graph=True`, if that causes no other problem."""
    if not isinstance(entry.node, ast.Call) or argument(entry.node, None, "full_graph") is not None:
        return None
    names = judge.script.names.full_names(entry.node.func, entry.scope)
    if names & SAVING:
        return None
    others = (each for code in STATIC_CODES if code.code != judge.code for each in code.check(judge.program))
    if any(each.verdict is Verdict.HARMLESS for each in others):
        return None
    site = judge.script.site_of(entry.node)
    edits = judge.program.fact(Layout).add_keyword(site, "full_graph", "True")
    return judge.fix(site.statement, "Add full_graph=True", edits)
