"""The kinds of variables' values, inferred from their creation and uses: numbers, arrays, containers,
functions.

Kinds are unified wherever one value may flow into another place (assignments, arguments, results), element by
element.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from trainshift.python.flow.traversal import reachable

# The key of all elements; no constant equals it.
ANY: Hashable = object()


class Kind:
    """The kind of a value: a set of tags, and the kinds of its elements by key.

    The words: `number` (a number or array in arithmetic), `array`, `computed` (a number or array, not a
    count), `real` (subtracted or divided, so that it is not a list), `box` (its elements are read), `list`,
    `tuple`, `dict`, `function`, `optional` (compared with None), `linked` (and unpacked: a node of a linked
    structure), `changed` (its elements are assigned), `sliced` (a slice of it is read: a copy of a list, a
    view of an array), `unclear` (a list, or a number or array), `object` (of a class of the file that has
    operators).
    """

    __slots__ = ("_copied", "_elements", "_functions", "_originals", "_told", "_words")
    is_read_only: ClassVar[bool] = False
    """While set, words are only read, never added."""

    def __init__(self, *words: str) -> None:
        self._words = set(words)
        self._functions: set[Hashable] = set()
        self._elements: dict[Hashable, Kind] = {}
        self._told: Kind | None = None
        self._originals: set[Kind] = set()
        self._copied: set[Kind] = set()

    def found(self) -> Kind:
        """The representative of all kinds that were unified with this one."""
        kind = self
        while kind._told is not None:
            kind = kind._told
        return kind

    @property
    def words(self) -> set[str]:
        """The words that are known."""
        return self.found()._words

    def has(self, *words: str) -> bool:
        """Return whether any of the words is known."""
        return not self.found()._words.isdisjoint(words)

    def tell(self, *words: str) -> None:
        """Add words."""
        if Kind.is_read_only:
            return
        self.found()._words.update(words)

    @property
    def functions(self) -> set[Hashable]:
        """The functions of the file that the value may be, as far as known."""
        return self.found()._functions

    def tell_function(self, function: Hashable) -> None:
        """Add a function that the value may be."""
        self.tell("function")
        self.functions.add(function)

    def copy(self) -> Kind:
        """The kind of a copy: the same elements, mutated separately."""
        made = Kind(*(self.words - {"changed"}), "box")
        made.element().unify(self.element())
        made._copied.add(self.found())
        return made

    def part(self) -> Kind:
        """The kind of a slice: a copy of a part of a list, or a view of an array."""
        made = self.copy()
        made._originals.add(self.found())
        return made

    def originals(self) -> Iterable[Kind]:
        """The kind with those that it is a slice of, and is a view of if they are arrays."""
        return reachable([self.found()], lambda kind: {each.found() for each in kind._originals})

    def origins(self) -> Iterable[Kind]:
        """The kind with those that it is a slice or copy of."""
        return reachable(
            [self.found()], lambda kind: {each.found() for each in kind._originals | kind._copied}
        )

    @property
    def is_copy(self) -> bool:
        """Return whether the value may be a copy: a list's has the same rows, an array's has its own."""
        return bool(self.found()._copied)

    def element(self, key: Hashable = ANY) -> Kind:
        """The kind of the element at a key; of all elements if the key is unknown."""
        kind = self.found()
        elements = kind._elements
        if ANY in elements:
            return elements[ANY].found()
        if key == ANY and elements:
            first, *others = elements.values()
            kind._elements = {ANY: first}
            for other in others:
                first.unify(other)
            # A recursive container may be a different one by now.
            return self.element(ANY)
        if key not in elements:
            elements[key] = Kind()
        return elements[key].found()

    def unify(self, other: Kind) -> None:
        """Make both one kind."""
        waiting = [(self, other)]
        while waiting:
            one, two = (each.found() for each in waiting.pop())
            if one is two:
                continue
            two._told = one
            one._words |= two._words
            one._functions |= two._functions
            one._originals |= two._originals
            one._copied |= two._copied
            theirs = two._elements
            two._elements = {}
            if not one._elements:
                # For recursive containers, new elements would never end.
                one._elements = theirs
                continue
            if ANY in theirs or ANY in one._elements:
                whole = one.element(ANY)
                waiting.extend((whole, each) for each in theirs.values())
                continue
            for key, each in theirs.items():
                if key in one._elements:
                    waiting.append((one._elements[key], each))
                else:
                    one._elements[key] = each

    def with_elements(self) -> set[Kind]:
        """The kind with those of its elements, at any depth."""
        return set(self.in_order())

    def in_order(self) -> Iterable[Kind]:
        """The kind with those of its elements, at any depth, each once, outer ones first."""
        found: dict[Kind, None] = {}
        waiting = [self]
        while waiting:
            kind = waiting.pop().found()
            if kind not in found:
                found[kind] = None
                waiting.extend(kind._elements.values())
        return found

    @property
    def changes(self) -> bool:
        """Return whether the value, or something in it at any depth, is changed."""
        return any(each.has("changed") for each in self.with_elements())

    @property
    def container(self) -> bool:
        """Return whether elements of the value are read."""
        return self.has("box", "list", "tuple", "dict")

    @property
    def holds_numbers(self) -> bool:
        """Return whether all elements are numbers, if there are no arrays."""
        inside = self.with_elements() - {self.found()}
        return bool(inside) and all(each.has("number", "scalar") and not each.container for each in inside)

    @property
    def arrayish(self) -> bool:
        """Return whether the value may be an array, if there are any."""
        return not self.has("list", "tuple", "dict", "function")

    def listed(self, arrays: bool) -> bool:
        """Return whether the value is a list or tuple, or has elements and can be nothing else without
        `arrays`.
        """
        return self.has("list", "tuple") or (self.container and not arrays and not self.has("dict", "array"))

    @property
    def numeric(self) -> bool:
        """Return whether the value is used in arithmetic, and never indexed or compared with None."""
        return self.has("number", "scalar") and not self.container and not self.has("optional")


@contextmanager
def read_only() -> Iterator[None]:
    """Suspend inference while a value's kind is read."""
    around, Kind.is_read_only = Kind.is_read_only, True
    try:
        yield
    finally:
        Kind.is_read_only = around


def reaches(arrays: bool, kind: Kind, wanted: Kind) -> bool:
    """Return whether a value of a kind may be, or contain, one of another kind; there may be `arrays`."""
    arrays = arrays and wanted.arrayish
    return any(each is wanted.found() or (arrays and each.arrayish) for each in kind.with_elements())


def meet(arrays: bool, one: Kind, other: Kind) -> bool:
    """Return whether values of two kinds may have a container in common, or an array if there may be
    `arrays`.
    """
    mine, theirs = one.with_elements(), other.with_elements()
    if any(each in theirs and each.container for each in mine):
        return True
    return arrays and any(each.arrayish for each in mine) and any(each.arrayish for each in theirs)
