"""Parts: the syntax that a statement evaluates by itself, and the names that it reads and binds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS

Names = frozenset[str]
_NONE: Names = frozenset()
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


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
