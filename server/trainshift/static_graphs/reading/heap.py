"""Heap: what static functions store in containers, in attributes, and in names that are not their own.

A container is known by the places where it may have been made, as in any points-to analysis.  What is stored
in it through one name is then seen through all others.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from trainshift.python.syntax.chunk_syntax import Scope
from trainshift.static_graphs.reading.abstract_values import NOTHING, UNKNOWN, AbstractValue, join, shallow

MUTABLE = frozenset({"list", "dict", "set"})
_PATIENCE = 20
"""After so many turns a value that is defined by itself is unknown."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of that name, of any object."""

    name: str


@dataclass(frozen=True, slots=True)
class OuterName:
    """A name that a function binds by `nonlocal` or `global`; the holder is None for a module."""

    holder: Scope | None
    name: str


Cell: TypeAlias = "ast.AST | Attribute | OuterName"
"""A container, by the place where it is made; an attribute; or a name."""
Key = TypeVar("Key", bound=Hashable)
Stores: TypeAlias = dict[Cell, AbstractValue]


def store(stores: dict[Key, AbstractValue], cell: Key, value: AbstractValue) -> bool:
    """Add a value to what a cell may hold.  Return whether the cell may hold more than before."""
    old = stores.get(cell, NOTHING)
    new = shallow(old.joined(value))
    if new == old:
        return False
    stores[cell] = new
    return True


def with_stored(value: AbstractValue, stores: Mapping[Cell, AbstractValue]) -> AbstractValue:
    """Return a value whose containers may also hold what is stored in them."""
    if value.items is None and value.element is None and not value.places:
        return value
    found = value
    if value.items is not None:
        items = tuple(with_stored(each, stores) for each in value.items)
        found = value if items == value.items else replace(value, items=items)
    elif value.element is not None:
        element = with_stored(value.element, stores)
        found = value if element == value.element else replace(value, element=element)
    added = [stores[place] for place in value.places if place in stores]
    if added:
        element = join([*added, found.whole_element or NOTHING])
        if found.items is not None or element != found.element:
            found = replace(found, items=None, keys=None, element=element)
    return shallow(found)


def placed(value: AbstractValue, place: ast.AST) -> AbstractValue:
    """Return a value whose container has a place: a given one, where nothing shows where it was made."""
    if value.python & MUTABLE and not value.places:
        return replace(value, places=frozenset({place}))
    return value


def places_in(value: AbstractValue) -> Iterator[ast.AST]:
    """Yield the places where the containers of a value, and those in them, may have been made."""
    yield from value.places
    for each in (*(value.items or ()), *([value.element] if value.element is not None else ())):
        yield from places_in(each)


class Lookups:
    """Values that are worked out when they are first asked for, and that may be defined by each other.

    Only the readers of a value that grows are worked out anew.  `Questions` of `python/names/memo.py` redoes
    whole circles, which takes minutes where many attributes are defined by each other.

    Readers are other values, and what asks from outside, such as a static function: it is `reading` then.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, AbstractValue] = {}
        self._how: dict[Hashable, Callable[[], AbstractValue]] = {}
        self._readers: dict[Hashable, set[Hashable]] = {}
        self._turns: dict[Hashable, int] = {}
        self._open: list[Hashable] = []
        self._outside: list[Hashable] = []
        self._stale: dict[Hashable, None] = {}

    @contextmanager
    def reading(self, reader: Hashable) -> Iterator[None]:
        """Have a reader ask, within the block."""
        self._outside.append(reader)
        try:
            yield
        finally:
            self._outside.pop()

    def ask(self, key: Hashable, work_out: Callable[[], AbstractValue]) -> AbstractValue:
        """Return the value of a key; nothing while it is being worked out for the first time."""
        if key not in self._known:
            self._known[key] = NOTHING
            self._how[key] = work_out
            try:
                self._work_out(key)
                while self._stale and not self._open:
                    stale = next(iter(self._stale))
                    del self._stale[stale]
                    self._work_out(stale)
            except BaseException:
                if not self._open:  # What was begun is worth nothing.
                    self._known.clear()
                    self._stale.clear()
                raise
        self.note(key)
        return self._known[key]

    def note(self, key: Hashable) -> None:
        """Note that whoever asks now depends on a key, which may be one of another store."""
        if self._open:
            self._readers.setdefault(key, set()).add(self._open[-1])
        elif self._outside:
            self._readers.setdefault(key, set()).add(self._outside[-1])

    def _work_out(self, key: Hashable) -> None:
        turn = self._turns[key] = self._turns.get(key, 0) + 1
        self._open.append(key)
        try:
            value = shallow(self._how[key]()) if turn <= _PATIENCE else UNKNOWN
        finally:
            self._open.pop()
        if value != self._known[key]:
            self._known[key] = value
            self._stale.update(
                (reader, None) for reader in self._readers.get(key, ()) if reader in self._known
            )

    def forget(self, keys: Iterable[Hashable]) -> set[Hashable]:
        """Have what depends on some keys worked out anew when it is asked for again; return who read it."""
        assert not self._open
        found: set[Hashable] = set()
        waiting = [*keys]
        while waiting:
            for reader in self._readers.pop(waiting.pop(), ()):
                if reader not in found:
                    found.add(reader)
                    waiting.append(reader)
        for key in found & self._known.keys():
            del self._known[key]
        self._turns.clear()
        return found
