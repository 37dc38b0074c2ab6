"""Abstract objects of a points-to analysis, and the state at a point: values of variables, contents of
objects.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import Enum
from typing import TypeAlias, TypeVar

from msgspec import Struct

from trainshift.python.flow.solver import Diverges

K = TypeVar("K", bound=Hashable)
Variable: TypeAlias = "tuple[ast.AST | None, str]"
"""A variable, by the function that it is of (None for the module) and its name."""
Bits: TypeAlias = int
Cells: TypeAlias = "Mapping[Hashable, Bits]"
"""The contents of an object, by constant index or key, by `Attribute`, and by `ANY`."""

MOST_OBJECTS = 800
"""With more objects than these an analysis is given up: what it takes grows faster than they do."""
DEEPEST = 3
"""The depth below which the contents of a parameter are one object, and so are the results of nested calls.
"""


class _Any(Enum):
    ANY = "any index or key"
    REST = "an index or key that nothing asks for"

    __hash__ = object.__hash__


ANY = _Any.ANY
REST = _Any.REST


class Attribute(Struct, frozen=True):
    """The key of an attribute."""

    name: str


SHOWN = Attribute(" shown")
"""The key of what an iterator or a view goes through, as it is by then."""


class Sort(Enum):
    """The identity of an abstract object."""

    UNKNOWN = "any object from outside, or that escaped"
    MADE = "the expression that makes it"
    FUNCTION = "its definition"
    PARAMETER = "the parameter that gets it"
    OUTER = "the variable around the function that it is in at first"
    INSIDE = "what it is in at first, and where"

    __hash__ = object.__hash__


class Object(Struct, frozen=True):
    """An object, or all objects that share one place of creation.

    `where` is a node or a `Variable`; `of` is the container of a placeholder, or a called function's
    placeholder for the object; `earlier` stands for all objects of earlier iterations of a loop.
    """

    sort: Sort
    where: Hashable = None
    of: int | None = None
    key: Hashable = ANY
    earlier: bool = False
    depth: int = 0

    @property
    def is_outer(self) -> bool:
        """Return whether the function gets the object from outside."""
        return self.sort in (Sort.PARAMETER, Sort.OUTER, Sort.INSIDE)


UNKNOWN: Bits = 1
NO_CELLS: Cells = {}


def bits_of(bits: Bits) -> Iterator[int]:
    """Yield the indices of the objects of a set."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def union(sets: Iterable[Bits]) -> Bits:
    """The union of sets of objects."""
    found = 0
    for bits in sets:
        found |= bits
    return found


def elements_of(cells: Cells, but: Hashable = ANY) -> Bits:
    """The contents of cells that are not attributes, except those of one constant key."""
    return union(
        inner for key, inner in cells.items() if not isinstance(key, Attribute) and (key != but or but is ANY)
    )


def repeated_in(cells: Cells) -> Bits:
    """The objects in two cells, or in a cell that stands for several places."""
    seen, found = 0, cells.get(ANY, 0)
    for key, bits in cells.items():
        if not isinstance(key, Attribute):
            found |= seen & bits
            seen |= bits
    return found


def key_of(place: ast.expr) -> Hashable:
    """The constant index or key of an expression, or ANY; an index from the end counts as ANY."""
    match place:
        case ast.Constant(int(value)) if value < 0:
            return ANY
        case ast.Constant(value) if value is not Ellipsis:
            return value
    return ANY


class State(Struct, frozen=True):
    """The abstract state at a point: values of variables, contents of objects, duplicates, escaped objects.

    `shared` are the objects that were put into a container while another container held them.
    """

    variables: Mapping[Variable, Bits]
    heap: Mapping[int, Cells]
    twice: Mapping[int, Bits]
    escaped: Bits
    shared: Bits = 0

    def joined(self, other: State) -> State:
        """The join of two states."""
        if self is other or self == other:
            return self
        heap = dict(self.heap)
        for index, cells in other.heap.items():
            mine = heap.get(index)
            if mine is not cells:
                heap[index] = cells if mine is None else united(mine, cells)
        twice = united(self.twice, other.twice)
        variables, shared = united(self.variables, other.variables), self.shared | other.shared
        return State(variables, heap, twice, self.escaped | other.escaped, shared)


def united(one: Mapping[K, Bits], other: Mapping[K, Bits]) -> dict[K, Bits]:
    """The union of two sets of cells or variables."""
    found = dict(one)
    for key, bits in other.items():
        found[key] = found.get(key, 0) | bits
    return found


class Objects:
    """All objects of an analysis, numbered."""

    def __init__(self) -> None:
        self._all: list[Object] = [Object(Sort.UNKNOWN)]
        self._index: dict[Object, int] = {self._all[0]: 0}
        self._inside: dict[tuple[int, Hashable], Bits] = {}
        self._all_inside: dict[int, Bits] = {}
        self._within: dict[int, Bits] = {}
        self._within_some: dict[Bits, Bits] = {}
        self.outer: Bits = 0
        """All placeholders."""
        self.functions: Bits = 0
        """All functions."""
        self.keys: frozenset[Hashable] = frozenset()
        """The constant keys, and the attributes, that are told apart in placeholders."""
        self.made_at: dict[ast.AST, list[int]] = {}
        """The objects of the last iteration, by place."""

    def __getitem__(self, index: int) -> Object:
        return self._all[index]

    def intern(self, made: Object) -> Bits:
        """The set with one object."""
        index = self._index.get(made)
        if index is None:
            index = self._index[made] = len(self._all)
            if index > MOST_OBJECTS:
                raise Diverges(f"there are more than {MOST_OBJECTS} objects")
            self._all.append(made)
            self.outer |= 1 << index if made.is_outer else 0
            self.functions |= 1 << index if made.sort is Sort.FUNCTION else 0
            if made.sort is Sort.MADE and not made.earlier:
                self.made_at.setdefault(made.where, []).append(index)  # type: ignore[arg-type]
        return 1 << index

    def inside(self, index: int, key: Hashable) -> Bits:
        """The initial contents of a placeholder: by key, if keys are distinguished, or anywhere in it.

        Deeper contents are one object for all keys, and from a certain depth on, one for all depths.
        """
        found = self._inside.get((index, key))
        if found is None:
            found = self._inside[index, key] = self._made_inside(index, key)
        return found

    def _made_inside(self, index: int, key: Hashable) -> Bits:
        holder = self._all[index]
        if holder.depth >= DEEPEST:
            return 1 << index
        if holder.depth:
            key = None
        elif key is ANY:
            elements = (each for each in self.keys if not isinstance(each, Attribute))
            return union(self.inside(index, each) for each in (*elements, REST))
        elif key not in self.keys:
            key = REST
        return self.intern(Object(Sort.INSIDE, None, index, key, depth=holder.depth + 1))

    def all_inside(self, index: int) -> Bits:
        """The initial contents of a placeholder, in its elements and attributes."""
        found = self._all_inside.get(index)
        if found is None:
            found = union(self.inside(index, each) for each in (*self.keys, REST))
            self._all_inside[index] = found
        return found

    def within(self, index: int) -> Bits:
        """The initial contents of a placeholder, at any depth."""
        found = self._within.get(index)
        if found is None:
            found = waiting = self.all_inside(index)
            while waiting:
                new = union(map(self.all_inside, bits_of(waiting)))
                waiting = new & ~found
                found |= new
            self._within[index] = found
        return found

    def within_some(self, outer: Bits) -> Bits:
        """The initial contents of any of some placeholders, at any depth."""
        found = self._within_some.get(outer)
        if found is None:
            found = self._within_some[outer] = union(map(self.within, bits_of(outer)))
        return found

    def root(self, index: int) -> Object:
        """The outermost placeholder that contains a placeholder, or itself."""
        found = self._all[index]
        while found.sort is Sort.INSIDE and found.of is not None:
            found = self._all[found.of]
        return found

    def described(self, bits: Bits) -> list[Object]:
        """The objects of a set."""
        return [self._all[index] for index in bits_of(bits)]


class Heap:
    """A state that is mutated while one point is processed."""

    def __init__(self, objects: Objects, state: State) -> None:
        self.objects = objects
        self.in_rounds = False
        """True if new objects are made in each iteration of a comprehension."""
        self.restore(state)

    def restore(self, state: State) -> None:
        """Return to a state."""
        self.variables, self.heap = dict(state.variables), dict(state.heap)
        self.twice, self.escaped, self.shared = dict(state.twice), state.escaped, state.shared

    def state(self) -> State:
        """The current state."""
        return State(dict(self.variables), dict(self.heap), dict(self.twice), self.escaped, self.shared)

    def join(self, state: State) -> None:
        """Join another state, for code that may not have run."""
        self.restore(self.state().joined(state))

    def spread(self, bits: Bits) -> Bits:
        """A set of objects, extended by everything that `UNKNOWN` may be."""
        return bits | self.objects.outer | self.escaped if bits & UNKNOWN else bits

    def held(self, bits: Bits, key: Hashable = ANY) -> Bits:
        """The possible contents of objects: at a key, as an attribute, or anywhere in them."""
        found, shown = self._held(bits, key)
        if isinstance(key, Attribute):
            return found
        waiting = shown
        while waiting:
            inner, new = self._held(waiting, ANY)
            found |= inner
            waiting = new & ~shown
            shown |= new
        return found

    def _held(self, bits: Bits, key: Hashable) -> tuple[Bits, Bits]:
        """The contents of objects themselves, and the sources of those that are iterators or views."""
        found, shown = bits & UNKNOWN, 0
        if bits & self.escaped or (self.escaped & UNKNOWN and bits & self.objects.outer):
            found |= UNKNOWN
        for index in bits_of(bits & ~UNKNOWN):
            cells = self.heap.get(index, NO_CELLS)
            shown |= cells.get(SHOWN, 0)
            if key is ANY:
                found |= elements_of(cells)
            else:
                found |= cells.get(key, 0)
                found |= 0 if isinstance(key, Attribute) else cells.get(ANY, 0)
                found |= 0 if key in self.objects.keys else cells.get(REST, 0)
            if self.objects[index].is_outer:
                found |= self.objects.inside(index, key)
        return found, shown

    def all_held(self, bits: Bits) -> Bits:
        """The possible contents of objects, in elements and attributes."""
        found = self.held(bits)
        for index in bits_of(bits):
            found |= union(self.heap.get(index, NO_CELLS).values())
            found |= self.objects.all_inside(index) if self.objects[index].is_outer else 0
        return found

    def closure(self, bits: Bits) -> Bits:
        """Objects with all their possible contents, at any depth."""
        objects, heap = self.objects, self.heap
        filled = union(1 << index for index in heap)
        found = waiting = bits
        entered = 0
        while waiting:
            new = 0
            while outer := waiting & objects.outer & ~entered:
                low = outer & -outer
                within = objects.within(low.bit_length() - 1)
                entered |= low | within
                new |= within
            for index in bits_of((waiting | new) & filled):
                for inner in heap[index].values():
                    new |= inner
            waiting = new & ~found
            found |= new
        return found

    def common(self, one: Bits, other: Bits) -> Bits:
        """The intersection of two sets of objects, including objects of the one that began inside the other.

        A container that gets both leads to these by two paths.
        """
        one, other = self.spread(one), self.spread(other)
        found = one & other
        outer = self.objects.outer
        if one & outer and other & outer:
            found |= one & self.objects.within_some(other & outer)
            found |= other & self.objects.within_some(one & outer)
        return found

    def doubled(self, bits: Bits) -> Bits:
        """The objects that containers may hold at two places."""
        found = UNKNOWN if bits & (UNKNOWN | self.escaped) else 0
        return found | union(self.twice.get(index, 0) for index in bits_of(bits))

    def reached_twice(self, roots: Bits) -> Bits:
        """The objects that are reachable by two paths: by two places of one container, or by two
        containers.
        """
        found = self.doubled(self.closure(roots))
        for root in bits_of(roots if self.shared else 0):
            inside = self.closure(1 << root)
            seen = 0
            for index in bits_of(inside if inside & self.shared else 0):
                cells = [each for key, each in self.heap.get(index, NO_CELLS).items() if key is not SHOWN]
                inner = union(cells) & self.shared
                found |= seen & inner
                seen |= inner
                for cell in cells:
                    for at in bits_of(cell & self.shared & self.objects.outer & ~found):
                        around = self.objects[at].of
                        # An array beside its parts represents views of them.
                        if around is not None and around != index and (inside & ~cell) >> around & 1:
                            found |= 1 << at  # That was its initial container.
        return found

    def share(self, value: Bits, heap: Mapping[int, Cells] | None = None) -> None:
        """Record which objects that are put into a container are also in another one."""
        for index in bits_of(value & ~self.shared & self.objects.outer):
            self.shared |= 1 << index if self.objects[index].of is not None else 0
        for cells in (self.heap if heap is None else heap).values() if value & ~self.shared else ():
            self.shared |= value & union(cells.values())

    def double(self, bits: Bits, again: Bits) -> None:
        """Record that containers may hold objects at two places."""
        for index in bits_of(bits if again else 0):
            self.twice[index] = self.twice.get(index, 0) | again

    def store(self, bits: Bits, key: Hashable, value: Bits, *, weak: bool = False) -> None:
        """Put objects into others; if `weak`, they may also stay out."""
        if bits & (self.escaped | UNKNOWN) or (self.escaped & UNKNOWN and bits & self.objects.outer):
            self.escape(value)
        is_element = not isinstance(key, Attribute)
        self.share(value)
        for index in bits_of(bits & ~UNKNOWN):
            made = self.objects[index]
            cells = dict(self.heap.get(index, NO_CELLS))
            others = elements_of(cells, key) if is_element else 0
            if made.is_outer and is_element:
                others |= self.objects.inside(index, ANY)
            alone = bits & (bits - 1) == 0 and made.sort is Sort.MADE and not made.earlier
            sure = alone and key is not ANY and not weak
            cells[key] = value if sure else cells.get(key, 0) | value
            if sure and index in self.twice:
                self.twice[index] &= repeated_in(cells)  # The previous contents are gone.
            self.heap[index] = cells
            self.double(1 << index, self.common(value, others))

    def fill(self, made: Bits, inside: Bits, again: Bits) -> None:
        """Put objects into a new container, some of them at two places."""
        self.share(inside)
        for index in bits_of(made if inside else 0):
            cells = self.heap.get(index, NO_CELLS)
            self.heap[index] = {**cells, ANY: cells.get(ANY, 0) | inside}
        self.double(made, again)

    def copy(self, made: Bits, source: Bits) -> None:
        """Copy the contents of containers into a new one, at the same places."""
        cells: dict[Hashable, Bits] = {ANY: 0}
        own = (key for index in bits_of(source) for key in self.heap.get(index, NO_CELLS))
        for key in {*self.objects.keys, *own, REST} - {ANY}:
            if not isinstance(key, Attribute) and (inner := self.held(source, key)):
                cells[key] = inner
        for index in bits_of(source & ~UNKNOWN):
            known = self.heap.get(index, NO_CELLS)
            cells[ANY] |= known.get(ANY, 0) | (self.held(known[SHOWN]) if SHOWN in known else 0)
        self.share(union(cells.values()))
        self.heap[made.bit_length() - 1] = cells
        self.double(made, self.doubled(source))

    def mix(self, bits: Bits) -> None:
        """Forget the places of elements in a container."""
        for index in bits_of(bits & ~UNKNOWN):
            cells = self.heap.get(index, NO_CELLS)
            mixed = elements_of(cells)
            mixed |= self.objects.inside(index, ANY) if self.objects[index].is_outer else 0
            self.heap[index] = {key: cells[key] for key in cells if isinstance(key, Attribute)} | {ANY: mixed}

    def escape(self, bits: Bits) -> None:
        """Record that unknown code may access objects."""
        self.escaped |= self.closure(bits)

    def make(self, node: ast.AST, of: int | None = None, *, earlier: bool = False, depth: int = 0) -> Bits:
        """Create a new object; call `age` before evaluating its contents."""
        return self.objects.intern(Object(Sort.MADE, node, of, ANY, earlier or self.in_rounds, depth))

    def age(self, node: ast.AST) -> None:
        """Mark the objects created at a place as those of an earlier iteration."""
        for index in self.objects.made_at.get(node, ()):
            made = self.objects[index]
            old = self.objects.intern(Object(Sort.MADE, node, made.of, ANY, True, made.depth))
            self._rename(1 << index, old)

    def _rename(self, bits: Bits, other: Bits) -> None:
        """Replace one object by another one, everywhere."""
        index, onto = bits.bit_length() - 1, other.bit_length() - 1
        everywhere = self.escaped | self.shared | union(self.variables.values()) | union(self.twice.values())
        everywhere |= union(union(cells.values()) for cells in self.heap.values())
        if not (everywhere & bits or index in self.heap):
            return

        def renamed(inner: Bits) -> Bits:
            return (inner & ~bits) | other if inner & bits else inner

        self.variables = {key: renamed(each) for key, each in self.variables.items()}
        moved = self.heap.pop(index, None)
        if moved is not None:
            self.heap[onto] = united(self.heap.get(onto, NO_CELLS), moved)
        self.heap = {at: {key: renamed(each) for key, each in some.items()} for at, some in self.heap.items()}
        again = self.twice.pop(index, 0)
        self.twice = {at: renamed(each) for at, each in self.twice.items()}
        self.double(other, renamed(again))
        self.escaped, self.shared = renamed(self.escaped), renamed(self.shared)
