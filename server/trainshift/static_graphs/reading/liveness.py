"""Liveness: which names may be read after a statement of a function, before they are bound again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS, Scope, Statement

Names = frozenset[str]
_NONE: Names = frozenset()
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def own_parts(node: ast.stmt) -> Iterator[ast.AST]:
    """The nodes that a statement itself evaluates, without those of statements in its blocks."""
    waiting: list[ast.AST] = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += (child for child in ast.iter_child_nodes(each) if not isinstance(child, ast.stmt))


def bound_by(node: ast.AST | None) -> Iterator[str]:
    """The plain names that a target or a statement binds in its own scope, in text order."""
    if node is None or isinstance(node, ast.Lambda):
        return
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        yield node.name
    elif isinstance(node, COMPREHENSIONS):
        for each in ast.walk(node):
            if isinstance(each, ast.NamedExpr):
                yield each.target.id
    elif isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id
    else:
        for child in ast.iter_child_nodes(node):
            yield from bound_by(child)


def read_in(node: ast.AST) -> Names:
    """The names that some code reads, those of functions in it included that these do not bind themselves."""
    if isinstance(node, (ast.Lambda, *_FUNCTIONS)):
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        inner = frozenset[str]().union(*map(read_in, body))
        bound = {each.arg for each in every}
        if not isinstance(node, ast.Lambda):
            bound.update(name for part in body for name in bound_by(part))
        defaults = [each for each in (*arguments.defaults, *arguments.kw_defaults) if each is not None]
        decorators = getattr(node, "decorator_list", [])
        return (inner - bound).union(*map(read_in, (*defaults, *decorators)))
    if isinstance(node, COMPREHENSIONS):
        found = frozenset[str]().union(*map(read_in, ast.iter_child_nodes(node)))
        return found - frozenset(name for part in node.generators for name in bound_by(part.target))
    if isinstance(node, ast.Name):
        return frozenset({node.id}) if isinstance(node.ctx, ast.Load) else _NONE
    return frozenset[str]().union(*map(read_in, ast.iter_child_nodes(node)))


@dataclass
class _Loop:
    head: Names
    after: Names


class Liveness:
    """The names that are live in one function."""

    def __init__(self, function: Scope, block: list[Statement]) -> None:
        self._after: dict[Statement, Names] = {}
        self._within: dict[str, Names] = {}
        for name, bindings in function.bindings.items():
            nodes = [each.inner.node for each in bindings if each.kind == "function" and each.inner]
            if nodes:
                self._within[name] = frozenset[str]().union(*(read_in(node) for node in nodes if node))
        self.at_start = self._block(block, _NONE, None)

    def after(self, statement: Statement) -> Names:
        """The names that may be read after a statement; of a loop, after it has ended."""
        return self._after.get(statement, _NONE)

    def _reads(self, *nodes: ast.AST | None) -> Names:
        found = _NONE.union(*(read_in(node) for node in nodes if node is not None))
        return found.union(*(self._within[name] for name in found & self._within.keys()))

    def _block(self, block: list[Statement], live: Names, loop: _Loop | None) -> Names:
        for statement in reversed(block):
            self._after[statement] = self._after.get(statement, _NONE) | live
            live = self._before(statement, live, loop)
        return live

    def _before(self, statement: Statement, live: Names, loop: _Loop | None) -> Names:
        node, branches = statement.node, statement.branches
        if isinstance(node, ast.Return):
            return self._reads(node.value)
        if isinstance(node, ast.Raise):
            return self._reads(node.exc, node.cause)
        if isinstance(node, ast.Break) and loop is not None:
            return loop.after
        if isinstance(node, ast.Continue) and loop is not None:
            return loop.head
        if isinstance(node, ast.If):
            body = self._block(branches.get("body", []), live, loop)
            return body | self._block(branches.get("orelse", []), live, loop) | self._reads(node.test)
        if isinstance(node, _LOOPS):
            return self._of_loop(statement, node, live, loop)
        if isinstance(node, ast.Try):
            ended = self._block(branches.get("finally", []), live, loop)
            handled = _NONE.union(
                *(
                    self._block(block, ended, loop)
                    for name, block in branches.items()
                    if name.startswith("except")
                )
            )
            rest = self._block(branches.get("orelse", []), ended, loop)
            return self._block(branches.get("body", []), rest | handled, loop) | handled
        if isinstance(node, ast.With | ast.AsyncWith):
            body = self._block(branches.get("body", []), live, loop)
            bound = {name for item in node.items for name in bound_by(item.optional_vars)}
            return (body - bound) | self._reads(*(item.context_expr for item in node.items))
        if isinstance(node, ast.Match):
            cases = [self._block(block, live, loop) for block in branches.values()]
            return live.union(*cases) | self._reads(node.subject)
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            return (live - {node.name}) | self._reads(node)
        bound = set(bound_by(node))
        read = self._reads(node)
        if isinstance(node, ast.AugAssign):
            read |= bound
        return (live - bound) | read

    def _of_loop(
        self,
        statement: Statement,
        node: ast.For | ast.AsyncFor | ast.While,
        live: Names,
        outer: _Loop | None,
    ) -> Names:
        after = self._block(statement.branches.get("orelse", []), live, outer)
        tested = self._reads(node.test) if isinstance(node, ast.While) else _NONE
        targets = _NONE if isinstance(node, ast.While) else frozenset(bound_by(node.target))
        head = after | tested
        while True:
            body = self._block(statement.branches.get("body", []), head, _Loop(head, live))
            grown = head | (body - targets)
            if grown == head:
                break
            head = grown
        return head if isinstance(node, ast.While) else head | self._reads(node.iter)
