"""Separate targets: each assignment has one, and loops bind names: `a = b = value`, `for x[0] in values`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from trainshift.python.rewrite import terms


def separate_targets(statements: Sequence[ast.stmt], fresh: Callable[[str], str]) -> list[ast.stmt]:
    """Return statements in which every assignment has one target; `fresh` returns unused names.

    Bodies of functions and classes stay as they are.
    """
    made: list[ast.stmt] = []
    for node in statements:
        match node:
            case ast.If() | ast.For() | ast.While():
                body, orelse = (separate_targets(block, fresh) for block in (node.body, node.orelse))
                made.append(terms.with_blocks(node, body, orelse))
            case ast.Assign(targets=[_, _, *_]):
                made += _separated(node, fresh)
            case _:
                made.append(node)
    return made


def loops_with_names(statements: Sequence[ast.stmt], fresh: Callable[[str], str]) -> list[ast.stmt]:
    """Return statements in which loops bind only names: places are assigned first in their bodies."""
    made: list[ast.stmt] = []
    for node in statements:
        match node:
            case ast.If() | ast.For() | ast.While():
                first: list[ast.stmt] = []
                if isinstance(node, ast.For):
                    node, first = _named(node, fresh)
                body, orelse = (loops_with_names(block, fresh) for block in (node.body, node.orelse))
                made.append(terms.with_blocks(node, [*first, *body], orelse))
            case _:
                made.append(node)
    return made


def _named(node: ast.For, fresh: Callable[[str], str]) -> tuple[ast.For, list[ast.stmt]]:
    """A loop whose target has only names, and the assignments to the places that its target had.

    Targets get their values from left to right, so those that follow a place come after it here, too.
    """
    stored: list[ast.stmt] = []

    def name(target: ast.expr) -> ast.expr:
        if isinstance(target, ast.Tuple | ast.List):
            return ast.copy_location(ast.Tuple([*map(name, target.elts)], ast.Store()), target)
        if isinstance(target, ast.Starred) or (isinstance(target, ast.Name) and not stored):
            return target
        new = fresh("item")
        stored.append(ast.copy_location(ast.Assign([target], terms.name(new)), node))
        return ast.copy_location(ast.Name(new, ast.Store()), target)

    target = name(node.target)
    if not stored:
        return node, []
    return ast.copy_location(ast.For(target, node.iter, node.body, node.orelse), node), stored


def _separated(node: ast.Assign, fresh: Callable[[str], str]) -> list[ast.stmt]:
    value, targets = node.value, node.targets
    made: list[ast.stmt] = []
    if not isinstance(value, ast.Constant | ast.Name):
        first = targets[0]
        if isinstance(first, ast.Name):
            targets = targets[1:]
        else:
            first = ast.Name(fresh("t"), ast.Store())
        made.append(ast.Assign([first], value))
        value = terms.name(first.id)
    made += [ast.Assign([target], terms.copied(value)) for target in targets]
    return [ast.copy_location(each, node) for each in made]
