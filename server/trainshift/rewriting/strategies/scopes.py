"""Scopes: replace ``with strategy.scope():`` by its body."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.python.source.comments import comments_in
from trainshift.python.source.edit import Edit
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.rewriting.edits.entries import without


def left_scopes(program: Program, entered: Mapping[Statement, list[ast.expr]]) -> Iterator[Edit]:
    """Yield the edits that turn the bodies of scopes into plain code; `entered` are the calls of
    ``scope()``.
    """
    for statement, calls in entered.items():
        node = statement.node
        assert isinstance(node, ast.With)
        if len(calls) < len(node.items):
            yield from without(program, [program.fact(Layout).enclosed(call, statement) for call in calls])
        else:
            yield from _flat(program, statement, node)


def _flat(program: Program, statement: Statement, node: ast.With) -> Iterator[Edit]:
    """Move the body out; comments of the header stay above it."""
    script, layout = program.script, program.fact(Layout)
    source, text = script.source, script.source.text
    span = script.statement_span(statement)
    first = script.statement_span(statement.branches["body"][0])
    colon = layout.enclosed(node.items[-1].context_expr, statement).end
    while text[colon] != ":":
        colon = source.line_end(colon) if text[colon] == "#" else colon + 1
    if source.line_of(colon) == source.line_of(first.start):
        yield Edit(span.start, first.start, "")
        return
    kept = comments_in(text[span.start : source.line_end(colon)])
    if kept:
        yield Edit(span.start, source.line_end(colon), layout.newline_at(statement).join(kept))
    else:
        yield Edit(source.line_start(span.start), source.next_line(colon), "")
    outer, inner = source.indentation(span.start), source.indentation(first.start)
    fixed = layout.lines_in_strings(statement)
    last = source.line_of(span.end)
    while _is_comment(text, last + 1, source.line_starts, inner):
        last += 1
    for line in range(source.line_of(colon) + 1, last + 1):
        start = source.line_starts[line]
        if line not in fixed and text.startswith(inner, start):
            yield Edit(start + len(outer), start + len(inner), "")


def _is_comment(text: str, line: int, starts: Sequence[int], indentation: str) -> bool:
    """Return whether a line is a comment with the indentation of the body."""
    return line < len(starts) and text.startswith(f"{indentation}#", starts[line])
