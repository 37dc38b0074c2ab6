"""Places: findings of hazards, and the small edits that fix them."""

from __future__ import annotations

import ast

from trainshift.core.finding import Finding, Related, Verdict
from trainshift.core.program import Program
from trainshift.core.training.horovod import KERAS, TENSORFLOW, Horovod
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import Span, one_line
from trainshift.python.syntax.chunk_syntax import ChunkSyntax, Scope, Site, Statement


def hazard(
    program: Program,
    code: str,
    verdict: Verdict,
    place: Occurrence | Site | Statement,
    message: str,
    related: tuple[Related, ...] = (),
    fix: Change | None = None,
    asks: bool = False,
) -> Finding:
    """A finding of a hazard at an expression, a call, or the first line of a statement."""
    return Finding(
        code, verdict, span_of(program, place), message, related, fix, asks=asks and fix is not None
    )


def horovod_name(program: Program, place: Occurrence | Site | Statement, *modules: str) -> str:
    """The name in a place's file of the first of some Horovod modules that it imports; empty if none."""
    horovod = program.at(place.scope).fact(Horovod)
    imported = (horovod.imported_as(module) for module in modules or (TENSORFLOW, KERAS))
    return next((found[0] for found in imported if found is not None), "")


def span_of(program: Program, place: Occurrence | Site | Statement) -> Span:
    """The span to underline for a place."""
    if isinstance(place, Statement):
        return program.script.header_span(place)
    if isinstance(place, Site):
        place = of_call(place)
    return program.script.span(place.node, place.scope)


def beside(program: Program, place: Occurrence | Site | Statement, message: str) -> Related:
    """Another place that a hazard is about."""
    return Related(span_of(program, place), message)


def replaced(program: Program, code: str, title: str, at: Occurrence, text: str) -> Change:
    """The change that puts other text in the place of an expression."""
    span = program.script.span(at.node, at.scope)
    return Change(code, title, span, (Edit(span.start, span.end, text),))


def appended(program: Program, code: str, title: str, at: Occurrence, text: str) -> Change:
    """The change that puts text right behind an expression."""
    span = program.script.span(at.node, at.scope)
    return Change(code, title, span, (Edit(span.end, span.end, text),))


def text_of(program: Program, node: ast.AST, within: ChunkSyntax | Scope | Statement | Site) -> str:
    """The text of an expression on one line, as messages show it."""
    return one_line(program.script.text(node, within))
