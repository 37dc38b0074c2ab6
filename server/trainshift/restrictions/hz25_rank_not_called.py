"""Functions that tell the rank must be called.

    if hvd.rank == 0:                       if hvd.rank() == 0:
        model.save("model.h5")                  model.save("model.h5")

## Why it matters

A function is never equal to a number, and is always true. So the code runs on no rank, or on all of them.

## What to do

Add the parentheses behind its name.

## What is reported

`rank`, `size` and their like of Horovod in a comparison, a test or arithmetic without a call, also under
another name. Fine is a function that is passed on, or bound to a name that is called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.finding import Verdict
from trainshift.core.names.occurrence import Occurrence
from trainshift.core.names.values import Library
from trainshift.core.program import Program
from trainshift.core.ranks.dependence import RANK, SIZE
from trainshift.core.text.facts import Statement, last_name
from trainshift.restrictions.facts.places import appended, expressions, hazard, text_of
from trainshift.restrictions.restriction import Findings, Hazard

_TELLING = frozenset({*RANK, *SIZE})


def check(program: Program) -> Findings:
    """One finding for each function that stands where its value is meant."""
    spelled = _spellings(program)
    for statement in program.script.statements:
        for node in _used(statement):
            if last_name(node) not in spelled:
                continue
            at = Occurrence(node, statement.scope, statement)
            if _tells(program, at):
                text = text_of(program, node, statement)
                message = (
                    f"{text} is a function and never a number, so this is the same on every rank. "
                    f"Write {text}()."
                )
                fix = appended(program, "HZ25", f"Call {text}", at, "()")
                yield hazard(program, "HZ25", Verdict.VIOLATED, at, message, fix=fix)


def _spellings(program: Program) -> frozenset[str]:
    """The last names that one of these functions may be read by."""
    found = set(_TELLING)
    for script in program.script.scripts:
        found |= {new for new, old in script.code.renamed_imports if old in _TELLING}
        found |= {name for name, value in script.code.bound_values if last_name(value) in found}
    return frozenset(found)


def _used(statement: Statement) -> Iterator[ast.expr]:
    """The names whose value decides something, or is reckoned with."""
    if isinstance(statement.node, ast.If | ast.While | ast.Assert):
        yield from _named(statement.node.test)
    for node in expressions(statement):
        if isinstance(node, ast.Compare):
            identity = all(isinstance(each, ast.Is | ast.IsNot | ast.In | ast.NotIn) for each in node.ops)
            for each in () if identity else (node.left, *node.comparators):
                yield from _named(each)
        elif isinstance(node, ast.BoolOp):
            for each in node.values:
                yield from _named(each)
        elif isinstance(node, ast.UnaryOp):
            yield from _named(node.operand)
        elif isinstance(node, ast.IfExp):
            yield from _named(node.test)
        elif isinstance(node, ast.BinOp) and not isinstance(node.left, ast.JoinedStr):
            for each in (node.left, node.right):
                yield from _named(each)


def _named(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Name | ast.Attribute):
        yield node


def _tells(program: Program, at: Occurrence) -> bool:
    values = program.names.values(at.node, at.scope, at.statement)
    return bool(values) and all(
        isinstance(each, Library)
        and each.name.startswith("horovod.")
        and each.name.rpartition(".")[2] in _TELLING
        for each in values
    )


RULE = Hazard("HZ25", "rank-not-called", check, "D")
