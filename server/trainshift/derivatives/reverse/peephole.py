"""Merge lines of the adjoint pass: the initialization of an adjoint and the first addition to it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainshift.derivatives.reading.function import root_of
from trainshift.python.rewrite import terms

_BEGINNING = frozenset(("_cells", "_zeros"))


def shorter(statements: Sequence[ast.stmt], arrays: bool) -> list[ast.stmt]:
    """Merge neighbouring statements if that changes nothing; `arrays`: whether there may be any."""
    made: list[ast.stmt] = []
    for node in statements:
        if isinstance(node, ast.If | ast.For | ast.While):
            node.body, node.orelse = shorter(node.body, arrays), shorter(node.orelse, arrays)
        whole = _one(made[-1], node, arrays) if made else None
        if whole is None:
            made.append(node)
        else:
            made[-1] = whole
    return made


def _one(first: ast.stmt, second: ast.stmt, arrays: bool) -> ast.stmt | None:
    match first, second:
        case (
            ast.Assign([ast.Name(name)], ast.Call(ast.Name(helper)) as begun),
            ast.Assign(
                [ast.Name(again)], ast.Call(args=[ast.Name(read), *_]) | ast.BinOp(ast.Name(read)) as value
            ),
        ) if name == again == read and helper in _BEGINNING:
            loads = [each for each in terms.walk(value) if isinstance(each, ast.Name) and each.id == name]
            if len(loads) == 1:
                return terms.assign(name, terms.copied(value, {name: begun}))
        case (
            ast.Assign([ast.Subscript() as place], ast.Constant(0.0)),
            ast.AugAssign(ast.Subscript() as again, ast.Add(), value),
        ) if terms.same(terms.copied(place), terms.copied(again)):
            # An array would become the adjoint of the value itself.
            own = not arrays or isinstance(place.slice, ast.Slice | ast.Tuple)
            if own and root_of(place) not in terms.names_read(value):
                return ast.Assign([place], value)
    return None
