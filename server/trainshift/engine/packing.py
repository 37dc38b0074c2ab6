"""Packing: convert frozen objects to lists for JSON and back, checked against their types."""

from __future__ import annotations

import types
import typing
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union

from msgspec import Struct

T = TypeVar("T")


def packed(value: object) -> Any:
    """A value in JSON form: a record as the list of its fields, an enumeration as its value."""
    if isinstance(value, Enum):
        return value.value
    if is_record(value):
        return [packed(getattr(value, each)) for each in field_names(type(value))]
    if isinstance(value, tuple):
        return [packed(each) for each in value]
    return value


def is_record(value: object) -> bool:
    """Return whether a value is an instance of a `Struct` or a dataclass."""
    return isinstance(value, Struct) or is_dataclass(value)


def field_names(kind: type[Any]) -> tuple[str, ...]:
    """The names of the fields of a `Struct` or a dataclass, in order."""
    return kind.__struct_fields__ if issubclass(kind, Struct) else tuple(each.name for each in fields(kind))


def unpacked(kind: type[T], data: Any) -> T:
    """Unpack a value of a type; raises ValueError if the data do not fit the type."""
    return _unpacked(kind, data)  # type: ignore[no-any-return]


def _unpacked(kind: Any, data: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin in (Union, types.UnionType):
        if data is None:
            return None
        (kind,) = (each for each in typing.get_args(kind) if each is not type(None))
        return _unpacked(kind, data)
    if origin is tuple:
        return tuple(_unpacked(typing.get_args(kind)[0], each) for each in _list(data))
    if isinstance(kind, type) and (issubclass(kind, Struct) or is_dataclass(kind)):
        types_of_fields = _types_of(kind)
        given = _list(data)
        if len(given) != len(types_of_fields):
            raise ValueError("it has other fields")
        return kind(*map(_unpacked, types_of_fields, given))
    if issubclass(kind, Enum):
        return kind(data)
    if type(data) is not kind:
        raise ValueError(f"{data!r} is no {kind.__name__}")
    return data


def _list(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise ValueError(f"{data!r} is no list")
    return data


@cache
def _types_of(kind: Any) -> tuple[Any, ...]:
    hints = typing.get_type_hints(kind)
    return tuple(map(hints.__getitem__, field_names(kind)))
