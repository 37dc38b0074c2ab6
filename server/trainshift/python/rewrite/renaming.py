"""Renaming: rename a function's variables, scope by scope, in a copy of it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping

from trainshift.python.names.scoping import name_uses, owner_of
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.origins import origin
from trainshift.python.syntax.call_binding import parameter_names
from trainshift.python.syntax.chunk_syntax import Scope, imported_names


class Renaming:
    """New names for the variables in a function, whose scope is `scope`.

    `uses` are the names in it, `scopes` its scope and the inner scopes, outer ones first.
    """

    def __init__(self, function: ast.FunctionDef, scope: Scope) -> None:
        self.function = function
        self.uses = list(name_uses(function, scope))
        inside = (scope.facts.scope_of.get(node) for node in terms.walk(function) if node is not function)
        self.scopes = [*dict.fromkeys([scope, *(each for each in inside if each is not None)])]
        self._new: dict[int, str] = {}
        self._renamed: dict[Scope, Mapping[str, str]] = {}

    def replace(self, node: ast.Name, new: str) -> None:
        """Replace one name by another."""
        self._new[id(node)] = new

    def rename(self, scope: Scope, names: Mapping[str, str]) -> None:
        """Rename variables of a scope wherever they are bound or read; `names` maps old names to new ones."""
        for use in self.uses:
            if use.owner is scope and use.node.id in names:
                self._new[id(use.node)] = names[use.node.id]
        for name, new in names.items():
            for binding in scope.bindings[name]:
                if binding.target is not None and not isinstance(binding.target, ast.expr):
                    self._new[id(binding.target)] = new
        self._renamed[scope] = names

    def copy(self) -> ast.FunctionDef:
        """Return a copy of the function with the new names: the function itself, if there are none."""
        if not self._new:
            return self.function
        memo: dict[int, ast.AST] = {}
        nodes = terms.walk(self.function)
        aliases = [
            each for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for each in node.names
        ]
        made = copy.deepcopy(self.function, memo)
        for node in (*nodes, *aliases):
            if id(node) in self._new:
                _named(memo[id(node)], self._new[id(node)])
        changed = {id(memo[each]) for each in self._new if each in memo}
        for scope in self.scopes:
            for each in terms.own_nodes(scope.node.body) if isinstance(scope.node, ast.FunctionDef) else ():
                if isinstance(each, ast.Nonlocal):
                    renamed = memo[id(each)]
                    assert isinstance(renamed, ast.Nonlocal)
                    renamed.names = [self._now(name, scope) for name in each.names]
                    changed.add(id(renamed))
        _as_written(made, changed)
        return made

    def _now(self, name: str, scope: Scope) -> str:
        """The new name of a function's outer variable."""
        owner = owner_of(name, scope)
        return self._renamed.get(owner, {}).get(name, name) if owner is not None else name


def _named(node: ast.AST, new: str) -> None:
    """Rename a node that has or binds a name."""
    match node:
        case ast.Name():
            node.id = new
        case ast.arg():
            node.arg = new
        case ast.FunctionDef():
            node.name = new
        case ast.alias():
            node.asname = new


def _as_written(function: ast.FunctionDef, changed: Iterable[int]) -> None:
    """Record which statements differ from the text."""
    changed = set(changed)

    def visit(statement: ast.stmt) -> bool:
        found = id(statement) in changed
        for each in ast.iter_child_nodes(statement):
            if isinstance(each, ast.stmt):
                found = visit(each) or found
            else:
                found = found or any(id(one) in changed for one in ast.walk(each))
        if found:
            origin(statement).is_verbatim = False
        return found

    for each in function.body:
        visit(each)


def scopes_around(scope: Scope | None) -> list[Scope]:
    """A scope, and the enclosing ones."""
    found = []
    while scope is not None:
        found.append(scope)
        scope = scope.parent
    return found


def parameters_of(scope: Scope) -> set[str]:
    """Return the names of the parameters of a function that a scope belongs to; none for any other scope."""
    arguments = getattr(scope.node, "args", None)
    return set(parameter_names(arguments)) if isinstance(arguments, ast.arguments) else set()


def identifiers(node: ast.AST, bound_only: bool = False) -> set[str]:
    """The names in a function, or those of them that it binds."""
    found = set[str]()
    for each in terms.walk(node):
        match each:
            case ast.Name(ctx=ast.Load()) if bound_only:
                pass
            case ast.FunctionDef() if bound_only and each is node:
                pass
            case ast.Name(name) | ast.arg(name) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.Import() | ast.ImportFrom():
                found.update(name for _, name, _ in imported_names(each))
    return found
