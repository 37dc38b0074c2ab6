"""Dtypes and shapes of the results of Paddle's operations, one row for each family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from trainshift.static_graphs.domain.abstract_values import (
    NUMBER,
    UNKNOWN,
    AbstractValue,
    Dim,
    Shape,
    Size,
    Tensor,
    constant,
    python,
    tensor,
)
from trainshift.static_graphs.tables.api import Operation
from trainshift.static_graphs.tables.layers import of_images
from trainshift.static_graphs.tables.shapes import FLOATS, broadcast, dtype_of, shape_of

_BY_TYPE = {"bool": "bool", "int": "int64", "float": "float32"}
Given = Mapping[str, AbstractValue]


def result(operation: Operation, given: Given) -> AbstractValue:
    """The result of an operation, from the known values of its arguments, by parameter."""
    family = _FAMILIES.get(operation.name)
    if family is not None:
        return family(given)
    if operation.returns == "tensors":
        return python("tuple", "list", element=tensor())
    if operation.returns == "python":
        return python("object")
    first = next((value for value in given.values()), None)
    known = first.tensor if first is not None and first.is_tensor else None
    dtype = operation.dtype if operation.dtype != "same" else _widest(given, operation)
    shape: Shape | None = None
    if operation.shape == "same" and known is not None:
        shape = broadcast([value.tensor for name, value in given.items() if name in operation.tensors])
    if operation.shape == "scalar" and not {"axis", "keepdim"} & given.keys():
        shape = ()
    found = tensor(dtype, shape)
    if operation.returns == "":
        return UNKNOWN if operation.name.startswith("monkey") else found.joined(UNKNOWN)
    return found


def _widest(given: Given, operation: Operation) -> str:
    dtypes = {value.dtype for name, value in given.items() if name in operation.tensors}
    return dtypes.pop() if len(dtypes) == 1 else ""


def _x(given: Given, *names: str) -> Tensor:
    for name in (*names, "x", "input", "a", "tensor"):
        value = given.get(name)
        if value is not None and value.tensor is not None:
            return value.tensor
    return Tensor()


def _integer(value: AbstractValue | None) -> int | None:
    known = value.constant if value is not None else None
    return known if isinstance(known, int) and not isinstance(known, bool) else None


def _reduced(x: Tensor, given: Given) -> Shape | None:
    axis, keep = given.get("axis") or given.get("dim"), given.get("keepdim")
    keeps = keep is not None and keep.constant is not False
    if axis is None or axis.is_none:
        if not keeps:
            return ()
        return (1,) * len(x.shape) if x.shape is not None and keep and keep.constant is True else None
    axes = [axis] if axis.items is None else list(axis.items)
    indices = [_integer(each) for each in axes]
    if x.shape is None or (keeps and keep is not None and keep.constant is not True):
        return None
    if any(each is None or not -len(x.shape) <= each < len(x.shape) for each in indices):
        return None
    gone = {each % len(x.shape) for each in indices if each is not None}
    if keeps:
        return tuple(1 if index in gone else size for index, size in enumerate(x.shape))
    return tuple(size for index, size in enumerate(x.shape) if index not in gone)


def _reduction(dtype: str = "") -> Callable[[Given], AbstractValue]:
    def family(given: Given) -> AbstractValue:
        x = _x(given)
        named = dtype_of(given.get("dtype"))
        own = x.dtype if x.dtype in FLOATS or (x.dtype and dtype == "same") else NUMBER
        return tensor(named or (own if dtype in ("", "same") else dtype), _reduced(x, given))

    return family


def _created(default: str) -> Callable[[Given], AbstractValue]:
    def family(given: Given) -> AbstractValue:
        shape, loose = shape_of(given.get("shape"))
        asked = given.get("dtype")
        dtype = dtype_of(asked) if asked is not None and not asked.is_none else default
        if default == "full" and dtype == "full":
            filled = given.get("fill_value")
            (kind,) = filled.python if filled is not None and len(filled.python) == 1 else ("",)
            dtype = _BY_TYPE.get(kind, "") if filled is not None and filled.is_python else ""
        return tensor(dtype, shape, loose=loose)

    return family


def _like(given: Given) -> AbstractValue:
    x, asked = _x(given), given.get("dtype")
    dtype = dtype_of(asked) if asked is not None and not asked.is_none else x.dtype
    return tensor(dtype, x.shape, loose=x.loose)


def _arange(given: Given) -> AbstractValue:
    ends = [given[name] for name in ("start", "end", "step") if name in given]
    dtype = dtype_of(given.get("dtype"))
    if not dtype and all(each.among("int") or (each.tensor and each.tensor.counts) for each in ends):
        dtype = "int64"
    if not dtype and any(each.among("float") for each in ends):
        dtype = "float32"
    size: Size = Dim.DATA if any(each.is_tensor for each in ends) else Dim.ANY
    numbers = [_integer(each) for each in ends]
    if ends and all(number is not None for number in numbers) and all(numbers[2:]):
        size = len(range(*[number for number in numbers if number is not None]))
    return tensor(dtype, (size,))


def _to_tensor(given: Given) -> AbstractValue:
    data = given.get("data") or given.get("x")
    dtype = dtype_of(given.get("dtype"))
    if data is None:
        return tensor(dtype)
    if data.is_tensor and data.tensor is not None:
        return tensor(dtype or data.tensor.dtype, data.tensor.shape)
    found = _literal(data)
    return tensor(dtype or found[0], found[1])


def _literal(value: AbstractValue) -> tuple[str, Shape | None]:
    """The dtype and shape of nested lists of numbers."""
    if value.items is not None and value.among("list", "tuple"):
        parts = [_literal(each) for each in value.items]
        if not parts:
            return "float32", (0,)
        dtypes = {dtype for dtype, _ in parts}
        dtype = dtypes.pop() if len(dtypes) == 1 else "float32" if dtypes == {"float32", "int64"} else ""
        shape = parts[0][1]
        return dtype, None if shape is None else (len(parts), *shape)
    if value.is_python and len(value.python) == 1:
        (kind,) = value.python
        if kind in _BY_TYPE:
            return _BY_TYPE[kind], ()
    return "", None


def _cast(given: Given) -> AbstractValue:
    x = _x(given)
    return tensor(dtype_of(given.get("dtype")), x.shape, loose=x.loose, counts=x.counts)


def _same(dtype: str = "") -> Callable[[Given], AbstractValue]:
    def family(given: Given) -> AbstractValue:
        x = _x(given)
        return tensor(dtype or x.dtype, x.shape, loose=x.loose)

    return family


def _reshaped(given: Given) -> AbstractValue:
    x = _x(given)
    asked = given.get("shape")
    shape, loose = shape_of(asked)
    if shape is not None and asked is not None and asked.items is not None:
        written = [_integer(each) for each in asked.items]
        if x.shape is not None:
            shape = tuple(
                x.shape[i] if one == 0 and i < len(x.shape) else size
                for i, (one, size) in enumerate(zip(written, shape, strict=True))
            )
        shape = _filled(shape, written, x)
    return tensor(x.dtype, shape, loose=loose)


def _filled(shape: Shape, written: Sequence[int | None], x: Tensor) -> Shape:
    """A shape with -1 computed where all other dimensions are known."""
    if -1 not in written:
        return shape
    at = written.index(-1)
    others = [size for index, size in enumerate(shape) if index != at]
    rest: Size = Dim.ANY
    numbers: list[int] = [size for size in others if isinstance(size, int)]
    if x.shape is not None and len(numbers) == len(others):
        known: list[int] = [size for size in x.shape if isinstance(size, int)]
        if len(known) == len(x.shape) and 0 not in numbers:
            rest = _count(known) // _count(numbers)
        else:
            rest = _open_size(x.shape)
    else:
        rest = _open_size(others)
    return (*shape[:at], rest, *shape[at + 1 :])


def _open_size(sizes: Sequence[Size]) -> Size:
    """The size, among several, that decides whether the result is a number."""
    return next((size for size in (Dim.DATA, Dim.CHOSEN, Dim.SPEC) if size in sizes), Dim.ANY)


def _count(sizes: Sequence[int]) -> int:
    """The number of elements of a shape."""
    number: int = prod(sizes)
    return number


def _flattened(given: Given) -> AbstractValue:
    x = _x(given)
    start, stop = _integer(given.get("start_axis")) or 0, _integer(given.get("stop_axis"))
    stop = -1 if stop is None else stop
    if not x.shape:
        return tensor(x.dtype, (Dim.ANY,) if (start, stop) == (0, -1) and x.shape is None else None)
    start, stop = start % len(x.shape), stop % len(x.shape)
    middle = x.shape[start : stop + 1]
    numbers = [size for size in middle if isinstance(size, int)]
    size: Size = _count(numbers) if len(numbers) == len(middle) else _open_size(middle)
    return tensor(x.dtype, (*x.shape[:start], size, *x.shape[stop + 1 :]))


def _transposed(given: Given) -> AbstractValue:
    x, perm = _x(given), given.get("perm")
    order = [_integer(each) for each in perm.items] if perm is not None and perm.items is not None else []
    if x.shape is not None and len(order) == len(x.shape) and None not in order:
        return tensor(x.dtype, tuple(x.shape[index] for index in order if index is not None))
    return tensor(x.dtype, (Dim.ANY,) * len(order) if order else None)


def _unsqueezed(given: Given) -> AbstractValue:
    x, axis = _x(given), given.get("axis") or given.get("dim")
    where = _integer(axis)
    if x.shape is None or where is None:
        return tensor(x.dtype)
    at = where % (len(x.shape) + 1)
    return tensor(x.dtype, (*x.shape[:at], 1, *x.shape[at:]))


def _squeezed(given: Given) -> AbstractValue:
    x, axis = _x(given), given.get("axis")
    where = _integer(axis)
    if x.shape is None:
        return tensor(x.dtype)
    if where is not None and -len(x.shape) <= where < len(x.shape):
        at = where % len(x.shape)
        if x.shape[at] == 1:
            return tensor(x.dtype, (*x.shape[:at], *x.shape[at + 1 :]))
        return tensor(x.dtype, x.shape if isinstance(x.shape[at], int) else None)
    if axis is None and all(isinstance(size, int) for size in x.shape):
        return tensor(x.dtype, tuple(size for size in x.shape if size != 1))
    return tensor(x.dtype)


def _parts(given: Given) -> tuple[list[Tensor], bool]:
    value = given.get("x") or given.get("tensors") or given.get("inputs")
    if value is None:
        return [], False
    every = list(value.items) if value.items is not None else []
    if every and all(each.is_tensor for each in every):
        return [each.tensor for each in every if each.tensor is not None], True
    element = value.element
    return ([element.tensor] if element is not None and element.tensor is not None else []), False


def _dtype_shape_axis(parts: Sequence[Tensor], given: Given) -> tuple[str, Shape | None, int | None]:
    """The dtype of concatenated tensors, the shape of the first, and their dimension of concatenation."""
    dtypes = {each.dtype for each in parts}
    dtype = dtypes.pop() if len(dtypes) == 1 else ""
    return dtype, parts[0].shape if parts else None, _integer(given.get("axis") or constant(0))


def _concatenated(given: Given) -> AbstractValue:
    parts, is_whole = _parts(given)
    dtype, shape, axis = _dtype_shape_axis(parts, given)
    if shape is None or axis is None or not -len(shape) <= axis < len(shape):
        return tensor(dtype)
    at = axis % len(shape)
    sizes = [each.shape[at] if each.shape is not None and len(each.shape) > at else Dim.ANY for each in parts]
    numbers = [size for size in sizes if isinstance(size, int)]
    total: Size = sum(numbers) if is_whole and len(numbers) == len(sizes) else _open_size(sizes)
    return tensor(dtype, (*shape[:at], total, *shape[at + 1 :]))


def _stacked(given: Given) -> AbstractValue:
    parts, is_whole = _parts(given)
    dtype, shape, axis = _dtype_shape_axis(parts, given)
    if shape is None or axis is None:
        return tensor(dtype)
    at = axis % (len(shape) + 1)
    return tensor(dtype, (*shape[:at], len(parts) if is_whole else Dim.ANY, *shape[at:]))


def _split(given: Given) -> AbstractValue:
    x = _x(given)
    number = _integer(given.get("num_or_sections") or given.get("chunks"))
    sections = given.get("num_or_sections")
    length = number if number is not None else len(sections.items) if sections and sections.items else None
    part = tensor(x.dtype, (Dim.ANY,) * len(x.shape) if x.shape is not None else None)
    if length is not None and 0 < length <= 64:
        return python("list", items=(part,) * length)
    return python("list", element=part)


def _unbound(given: Given) -> AbstractValue:
    x = _x(given)
    return python("list", element=tensor(x.dtype, x.shape[1:] if x.shape else None))


def _multiplied(given: Given) -> AbstractValue:
    one, other = _x(given), _x(given, "y", "mat2")
    dtype = one.dtype if one.dtype and one.dtype == other.dtype else NUMBER
    if one.shape is None or other.shape is None or len(one.shape) < 2 or len(other.shape) < 2:
        return tensor(dtype)
    if given.keys() & {"transpose_x", "transpose_y"}:
        return tensor(dtype, (Dim.ANY,) * max(len(one.shape), len(other.shape)))
    longer = max(one.shape, other.shape, key=len)
    return tensor(dtype, (*longer[:-2], one.shape[-2], other.shape[-1]))


def _where(given: Given) -> AbstractValue:
    x, y = given.get("x"), given.get("y")
    if "condition" in given and y is None:
        return python("tuple", element=tensor("int64", (Dim.CHOSEN,)))
    dtype = x.dtype if x is not None and y is not None and x.dtype == y.dtype else ""
    parts = [given[name].tensor for name in ("condition", "x", "y") if name in given and given[name].tensor]
    return tensor(dtype, broadcast(parts))


def _nonzero(given: Given) -> AbstractValue:
    if "as_tuple" in given and given["as_tuple"].constant is not False:
        return python("tuple", element=tensor("int64", (Dim.CHOSEN,)))
    rank = _x(given).rank
    return tensor("int64", (Dim.CHOSEN, rank if rank is not None else Dim.ANY))


def _unique(given: Given) -> AbstractValue:
    if any(name.startswith("return_") and given[name].constant is not False for name in given):
        return python("tuple", element=tensor("", (Dim.CHOSEN,)))
    return tensor(_x(given).dtype, (Dim.CHOSEN,))


def _shape_tensor(given: Given) -> AbstractValue:
    rank = _x(given).rank
    return tensor("int32", (rank,) if rank is not None else (Dim.ANY,))


def _gathered(given: Given) -> AbstractValue:
    x, index = _x(given), _x(given, "index")
    if x.shape and index.shape is not None and len(index.shape) == 1 and "axis" not in given:
        return tensor(x.dtype, (*index.shape, *x.shape[1:]))
    return tensor(x.dtype)


def _resized(given: Given) -> AbstractValue:
    x = _x(given)
    if x.shape is None or len(x.shape) < 3 or "data_format" in given:
        return tensor(NUMBER)
    size = given.get("size") or given.get("output_size")
    if size is None or size.is_none:
        return tensor(NUMBER, of_images(x.shape, x.shape[1]))
    sizes, _ = shape_of(size)
    is_whole = sizes is not None and len(sizes) == len(x.shape) - 2
    return tensor(NUMBER, (*x.shape[:2], *(sizes or ())) if is_whole else None)


def _counted(dtype: str) -> Callable[[Given], AbstractValue]:
    return lambda given: tensor(dtype, ())


_BOOLS = ("isfinite", "isnan", "isinf", "logical_and", "logical_or", "logical_not", "logical_xor")
_REDUCTIONS = ("sum", "mean", "prod", "nansum", "nanmean", "std", "var", "median", "logsumexp")
_CREATIONS = ("zeros", "ones", "empty", "rand", "randn", "standard_normal", "uniform", "normal")
_ELEMENTWISE = (
    "clone", "assign", "detach", "contiguous", "clip", "softmax", "relu", "sigmoid", "tanh", "gelu",
    "dropout", "cumsum", "cumprod", "sort", "flip", "roll", "tril", "triu",
)  # fmt: skip
_FAMILIES: dict[str, Callable[[Given], AbstractValue]] = {
    **dict.fromkeys(_REDUCTIONS, _reduction()),
    **dict.fromkeys(["max", "min", "amax", "amin"], _reduction("same")),
    **dict.fromkeys(["all", "any"], _reduction("bool")),
    **dict.fromkeys(["argmax", "argmin", "count_nonzero"], _reduction("int64")),
    **dict.fromkeys(_CREATIONS, _created("float32")),
    "full": _created("full"),
    "randint": _created("int64"),
    **dict.fromkeys(["zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like"], _like),
    **dict.fromkeys(_ELEMENTWISE, _same()),
    **dict.fromkeys(["bool", *_BOOLS], _same("bool")),
    "argsort": _same("int64"),
    "arange": _arange,
    "to_tensor": _to_tensor,
    **dict.fromkeys(["cast", "astype"], _cast),
    "float": _same("float32"),
    "int": _same("int32"),
    "long": _same("int64"),
    **dict.fromkeys(["reshape", "reshape_", "expand", "broadcast_to"], _reshaped),
    "flatten": _flattened,
    "transpose": _transposed,
    "unsqueeze": _unsqueezed,
    "squeeze": _squeezed,
    "concat": _concatenated,
    "stack": _stacked,
    **dict.fromkeys(["split", "chunk"], _split),
    **dict.fromkeys(["unbind", "unstack"], _unbound),
    **dict.fromkeys(["matmul", "mm", "bmm"], _multiplied),
    "where": _where,
    "nonzero": _nonzero,
    "masked_select": lambda given: tensor(_x(given).dtype, (Dim.CHOSEN,)),
    **dict.fromkeys(["unique", "unique_consecutive"], _unique),
    "item": lambda given: tensor(_x(given).dtype, ()),
    "numel": _counted("int64"),
    "rank": _counted("int32"),
    "shape": _shape_tensor,
    **dict.fromkeys(["interpolate", "upsample", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"], _resized),
    **dict.fromkeys(["gather", "index_select"], _gathered),
    "tolist": lambda given: python("list"),
    "numpy": lambda given: python("ndarray"),
}
