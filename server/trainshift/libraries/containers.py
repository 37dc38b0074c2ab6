"""Methods of Python's containers that add, remove or reorder elements."""

from __future__ import annotations

from typing import NamedTuple


class Method(NamedTuple):
    """A method that changes its container.

    `of` names the classes that have it.  `element` is the position of the argument that becomes an element,
    `elements` that of the argument whose elements do; None if the method adds nothing in this way.
    """

    of: frozenset[str]
    element: int | None = None
    elements: int | None = None


def _of(names: str) -> frozenset[str]:
    return frozenset(names.split())


METHODS = {
    "append": Method(_of("list deque"), element=0),
    "appendleft": Method(_of("deque"), element=0),
    "insert": Method(_of("list deque"), element=1),
    "add": Method(_of("set"), element=0),
    "setdefault": Method(_of("dict"), element=1),
    "extend": Method(_of("list deque"), elements=0),
    "extendleft": Method(_of("deque"), elements=0),
    "update": Method(_of("dict set"), elements=0),
    "pop": Method(_of("list dict set deque")),
    "popleft": Method(_of("deque")),
    "popitem": Method(_of("dict")),
    "remove": Method(_of("list set deque")),
    "discard": Method(_of("set")),
    "clear": Method(_of("list dict set deque")),
    "difference_update": Method(_of("set")),
    "intersection_update": Method(_of("set")),
    "symmetric_difference_update": Method(_of("set"), elements=0),
    "sort": Method(_of("list")),
    "reverse": Method(_of("list deque")),
    "rotate": Method(_of("deque")),
}
"""Every method that changes its container, by name."""

MUTATING = frozenset(METHODS)
ADDING = frozenset(
    name for name, method in METHODS.items() if method.element is not None or method.elements is not None
)
"""The methods by which a container comes to hold more."""


def adding_to(kind: str) -> frozenset[str]:
    """The methods of a class that add elements to a container."""
    return frozenset(name for name in ADDING if kind in METHODS[name].of)
