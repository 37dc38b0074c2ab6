"""Places: what messages call them, and the small edits that fix a hazard there."""

from __future__ import annotations

import ast

from trainshift.core.finding import Related
from trainshift.core.program import Program
from trainshift.core.report import Place, Report, span_of
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import ChunkSyntax, Scope, Site, Statement
from trainshift.training.horovod.existing_use import KERAS, TENSORFLOW, Horovod


def horovod_name(program: Program, place: Occurrence | Site | Statement, *modules: str) -> str:
    """The name, in a place's file, of the first Horovod module of some that it imports; empty if none."""
    horovod = program.at(place.scope).fact(Horovod)
    imported = (horovod.imported_as(module) for module in modules or (TENSORFLOW, KERAS))
    return next((found[0] for found in imported if found is not None), "")


def beside(program: Program, place: Place, message: str) -> Related:
    """Another place for a hazard's finding."""
    return Related(span_of(program, place), message)


def replaced(report: Report, title: str, at: Occurrence, text: str) -> Change:
    """The change that replaces an expression by other text."""
    span = report.span_of(at)
    return report.change(title, span, (Edit(span.start, span.end, text),))


def appended(report: Report, title: str, at: Occurrence, text: str) -> Change:
    """The change that puts text right behind an expression."""
    span = report.span_of(at)
    return report.change(title, span, (Edit(span.end, span.end, text),))


def text_of(program: Program, node: ast.AST, within: ChunkSyntax | Scope | Statement | Site) -> str:
    """The text of an expression on one line, as shown in messages."""
    return one_line(program.script.text(node, within))
