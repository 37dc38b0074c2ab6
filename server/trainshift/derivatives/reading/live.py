"""Which variables are read after a statement before they are assigned again."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainshift.derivatives import terms


class Live:
    """Liveness in one function: `after` gives the variables that are live when a statement is done."""

    def __init__(self, statements: Sequence[ast.stmt], always: set[str]) -> None:
        self._after: dict[int, set[str]] = {}
        self._always = always
        self._block(statements, set(always), set(), set())

    def after(self, node: ast.stmt) -> set[str]:
        """The variables that are live after a statement."""
        return self._after.get(id(node), set()) | self._always

    def _block(
        self, statements: Sequence[ast.stmt], live: set[str], left: set[str], again: set[str]
    ) -> set[str]:
        """What is live before statements: after them `live` is, after a break `left`, at the next round
        `again`."""
        for node in reversed(statements):
            self._after[id(node)] = self._after.get(id(node), set()) | live
            live = self._before(node, live, left, again)
        return live

    def _before(self, node: ast.stmt, live: set[str], left: set[str], again: set[str]) -> set[str]:
        match node:
            case ast.Break():
                return set(left)
            case ast.Continue():
                return set(again)
            case ast.Return() | ast.Raise():
                return terms.names_read(node)
            case ast.If():
                body = self._block(node.body, live, left, again)
                return body | self._block(node.orelse, live, left, again) | terms.names_read(node.test)
            case ast.For() | ast.While():
                head = node.iter if isinstance(node, ast.For) else node.test
                set_here = terms.names_bound([node.target]) if isinstance(node, ast.For) else set()
                ended = self._block(node.orelse, live, left, again) | terms.names_read(head)
                start, before = set(ended), None
                while start != before:
                    before = set(start)
                    start |= self._block(node.body, start, live, start) - set_here
                return start
            case ast.AugAssign():
                return live | terms.names_read(node) | terms.names_read(terms.copied(node.target))
            case ast.FunctionDef():
                return live - {node.name}
        return (live - terms.names_bound([node])) | terms.names_read(node)
