"""Separate targets: each assignment has one, and loops and unpacking bind names: `a = b = value`,
`for x[0] in values`, `x[0], x[1] = values`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence

from trainshift.python.rewrite import terms


def separate_targets(statements: Sequence[ast.stmt], fresh: Callable[[str], str]) -> list[ast.stmt]:
    """Return statements in which every assignment has one target, which unpacks only into names; `fresh`
    returns unused names.

    Bodies of functions and classes stay as they are.
    """
    made: list[ast.stmt] = []
    for node in statements:
        match node:
            case ast.If() | ast.For() | ast.While():
                body, orelse = (separate_targets(block, fresh) for block in (node.body, node.orelse))
                made.append(terms.with_blocks(node, body, orelse))
            case ast.Assign(targets=[_, _, *_]):
                made += [one for each in _separated(node, fresh) for one in _unpacked(each, fresh)]
            case ast.Assign():
                made += _unpacked(node, fresh)
            case _:
                made.append(node)
    return made


def loops_with_names(statements: Sequence[ast.stmt], fresh: Callable[[str], str]) -> list[ast.stmt]:
    """Return statements in which loops bind only names: places are assigned first in their bodies.

    A list that is written out and unpacked at once becomes a tuple, because its elements may differ in kind.
    """
    made: list[ast.stmt] = []
    for node in statements:
        match node:
            case ast.If() | ast.For() | ast.While():
                first: list[ast.stmt] = []
                if isinstance(node, ast.For):
                    node, first = _named(node, fresh)
                body, orelse = (loops_with_names(block, fresh) for block in (node.body, node.orelse))
                made.append(terms.with_blocks(node, [*first, *body], orelse))
            case ast.Assign([target], value):
                new = _beside(target, value)
                made.append(node if new is value else terms.with_value(node, new))
            case _:
                made.append(node)
    return made


def _named(node: ast.For, fresh: Callable[[str], str]) -> tuple[ast.For, list[ast.stmt]]:
    """A loop whose target has only names, and the assignments to the places that its target had."""
    target, stored = _with_names(node, node.target, fresh)
    if not stored:
        return node, []
    return ast.copy_location(ast.For(target, node.iter, node.body, node.orelse), node), stored


def _unpacked(node: ast.Assign, fresh: Callable[[str], str]) -> list[ast.stmt]:
    """An assignment that unpacks only into names, and then those to the places that its target had.

    A tuple of values for a tuple of places stays: it is no unpacking.
    """
    match node:
        case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
            if not any(isinstance(each, ast.Tuple | ast.List | ast.Starred) for each in (*targets, *values)):
                return [node]
        case ast.Assign([ast.Tuple() | ast.List()]):
            pass
        case _:
            return [node]
    target, stored = _with_names(node, node.targets[0], fresh)
    return [ast.copy_location(ast.Assign([target], node.value), node), *stored] if stored else [node]


def _beside(target: ast.expr, value: ast.expr) -> ast.expr:
    """A value with tuples for the lists that a target unpacks at once."""
    match target, value:
        case ast.Tuple(targets) | ast.List(targets), ast.Tuple(values) | ast.List(values) if len(
            targets
        ) == len(values):
            parts = [*map(_beside, targets, values)]
            if isinstance(value, ast.List) or any(map(operator.is_not, parts, values)):
                return ast.copy_location(ast.Tuple(parts, ast.Load()), value)
    return value


def _with_names(
    node: ast.stmt, target: ast.expr, fresh: Callable[[str], str]
) -> tuple[ast.expr, list[ast.stmt]]:
    """A target with only names, and the assignments to the places that it had.

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

    return name(target), stored


def _separated(node: ast.Assign, fresh: Callable[[str], str]) -> list[ast.Assign]:
    value, targets = node.value, node.targets
    made: list[ast.Assign] = []
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
