"""Reaching definitions of one name: which of its bindings may still hold where a statement begins.

`python.flow.reaching` answers this for all names of one graph.  Here one name is asked about at a time, in
scripts that are cut into chunks and edited: only the statements that bind it are looked at, backwards along
the blocks. Where code may fail, or be left early, more bindings are counted than may hold, never fewer.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Mapping

from trainshift.python.flow import exits
from trainshift.python.flow.evaluation import heads
from trainshift.python.flow.names import surely_bound
from trainshift.python.syntax.chunk_syntax import Binding, Statement, last_name

# What binds whenever it is done; and managers that suppress exceptions.
_BINDING = (
    ast.AugAssign,
    ast.Delete,
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
)
_SUPPRESSING = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex", "ExitStack"})

_Block = tuple[Statement | None, str]
_Found = dict[Binding, None]


class Reaching:
    """The bindings of one name in one scope, walked backwards along their block structure."""

    def __init__(self, name: str, top_index: Mapping[Statement, int], bindings: list[Binding]) -> None:
        self._name = name
        self._top_index = top_index
        self.bindings = bindings
        self._by_statement: dict[Statement, list[Binding]] = {}
        self._inside: dict[Statement, list[Binding]] = {}
        self._left: dict[tuple[Statement, str], bool] = {}
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
        return [each for each in self.bindings if each in held or not self._is_before(each, place)]

    def _is_before(self, binding: Binding, place: int) -> bool:
        """Whether a binding is made by the module itself, before one of its statements."""
        if binding.statement is None or binding.statement.scope.kind != "module":
            return False
        *_, top = binding.statement.path()
        return self._place(top) < place

    def before(self, statement: Statement) -> list[Binding]:
        """Those bindings that may hold where `statement` is evaluated, the nearest first."""
        found: _Found = {}
        if isinstance(statement.node, ast.While):
            self._add(statement, found)  # Its test is evaluated again after each turn.
        if not self._outwards(statement, found):
            found.update((binding, None) for binding in self.bindings if binding.statement is None)
        # A function that binds the name by `nonlocal` or `global` may have run at any time.
        home = statement.scope.function()
        found.update(
            (each, None)
            for each in self.bindings
            if each.statement is not None and each.statement.scope.function() is not home
        )
        return list(found)

    def _outwards(self, current: Statement, found: _Found) -> bool:
        """Add what may hold where a statement begins; whether the name is surely bound by then."""
        while True:
            if self._tail((current.parent, current.branch), found, self._place(current)):
                return True
            parent = current.parent
            if parent is None or parent.scope is not current.scope:
                return False
            own = self._by_statement.get(parent, [])
            if isinstance(parent.node, ast.For | ast.AsyncFor | ast.While):
                self._add(parent, found)
                if current.branch == "body" and own:
                    return True
            elif isinstance(parent.node, ast.Try):
                if self._before_in_try(parent, current.branch, found):
                    return True
            elif own:
                found.update(dict.fromkeys(own))
                if self._name in surely_bound(*heads(parent.node)):
                    return True
            current = parent

    def _before_in_try(self, statement: Statement, branch: str, found: _Found) -> bool:
        """Add what a `try` may have bound where one of its blocks begins; whether it surely has."""
        if branch == "orelse":
            return self._tail((statement, "body"), found)
        if branch == "finally":
            for other in statement.branches:
                if other != branch:
                    self._add_block((statement, other), found)
        elif branch != "body":
            handler = getattr(statement.node, "handlers")[int(branch.rpartition(" ")[2])]  # noqa: B009
            caught = [each for each in self._by_statement.get(statement, []) if each.target is handler]
            if caught:
                found.update(dict.fromkeys(caught))
                return True
            self._add_block((statement, "body"), found)
        return False

    def at_end(self) -> list[Binding]:
        """Those bindings of the module's that may hold when all of its statements have run."""
        found: _Found = {}
        if not self._tail((None, "body"), found):
            found.update((binding, None) for binding in self.bindings if binding.statement is None)
        return list(found)

    def inside(self, statement: Statement) -> list[Binding]:
        """The bindings that are made in a statement, or in functions that it defines."""
        return self._inside.get(statement, [])

    def _add(self, statement: Statement, found: _Found) -> None:
        """Add every binding that is in the statement."""
        found.update(dict.fromkeys(self._inside.get(statement, ())))

    def _add_block(self, block: _Block, found: _Found) -> None:
        """Add every binding that is in a block."""
        for statement in self._blocks.get(block, ([], []))[1]:
            self._add(statement, found)

    def _tail(self, block: _Block, found: _Found, before: int | None = None) -> bool:
        """Add what may hold after a block, or before its place `before`; whether it surely binds the name."""
        places, statements = self._blocks.get(block, ([], []))
        at = len(places) if before is None else bisect_left(places, before)
        return any(self._after(statements[index], found) for index in range(at - 1, -1, -1))

    def _after(self, statement: Statement, found: _Found) -> bool:
        """Add what may hold behind a statement; whether it surely binds the name where control goes on."""
        own = self._by_statement.get(statement, [])
        node = statement.node
        if isinstance(node, ast.Try):
            return self._after_try(statement, found)
        if isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.Match):
            self._add(statement, found)
            return False
        if isinstance(node, ast.If):
            taken = [
                self._leaves(statement, branch) or self._tail((statement, branch), found)
                for branch in ("body", "orelse")
            ]
            if all(taken):
                return True
        elif isinstance(node, ast.With | ast.AsyncWith):
            if self._tail((statement, "body"), found) and not any(map(_may_suppress, node.items)):
                return True
        elif isinstance(node, _BINDING) or _is_target(node, own[-1:]):
            found.update(dict.fromkeys(own[-1:]))
            return bool(own)
        if not own:
            return False
        found.update(dict.fromkeys(own))
        return self._name in surely_bound(*heads(node))

    def _after_try(self, statement: Statement, found: _Found) -> bool:
        is_sure = True
        last = "orelse" if "orelse" in statement.branches else "body"
        if self._tail((statement, "finally"), found):
            return True
        if not self._leaves(statement, last):
            is_sure = self._tail((statement, last), found)
            if last == "orelse" and not is_sure:
                is_sure = self._tail((statement, "body"), found)
        for branch in statement.branches:
            if branch.startswith("except") and not self._leaves(statement, branch):
                if not self._tail((statement, branch), found):
                    # What failed may have been anything in the block.
                    self._add_block((statement, "body"), found)
                    is_sure = False
        return is_sure

    def _leaves(self, statement: Statement, branch: str) -> bool:
        """Whether control never goes on behind a block of a statement."""
        block = statement.branches.get(branch)
        if not block:
            return False
        key = (statement, branch)
        if key not in self._left:
            self._left[key] = exits.leaves([each.node for each in block])
        return self._left[key]


def _is_target(node: ast.stmt, bindings: list[Binding]) -> bool:
    """Whether a name is a target of an assignment, not one of `:=` that may not be evaluated."""
    if not isinstance(node, ast.Assign) or not bindings:
        return False
    bound = bindings[0].target
    return any(bound is part for target in node.targets for part in ast.walk(target))


def _may_suppress(item: ast.withitem) -> bool:
    """Whether a manager is known to suppress exceptions, by the last part of its name."""
    node = item.context_expr
    return isinstance(node, ast.Call) and last_name(node.func) in _SUPPRESSING
