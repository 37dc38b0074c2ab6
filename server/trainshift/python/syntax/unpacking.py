"""Unpacking: which value each part of an assignment's target gets, where both sides are written out.

In `a, (b, c) = x, pair`, `a` gets `x`, and `(b, c)` gets the elements of `pair`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator


def parts_assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the parts of a target with their values; a part that is a tuple unpacks its value."""
    match target, value:
        case ast.Tuple(targets) | ast.List(targets), ast.Tuple(values) | ast.List(values) if len(
            targets
        ) == len(values) and not any(isinstance(each, ast.Starred) for each in (*targets, *values)):
            for part, given in zip(targets, values, strict=True):
                yield from parts_assigned(part, given)
        case _:
            yield target, value
