"""Readers: the statements that may read what a statement binds a name to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.uses import NameUses
from trainshift.python.syntax.chunk_syntax import Scope, Statement, behind_main_guard

_NAMESPACES = ("globals", "locals", "vars")
_RUNNING = ("eval", "exec")


class Readers:
    """The readers of the names that the statements of one script bind."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._uses = program.fact(NameUses)

    def is_read_after(self, name: str, statement: Statement) -> bool:
        """Return whether code outside a statement may read what the statement, or its blocks, bind."""
        if statement.scope.kind == "class" or self._has_unseen or self._is_exported(name, statement):
            return True
        return any(statement not in each.path() for each in self.of(name, statement))

    def of(self, name: str, statement: Statement) -> Iterator[Statement]:
        """Yield the statements that may read what a statement, or its blocks, bind to a name."""
        own, lookup = set(statement.walk()), self._script.names.lookup
        for scope, reader in self._readings(name):
            _, bindings = lookup(name, scope, reader)
            if any(each.statement in own for each in bindings):
                yield reader

    def _readings(self, name: str) -> Iterator[tuple[Scope, Statement]]:
        """Yield each reading statement; ``name += 1`` and ``del name`` read it, too."""
        yield from ((each.scope, each.statement) for each in self._uses.of(name))
        for each in self._changing:
            targets = [each.node.target] if isinstance(each.node, ast.AugAssign) else each.node.targets  # type: ignore[attr-defined]
            if any(isinstance(part, ast.Name) and part.id == name for part in targets):
                yield each.scope, each

    @cached_property
    def _changing(self) -> list[Statement]:
        return [each for each in self._script.statements if isinstance(each.node, ast.AugAssign | ast.Delete)]

    @cached_property
    def _has_unseen(self) -> bool:
        """Return whether the script reads names as strings: by ``locals()`` or ``eval(text)``."""
        return any(
            isinstance(site.node.func, ast.Name) and (site.name in _RUNNING or not site.node.args)
            for site in self._script.sites_named(*_NAMESPACES, *_RUNNING)
        )

    def _is_exported(self, name: str, statement: Statement) -> bool:
        """Return whether another file may read a name of the module, from code that runs at its import."""
        scope, own = statement.scope, self._script.home(statement.scope)
        if (scope.kind != "module" and name not in scope.declared_global) or own.workspace is None:
            return False
        return not behind_main_guard(statement) and (own is not own.workspace.root or own.may_be_imported)
