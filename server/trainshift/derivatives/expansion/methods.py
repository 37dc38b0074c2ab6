"""Rewrite unsupported method calls: destructive ones become stores that the adjoint pass can undo, and
mutating calls move ahead of the condition that contains them.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainshift.derivatives.expansion.elements_by_place import by_place, shared_names
from trainshift.derivatives.reading.analysis import Analysis
from trainshift.derivatives.reading.evaluation_order import has_effects
from trainshift.derivatives.reading.function import root_of
from trainshift.derivatives.reading.reader import Reader
from trainshift.python.rewrite import terms

# Values that ask about a container.
_ASKING = (ast.IfExp, ast.Compare, ast.BoolOp)


def write_out(whole: Analysis) -> None:
    """Rewrite the bodies of all functions where needed, and recompute the active variables."""
    rewritten = False
    for function in whole.every():
        reader = Reader(function)
        body = _block(reader, function.body, shared_names(reader))
        rewritten = rewritten or not terms.same_block(body, function.body)
        function.body = body
    if rewritten:
        whole.settle()


def _block(reader: Reader, statements: Sequence[ast.stmt], shared: set[frozenset[str]]) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for node in statements:
        match node:
            case ast.If() | ast.For() | ast.While():
                if isinstance(node, ast.For):
                    node = by_place(reader, node, shared)
                body, orelse = _block(reader, node.body, shared), _block(reader, node.orelse, shared)
                whole = terms.with_blocks(node, body, orelse)
                made += _told(reader, whole) if isinstance(whole, ast.If) else [whole]
            case ast.Assign(value=value) | ast.Return(value) if isinstance(value, _ASKING):
                made += _told(reader, node)
            case ast.Expr() | ast.Assign():
                made += [ast.copy_location(each, node) for each in _statement(reader, node)]
            case _:
                made.append(node)
    return made


def _told(reader: Reader, node: ast.stmt) -> list[ast.stmt]:
    """A statement with a condition, after the mutating calls of the condition."""
    value = node if isinstance(node, ast.If) else getattr(node, "value", None)
    test = value.test if isinstance(value, ast.If | ast.IfExp) else value
    assert isinstance(test, ast.expr)
    held: list[ast.stmt] = []
    new: dict[int, ast.expr] = {}
    for each in _asked(test):
        if isinstance(each, ast.Call) and has_effects(reader, each):
            name = reader.function.temporary()
            reader.function.local.add(name)
            held.append(ast.copy_location(terms.assign(name, each), node))
            new[id(each)] = terms.name(name)
        elif not isinstance(each, ast.Constant):
            # It would be read after the calls that follow.
            break
    if not held:
        return [node]
    test = terms.rebuilt(test, new)
    if isinstance(node, ast.If):
        made: ast.stmt = ast.copy_location(ast.If(test, node.body, node.orelse), node)
    elif isinstance(value, ast.IfExp):
        made = terms.with_value(node, ast.IfExp(test, value.body, value.orelse))
    else:
        made = terms.with_value(node, test)
    return [*held, made]


def _asked(test: ast.expr) -> list[ast.expr]:
    """The parts of a condition that are always evaluated, in order."""
    match test:
        case ast.UnaryOp(_, part) | ast.BoolOp(_, [part, *_]) | ast.Subscript(part, ast.Constant()):
            return _asked(part)
        case ast.Compare(left, _, [right, *_]) | ast.BinOp(left, _, right):
            return [*_asked(left), *_asked(right)]
    return [test]


def _statement(reader: Reader, node: ast.Expr | ast.Assign) -> list[ast.stmt]:
    alone = isinstance(node, ast.Expr)
    match node.value:
        case ast.Call(ast.Attribute(base, "sort"), [], keywords) if alone:
            values = [base, *(each.value for each in keywords)]
            arrays = reader.whole.arrays or (reader.whole.reverse and reader.module.knows_arrays)
            listed = keywords or reader.kind(base).listed(arrays)
            # Arrays have no such keywords, and `sort` orders an array of rows differently.
            if listed and _is_changed(reader, base, *values):
                place = ast.Subscript(terms.copied(base), ast.Slice(), ast.Store())
                return [ast.Assign([place], ast.Call(terms.name("sorted"), [base], keywords))]
        case ast.Call(ast.Attribute(base, "setdefault"), [key, default], []):
            if _is_simple(reader, base, key, default):
                rest = [] if alone else [terms.with_value(node, _at(base, key))]
                return [_filled(base, key, default), *rest]
        case ast.Call(ast.Attribute(ast.Call(ast.Attribute(base, "setdefault"), [key, default], []), method)):
            if alone and _is_simple(reader, base, key, default):
                function = ast.Attribute(_at(base, key), method, ast.Load())
                call = ast.Call(function, node.value.args, node.value.keywords)
                return [_filled(base, key, default), ast.Expr(call)]
    return [node]


def _filled(base: ast.expr, key: ast.expr, default: ast.expr) -> ast.stmt:
    """`if key not in base: base[key] = default`."""
    place = ast.Subscript(terms.copied(base), terms.copied(key), ast.Store())
    test = ast.Compare(terms.copied(key), [ast.NotIn()], [terms.copied(base)])
    return ast.If(test, [ast.Assign([place], default)], [])


def _at(base: ast.expr, key: ast.expr) -> ast.expr:
    return ast.Subscript(terms.copied(base), terms.copied(key), ast.Load())


def _is_simple(reader: Reader, base: ast.expr, *others: ast.expr) -> bool:
    """Return whether a dict, a key and a new value can be evaluated again, or need not be."""
    called = any(isinstance(each, ast.Call) for one in (base, *others) for each in terms.walk(one))
    return not called and _is_changed(reader, base, base, *others)


def _is_changed(reader: Reader, base: ast.expr, *values: ast.expr) -> bool:
    """Return whether a container's mutation must be undone, or depends on active values."""
    known = reader.function.dotted(base) is None and root_of(base) is not None
    return known and (reader.whole.reverse or any(map(reader.value, values)))
