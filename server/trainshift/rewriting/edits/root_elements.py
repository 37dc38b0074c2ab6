"""Edits that keep elements of a list to rank 0, as a person would write it.

The last elements of a list that has a name are appended to it on rank 0, names among others inserted where
they were.  A list of nothing else is empty on other ranks.  Any other element becomes a list of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.source.edit import Change, Edit, Side, Withheld
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Statement, dotted
from trainshift.python.syntax.precedence import conditional
from trainshift.rewriting.edits.rank_guards import only_element, only_statement
from trainshift.rewriting.prerequisites import Prerequisites


def kept_to_root(report: Report, found: Sequence[tuple[Occurrence, str]]) -> Iterator[Change | Withheld]:
    """Limit elements that write to rank 0, each with its name, where they are put into their lists."""
    lists: dict[ast.List | None, list[tuple[Occurrence, str]]] = {}
    for element, name in found:
        lists.setdefault(_list_around(element), []).append((element, name))
    for listed, each in lists.items():
        edits = _together(report.program, listed, [element for element, _ in each]) if listed else ()
        if not edits:
            yield from (_alone(report, *one) for one in each)
            continue
        statement = _statement(each[0][0])
        names = ", ".join(dict.fromkeys(name for _, name in each))
        target, own_lines = (
            report.program.script.statement_span(statement),
            report.program.fact(Layout).isolate(statement),
        )
        yield report.change(f"Keep {names} to rank 0", target, edits, own_lines)


def _statement(element: Occurrence) -> Statement:
    statement = element.statement or element.scope.statement
    assert statement is not None
    return statement


def _list_around(element: Occurrence) -> ast.List | None:
    """The literal list with an element, if it is all that a statement binds, adds to a list or returns."""
    if element.site is not None:
        return None
    node = _statement(element).node
    given = node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return) else None
    return given if isinstance(given, ast.List) and element.node in given.elts else None


def _alone(report: Report, element: Occurrence, name: str) -> Change | Withheld:
    """Limit one element to rank 0."""
    program, statement = report.program, _statement(element)
    target = program.script.statement_span(statement)
    if element.site is not None:
        if element.site.deferred or not isinstance(statement.node, ast.Expr):
            return report.withheld(
                target, f"{name} is added inside a larger expression; add it in a statement of its own"
            )
        edits, requires = only_statement(program, statement), program.fact(Layout).isolate(statement)
    else:
        edits, requires = only_element(program, element.node, statement), ()
    return report.change(f"Keep {name} to rank 0", target, edits, requires)


def _together(program: Program, listed: ast.List, found: list[Occurrence]) -> tuple[Edit, ...]:
    """The edits for all elements of one list that belong to rank 0; none if each needs its own."""
    statement, kept = _statement(found[0]), {each.node for each in found}
    node = statement.node
    if len(kept) == len(listed.elts):
        if isinstance(node, ast.AugAssign):
            return only_statement(program, statement) if isinstance(node.op, ast.Add) else ()
        return _empty_elsewhere(program, listed, statement)
    name = _bound(node)
    if not name or "#" in program.script.text(listed, statement):
        return ()
    first = next(index for index, each in enumerate(listed.elts) if each in kept)
    if all(each in kept for each in listed.elts[first:]):
        return _appended(program, listed, first, statement, name)
    if all(isinstance(each, ast.Name) for each in listed.elts):
        return _inserted(program, listed, [each in kept for each in listed.elts], statement, name)
    return ()


def _empty_elsewhere(program: Program, listed: ast.List, statement: Statement) -> tuple[Edit, ...]:
    """Turn a list into ``[...] if hvd.rank() == 0 else []``."""
    frame = conditional(program.at(statement).fact(Prerequisites).root, "[]")
    return program.fact(Layout).put(listed, statement, frame)


def _bound(node: ast.stmt) -> str:
    """The variable or attribute that a statement binds to its value; "" for anything else."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if isinstance(node, ast.AugAssign) or len(targets) > 1 or targets[0] is None:
        return ""
    return dotted(targets[0])


def _appended(
    program: Program, listed: ast.List, first: int, statement: Statement, name: str
) -> tuple[Edit, ...]:
    """Append the elements from the one at `first` on, in the statements below the list.

    They stay where they are in the text, so that edits inside them hold.
    """
    layout, source = program.fact(Layout), program.script.source
    newline, unit = layout.newline_at(statement), layout.unit_at(statement)
    whole = program.script.span(listed, statement)
    spans = [layout.enclosed(each, statement) for each in listed.elts]
    append = f"{newline}{unit}{name}.append("
    is_long = source.line_of(whole.start) < source.line_of(spans[0].start)
    closed = f",{newline}]" if is_long and first else "]"
    begin = spans[first - 1].end if first else whole.start + 1
    header = f"{newline}if {program.at(statement).fact(Prerequisites).root}:"
    edits = [Edit(begin, spans[first].start, f"{closed}{header}{append}")]
    for one, other in pairwise(spans[first:]):
        edits.append(Edit(one.end, other.start, f"){append}"))
    edits.append(Edit(spans[-1].end, whole.end, ")"))
    for span in spans[first:]:
        edits += _moved(program, span, statement, len(append.rpartition("\n")[2]))
    return tuple(edits)


def _moved(program: Program, span: Span, statement: Statement, column: int) -> Iterator[Edit]:
    """Move the lines of an element that are aligned with its beginning."""
    source = program.script.source
    fixed = program.fact(Layout).lines_in_strings(statement)
    first, last = source.line_of(span.start), source.line_of(span.end)
    old = span.start - source.line_start(span.start)
    for row in range(first + 1, last + 1):
        start = source.line_starts[row]
        if len(source.indentation(start)) > old and row not in fixed and column > old:
            yield Edit(start, start, " " * (column - old), Side.WITHIN)


def _inserted(
    program: Program, listed: ast.List, kept: list[bool], statement: Statement, name: str
) -> tuple[Edit, ...]:
    """Insert names where they were, in the statements below the list."""
    layout, names = program.fact(Layout), [ast.unparse(each) for each in listed.elts]
    unit, root = layout.unit_at(statement), program.at(statement).fact(Prerequisites).root
    shared = [each for each, alone in zip(names, kept, strict=True) if not alone]
    whole = program.script.span(listed, statement)
    lines = [
        f"{unit}{name}.insert({index}, {each})"
        for index, (each, alone) in enumerate(zip(names, kept, strict=True))
        if alone
    ]
    return (
        Edit(whole.start, whole.end, f"[{', '.join(shared)}]"),
        layout.after(statement, [f"if {root}:", *lines]),
    )
