"""Separate targets: `a = b = value` becomes one assignment for each target."""

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
