"""What the way back cannot undo."""

from __future__ import annotations

import ast

from trainshift.derivatives.reading.function import root_of
from trainshift.derivatives.reading.reader import loses
from trainshift.derivatives.reading.result import Impossible, Refusal
from trainshift.derivatives.reverse.ways import Ways
from trainshift.python.rewrite import terms


def check_changes(way: Ways) -> None:
    """Raises `Impossible` where a container whose elements the way back reads loses some for good."""
    contents, function = way.passes.contents, way.function
    nodes = [
        node
        for each in (function, *function.whole.inside(function))
        for part in each.body
        for node in terms.walk(part)
    ]
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Assign | ast.Expr)}
    for node in nodes:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and function.dotted(node.func) is None
            and root_of(node.func.value) in contents
            and (loses(node) or (node.func.attr == "pop" and id(node) not in alone))
        ):
            raise _cannot_undo(node)
        if (
            isinstance(node, ast.Call)
            and id(node) in way.changes.unseen
            and way.changes.unseen[id(node)] & contents
        ):
            raise _cannot_undo(node)


def _cannot_undo(node: ast.Call) -> Impossible:
    said = f"{ast.unparse(node)} changes what the way back reads and cannot be undone"
    return Impossible((Refusal(node.lineno, node.col_offset + 1, said),))
