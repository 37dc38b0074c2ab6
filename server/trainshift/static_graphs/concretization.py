"""Concretization: the places where Python needs the value of a tensor, which a graph does not have."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainshift.python.syntax.chunk_syntax import Statement, own_parts
from trainshift.static_graphs.reading.abstract_values import OPEN_SIZES, AbstractValue, Dim
from trainshift.static_graphs.reading.function import StaticFunction, Truth

_COMPARING = ("max", "min", "round", "sorted", "any", "all")
_HOLDERS = frozenset({"list", "tuple", "dict", "str", "layer", "range"})


class Need(NamedTuple):
    """A value that Python needs: the code that does, the tensor, what for, and what dimension it counts."""

    node: ast.AST
    value: ast.expr
    what: str
    counts: Dim | None
    is_sure: bool
    """Whether it is a tensor on every way."""


def needs(function: StaticFunction, statement: Statement) -> Iterator[Need]:
    """The values that a statement needs."""
    told = getattr(statement.node, "msg", None) or getattr(statement.node, "exc", None)
    message = set(ast.walk(told)) if told is not None else set()
    for node in own_parts(statement.node):
        for value, what in _needed(function, node):
            if node in message and what in ("`str`", "`repr`"):
                continue  # The graph tells nothing of it, and the text only shows another tensor.
            kind = function.kind(value)
            is_sure = kind.is_tensor or kind.tensor is None
            yield Need(node, value, what, _counted(kind), is_sure)


def _counted(value: AbstractValue) -> Dim | None:
    """Of which kind of dimension a value is the number, or holds the numbers."""
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
            base = kind(node.value)
            is_held = base.tensor is None and bool(base.python & _HOLDERS) and not base.unknown
            if is_held and not isinstance(node.slice, ast.Slice) and kind(node.slice).may_be_tensor:
                yield node.slice, "the key of a dict" if base.among("dict") else "the index of a list"
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
                if _is_range(function, part.iter):
                    yield from (
                        (each, "a range in a comprehension") for each in _numbers(function, part.iter)
                    )
                for test in part.ifs:
                    if function.truth(test) is Truth.GRAPH:
                        yield test, "the condition of a comprehension"
        case ast.Match():
            if kind(node.subject).may_be_tensor:
                yield node.subject, "the subject of a `match`"


def _is_range(function: StaticFunction, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and "builtins.range" in function.named.get(node, ())


def _numbers(function: StaticFunction, node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        yield from (each for each in node.args if function.kind(each).may_be_tensor)


def _by_call(function: StaticFunction, node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    kind = function.kind
    for name in sorted(function.named.get(node, ())):
        root, _, last = name.rpartition(".")
        if root == "math":
            yield from ((each, f"`math.{last}`") for each in node.args if kind(each).may_be_tensor)
        elif root == "builtins" and last in _COMPARING:
            for each in node.args:
                value = kind(each)
                element = value.whole_element
                if value.may_be_tensor or (
                    element is not None and element.may_be_tensor and len(node.args) == 1
                ):
                    yield each, f"`{last}`"
        elif root == "builtins" and last in ("str", "repr"):
            yield from ((each, f"`{last}`") for each in node.args[:1] if kind(each).may_be_tensor)
        elif (
            root == "builtins"
            and last in ("list", "tuple")
            and node.args
            and _is_range(function, node.args[0])
        ):
            yield from ((each, "a list of a range") for each in _numbers(function, node.args[0]))
        elif name.startswith("numpy."):
            for each in node.args:
                parts = each.elts if isinstance(each, ast.Tuple | ast.List) else [each]
                for part in parts:
                    known = kind(part).tensor
                    if known is not None and known.counts:
                        yield part, f"`{name.replace('numpy', 'np', 1)}`"


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
