"""Scoping: the scope that owns a name where it is read, by the rules of Python alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainshift.python.flow.traversal import reachable
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS, FunctionNode, Scope, children


class NameUse(NamedTuple):
    """A use of a name, a read or a binding: `scope` contains it, `owner` owns the name (None: the module)."""

    node: ast.Name
    scope: Scope
    owner: Scope | None


def owner_of(name: str, scope: Scope) -> Scope | None:
    """The scope that owns a name used in `scope`; None for a global name."""
    current: Scope | None = scope
    first = True
    while current is not None and current.kind != "module":
        skipped = current.kind == "class" and not first
        if name in current.declared_global:
            return None
        if not skipped and name in current.bindings and name not in current.declared_nonlocal:
            return current
        first = first and current.kind == "comprehension"
        current = current.parent
    return None


def name_uses(function: FunctionNode, scope: Scope) -> Iterator[NameUse]:
    """The names in the body of the function with the scope `scope`, including those in inner functions.

    Annotations are left out.
    """
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    starts: list[tuple[ast.AST, Scope]] = [(each, scope) for each in reversed(body)]
    for node, around in reachable(starts, lambda at: reversed(list(_parts(*at)))):
        if isinstance(node, ast.Name):
            yield NameUse(node, around, owner_of(node.id, around))


def _parts(node: ast.AST, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
    """Yield the parts of a node, with their scopes."""
    inner = scope.facts.scope_of.get(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        arguments = node.args
        outside = [*getattr(node, "decorator_list", ()), *arguments.defaults, *arguments.kw_defaults]
        yield from ((each, scope) for each in outside if each is not None)
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        yield from ((each, inner or scope) for each in body)
    elif isinstance(node, COMPREHENSIONS):
        own = inner or scope
        first, *others = node.generators
        yield first.iter, scope
        yield from ((each, own) for each in (first.target, *first.ifs, *others))
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        yield from ((each, own) for each in parts)
    elif isinstance(node, ast.ClassDef):
        yield from ((each, scope) for each in (*node.decorator_list, *node.bases))
        yield from ((each.value, scope) for each in node.keywords)
        yield from ((each, inner or scope) for each in node.body)
    elif isinstance(node, ast.AnnAssign):
        yield from ((each, scope) for each in (node.target, node.value) if each is not None)
    else:
        yield from ((each, scope) for each in children(node))
