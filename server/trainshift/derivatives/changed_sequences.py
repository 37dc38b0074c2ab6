"""Loops that mutate their sequence, so that the adjoint pass could not repeat them (AD34)."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.derivatives.reading.function import Function, root_of
from trainshift.derivatives.reading.reader import CHANGING, Reader
from trainshift.derivatives.reading.side_effects import changed_by_call, resized_by_call
from trainshift.python.rewrite import terms
from trainshift.python.syntax.iteration import iterated

_CHANGES = "the loop changes the sequence that it iterates over: "


def changed_sequences(
    function: Function, reader: Reader, inside: Iterable[ast.AST]
) -> Iterator[tuple[ast.AST, str]]:
    """Yield the code that mutates a loop's iterable inside the loop, with the reason; `inside` are
    all nodes.
    """
    for node in inside:
        if not isinstance(node, ast.For):
            continue
        if reader.whole.reverse:
            yield from _copied_views(reader, node)
        for source in iterated(node.iter):
            if isinstance(getattr(source, "slice", None), ast.Slice):
                continue
            if isinstance(source, ast.Name | ast.Subscript) and function.active(root_of(source) or ""):
                for each in _changed(reader, node, source):
                    yield each, _CHANGES + ast.unparse(source)


def _changed(reader: Reader, loop: ast.For, source: ast.expr) -> Iterator[ast.AST]:
    """Yield the mutations of a loop's iterable in its body."""
    name, text = root_of(source), ast.unparse(source)
    # If the name is rebound meanwhile, the reverse pass iterates over a copy.
    copied = reader.whole.reverse and name in terms.names_bound(loop.body)
    for each in terms.inside(loop.body):
        match each:
            case ast.Subscript(ctx=ast.Store()):
                own = copied and root_of(each) == name
            case ast.AugAssign():
                own = reader.kind(source).has("list") and ast.unparse(each.target) == text
            case ast.Call(ast.Attribute(base, method)):
                own = method in (*CHANGING, "pop") and ast.unparse(base) == text
            case ast.Call():
                own = resized_by_call(reader, each, source)
            case _:
                own = False
        if own:
            yield each


def _copied_views(reader: Reader, loop: ast.For) -> Iterator[tuple[ast.AST, str]]:
    """Yield loops over a copy of a dict's items that add keys: the adjoint pass iterates the items again."""
    keys = terms.names_bound([loop.target])
    for each in terms.walk(loop.iter):
        match each:
            case ast.Call(ast.Name("list" | "tuple"), [ast.Call(ast.Attribute(base, "items" | "values"))]):
                name = root_of(base)
            case _:
                continue
        for inner in terms.inside(loop.body):
            own = isinstance(inner, ast.Call) and name in changed_by_call(reader, inner)
            if isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store):
                own = root_of(inner) == name and not terms.names_read(inner.slice) & keys
                own = own or (root_of(inner) == name and not isinstance(inner.slice, ast.Name))
            if own and reader.value(base):
                yield inner, _CHANGES + ast.unparse(base)
