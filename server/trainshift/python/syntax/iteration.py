"""Iteration: what each part of a loop's target gets from the loop's iterable.

`for i, (key, value) in enumerate(table.items())` gives `i` a count, `key` a key of `table`, and `value` a
value of it.  Comprehensions are loops too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum, auto

from msgspec import Struct


class Step(Enum):
    """The way in which an iterable makes its elements from those of its parts."""

    ELEMENTS = auto()
    """It is iterated itself."""
    COUNTS = auto()
    """`range(...)`."""
    BESIDE = auto()
    """`zip(...)`: one element of each part, side by side."""
    NUMBERED = auto()
    """`enumerate(...)`."""
    BACKWARDS = auto()
    """`reversed(...)`."""
    COPY = auto()
    """`list(...)` and `tuple(...)`."""
    ITEMS = auto()
    VALUES = auto()
    KEYS = auto()


class Gets(Enum):
    """The kind of value that a loop gives."""

    ELEMENT = auto()
    COUNT = auto()
    KEY = auto()
    VALUE = auto()
    """The value of a dict at the key of the iteration."""


class Part(Struct, frozen=True):
    """A part of a loop's target: what it gets, and the iterable or dict of which it gets it."""

    target: ast.expr
    gets: Gets
    source: ast.expr


_STEPS = {
    "range": Step.COUNTS,
    "zip": Step.BESIDE,
    "enumerate": Step.NUMBERED,
    "reversed": Step.BACKWARDS,
    "list": Step.COPY,
    "tuple": Step.COPY,
}
_VIEWS = {"items": Step.ITEMS, "values": Step.VALUES, "keys": Step.KEYS}


def step(source: ast.expr) -> tuple[Step, list[ast.expr]]:
    """Return how an iterable makes its elements, and from which parts; starred arguments hide the parts."""
    match source:
        case ast.Call(ast.Attribute(base, attr), [], []) if attr in _VIEWS:
            return _VIEWS[attr], [base]
        case ast.Call(ast.Name(name), args) if name in _STEPS:
            found = _STEPS[name]
            starred = any(isinstance(each, ast.Starred) for each in args)
            if found is Step.NUMBERED and args and not starred:
                return found, args[:1]
            if (found is Step.BESIDE and not starred) or found is Step.COUNTS:
                return found, args
            if found in (Step.BACKWARDS, Step.COPY) and len(args) == 1 and not starred:
                return found, args
    return Step.ELEMENTS, [source]


def is_numbered(source: ast.expr) -> bool:
    """Return whether an iterable is an `enumerate(...)`."""
    return step(source)[0] is Step.NUMBERED


def counted_from_0(source: ast.expr) -> bool:
    """Return whether an iterable is an `enumerate(...)` without another start."""
    if not is_numbered(source) or not isinstance(source, ast.Call):
        return False
    starts = [*source.args[1:], *(each.value for each in source.keywords)]
    return all(isinstance(each, ast.Constant) and each.value == 0 for each in starts)


def beside(source: ast.expr) -> list[ast.expr]:
    """The iterables that an iterable goes through side by side, a count as 0; none if it is only one."""
    way, parts = step(source)
    if way is Step.NUMBERED:
        return [ast.Constant(0), *parts]
    return parts if way is Step.BESIDE else []


def parts_given(target: ast.expr, source: ast.expr) -> Iterator[Part]:
    """Yield the parts of a loop's target, each with what it gets; a part may be a tuple of names."""
    way, inner = step(source)
    elements = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    match way:
        case Step.COUNTS:
            yield Part(target, Gets.COUNT, source)
        case Step.NUMBERED if len(elements) == 2:
            yield Part(elements[0], Gets.COUNT, source)
            yield from parts_given(elements[1], inner[0])
        case Step.BESIDE if len(elements) == len(inner) and elements:
            for each, one in zip(elements, inner, strict=True):
                yield from parts_given(each, one)
        case Step.BACKWARDS | Step.COPY:
            yield from parts_given(target, inner[0])
        case Step.ITEMS if len(elements) == 2:
            yield Part(elements[0], Gets.KEY, inner[0])
            yield Part(elements[1], Gets.VALUE, inner[0])
        case Step.KEYS:
            yield Part(target, Gets.KEY, inner[0])
        case Step.VALUES:
            yield Part(target, Gets.VALUE, inner[0])
        case _:
            yield Part(target, Gets.ELEMENT, source)


def iterated(source: ast.expr) -> list[ast.expr]:
    """The expressions that a loop goes through at the end, without those that it copies."""
    way, inner = step(source)
    if way is Step.ELEMENTS:
        return inner
    return [] if way in (Step.COPY, Step.COUNTS) else [one for each in inner for one in iterated(each)]
