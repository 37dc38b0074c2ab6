"""A loop that Python begins must not end by a tensor.

## Why it matters

Paddle decides once whether a loop is part of the graph, before its first iteration. If a tensor has to end it
later, Paddle raises "python while pred change from bool to variable".

## What to do

Begin with a tensor: `for i in range(paddle.to_tensor(n))`, or a `while` on a bool tensor.
"""

from __future__ import annotations

import ast
from itertools import takewhile

from trainshift.core.layout import Layout
from trainshift.core.rule import Findings
from trainshift.python.flow.def_use import names_bound
from trainshift.python.source.edit import Change
from trainshift.python.syntax.chunk_syntax import Statement, own_parts
from trainshift.python.syntax.precedence import handed_to
from trainshift.static_graphs.reading.function import StaticFunction, Truth
from trainshift.static_graphs.reporting import Judge, drops_break, exits, is_call_of

_RAISES = "raises: python while pred change from bool to variable"


def check(judge: Judge) -> Findings:
    for function, loop in judge.loops():
        node = loop.node
        if isinstance(node, ast.While):
            begins = function.at_first.get(node, Truth.PYTHON)
            becomes = function.kind(node.test).may_be_tensor or _is_set_by_tensors(function, loop, node.test)
            if begins is Truth.PYTHON and becomes:
                yield from judge.say(
                    loop,
                    f"`{judge.code_of(node.test, loop)}` becomes a tensor, which {_RAISES}",
                    "Begin with a tensor.",
                )
                continue
        elif drops_break(function, node):
            continue
        begins = function.truth(node) if not isinstance(node, ast.While) else begins
        if begins is not Truth.PYTHON:
            continue
        for leaving in exits(function, loop, ast.Break):
            inside = _conditions(function, leaving, loop)
            if leaving in function.reached and inside:
                yield from judge.say(
                    loop,
                    f"This loop begins as Python and is left by a tensor, which {_RAISES}",
                    "Begin with a tensor.",
                    at=judge.between(loop, leaving),
                    sure=any(function.truth(each.node) is Truth.GRAPH for each in inside),
                    related=[(leaving.node, "it is left here")],
                    fix=_fixed(judge, function, loop),
                )


def _is_set_by_tensors(function: StaticFunction, loop: Statement, test: ast.expr) -> bool:
    """Return whether a number in a test is bound in the loop where a tensor decides, and becomes a tensor."""
    asked = {
        part.id
        for part in ([test.operand] if isinstance(test, ast.UnaryOp) else [test, *ast.iter_child_nodes(test)])
        if isinstance(part, ast.Name) and function.kind(part).is_python
    }
    if isinstance(test, ast.Compare) and any(isinstance(each, ast.Is | ast.IsNot) for each in test.ops):
        return False
    for statement in loop.walk():
        inside = [each for each in function.graph_around(statement) if loop in each.ancestors()]
        if inside and statement in function.reached and set(names_bound(statement.node)) & asked:
            return True
    return False


def _conditions(function: StaticFunction, leaving: Statement, loop: Statement) -> list[Statement]:
    """The conditions on tensors between a loop and a statement that leaves it."""
    inside = takewhile(lambda each: each is not loop, leaving.ancestors())
    return [each for each in inside if function.may_be_graph(each.node)]


def _fixed(judge: Judge, function: StaticFunction, loop: Statement) -> Change | None:
    """Loop over a range of a tensor, if the loop's variable meets only tensors, and is not read after the
    loop.
    """
    node, paddle = loop.node, judge.paddle()
    if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call) or not paddle:
        return None
    if not is_call_of(function, node.iter, "builtins.range") or len(node.iter.args) != 1:
        return None
    names = set(names_bound(node.target))
    if names & function.live_after(loop):
        return None
    for statement in loop.walk():
        if statement is not loop:
            for name in names:
                if not _meets_tensors_only(function, statement, name):
                    return None
    edits = judge.program.fact(Layout).put(node.iter.args[0], loop, handed_to(f"{paddle}.to_tensor"))
    return judge.fix(loop, "Loop over a range of a tensor: its variable becomes a 0-D tensor", edits)


def _meets_tensors_only(function: StaticFunction, statement: Statement, name: str) -> bool:
    allowed: set[ast.AST] = set()
    for node in own_parts(statement.node):
        pair: tuple[ast.expr, ...] = ()
        if isinstance(node, ast.BinOp):
            pair = node.left, node.right
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            pair = node.left, node.comparators[0]
        elif isinstance(node, ast.Subscript) and function.kind(node.value).is_tensor:
            allowed.add(node.slice)
        if len(pair) == 2:
            for one, other in (pair, pair[::-1]):
                if function.kind(other).is_tensor:
                    allowed.add(one)
    return all(
        node in allowed
        for node in own_parts(statement.node)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    )
