"""The expressions of a program by their kind of syntax, found in one walk."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import HasScript
from trainshift.python.syntax.chunk_syntax import ChunkSyntax, Scope, Statement, children
from trainshift.python.syntax.slotted_ast import kind_of

_BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)
# Half of all expressions are names and constants, which have no subexpressions.
_LEFT_OUT = (*_BLOCKS, ast.Name, ast.Constant, ast.expr_context, ast.operator)


class ExpressionsByKind:
    """The expressions of one program, each with its scope and statement."""

    def __init__(self, program: HasScript) -> None:
        self._script = program.script

    def of(self, *kinds: type[ast.expr]) -> Iterator[Occurrence]:
        """Yield the expressions of some kinds (except names and constants), statement by statement for each
        kind.
        """
        for kind in kinds:
            found = (each for facts in self._script.facts for each in facts.once(_by_kind).get(kind, ()))
            yield from (
                found if self._running is None else (each for each in found if each[2] in self._running)
            )

    @cached_property
    def _running(self) -> set[Statement | None] | None:
        """The statements of a program that run; None if all do."""
        running = self._script.statements
        total = sum(len(facts.statements) for facts in self._script.facts)
        return set(running) if len(running) < total else None


def _by_kind(facts: ChunkSyntax) -> dict[type[ast.AST], list[Occurrence]]:
    found: dict[type[ast.AST], list[Occurrence]] = {}
    for statement in facts.statements:
        for node, scope in _own(statement):
            found.setdefault(kind_of(node), []).append(Occurrence(node, scope, statement))
    return found


def _own(statement: Statement) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield every expression of a statement itself, without those of its blocks."""
    scopes = statement.scope.facts.scope_of
    waiting: list[tuple[ast.AST, Scope]] = [(statement.node, statement.scope)]
    while waiting:
        node, scope = waiting.pop()
        if isinstance(node, ast.expr):
            yield node, scope
            scope = scopes.get(node, scope)
        waiting += [(child, scope) for child in children(node) if not isinstance(child, _LEFT_OUT)]
