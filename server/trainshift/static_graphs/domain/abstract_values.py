"""Abstract values of static functions: tensor, Python, array, unknown, as sets, with shapes and elements."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from trainshift.python.names.values import Value as Thing


class Dim(Enum):
    """A dimension that is not a number in a graph.

    SPEC is None in an `InputSpec`, CHOSEN the number of elements selected by a mask: without `full_graph`
    these are numbers.  DATA is a dimension reshaped by a tensor.  ANY may be a number, or one of these.
    """

    SPEC = "spec"
    DATA = "data"
    CHOSEN = "chosen"
    ANY = "any"


OPEN_SIZES = frozenset({Dim.SPEC, Dim.DATA, Dim.CHOSEN})
"""The sizes that are tensors in a graph."""
Size: TypeAlias = "int | Dim"
Shape: TypeAlias = tuple[Size, ...]
MOST_DEEP = 6
"""The depth to which nested containers are followed; deeper elements are unknown."""
MOST_PARTS = 2000
"""The number of parts of a value to which its containers are followed below their first elements."""
NUMBER = "number"
"""The dtype of what is surely not of bools, and of which nothing else is known."""


class Tensor(Struct, frozen=True):
    """A tensor: its dtype ("" if unknown), its shape (None if not even the rank is known).

    `counts` is the kind of dimension whose size it is, if it is one: ``x.shape[0]``.  Without a shape, all
    dimensions are `loose`.  One that is `counted` may be a number in dygraph: what a `range` or `enumerate`
    counts, and what is computed from that.
    """

    dtype: str = ""
    shape: Shape | None = None
    counts: Dim | None = None
    loose: Dim = Dim.ANY
    counted: bool = False

    @property
    def rank(self) -> int | None:
        """The number of dimensions."""
        return None if self.shape is None else len(self.shape)

    @property
    def has_one_element(self) -> bool | None:
        """Return whether it has one element; None if that is unknown."""
        if self.shape is None:
            return None
        if all(size == 1 for size in self.shape):
            return True
        return False if any(isinstance(size, int) and size > 1 for size in self.shape) else None

    def joined(self, other: Tensor) -> Tensor:
        """The join with another tensor."""
        if self == other:
            return self
        shape = None
        if self.shape is not None and other.shape is not None and len(self.shape) == len(other.shape):
            shape = tuple(map(_common, self.shape, other.shape))
        counts = self.counts if self.counts is other.counts else Dim.ANY
        return Tensor(
            common_dtype(self.dtype, other.dtype),
            shape,
            counts if self.counts and other.counts else None,
            self.loose if self.loose is other.loose else Dim.ANY,
            self.counted or other.counted,
        )


def common_dtype(one: str, other: str) -> str:
    """The dtype of a value with one of two dtypes."""
    if one == other:
        return one
    return NUMBER if one and other and "bool" not in (one, other) else ""


def _common(one: Size, other: Size) -> Size:
    if one == other:
        return one
    return Dim.CHOSEN if {one, other} <= OPEN_SIZES else Dim.ANY


class _Nothing(Enum):
    NOTHING = "nothing"


NO_CONSTANT = _Nothing.NOTHING
_KEPT = frozenset({"list", "dict", "set", "object", "layer"})


class AbstractValue(Struct, frozen=True):
    """The possible values of an expression; none for one that is never reached.

    `python` are names of Python types ("object" for any other).  `constant` is the value of a single
    constant.  `items` are the elements of a tuple or list of known length, or the values of a dict with known
    `keys`; `element` is the join of all elements of a container.  `things` are the possible functions,
    classes and layers.  `sources` are the creation sites of its tensors (a node, or the name of a parameter),
    `views` those with which they share memory; `places` are the creation sites of its containers. An unknown
    value that is `numeric` is a tensor or a number, judged by its uses. With `unbound`, the name may have no
    value at all.
    """

    tensor: Tensor | None = None
    python: frozenset[str] = frozenset()
    array: bool = False
    unknown: bool = False
    unbound: bool = False
    constant: object = NO_CONSTANT
    items: tuple[AbstractValue, ...] | None = None
    element: AbstractValue | None = None
    things: frozenset[Thing] = frozenset()
    sources: frozenset[object] = frozenset()
    views: frozenset[object] = frozenset()
    places: frozenset[ast.AST] = frozenset()
    keys: tuple[object, ...] | None = None
    numeric: bool = False

    @property
    def is_nothing(self) -> bool:
        """Return whether nothing reaches it."""
        return not (self.tensor or self.python or self.array or self.unknown)

    @property
    def is_tensor(self) -> bool:
        """Return whether it is a tensor, and nothing else."""
        return self.tensor is not None and not self.python and not self.array and not self.unknown

    @property
    def may_be_tensor(self) -> bool:
        """Return whether it is known to be a tensor on some path."""
        return self.tensor is not None

    @property
    def is_python(self) -> bool:
        """Return whether it is certainly not a tensor."""
        return bool(self.python) and self.tensor is None and not self.array and not self.unknown

    @property
    def is_numeric(self) -> bool:
        """Return whether it is known to be a tensor or a number."""
        return (self.numeric or not self.unknown) and self.python <= NUMBERS and not self.array

    @property
    def dtype(self) -> str:
        """The dtype, if it is a tensor with a known dtype."""
        return self.tensor.dtype if self.tensor is not None else ""

    @property
    def rank(self) -> int | None:
        """The number of dimensions, if it may be a tensor and the number is known."""
        return self.tensor.rank if self.tensor is not None else None

    @property
    def is_none(self) -> bool:
        """Return whether it is None, and nothing else."""
        return self.is_python and self.python == {"None"}

    @property
    def is_kept(self) -> bool:
        """Return whether it may be an object or a container, whose mutations are visible through all its
        names.
        """
        return self.tensor is None and (self.unknown or bool(self.python & _KEPT))

    def among(self, *types: str) -> bool:
        """Return whether its type is one of these Python types for certain."""
        return self.is_python and self.python <= frozenset(types)

    def joined(self, other: AbstractValue) -> AbstractValue:
        """The join of two values."""
        if self is other or (other.is_nothing and not other.unbound):
            return self
        if self.is_nothing and not self.unbound:
            return other
        if self == other:
            return self
        tensor = self.tensor
        if other.tensor is not None:
            tensor = other.tensor if tensor is None else tensor.joined(other.tensor)
        items = None
        is_same = _same_keys(self.keys, other.keys)
        if (
            is_same
            and self.items is not None
            and other.items is not None
            and len(self.items) == len(other.items)
        ):
            items = tuple(a.joined(b) for a, b in zip(self.items, other.items, strict=True))
        element = None
        if items is None:
            one, another = self.whole_element, other.whole_element
            element = one if another is None else another if one is None else one.joined(another)
        return AbstractValue(
            tensor,
            self.python | other.python,
            self.array or other.array,
            self.unknown or other.unknown,
            self.unbound or other.unbound,
            self.constant if _same(self.constant, other.constant) else NO_CONSTANT,
            items,
            element,
            self.things | other.things,
            self.sources | other.sources,
            self.views | other.views,
            self.places | other.places,
            self.keys if items is not None else None,
            self.is_numeric and other.is_numeric and (self.numeric or other.numeric),
        )

    @property
    def whole_element(self) -> AbstractValue | None:
        """The join of all elements, also for a tuple or list with distinguished elements."""
        return join(self.items) if self.items else self.element

    @property
    def types(self) -> AbstractValue:
        """Only the types, with the dtype and rank of a tensor; unknown if it has no value."""
        known = self.tensor
        if known is not None:
            known = Tensor(known.dtype, None if known.shape is None else (Dim.ANY,) * len(known.shape))
        unknown = self.unknown or self.is_nothing
        return AbstractValue(
            known, self.python, self.array, unknown, self.unbound, numeric=self.numeric and unknown
        )

    def bound(self) -> AbstractValue:
        """The value of a name if it is certainly bound."""
        return replace(self, unbound=False) if self.unbound else self


def shallow(value: AbstractValue) -> AbstractValue:
    """Return a value without its parts below a depth.

    Otherwise a list that is repeatedly put into a new one would grow forever, and lists that hold one another
    often would have too many parts to be read.
    """
    level, parts = [value], 0
    for depth in range(MOST_DEEP):
        inner = [each.items if each.items is not None else (each.element,) for each in level]
        parts += sum(map(len, inner))
        if depth and parts > MOST_PARTS:
            return _cut(value, depth)
        level = [one for each in inner for one in each if one is not None]
    return _cut(value, MOST_DEEP) if level else value


def _cut(value: AbstractValue, deep: int) -> AbstractValue:
    """Return a value whose parts below a depth are unknown."""
    if value.items is None and value.element is None:
        return value
    if deep == 0:
        return replace(value, items=None, keys=None, element=UNKNOWN)
    if value.items is not None:
        return replace(value, items=tuple(_cut(each, deep - 1) for each in value.items))
    assert value.element is not None
    return replace(value, element=_cut(value.element, deep - 1))


def _same_keys(one: tuple[object, ...] | None, other: tuple[object, ...] | None) -> bool:
    if one is None or other is None or len(one) != len(other):
        return one is other
    return all(map(_same, one, other))


def _same(one: object, other: object) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other


NOTHING = AbstractValue()
UNKNOWN = AbstractValue(unknown=True)
UNBOUND = AbstractValue(unbound=True)
NUMBERS = frozenset({"int", "float", "bool", "complex"})
_TYPES = {"NoneType": "None", "ellipsis": "object"}


def ordered(things: Iterable[Thing]) -> list[Thing]:
    """Functions, classes and similar objects in an order that is the same in each run."""
    return sorted(things, key=_place)


def _place(thing: Thing) -> tuple[str, str, int, int]:
    name = getattr(thing, "name", "") or getattr(thing, "cls", "") or getattr(thing, "path", "")
    scope = getattr(thing, "scope", None)
    node = getattr(thing, "node", None) or getattr(scope, "node", None)
    line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
    return thing.__class__.__name__, name or getattr(scope, "name", ""), line, column


def python(*types: str, **known: object) -> AbstractValue:
    """A value of Python's types."""
    return AbstractValue(python=frozenset(types), **known)  # type: ignore[arg-type]


def constant(value: object) -> AbstractValue:
    """The value of one constant."""
    name = value.__class__.__name__
    kind = _TYPES.get(name, name)
    return AbstractValue(python=frozenset({kind}), constant=value)


def tensor(
    dtype: str = "",
    shape: Shape | None = None,
    *,
    counts: Dim | None = None,
    loose: Dim = Dim.ANY,
    counted: bool = False,
) -> AbstractValue:
    """A tensor."""
    return AbstractValue(Tensor(dtype, shape, counts, loose, counted))


def join(values: Iterable[AbstractValue]) -> AbstractValue:
    """The join of values."""
    found = NOTHING
    for each in values:
        found = found.joined(each)
    return found


Env: TypeAlias = dict[str, AbstractValue]


def join_envs(envs: Iterable[Mapping[str, AbstractValue] | None]) -> Env | None:
    """The join of environments; None if no path leads there."""
    reached = [each for each in envs if each is not None]
    if not reached:
        return None
    found = dict(reached[0])
    for env in reached[1:]:
        for name in found.keys() | env.keys():
            one, other = found.get(name, UNBOUND), env.get(name, UNBOUND)
            if one is not other:
                found[name] = one.joined(other)
    return found
