"""The value of `and` or `or` on tensors must be used as a condition only.

## Why it matters

In a graph both sides run, and the result is a bool: `x or y` is not one of them, and `i < n and x[i] > 0`
reads past the end.

## What to do

Write `paddle.where` or an `if` for the value, and an `if` of its own around code that must not run.
"""

from __future__ import annotations

import ast

from trainshift.core.rule import Findings
from trainshift.python.flow.def_use import names_read
from trainshift.python.flow.traversal import reachable
from trainshift.python.syntax.chunk_syntax import own_parts
from trainshift.static_graphs.concretization import names_asked
from trainshift.static_graphs.reading.function import StaticFunction, Truth
from trainshift.static_graphs.reporting import Judge


def check(judge: Judge) -> Findings:
    for function, statement in judge.reached():
        conditions = _conditions(statement.node)
        for node in own_parts(statement.node):
            if not isinstance(node, ast.BoolOp) or not function.may_be_graph(node):
                continue
            word = "and" if isinstance(node.op, ast.And) else "or"
            if _guards(function, node):
                message = f"Both sides of this `{word}` run in a graph, where the left guards the right"
                advice = "Write an `if` of its own for the left side."
            elif node not in conditions and _changes(function, node):
                message = f"In a graph `{judge.code_of(node, statement)}` is a bool, not one of its sides"
                advice = "Write `paddle.where`, or an `if`."
            else:
                continue
            sure = function.truth(node) is Truth.GRAPH
            yield from judge.say(statement, message, advice, at=node, sure=sure, always=True)


def _conditions(statement: ast.stmt) -> set[ast.AST]:
    """The expressions of a statement only used as conditions."""
    found: set[ast.AST] = set()
    for node in own_parts(statement):
        if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
            found.add(node.test)
        elif isinstance(node, ast.comprehension):
            found.update(node.ifs)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found.add(node.operand)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "bool":
            found.update(node.args[:1])
    return set(reachable(found, lambda node: node.values if isinstance(node, ast.BoolOp) else ()))


def _changes(function: StaticFunction, node: ast.BoolOp) -> bool:
    """Return whether one side is certainly not a bool."""
    for each in node.values:
        value = function.kind(each)
        if value.may_be_tensor and value.dtype not in ("", "bool"):
            return True
        if value.is_python and not value.among("bool"):
            return True
    return False


def _guards(function: StaticFunction, node: ast.BoolOp) -> bool:
    """Return whether a test of an index or a size, on a tensor, precedes the access that it guards."""
    for index, left in enumerate(node.values[:-1]):
        if not function.kind(left).may_be_tensor or not isinstance(left, ast.Compare):
            continue
        tested = names_asked(left, _is_size, _is_size)
        sized = {
            each.value.id
            for part in ast.walk(left)
            for each in ([part.value] if isinstance(part, ast.Subscript) else [part])
            if isinstance(each, ast.Attribute) and each.attr == "shape" and isinstance(each.value, ast.Name)
        }
        for right in node.values[index + 1 :]:
            for part in ast.walk(right):
                if isinstance(part, ast.Subscript) and function.kind(part.value).may_be_tensor:
                    base = part.value.id if isinstance(part.value, ast.Name) else ""
                    if names_read(part.slice) & tested or base in sized:
                        return True
    return False


def _is_size(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "shape"
