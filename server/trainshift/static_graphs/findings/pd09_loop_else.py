"""A loop must not have an `else`.

## Why it matters

Paddle silently drops the `else` of a loop. Its statements never run.

## What to do

Without a `break`, write the statements after the loop. With one, set a flag before it, and test that after
the loop.
"""

from __future__ import annotations

import ast

from trainshift.core.layout import Layout
from trainshift.core.rule import Findings
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.static_graphs.reporting import Judge, exits


def check(judge: Judge) -> Findings:
    for function, loop in judge.loops():
        orelse = loop.branches.get("orelse", [])
        if not orelse:
            continue
        at = _else_of(judge, orelse[0])
        left = bool(exits(function, loop, ast.Break))
        do = (
            "Set a flag before the `break`, and test it after the loop."
            if left
            else "Write it after the loop."
        )
        yield from judge.say(
            loop,
            "Paddle drops the `else` of this loop",
            do,
            at=Span(judge.script.statement_span(loop).start, at.end),
            fix=None if left else _dedented(judge, loop, orelse, at),
        )


def _else_of(judge: Judge, first: Statement) -> Span:
    """The span of a loop's `else`, with its colon."""
    text = judge.script.source.text
    end = judge.script.statement_span(first).start
    start = text.rindex("else", 0, end)
    return Span(start, text.index(":", start) + 1)


def _dedented(judge: Judge, loop: Statement, orelse: list[Statement], at: Span) -> Change | None:
    """The statements of an `else` after the loop; None if its lines cannot be moved."""
    program = judge.program
    source, text = judge.script.source, judge.script.source.text
    if text[at.end : source.line_end(at.end)].strip(" \t"):
        return None
    layout = program.fact(Layout)
    end = source.line_end(judge.script.statement_span(orelse[-1]).end)
    outer, inner = layout.indentation(loop), layout.indentation(orelse[0])
    extra = inner[len(outer) :]
    if not inner.startswith(outer) or any(layout.lines_in_strings(each) for each in orelse):
        return None
    edits = [Edit(source.line_start(at.start), source.next_line(at.start), "")]
    line = source.next_line(at.start)
    while line < end:
        if text.startswith(inner, line):
            edits.append(Edit(line + len(outer), line + len(outer) + len(extra), ""))
        following = source.next_line(line)
        if following <= line:
            break
        line = following
    return judge.fix(loop, "Write the else after the loop", edits)
