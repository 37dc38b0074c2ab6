"""Generators and views of dicts that are kept: they are computed later, or only once, unlike a list (AD34).

A derivative writes a generator as a list.  That is the same only where its values are taken at once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.derivatives.reading.function import Function
from trainshift.derivatives.reading.reader import Reader
from trainshift.derivatives.reading.side_effects import changed_by_call
from trainshift.libraries.containers import METHODS
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import arguments
from trainshift.python.syntax.iteration import iterated

_ITERATORS = frozenset(
    f"builtins.{each}" for each in ("enumerate", "filter", "iter", "map", "reversed", "zip")
)
_KEEPING = frozenset(name for name, method in METHODS.items() if method.element is not None)


def kept_lazily(
    function: Function, reader: Reader, inside: Iterable[ast.AST]
) -> Iterator[tuple[ast.expr, str]]:
    """Yield the active generators and views whose values are taken later, with the reason; `inside` are all
    nodes.
    """
    for node in inside:
        for each in _kept(function, node):
            if _is_lazy(function, each) and reader.value(each):
                text = ast.unparse(each)
                written = text[1:-1] if isinstance(each, ast.GeneratorExp) else None
                said = f"[{written}]" if written else f"list({text})"
                yield each, f"{text} is computed where its values are taken: write {said}"
        if isinstance(node, ast.For):
            yield from _changed_meanwhile(reader, node)
            if reader.whole.reverse:
                yield from _taken_once(function, node)


def _taken_once(function: Function, loop: ast.For) -> Iterator[tuple[ast.expr, str]]:
    """Yield the iterators that the adjoint pass of a loop would go through once more."""
    if not any(map(function.active, terms.names_bound(loop.body))):
        return
    for each in iterated(loop.iter):
        name = each.id if isinstance(each, ast.Name) else ""
        for made in function.assignments(name):
            value = getattr(made, "value", None)
            call = function.dotted(value.func) if isinstance(value, ast.Call) else None
            if value is not None and (isinstance(value, ast.GeneratorExp) or call in _ITERATORS):
                yield each, f"{name} can be gone through only once: write list({ast.unparse(value)})"


def _is_lazy(function: Function, node: ast.expr) -> bool:
    match node:
        case ast.GeneratorExp():
            return True
        case ast.Call(ast.Attribute(attr="values" | "items") as method, []):
            return function.dotted(method) is None
    return False


def _kept(function: Function, node: ast.AST) -> Iterable[ast.expr]:
    """The parts of a node whose values go on, and are not taken at once."""
    match node:
        case ast.Assign(targets, value):
            unpacks = any(isinstance(each, ast.Tuple | ast.List) for each in targets)
            return [] if unpacks else [value]
        case ast.AnnAssign(value=ast.expr() as value) | ast.Return(value=ast.expr() as value):
            return [value]
        case ast.NamedExpr(value=value) | ast.Lambda(body=value) | ast.DictComp(value=value):
            return [value]
        case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value):
            return [value]
        case ast.List(elts) | ast.Tuple(elts):
            return elts
        case ast.Dict(values=values) | ast.BoolOp(values=values):
            return values
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.Call(ast.Attribute(attr=method) as func) if function.dotted(func) is None:
            return node.args if method in _KEEPING else []
        case ast.Call(func):
            library = isinstance(func, ast.Attribute) or (
                isinstance(func, ast.Name) and function.dotted(func) is not None
            )
            return [] if library else arguments(node)
    return []


def _changed_meanwhile(reader: Reader, loop: ast.For) -> Iterator[tuple[ast.expr, str]]:
    """Yield the generators that a loop takes its values from while its body changes what they read."""
    lazy = [each for each in iterated(loop.iter) if isinstance(each, ast.GeneratorExp)]
    if not lazy:
        return
    bound = terms.names_bound([loop.target, *loop.body])
    for each in terms.inside(loop.body):
        if isinstance(each, ast.Call):
            bound |= changed_by_call(reader, each)
        elif isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store):
            bound |= terms.names_read(each.value)
    for each in lazy:
        own = terms.names_bound([part.target for part in each.generators])
        for name in sorted((terms.names_read(each) - own) & bound)[:1]:
            if reader.value(each):
                yield each, f"the loop changes {name}, which {ast.unparse(each)} reads: write a list"
