"""Changes that the adjoint pass cannot undo."""

from __future__ import annotations

import ast

from trainshift.derivatives.reading.function import root_of
from trainshift.derivatives.reading.reader import loses
from trainshift.derivatives.reading.result import refused_at
from trainshift.derivatives.reverse.control_flow import Ways
from trainshift.python.rewrite import terms


def check_changes(way: Ways) -> None:
    """Raise `Impossible` if a container whose elements the adjoint pass reads permanently loses some."""
    contents, function = way.passes.contents, way.function
    functions = (function, *function.whole.inside(function))
    nodes = [node for each in functions for node in terms.inside(each.body)]
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Assign | ast.Expr)}
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        lost = (
            isinstance(node.func, ast.Attribute)
            and function.dotted(node.func) is None
            and root_of(node.func.value) in contents
            and (loses(node) or (node.func.attr == "pop" and id(node) not in alone))
        )
        if lost or contents & way.changes.unseen.get(id(node), set()):
            said = f"{ast.unparse(node)} changes a value that the reverse pass reads, and cannot be undone"
            raise refused_at(node, said)
