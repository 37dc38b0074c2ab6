"""Readings: every place where a name is read, for edits that rename it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainshift.core.facts import Facts, Scope
from trainshift.core.script import Script

# Names through which a script may read others by their text: where it has one, nothing is renamed.
REFLECTION = frozenset({"globals", "locals", "vars", "eval", "exec", "__all__"})


def can_be_renamed(script: Script, name: str) -> bool:
    """Whether the name is read and bound by the script's own code only, and in its own scope only."""
    if not script.identifiers.isdisjoint(REFLECTION):
        return False
    if any(name in scope.declared_global or name in scope.declared_nonlocal for scope in script.scopes):
        return False
    others = script.workspace.scripts if script.workspace is not None else ()
    return not any(name in other.identifiers for other in others if other is not script)


@dataclass(frozen=True, slots=True)
class Reading:
    """A read of a name, in `scope`; `in_fstring` where positions cannot be trusted before Python 3.12."""

    node: ast.Name
    scope: Scope
    facts: Facts
    in_fstring: bool


def reads(chunks: Iterable[Facts], name: str) -> Iterator[Reading]:
    """Every place in the chunks where `name` is read, whatever it stands for there."""
    for facts in chunks:
        if name in facts.loads:
            for statement in facts.top:
                yield from _reads(statement.node, facts.module, facts, name, False)


def _reads(node: ast.AST, scope: Scope, facts: Facts, name: str, in_fstring: bool) -> Iterator[Reading]:
    if isinstance(node, ast.Name):
        if node.id == name and isinstance(node.ctx, ast.Load):
            yield Reading(node, scope, facts, in_fstring)
        return
    in_fstring = in_fstring or isinstance(node, ast.JoinedStr)
    inner = facts.scope_of.get(node, scope)
    inside = _inside(node)
    for child in ast.iter_child_nodes(node):
        yield from _reads(child, inner if child in inside else scope, facts, name, in_fstring)


def _inside(node: ast.AST) -> set[ast.AST]:
    """The parts of a node that opens a scope which are evaluated in that scope."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return set(node.body)
    if isinstance(node, ast.Lambda):
        return {node.body}
    return set(ast.iter_child_nodes(node))
