"""Shapes and dtypes: from arguments, and of the results of two operands."""

from __future__ import annotations

from collections.abc import Sequence

from trainshift.static_graphs.domain.abstract_values import (
    NUMBER,
    AbstractValue,
    Dim,
    Shape,
    Size,
    Tensor,
    tensor,
)

_DTYPES = frozenset(
    {
        "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
        "complex64", "complex128",
    }
)  # fmt: skip
FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


def dtype_of(value: AbstractValue | None) -> str:
    """The dtype that an argument names: ``"int64"`` or ``paddle.int64``."""
    if value is None:
        return ""
    if isinstance(value.constant, str) and value.constant in _DTYPES:
        return value.constant
    names = {getattr(thing, "name", "").rpartition(".")[2] for thing in value.things}
    return names.pop() if len(names) == 1 and names <= _DTYPES else ""


def size_of(value: AbstractValue) -> Size:
    """A dimension passed as an argument."""
    if isinstance(value.constant, int) and not isinstance(value.constant, bool):
        return value.constant if value.constant >= 0 else Dim.ANY
    if value.is_tensor and value.tensor is not None:
        return value.tensor.counts or Dim.DATA
    return Dim.ANY


def shape_of(value: AbstractValue | None) -> tuple[Shape | None, Dim]:
    """The shape that an argument describes, and the kind of its dimensions if its length is unknown."""
    if value is None:
        return None, Dim.ANY
    if value.items is not None:
        return tuple(map(size_of, value.items)), Dim.ANY
    if value.is_tensor and value.tensor is not None:
        length = value.tensor.shape[0] if value.tensor.rank == 1 and value.tensor.shape else None
        return ((Dim.DATA,) * length if isinstance(length, int) else None), Dim.DATA
    if isinstance(value.constant, int):
        return (size_of(value),), Dim.ANY
    return None, Dim.ANY


def broadcast(parts: Sequence[Tensor | None]) -> Shape | None:
    shapes = [each.shape for each in parts if each is not None]
    if not shapes or any(shape is None for shape in shapes):
        return None
    longest = max(len(shape) for shape in shapes if shape is not None)
    found: list[Size] = []
    for index in range(-longest, 0):
        sizes = {shape[index] for shape in shapes if shape is not None and len(shape) >= -index} - {1}
        found.append(sizes.pop() if len(sizes) == 1 else Dim.ANY if sizes else 1)
    return tuple(found)


def combined(
    left: AbstractValue, right: AbstractValue, dtype: str = "", *, divides: bool = False
) -> AbstractValue:
    """The result of an operator with at least one tensor operand.

    Without a `dtype`, it is computed as for arithmetic, whose result is never a bool.
    """
    parts = [each.tensor for each in (left, right) if each.tensor is not None]
    others = [each for each in (left, right) if each.tensor is None]
    both = len(parts) == 2
    known = both or others[0].among("int", "float", "bool")
    number = (
        parts[0].counts if all(each.counts for each in parts) and (both or others[0].among("int")) else None
    )
    return tensor(
        dtype or _arithmetic(parts, others, divides=divides),
        broadcast(parts) if known else None,
        counts=number,
        counted=all(each.counted for each in parts),
    )


def _arithmetic(parts: Sequence[Tensor], others: Sequence[AbstractValue], *, divides: bool) -> str:
    dtypes = {each.dtype for each in parts}
    dtype = dtypes.pop() if len(dtypes) == 1 else ""
    if dtype in FLOATS and all(each.among("int", "float", "bool") for each in others):
        return dtype
    is_integer = dtype.startswith(("int", "uint"))
    if is_integer and not divides and all(each.among("int", "bool") for each in others):
        return dtype
    return "float32" if is_integer and others and others[0].among("float") else NUMBER
