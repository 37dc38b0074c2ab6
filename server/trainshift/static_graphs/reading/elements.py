"""Elements: the parts of containers and tensors."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from msgspec.structs import replace

from trainshift.static_graphs.domain.abstract_values import (
    NO_CONSTANT,
    NOTHING,
    UNKNOWN,
    AbstractValue,
    Dim,
    Tensor,
    constant,
    python,
    tensor,
)

_MOST_KEYS = 64
"""The number of values of a dict that the analysis distinguishes."""


def element_of(value: AbstractValue) -> AbstractValue:
    """The element type of an iterable."""
    found = NOTHING
    if value.tensor is not None:
        shape = value.tensor.shape
        found = tensor(value.dtype, shape[1:] if shape else None)
        found = replace(found, views=value.sources | value.views)
    if value.among("dict"):
        return python("str")
    element = value.whole_element
    if element is not None:
        found = found.joined(element)
    if value.python & {"str"}:
        found = found.joined(python("str"))
    if value.array and element is None:
        found = found.joined(tensor())
    known = value.python & {"list", "tuple", "dict", "set", "str", "range", "ndarray", "int"}
    if value.unknown or (value.python and not known and element is None):
        found = found.joined(UNKNOWN)
    if "ndarray" in value.python:
        found = found.joined(python("ndarray"))
    return found if not found.is_nothing or value.items == () else found.joined(UNKNOWN)


def value_under(value: AbstractValue, key: AbstractValue) -> AbstractValue | None:
    """The value of a dict at a key; None if it is unknown."""
    at = _place_of(value, key)
    if at is not None and value.items is not None:
        return value.items[at]
    return value.whole_element


def put_under(value: AbstractValue, key: AbstractValue, given: AbstractValue) -> AbstractValue:
    """A dict with a value at a key."""
    is_known = value.keys is not None and value.items is not None and len(value.items) < _MOST_KEYS
    if not is_known or value.keys is None or value.items is None or key.constant is NO_CONSTANT:
        return put_anywhere(value, given)
    at = _place_of(value, key)
    if at is None:
        return replace(value, items=(*value.items, given), keys=(*value.keys, key.constant))
    return replace(value, items=(*value.items[:at], given, *value.items[at + 1 :]))


def put_anywhere(value: AbstractValue, given: AbstractValue) -> AbstractValue:
    """A container with one more element, whose elements have lost their known positions."""
    element = value.whole_element
    return replace(value, items=None, keys=None, element=given if element is None else element.joined(given))


def updated(value: AbstractValue, other: AbstractValue) -> AbstractValue:
    """A dict updated with all items of another one."""
    if other.among("dict") and other.keys is not None and other.items is not None:
        for key, given in zip(other.keys, other.items, strict=True):
            value = put_under(value, constant(key), given)
        return value
    return put_anywhere(value, UNKNOWN if other.whole_element is None else other.whole_element)


def _place_of(value: AbstractValue, key: AbstractValue) -> int | None:
    """The index of a key among those of a dict, if both are known."""
    for place, each in enumerate(value.keys or ()):
        if constant(each) == constant(key.constant):
            return place
    return None


def in_any_order(value: AbstractValue) -> AbstractValue:
    """A container whose elements have lost their known positions."""
    return replace(value, items=None, keys=None, element=value.whole_element)


def item_of(value: AbstractValue, index: int) -> AbstractValue:
    """The value at an index."""
    if value.items is not None and value.keys is None and -len(value.items) <= index < len(value.items):
        found = value.items[index]
        return found if value.is_python else found.joined(element_of(value))
    return element_of(value)


def sliced(base: AbstractValue, known: Tensor, node: ast.expr, index: AbstractValue) -> AbstractValue:
    """The result of indexing a tensor."""
    views = base.sources | base.views
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    if any(isinstance(each, ast.Constant) and each.value in (None, ...) for each in parts):
        return replace(tensor(known.dtype), views=views)
    given = list(index.items) if isinstance(node, ast.Tuple) and index.items is not None else [index]
    if any(each.python & {"list"} or (each.is_tensor and each.tensor.rank != 0) for each in given):  # type: ignore[union-attr]
        views = frozenset()  # Only numbers and slices give a view.
    if known.shape is None or len(parts) > len(known.shape) or len(given) != len(parts):
        return replace(tensor(known.dtype), views=views)
    shape: list[int | Dim] = []
    for part, value, size in zip(parts, given, known.shape, strict=False):
        if isinstance(part, ast.Slice):
            shape.append(length_of(part, size))
        elif value.tensor is not None:
            if value.tensor.dtype == "bool":
                return replace(
                    tensor(known.dtype, (Dim.CHOSEN, *known.shape[value.tensor.rank or 1 :])),
                    views=frozenset(),
                )
            if value.tensor.shape is None:
                return tensor(known.dtype)
            shape += value.tensor.shape
        elif value.unknown or not value.among("int"):
            return replace(tensor(known.dtype), views=views)
    return replace(tensor(known.dtype, (*shape, *known.shape[len(parts) :])), views=views)


def cut_out(base: AbstractValue, node: ast.Slice) -> tuple[AbstractValue, ...] | None:
    """The elements that a slice with constant ends takes of a list."""
    ends: list[int | None] = []
    for part in (node.lower, node.upper, node.step):
        if part is None:
            ends.append(None)
            continue
        sign = -1 if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub) else 1
        inner = part.operand if isinstance(part, ast.UnaryOp) else part
        if not isinstance(inner, ast.Constant) or not isinstance(inner.value, int):
            return None
        ends.append(sign * inner.value)
    return base.items[slice(*ends)] if base.items is not None and ends[2] != 0 else None


def length_of(node: ast.Slice, size: int | Dim) -> int | Dim:
    if node.lower is None and node.upper is None and node.step is None:
        return size
    return size if size in (Dim.DATA, Dim.CHOSEN) else Dim.ANY


def given_back(
    value: AbstractValue, call: tuple[object, ...], given: Sequence[AbstractValue]
) -> AbstractValue:
    """The result of a call: tensors among its arguments, and new ones."""
    if value.sources or value.views:
        known = frozenset[object]().union(*map(_held, given))
        own = frozenset[object]() if value.sources <= known else frozenset({call})
        value = replace(value, sources=(value.sources & known) | own, views=value.views & known)
    if value.items is not None:
        items = (given_back(each, (*call, index), given) for index, each in enumerate(value.items))
        value = replace(value, items=tuple(items))
    if value.element is not None:
        value = replace(value, element=given_back(value.element, (*call, ""), given))
    return value


def _held(value: AbstractValue) -> frozenset[object]:
    """The creation sites of a value's tensors, including its contents."""
    inner = (*(value.items or ()), *([value.element] if value.element is not None else ()))
    return (value.sources | value.views).union(*map(_held, inner))
