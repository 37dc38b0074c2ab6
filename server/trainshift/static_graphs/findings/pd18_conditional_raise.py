"""A branch on a tensor must not raise.

## Why it matters

Both branches are built into the graph, so the exception is always raised when the function is converted.

## What to do

Write an `assert` of the opposite condition.
"""

from __future__ import annotations

import ast

from trainshift.core.rule import Findings
from trainshift.python.source.edit import Change, Edit
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.static_graphs.reporting import Judge


def check(judge: Judge) -> Findings:
    for function, statement in judge.reached():
        around = function.graph_around(statement)
        if isinstance(statement.node, ast.Raise) and around:
            yield from judge.say(
                statement,
                "This is raised when the function is converted, whatever the value of the tensor",
                "Write an `assert` of the opposite.",
                sure=not _is_guarded(statement, around[0]),
                related=[(around[0].node, "the condition on a tensor")],
                fix=_fixed(judge, statement, around[0]),
            )


def _is_guarded(raised: Statement, around: Statement) -> bool:
    """Return whether a Python condition below the one on a tensor also decides."""
    for each in raised.ancestors():
        if each is around:
            return False
        if isinstance(each.node, ast.If | ast.For | ast.While | ast.Try):
            return True
    return False


def _fixed(judge: Judge, statement: Statement, around: Statement) -> Change | None:
    """An `assert` that replaces an `if` that only raises."""
    node, raised = around.node, statement.node
    if not isinstance(node, ast.If) or node.orelse or len(node.body) != 1 or statement.parent is not around:
        return None
    if around.branch == "orelse" and around.parent is not None and isinstance(around.parent.node, ast.If):
        return None  # an `elif`
    exception = raised.exc if isinstance(raised, ast.Raise) else None
    if not isinstance(exception, ast.Call) or len(exception.args) != 1 or exception.keywords:
        return None
    script = judge.script
    span = script.statement_span(around)
    if any("#" in line for line in script.source.text[span.start : span.end].splitlines()):
        return None
    test = script.text(node.test, around)
    message = script.text(exception.args[0], statement)
    code = f"assert not ({test}), {message}"
    return judge.fix(
        around, "Write an assert, which raises AssertionError", [Edit(span.start, span.end, code)]
    )
