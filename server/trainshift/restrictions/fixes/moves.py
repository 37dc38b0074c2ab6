"""Moves: move whole statements of a block to another place in it, or out of a branch."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.training.ranks.branches import Branch


def moved(
    report: Report,
    title: str,
    statements: Sequence[Statement],
    place: Statement,
    *,
    behind: bool = False,
) -> Change | None:
    """The change that moves statements above another one of their block, or `behind` it, in order.

    None if that would change the meaning of a name, or if another statement shares their lines.
    """
    program = report.program
    block, target = program.script.siblings(place)
    indices = [program.script.siblings(each)[1] for each in statements]
    if any(program.script.siblings(each)[0] is not block for each in statements):
        return None
    passed = block[min(*indices, target) : max(*indices, target) + 1]
    passed = [each for each in passed if each not in statements]
    if any(names & _bound(other) for each in statements for other in passed for names in [_named(each)]):
        return None
    if any(_bound(each) & _named(other) for each in statements for other in passed):
        return None
    spans = [lines_of(program, each) for each in (*statements, place)]
    if any(each is None for each in spans):
        return None
    *taken, there = [each for each in spans if each is not None]
    source = program.script.source
    newline = source.newline
    text = "".join(f"{source.text[each.start : each.end].rstrip(newline)}{newline}" for each in taken)
    at = there.end if behind else there.start
    if behind and not source.text[:at].endswith(newline):
        text = newline + text.removesuffix(newline)
    edits = (Edit(at, at, text), *(Edit(each.start, each.end, "") for each in taken))
    first = program.script.statement_span(statements[0])
    return report.change(title, first, tuple(sorted(edits, key=lambda each: each.start)))


def abreast(program: Program, one: Statement, other: Statement) -> tuple[Statement, Statement] | None:
    """The statements of one block of a function that contain two others; None if there are none."""
    function = one.scope.function()
    if other.scope.function() is not function:
        return None
    blocks = {id(program.script.siblings(each)[0]): each for each in other.path()}
    for each in one.path():
        beside = blocks.get(id(program.script.siblings(each)[0]))
        if beside is not None and each.scope.function() is function:
            return each, beside
    return None


def needed(program: Program, statement: Statement, since: Statement) -> list[Statement]:
    """A statement and the statements of its block, from another one on, that bind names which they read."""
    found, names = [statement], _read(statement)
    block, index = program.script.siblings(statement)
    for each in reversed(block[program.script.siblings(since)[1] : index]):
        if _bound(each) & names:
            found.append(each)
            names |= _read(each)
    return found[::-1]


def hoisted(report: Report, title: str, at: Occurrence, branch: Branch) -> Change | None:
    """The change that moves a call's statement above the `if` in which it comes first."""
    outer, inner, script = branch.statement, at.statement, report.program.script
    if outer is None or inner is None or inner.parent is not outer or inner.branch != "body":
        return None
    if not isinstance(inner.node, ast.Assign | ast.Expr) or inner.node.value is not at.node or inner.index:
        return None
    if any(isinstance(each, ast.NamedExpr) for each in ast.walk(branch.test.node)) and _read(inner) & {
        each.target.id for each in ast.walk(branch.test.node) if isinstance(each, ast.NamedExpr)
    }:
        return None
    whole, own = script.span(outer.node, outer), script.span(inner.node, inner)
    text, body = script.text(inner.node, inner), outer.branches["body"]
    if "\n" in text or not script.text(outer.node, outer).startswith("if"):
        return None
    if len(body) == 1:
        if outer.branches.get("orelse") or "\n" in script.source.text[own.end : whole.end]:
            return None
        edits: tuple[Edit, ...] = (Edit(whole.start, whole.end, text),)
    else:
        behind = script.span(body[1].node, body[1]).start
        if script.source.text[own.end : behind].strip() or "\r" in script.source.text[whole.start : behind]:
            return None
        line = script.source.text.rfind("\n", 0, whole.start) + 1
        indent = script.source.text[line : whole.start]
        edits = (Edit(whole.start, whole.start, f"{text}\n{indent}"), Edit(own.start, behind, ""))
    return report.change(title, own, edits)


def inserted(
    report: Report, title: str, text: str, place: Statement, *, behind: bool = False
) -> Change | None:
    """The change that adds a line above a statement, or `behind` it, with the same indentation."""
    program = report.program
    lines = lines_of(program, place)
    if lines is None:
        return None
    source, span = program.script.source, program.script.statement_span(place)
    indent, newline = source.indentation(span.start), source.newline
    at = lines.end if behind else lines.start
    line = f"{indent}{text}{newline}"
    if behind and not source.text[:at].endswith(newline):
        line = newline + line.removesuffix(newline)
    return report.change(title, span, (Edit(at, at, line),))


def lines_of(program: Program, statement: Statement) -> Span | None:
    """The whole lines of a statement; None if another statement shares them."""
    source, span = program.script.source, program.script.statement_span(statement)
    start, end = source.line_start(span.start), source.next_line(span.end)
    before, after = source.text[start : span.start].strip(), source.text[span.end : end].strip()
    return None if before or (after and not after.startswith("#")) else Span(start, end)


def _names(statement: Statement) -> Iterator[ast.Name]:
    return (each for each in ast.walk(statement.node) if isinstance(each, ast.Name))


def _read(statement: Statement) -> set[str]:
    return {each.id for each in _names(statement) if isinstance(each.ctx, ast.Load)}


def _bound(statement: Statement) -> set[str]:
    """The names that a statement binds, in the scope of its block."""
    names = {each.id for each in _names(statement) if not isinstance(each.ctx, ast.Load)}
    for each in ast.walk(statement.node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(each.name)
        elif isinstance(each, ast.alias):
            names.add(each.asname or each.name.partition(".")[0])
    return names


def _named(statement: Statement) -> set[str]:
    return _read(statement) | _bound(statement)
