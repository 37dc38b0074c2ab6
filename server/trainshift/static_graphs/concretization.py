"""Concretization: the places where Python needs the value of a tensor, which a graph does not have."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from trainshift.python.syntax.chunk_syntax import Statement, own_parts
from trainshift.static_graphs.domain.abstract_values import OPEN_SIZES, AbstractValue, Dim
from trainshift.static_graphs.reading.function import StaticFunction, Truth

_COMPARING = ("max", "min", "round", "sorted", "any", "all")
_HOLDERS = frozenset({"list", "tuple", "dict", "str", "layer", "range"})


class Need(NamedTuple):
    """A tensor whose concrete value Python needs: the code, the tensor, the purpose, and the dimension
    that it counts.
    """

    node: ast.AST
    value: ast.expr
    what: str
    counts: Dim | None
    is_sure: bool
    """True if it is a tensor on every path."""


def needs(function: StaticFunction, statement: Statement) -> Iterator[Need]:
    """The values that a statement needs."""
    told = getattr(statement.node, "msg", None) or getattr(statement.node, "exc", None)
    message = set(ast.walk(told)) if told is not None else set()
    for node in own_parts(statement.node):
        for value, what in _needed(function, node):
            if node in message and what in ("`str`", "`repr`"):
                continue  # The graph does not know it, and the text only shows another tensor.
            kind = function.kind(value)
            is_sure = kind.is_tensor or kind.tensor is None
            yield Need(node, value, what, _counted(kind), is_sure)


def names_asked(
    node: ast.AST, is_size: Callable[[ast.AST], bool], has_size: Callable[[ast.AST], bool]
) -> frozenset[str]:
    """The names whose value or size a condition tests, such as before indexing."""
    if isinstance(node, ast.Name):
        return frozenset({node.id})
    if isinstance(node, ast.Subscript) and not is_size(node):
        return frozenset()
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    parts = (
        node.args
        if isinstance(node, ast.Call) and is_method and not has_size(node)
        else [*ast.iter_child_nodes(node)]
    )
    return frozenset[str]().union(*(names_asked(each, is_size, has_size) for each in parts))


def _counted(value: AbstractValue) -> Dim | None:
    """The kind of dimension whose size a value is, or whose sizes it contains."""
    found = {value.tensor.counts} if value.tensor is not None else set()
    for each in value.items or ():
        if each.tensor is not None:
            found.add(each.tensor.counts)
    return Dim.DATA if Dim.DATA in found else next((each for each in found if each is not None), None)


def _needed(function: StaticFunction, node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    kind = function.kind
    match node:
        case ast.Call():
            yield from _by_call(function, node)
        case ast.BinOp(op=ast.Mult()):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if kind(one).among("list", "tuple", "str") and kind(other).may_be_tensor:
                    yield other, "`*` of a list"
        case ast.Subscript():
            if not isinstance(node.slice, ast.Slice) and kind(node.slice).may_be_tensor:
                yield from _by_index(kind(node.value), node.slice)
        case ast.FormattedValue():
            counts = kind(node.value).tensor
            if kind(node.value).may_be_tensor and (
                node.format_spec is not None or (counts and counts.counts)
            ):
                yield node.value, "the text of a number"
        case ast.Compare():
            yield from _by_comparison(function, node)
        case ast.Starred():
            value = kind(node.value)
            if value.tensor is not None and value.tensor.shape:
                if value.tensor.shape[0] in OPEN_SIZES:
                    yield node.value, "the number of elements of `*`"
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            for part in node.generators:
                yield from _by_generator(function, part)
        case ast.Match():
            if kind(node.subject).may_be_tensor:
                yield node.subject, "the subject of a `match`"


def _by_index(base: AbstractValue, index: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    if base.tensor is None and base.python & _HOLDERS and not base.unknown:
        yield index, "the key of a dict" if base.among("dict") else "the index of a list"


def _by_generator(function: StaticFunction, part: ast.comprehension) -> Iterator[tuple[ast.expr, str]]:
    if _is_range(function, part.iter):
        yield from ((each, "a range in a comprehension") for each in _numbers(function, part.iter))
    for test in part.ifs:
        if function.truth(test) is Truth.GRAPH:
            yield test, "the condition of a comprehension"


def _is_range(function: StaticFunction, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and "builtins.range" in function.named.get(node, ())


def _numbers(function: StaticFunction, node: ast.expr) -> list[ast.expr]:
    """The arguments of a call that may be tensors."""
    given = node.args if isinstance(node, ast.Call) else []
    return [each for each in given if function.kind(each).may_be_tensor]


def _by_call(function: StaticFunction, node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    tensors = _numbers(function, node)
    for name in sorted(function.named.get(node, ())):
        root, _, last = name.rpartition(".")
        if root == "math":
            yield from ((each, f"`math.{last}`") for each in tensors)
        elif name.startswith("numpy."):
            yield from ((each, f"`{name.replace('numpy', 'np', 1)}`") for each in _sizes(function, node))
        elif root != "builtins" or not node.args:
            continue
        elif last in _COMPARING:
            held = function.kind(node.args[0]).whole_element if len(node.args) == 1 else None
            is_held = held is not None and held.may_be_tensor
            yield from ((each, f"`{last}`") for each in (node.args if is_held else tensors))
        elif last in ("str", "repr"):
            yield from ((each, f"`{last}`") for each in tensors if each is node.args[0])
        elif last in ("list", "tuple") and _is_range(function, node.args[0]):
            yield from ((each, "a list of a range") for each in _numbers(function, node.args[0]))


def _sizes(function: StaticFunction, node: ast.Call) -> Iterator[ast.expr]:
    """Yield the tensor dimensions among a call's arguments, also in a tuple or list."""
    for each in node.args:
        for part in each.elts if isinstance(each, ast.Tuple | ast.List) else [each]:
            known = function.kind(part).tensor
            if known is not None and known.counts:
                yield part


def _by_comparison(function: StaticFunction, node: ast.Compare) -> Iterator[tuple[ast.expr, str]]:
    kind = function.kind
    operands = [node.left, *node.comparators]
    if any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
        for each in operands:
            if kind(each).may_be_tensor:
                yield each, "`in`"
        return
    if len(node.ops) > 1 and not any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
        found = next((each for each in operands if kind(each).may_be_tensor), None)
        if found is not None:
            yield found, "a comparison of three"
        return
    if isinstance(node.ops[0], ast.Eq | ast.NotEq):
        for one, other in ((operands[0], operands[1]), (operands[1], operands[0])):
            held = one.value if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Slice) else one
            is_shape = isinstance(held, ast.Attribute) and held.attr == "shape"
            if is_shape and kind(other).among("list", "tuple") and _counted(kind(one)):
                yield one, "a comparison of shapes"
