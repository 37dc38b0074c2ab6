"""Counts that are divided by the number of ranks must not become 0.

    model.fit(x, y,                         model.fit(x, y,
              epochs=4 // hvd.size())                 epochs=max(1, 4 // hvd.size()))

## Why it matters

With more ranks than epochs, nothing is trained, and no message says so. Keras stops at `steps_per_epoch=0`.

## What to do

Write `max(1, ...)`, or round up.

## What is reported

A floor division by `hvd.size()` of epochs, whatever their number, and of fewer than 16 steps. Not reported:
`max`, `ceil`, and `or`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.expressions import ExpressionsByKind
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Literal
from trainshift.python.source.edit import Change, Edit
from trainshift.python.syntax.chunk_syntax import last_name
from trainshift.restrictions.fixes.places import text_of
from trainshift.training.data.loop_inputs import Feeds
from trainshift.training.ranks.shared_loops import Together
from trainshift.training.uniformity.uniformity import Uniformity

# This many ranks are common, so that fewer steps may be divided to 0.
_FEW = 16


def check(program: Program, report: Report) -> Findings:
    """Yield one finding for each division whose result may be 0 epochs or steps."""
    if not any(_is_divided(program, each) for each in _candidates(program)):
        return
    seen = set[int]()
    for loop in program.fact(Together).loops:
        feed = program.fact(Feeds).of(loop)
        for counts, what in ((feed.epochs, "epoch"), (feed.steps, "step")):
            for count in counts:
                for at in _divisions(program, count):
                    if id(at.node) in seen or (what == "step" and not _is_few(program, at)):
                        continue
                    seen.add(id(at.node))
                    text = text_of(program, at.node, at.scope)
                    message = f"With enough ranks, {text} is 0, and no {what} runs. Write max(1, {text})."
                    yield report.violated(at, message, fix=_fix(program, report, at, text))


def _divisions(program: Program, count: Occurrence) -> Iterator[Occurrence]:
    """Yield the divisions by the number of ranks behind a count, rounded down."""
    for at in reachable([count], partial(_giving, program), lambda each: (id(each.node), id(each.scope))):
        if _is_divided(program, at):
            yield at


def _is_divided(program: Program, at: Occurrence) -> bool:
    """Return whether an expression is a division by the number of ranks, rounded down."""
    match at.node:
        case ast.BinOp(op=ast.FloorDiv(), right=right):
            return program.fact(Uniformity).on_size(at.part(right))
        case ast.Call(args=[ast.BinOp(op=ast.Div(), right=right)]):
            return _rounds(at.node) and program.fact(Uniformity).on_size(at.part(right))
    return False


def _candidates(program: Program) -> Iterator[Occurrence]:
    """Yield the divisions of a program, in code that a count may come from."""
    yield from program.fact(ExpressionsByKind).of(ast.BinOp)
    yield from map(of_call, program.script.sites_named("int", "floor"))


def _giving(program: Program, count: Occurrence) -> list[Occurrence]:
    """The expressions that a count comes from unchanged, except by rounding."""
    node = count.node
    if isinstance(node, ast.Call) and _rounds(node):
        return [] if isinstance(node.args[0], ast.BinOp) else [count.part(node.args[0])]
    step = None if isinstance(node, ast.BinOp | ast.BoolOp) else program.names.steps_back(count)
    return [each for each in step.sources if not each.tested] if step is not None else []


def _rounds(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in ("int", "floor") and len(node.args) == 1


def _is_few(program: Program, at: Occurrence) -> bool:
    node = at.node
    if isinstance(node, ast.Call):
        node = node.args[0]
    assert isinstance(node, ast.BinOp)
    values = program.names.values(node.left, at.scope, at.statement)
    known = [each.value for each in values if isinstance(each, Literal)]
    return (
        bool(known)
        and len(known) == len(values)
        and all(isinstance(each, int | float) and each < _FEW for each in known)
    )


def _fix(program: Program, report: Report, at: Occurrence, text: str) -> Change:
    span = program.script.span(at.node, at.scope)
    edits = (Edit(span.start, span.start, "max(1, "), Edit(span.end, span.end, ")"))
    return report.change(f"Write max(1, {text})", span, edits)
