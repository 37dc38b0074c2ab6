"""Concatenation of lists: infer which `+` and `*` join or repeat lists, and assert it if only the arguments
decide (AD36).
"""

from __future__ import annotations

import ast

from trainshift.derivatives.reading.function import Function
from trainshift.derivatives.reading.nodes import Nodes
from trainshift.derivatives.reading.reader import Reader
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS

_GONE_THROUGH = frozenset(
    ("sum", "len", "max", "min", "sorted", "list", "tuple", "zip", "enumerate", "reversed")
)

# Nodes that become statements of their own.
_STATEMENTS = (*COMPREHENSIONS, ast.IfExp, ast.Lambda)


def tell_joined(function: Function) -> bool:
    """Tag the operands of `+` as lists; return whether that was new."""
    if function.whole.arrays:
        return False
    reader = Reader(function)
    found = False
    for node in terms.own_nodes(function.body):
        whole = (
            [node.value] if isinstance(node, ast.Return) and node.value and function.value.container else []
        )
        for value in [*whole, *_with_elements(reader, node)]:
            found = _told(reader, value, function.whole.module.knows_arrays) or found
    return found


def no_lists(function: Function, node: ast.stmt) -> list[ast.stmt]:
    """Assert at run time that an added or repeated value has the assumed type, list or array, if only values
    decide.

    Sums need this in the reverse pass only, because tangents are joined like values.
    """
    value = getattr(node, "value", None)
    if not (function.whole.arrays and isinstance(value, ast.expr)):
        return []
    made: list[ast.stmt] = []
    for times, listed in _perhaps_arrays(function, value):
        test = ast.UnaryOp(ast.Not(), terms.call("hasattr", terms.copied(times), terms.constant("__len__")))
        said = f"{ast.unparse(times)} is an array: write np.array({ast.unparse(listed)})"
        made.append(ast.Assert(test, ast.Constant(said)))
    if not function.whole.reverse:
        return made
    lists = terms.display([terms.name("list"), terms.name("tuple")])
    told = [
        (each, f"write list({ast.unparse(each)}) where it is added or repeated")
        for each in _perhaps_lists(function, value)
    ]
    nodes = Nodes(function)
    match node:
        case ast.AugAssign(target, ast.Add()) if nodes.reader.value(target):
            place = terms.copied(target)
            if _open(nodes, place) and _open(nodes, value):
                told.append((place, f"write {ast.unparse(place)}.extend where it is added to"))
    for each, advice in told:
        test = ast.UnaryOp(ast.Not(), terms.call("isinstance", terms.copied(each), terms.copied(lists)))
        said = f"{ast.unparse(each)} is a list: {advice}"
        made.append(ast.Assert(test, ast.Constant(said)))
    return made


def _perhaps_arrays(function: Function, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """The repeated values (`xs * n`) that are assumed to be lists but may be arrays, with the lists."""
    reader, nodes = Reader(function), Nodes(function)
    found: list[tuple[ast.expr, ast.expr]] = []
    for each in terms.walk(value):
        match each:
            case ast.BinOp(left, ast.Mult(), right) if not reader.by_part(
                each, reader.kind(left), reader.kind(right)
            ):
                for one, times in ((left, right), (right, left)):
                    written = isinstance(one, ast.List | ast.Tuple)
                    listed = written or reader.kind(one).has("list", "tuple")
                    # Tangents are repeated or multiplied like values.
                    asked = (written and reader.value(times)) or (
                        function.whole.reverse and reader.value(one)
                    )
                    if listed and asked and _open(nodes, times):
                        found.append((times, one))
    return found


def _perhaps_lists(function: Function, value: ast.expr) -> list[ast.expr]:
    """The variables and elements that a value adds or repeats, and that may be lists."""
    reader, nodes = Reader(function), Nodes(function)
    found: dict[str, ast.expr] = {}
    waiting = [value]
    while waiting:
        each = waiting.pop()
        match each:
            case ast.BinOp(left, ast.Add(), right) if _open(nodes, left) and _open(nodes, right):
                parts = [left, right]
            case ast.BinOp(left, ast.Mult(), right):
                parts = [
                    one
                    for one, times in ((left, right), (right, left))
                    if not reader.value(times) and _perhaps_count(nodes, times) and _open(nodes, one)
                ]
            case ast.BinOp(left, ast.Sub() | ast.Div() | ast.Pow() | ast.MatMult(), right):
                # A list does not work here.
                waiting += [part for one in (left, right) for part in _parts_of_no_list(one)]
                continue
            case _ if isinstance(each, _STATEMENTS):
                continue
            case _:
                parts = []
        for part in parts:
            if isinstance(part, ast.Name | ast.Subscript) and reader.value(part):
                found.setdefault(ast.unparse(part), part)
        waiting += [part for part in terms.children(each) if isinstance(part, ast.expr)]
    return list(found.values())


def _open(nodes: Nodes, value: ast.expr) -> bool:
    """Return whether a value may be a list for all that is known."""
    match value:
        case ast.Name() | ast.Subscript() if not isinstance(getattr(value, "slice", None), ast.Tuple):
            kind = nodes.reader.kind(value)
            told = kind.has("array", "list", "tuple", "dict", "real", "scalar", "function")
            return not told and not nodes.settled(value) and not _is_told(nodes, value)
        case ast.BinOp(left, ast.Add(), right):
            return _open(nodes, left) and _open(nodes, right)
    return False


def _is_told(nodes: Nodes, value: ast.expr) -> bool:
    """Return whether a variable's bindings show that it is not a list: a library's result, or a default."""
    if not isinstance(value, ast.Name):
        return False
    function = nodes.function
    if value.id in function.params:
        return isinstance(function.default(value.id), ast.Constant)
    values = [getattr(each, "value", None) for each in function.assignments(value.id)]
    return bool(values) and all(isinstance(each, ast.Call) and function.dotted(each.func) for each in values)


def _perhaps_count(nodes: Nodes, value: ast.expr) -> bool:
    """Return whether a value may be a whole number."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int)
    return _is_count(value) or (isinstance(value, ast.Name) and _open(nodes, value))


def _parts_of_no_list(value: ast.expr) -> list[ast.expr]:
    """The parts still to examine in a value that is not a list: the operands of a sum are not lists
    either.
    """
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Mult):
        return [part for one in (value.left, value.right) for part in _parts_of_no_list(one)]
    return [value]


def _with_elements(reader: Reader, node: ast.AST) -> list[ast.expr]:
    """The values with elements, judged by their use in a node."""
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
        case ast.AugAssign(target, ast.Add(), value) if (
            reader.kind(target).container or reader.kind(value).container
        ):
            return [ast.BinOp(terms.copied(target), ast.Add(), value)]
        case ast.BinOp(left, ast.Mult(), right) if any(map(_is_count, (left, right))) and any(
            reader.kind(each).container for each in (left, right)
        ):
            return [node]
        case ast.BinOp(left, ast.Add(), right) if any(reader.kind(each).container for each in (left, right)):
            return [node]
    return []


def _told(reader: Reader, value: ast.expr, arrays: bool) -> bool:
    """Return whether the operands of a sum or repetition are newly known to be lists.

    Factors are `unclear`, and so are summands if the file uses `arrays`.
    """
    if not (
        isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Mult) and reader.value(value)
    ):
        return False
    joined = isinstance(value.op, ast.Add)
    if joined and any(map(reader.is_calculated, (value.left, value.right))):
        return False
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
