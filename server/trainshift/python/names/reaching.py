"""Reaching bindings: which of a name's bindings may still hold where a statement begins."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Mapping

from trainshift.python.syntax.chunk_syntax import Binding, Statement

_Block = tuple[Statement | None, str]
_Found = dict[Binding, None]


class Reaching:
    """The bindings of one name in one scope, walked backwards along their block structure."""

    def __init__(self, top_index: Mapping[Statement, int], bindings: list[Binding]) -> None:
        self._top_index = top_index
        self._bindings = bindings
        self._by_statement: dict[Statement, list[Binding]] = {}
        self._inside: dict[Statement, list[Binding]] = {}
        # The statements of each block that bind the name, or hold one that does, and their places there.
        self._blocks: dict[_Block, tuple[list[int], list[Statement]]] = {}
        for binding in bindings:
            if binding.statement is not None:
                self._by_statement.setdefault(binding.statement, []).append(binding)
                for each in binding.statement.path():
                    self._inside.setdefault(each, []).append(binding)
        for statement in sorted(self._inside, key=self._place):
            places, statements = self._blocks.setdefault((statement.parent, statement.branch), ([], []))
            places.append(self._place(statement))
            statements.append(statement)

    def _place(self, statement: Statement) -> int:
        return statement.index if statement.parent is not None else self._top_index[statement]

    def within(self, statement: Statement) -> list[Binding]:
        """Those bindings of the module's that a function may see which holds `statement`.

        It cannot run before it is defined: what is bound anew by then is not seen any more.
        """
        *_, top = statement.path()
        held = set(self.before(top))
        place = self._place(top)
        return [each for each in self._bindings if each in held or not self._is_before(each, place)]

    def _is_before(self, binding: Binding, place: int) -> bool:
        """Whether a binding is made by the module itself, before one of its statements."""
        if binding.statement is None or binding.statement.scope.kind != "module":
            return False
        *_, top = binding.statement.path()
        return self._place(top) < place

    def before(self, statement: Statement) -> list[Binding]:
        """Those bindings that may hold where `statement` begins, the nearest first."""
        found: _Found = {}
        current = statement
        while True:
            if self._tail((current.parent, current.branch), found, self._place(current)):
                return list(found)
            parent = current.parent
            if parent is None or parent.scope is not current.scope:
                break
            if isinstance(parent.node, ast.For | ast.AsyncFor | ast.While):
                self._add(parent, found)
                if current.branch == "body" and parent in self._by_statement:
                    return list(found)
            elif isinstance(parent.node, ast.With | ast.AsyncWith):
                if parent in self._by_statement:
                    found.update(dict.fromkeys(self._by_statement[parent]))
                    return list(found)
            elif isinstance(parent.node, ast.Try) and current.branch != "body":
                for branch in parent.branches:
                    if branch != current.branch:
                        self._tail((parent, branch), found)
            current = parent
        found.update((binding, None) for binding in self._bindings if binding.statement is None)
        return list(found)

    def _add(self, statement: Statement, found: _Found) -> None:
        """Add every binding that is in the statement."""
        found.update(dict.fromkeys(self._inside.get(statement, ())))

    def _tail(self, block: _Block, found: _Found, before: int | None = None) -> bool:
        """Add what may hold after a block, or before its place `before`; whether it surely binds the name."""
        places, statements = self._blocks.get(block, ([], []))
        at = len(places) if before is None else bisect_left(places, before)
        return any(self._after(statements[index], found) for index in range(at - 1, -1, -1))

    def _after(self, statement: Statement, found: _Found) -> bool:
        own = self._by_statement.get(statement, [])
        node = statement.node
        if isinstance(node, ast.If):
            taken = [self._tail((statement, branch), found) for branch in ("body", "orelse")]
            return all(taken)
        if isinstance(node, ast.With | ast.AsyncWith):
            if self._tail((statement, "body"), found):
                return True
            found.update(dict.fromkeys(own))
            return bool(own)
        if isinstance(node, ast.Try):
            taken = [self._tail((statement, branch), found) for branch in statement.branches]
            return taken[0] and all(taken)
        if isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.Match):
            self._add(statement, found)
            return False
        found.update(dict.fromkeys(own[-1:]))
        return bool(own)
