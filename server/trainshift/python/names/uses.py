"""Uses of names: every read of a name, for edits that rename it and rules that follow it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from msgspec import Struct

from trainshift.python.lazy import cached_property
from trainshift.python.names.scoping import owner_of
from trainshift.python.names.script import HasScript
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS, ChunkSyntax, Scope, Statement, children

# Functions that read names as strings: in a script that uses one, nothing is renamed.
REFLECTION = frozenset({"globals", "locals", "vars", "eval", "exec", "__all__"})


class NameUse(Struct, frozen=True):
    """A read of a name, in `scope` and `statement`.

    `string` is the f-string that contains it, in which positions are unreliable before Python 3.12.
    """

    node: ast.Name
    scope: Scope
    statement: Statement
    string: ast.JoinedStr | None


class NameUses:
    """The reads in one script."""

    def __init__(self, program: HasScript) -> None:
        self._script = program.script
        self._chunks: dict[ChunkSyntax, dict[str, list[NameUse]]] = {}

    def of(self, name: str) -> list[NameUse]:
        """Every read of a name with this spelling, whatever it refers to."""
        chunks = (facts for facts in self._script.facts if facts.loads.get(name))
        return [reading for facts in chunks for reading in self._of_chunk(facts).get(name, ())]

    def _of_chunk(self, facts: ChunkSyntax) -> dict[str, list[NameUse]]:
        """The reads in one chunk by name, collected on first use."""
        if facts not in self._chunks:
            found: dict[str, list[NameUse]] = {}
            for statement in facts.statements:
                for reading in readings_in(statement):
                    found.setdefault(reading.node.id, []).append(reading)
            self._chunks[facts] = found
        return self._chunks[facts]

    @cached_property
    def _declared(self) -> list[tuple[Scope, frozenset[str]]]:
        """The scopes that declare names global or nonlocal, with these names."""
        declared = ((each, each.declared_global | each.declared_nonlocal) for each in self._script.scopes)
        return [(scope, names) for scope, names in declared if names]

    def is_taken(self, name: str, around: Scope, ours: Collection[ast.AST] = ()) -> bool:
        """Return whether a new variable of a scope would bind or hide one that the script uses.

        Uses by the nodes in `ours` do not count.
        """
        script, home = self._script, _binder(around)
        bindings = script.module_bindings.get(name, ()) if home is None else home.bindings.get(name, ())
        if any(binding.target not in ours for binding in bindings):
            return True
        if any(name in names and _is_in(scope, home) for scope, names in self._declared):
            return True
        for use in self.of(name):
            owner = owner_of(name, use.scope)
            is_inner = owner is not None and owner is not home and _is_in(owner, home)
            if use.node not in ours and _is_in(use.scope, home) and not is_inner:
                return True
        return False

    @cached_property
    def quoted_words(self) -> set[str]:
        """Every word in an annotation that is a string."""
        return {
            word
            for statement in self._script.statements
            for annotation in _annotations(statement.node)
            for part in ast.walk(annotation)
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
            for word in re.findall(r"\w+", part.value)
        }

    def can_be_renamed(self, name: str) -> bool:
        """Return whether the name is read and bound only by the script's own code, and only in its
        own scope.
        """
        script = self._script
        if name in self.quoted_words or not script.identifiers.isdisjoint(REFLECTION):
            return False
        if any(name in scope.declared_global or name in scope.declared_nonlocal for scope in script.scopes):
            return False
        others = script.workspace.scripts if script.workspace is not None else ()
        return not any(name in other.identifiers for other in others if other is not script)


def _binder(scope: Scope) -> Scope | None:
    """The function or class whose variables the statements of a scope bind; None for the module."""
    while scope.kind == "comprehension" and scope.parent is not None:
        scope = scope.parent
    return scope if scope.kind != "module" else None


def _is_in(scope: Scope, home: Scope | None) -> bool:
    """Return whether a scope is another one or inside it; every scope is inside the module, None."""
    return home is None or any(each is home for each in scope.path())


def readings_in(statement: Statement) -> Iterator[NameUse]:
    """Every name that a statement itself reads."""
    for node, scope, string in parts_of(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield NameUse(node, scope, statement, string)


def parts_of(statement: Statement) -> Iterator[tuple[ast.AST, Scope, ast.JoinedStr | None]]:
    """Yield every node of a statement itself, with its scope and the f-string around it.

    The blocks of a compound statement belong to the statements in them.
    """
    scope_of = statement.scope.facts.scope_of
    waiting: list[tuple[ast.AST, Scope, ast.JoinedStr | None]] = [(statement.node, statement.scope, None)]
    while waiting:
        node, scope, string = waiting.pop()
        yield node, scope, string
        if isinstance(node, ast.JoinedStr):
            string = string or node
        inner = scope_of[node] if isinstance(node, (ast.Lambda, *COMPREHENSIONS)) else scope
        # The first iterable of a comprehension, and a lambda's defaults, are read outside.
        outside = node.generators[0].iter if isinstance(node, COMPREHENSIONS) else None
        for child in children(node):
            if isinstance(child, ast.stmt):
                continue
            if isinstance(child, ast.comprehension):
                for part in children(child):
                    waiting.append((part, scope if part is outside else inner, string))
            else:
                waiting.append((child, scope if isinstance(child, ast.arguments) else inner, string))


def _annotations(node: ast.stmt) -> Iterator[ast.expr]:
    if isinstance(node, ast.AnnAssign):
        yield node.annotation
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        given = node.args
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
            if each is not None and each.annotation is not None:
                yield each.annotation
        if node.returns is not None:
            yield node.returns
