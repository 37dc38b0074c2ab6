"""Stores: the stores of static functions into containers, attributes, and outer names.

A container is identified by its possible creation sites, as in any points-to analysis.  A store through one
name is then visible through all others.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Mapping
from typing import TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from trainshift.python.names.script import Script
from trainshift.python.syntax.chunk_syntax import Scope
from trainshift.python.values.heap import Attribute
from trainshift.static_graphs.domain.abstract_values import NOTHING, UNKNOWN, AbstractValue, join, shallow

MUTABLE = frozenset({"list", "dict", "set"})


class OuterName(Struct, frozen=True):
    """A name that a function binds by `nonlocal` or `global`; the holder is None for a module."""

    holder: Scope | None
    name: str


Cell: TypeAlias = "ast.AST | Attribute | OuterName"
"""A container, by the place where it is made; an attribute of any object; or a name."""
Key = TypeVar("Key", bound=Hashable)
Stores: TypeAlias = dict[Cell, AbstractValue]


def outer_name(script: Script, scope: Scope, name: str) -> OuterName:
    """The variable that a function means by a name of its `global` or `nonlocal`."""
    around = None if name in scope.declared_global else scope.parent
    holder = script.names.lookup(name, around, None)[0] if around is not None else None
    return OuterName(holder, name)


def store(stores: dict[Key, AbstractValue], cell: Key, value: AbstractValue) -> bool:
    """Add a value to a cell. Return whether the cell may now hold more than before."""
    old = stores.get(cell, NOTHING)
    new = shallow(old.joined(value))
    if new == old:
        return False
    stores[cell] = new
    return True


def with_stored(value: AbstractValue, stores: Mapping[Cell, AbstractValue]) -> AbstractValue:
    """Return a value whose containers include the values stored into them."""
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
    """Return a value whose container has a creation site: the given one, if none is known."""
    if value.python & MUTABLE and not value.places:
        return replace(value, places=frozenset({place}))
    return value


def put_into(places: frozenset[ast.AST], value: AbstractValue) -> AbstractValue:
    """Return a value as an element of a container made at some places: if it holds that container itself,
    the elements of this inner one are unknown.
    """
    if value.places & places:
        return replace(value, items=None, keys=None, element=UNKNOWN)
    if value.items is not None:
        items = tuple(put_into(places, each) for each in value.items)
        return value if items == value.items else replace(value, items=items)
    return value if value.element is None else replace(value, element=put_into(places, value.element))


def places_in(value: AbstractValue) -> Iterator[ast.AST]:
    """Yield the possible creation sites of the containers in a value."""
    yield from value.places
    for each in (*(value.items or ()), *([value.element] if value.element is not None else ())):
        yield from places_in(each)
