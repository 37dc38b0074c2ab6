"""Which sums join lists, in a function of no arrays: those whose values have elements (SPEC-AD AD36)."""

from __future__ import annotations

import ast

from trainshift.derivatives.reading.function import Function, own_nodes
from trainshift.derivatives.reading.reader import Reader

_GONE_THROUGH = frozenset(
    ("sum", "len", "max", "min", "sorted", "list", "tuple", "zip", "enumerate", "reversed")
)
_ARRAYS = frozenset(("numpy", "tensorflow", "jax", "torch"))


def tell_joined(function: Function) -> bool:
    """Tells the kinds of what is joined that it is lists; whether that was not known."""
    if function.whole.arrays:
        return False
    imported = {each.partition(".")[0] for each in function.whole.module.imports.values()}
    reader = Reader(function)
    found = False
    for node in own_nodes(function.body):
        whole = (
            [node.value] if isinstance(node, ast.Return) and node.value and function.value.container else []
        )
        for value in [*whole, *_with_elements(reader, node)]:
            found = _told(reader, value, bool(_ARRAYS & imported)) or found
    return found


def _with_elements(reader: Reader, node: ast.AST) -> list[ast.expr]:
    """The values that have elements, by how a node uses them."""
    match node:
        case ast.Assign([ast.Name() as target], value) if reader.kind(target).container:
            return [value]
        case ast.Assign([ast.Tuple() | ast.Subscript(slice=ast.Slice())], ast.BinOp() as value):
            return [value]
        case ast.For(iter=value) | ast.comprehension(iter=value) | ast.Subscript(value=value):
            return [value]
        case ast.Call(ast.Name(name), args) if name in _GONE_THROUGH:
            several = name in ("max", "min") and len(args) > 1
            return [] if several else [*args]
        case ast.BinOp(left, ast.Mult(), right) if any(map(_is_count, (left, right))) and any(
            reader.kind(each).container for each in (left, right)
        ):
            return [node]
        case ast.BinOp(left, ast.Add(), right) if any(reader.kind(each).container for each in (left, right)):
            return [node]
    return []


def _told(reader: Reader, value: ast.expr, arrays: bool) -> bool:
    """Whether the operands of a sum, or what is repeated, are only now known to be lists.

    What may be none is `unclear`: what is multiplied, and what is added where the file knows `arrays`.
    """
    if not (
        isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Mult) and reader.value(value)
    ):
        return False
    joined = isinstance(value.op, ast.Add)
    if arrays and not joined and not any(map(_is_count, (value.left, value.right))):
        return False
    found = False
    listed = joined and any(reader.kind(each).has("list", "tuple") for each in (value.left, value.right))
    for each in (value.left, value.right):
        part = each
        while isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Slice):
            part = part.value
        kind = reader.kind(part)
        if isinstance(each, ast.BinOp):
            found = _told(reader, each, arrays) or found
        elif not kind.has("list", "tuple", "dict", "unclear", "real") and (joined or reader.value(each)):
            kind.tell("list" if listed or (joined and not arrays) else "unclear", "box")
            found = found or isinstance(part, ast.Name | ast.Subscript)
    return found


def _is_count(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "len"
    return isinstance(node, ast.Constant) and isinstance(node.value, int)
