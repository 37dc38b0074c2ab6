"""Functions that return the rank must be called.

    if hvd.rank == 0:                       if hvd.rank() == 0:
        model.save("model.h5")                  model.save("model.h5")

## Why it matters

A function is never equal to a number, and is always true. So the code runs on no rank, or on all ranks.

## What to do

Add parentheses after its name.

## What is reported

Horovod's `rank`, `size` and similar functions in a comparison, a test or arithmetic without a call, also
under another name. Not reported: a function that is passed on, or bound to a name that is called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.expressions import ExpressionsByKind
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import last_name
from trainshift.restrictions.fixes.places import appended, text_of
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.horovod_api import RANK, SIZE

_TELLING = frozenset({*RANK, *SIZE})


def check(program: Program, report: Report) -> Findings:
    """Yield one finding for each function used instead of its result."""
    spelled = _spellings(program)
    for at in _used(program):
        named = isinstance(at.node, ast.Name | ast.Attribute) and last_name(at.node) in spelled
        if named and program.fact(Horovod).is_function(at, *RANK, *SIZE):
            text = text_of(program, at.node, at.scope)
            message = (
                f"{text} is a function and never a number, so this is the same on every rank. Write {text}()."
            )
            fix = appended(report, f"Call {text}", at, "()")
            yield report.violated(at, message, fix=fix)


def _spellings(program: Program) -> frozenset[str]:
    """The last names under which one of these functions may be imported."""
    found = set(_TELLING)
    for script in program.script.scripts:
        found |= {new for new, old in script.code.renamed_imports if old in _TELLING}
        found |= {name for name, value in script.code.bound_values if last_name(value) in found}
    return frozenset(found)


def _used(program: Program) -> Iterator[Occurrence]:
    """The names whose values are used in tests or arithmetic."""
    for statement in program.script.statements:
        if isinstance(statement.node, ast.If | ast.While | ast.Assert):
            yield Occurrence(statement.node.test, statement.scope, statement)
    for at in program.fact(ExpressionsByKind).of(ast.Compare, ast.BoolOp, ast.UnaryOp, ast.IfExp, ast.BinOp):
        yield from map(at.part, _parts(at.node))


def _parts(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.Compare(left, ops, comparators):
            identity = all(isinstance(each, ast.Is | ast.IsNot | ast.In | ast.NotIn) for each in ops)
            return [] if identity else [left, *comparators]
        case ast.BoolOp(_, values):
            return values
        case ast.UnaryOp(_, operand):
            return [operand]
        case ast.IfExp(test):
            return [test]
        case ast.BinOp(left, _, right) if not isinstance(left, ast.JoinedStr):
            return [left, right]
        case _:
            return []
