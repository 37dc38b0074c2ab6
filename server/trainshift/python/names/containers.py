"""Elements of literal lists, tuples and dictionaries: unpacking, iteration, indexing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from trainshift.libraries.entries import is_bar
from trainshift.python.lazy import cached_property
from trainshift.python.names.linked import LinkedNames, LinkedScript
from trainshift.python.names.occurrence import UNSEEN, Occurrence, Step, joined, unseen_in
from trainshift.python.names.scoping import owner_of
from trainshift.python.names.values import Display, Instance, Value
from trainshift.python.syntax.chunk_syntax import (
    COMPREHENSIONS,
    Binding,
    ItemBinding,
    Rest,
    Scope,
    Slot,
    alternatives,
    dotted,
    element_at,
    last_name,
)
from trainshift.python.syntax.unpacking import parts_assigned

# Methods that add all of their arguments, one by one.
_ADDING_ALL = ("extend", "update")

_NUMBERING = frozenset({"builtins.enumerate", "tqdm.contrib.tenumerate"})

# The depth to which values in nested containers are followed.
_DEEPEST = 4


class Containers:
    """The contents of one script's containers: the module for unpacking, iteration and indexing."""

    def __init__(self, script: LinkedScript, names: LinkedNames) -> None:
        self._script = script
        self._names = names
        self._rests: dict[tuple[ast.expr, Rest], ast.List] = {}
        self._open: set[ast.expr] = set()

    def unpacked(self, at: Occurrence, path: tuple[Slot, ...]) -> Step:
        """The step to the part of a value that unpacking along `path` takes."""
        return self.along(Step((at,)), path)

    def elements(self, at: Occurrence, path: tuple[Slot, ...] = ()) -> Step:
        """The step to the elements of an iterable, unpacked along `path`."""
        node, of_dictionary = at.node, False
        if isinstance(node, ast.Call):
            names = self._names.full_names(node.func, at.scope, at.statement)
            first = path[0] if path and isinstance(path[0], int) else None
            numbered = node.args[0] if names & _NUMBERING and node.args else _numbered(node)
            if numbered is not None:
                if first == 0:  # The index of an element is not part of the iterated elements.
                    return UNSEEN
                return self._names.elements(at.part(numbered), path[1:]) if first == 1 else unseen_in(at)
            if "builtins.zip" in names:
                given = element_at(node.args, first) if first is not None else None
                return self._names.elements(at.part(given), path[1:]) if given is not None else unseen_in(at)
            if node.args and any(map(is_bar, names)):
                return self._names.elements(at.part(node.args[0]), path)
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("values", "items"):
                of_dictionary = True
                if node.func.attr == "items":
                    if first != 1:
                        return unseen_in(at)
                    path = path[1:]
                at = at.part(node.func.value)
        found = [
            self._held(value) if _is_display(value, of_dictionary) else unseen_in(at)
            for value in self._names.values(at.node, at.scope, at.statement)
        ]
        return self.along(joined([*found, *self._added(at)]), path)

    def item(self, at: Occurrence) -> Step:
        """The step to the element that a subscript selects."""
        assert isinstance(at.node, ast.Subscript)
        base = at.part(at.node.value)
        values = self._names.values(base.node, base.scope, base.statement)
        if isinstance(at.node.slice, ast.Slice):  # Some of the elements, again in a container.
            return Step((base,), not values or not all(isinstance(value, Display) for value in values))
        key = _constant(at.node.slice)
        found = [
            self._at_key(value, key) if isinstance(value, Display) else unseen_in(base)
            for value in values
            if not (isinstance(value, Instance) and value.cls == "builtins.dict")
        ]
        step = joined([*found, *self._added(base, key)])
        return step if step.sources else unseen_in(base)

    def _at_key(self, display: Display, key: object) -> Step:
        """The step to a container's value at a key, from its literal or from later assignments under any
        name.
        """
        found = self.entry(display, key)
        if found is None and isinstance(key, str):
            added = list(self.put_at(display, key))
            found = joined(added) if added else None
        return found or self._held(display)

    def put_at(self, display: Display, key: str) -> Iterator[Step]:
        """Yield the steps to values put into a container at a key after its literal, by any name in
        any file.
        """
        for script in self._script.linked:
            for item in script.code.items_by_key.get(key, ()):
                at = item.binding
                if display in self._names.values(item.base, at.scope, at.statement):
                    yield self._addition(at)

    def added_at(self, at: Occurrence, key: str) -> Iterator[Step]:
        """Yield the steps to values put into a named dictionary at a key; unknown if a key is unknown."""
        for item in self._names.additions(at):
            other = _constant(item.key) if item.key is not None else None
            if other is None:
                yield unseen_in(at)
            elif other == key:
                yield self._addition(item.binding)

    def along(self, step: Step, path: tuple[Slot, ...]) -> Step:
        """The step to the parts that unpacking along `path` takes from a step's sources."""
        for slot in path:
            steps = [
                self._item(value, slot) if isinstance(value, Display) else unseen_in(source)
                for source in step.sources
                for value in self._names.values(source.node, source.scope, source.statement)
            ]
            step = joined([*steps, Step((), step.unseen, step.within)])
        return step

    def _item(self, display: Display, key: object) -> Step:
        """The step to the element of a literal container at an index, a key or a starred place."""
        return self.entry(display, key) or self._held(display)

    def entry(self, display: Display, key: object) -> Step | None:
        """The step to the element of a literal container at an index or a key; None if it is unknown."""
        node = display.node
        found: ast.expr | None = None
        if isinstance(node, (ast.List, ast.Tuple)) and isinstance(key, Rest):
            found = self._rest(node, key)
        elif isinstance(node, (ast.List, ast.Tuple)) and isinstance(key, int):
            found = element_at(node.elts, key)
        elif isinstance(node, ast.Dict) and key is not None:
            pairs = zip(node.keys, node.values, strict=True)
            found = next((each for name, each in pairs if name is not None and _constant(name) == key), None)
        elif isinstance(node, ast.Call) and key is not None:
            found = next((word.value for word in node.keywords if word.arg == key), None)
        return Step((Occurrence(found, display.scope, display.statement),)) if found is not None else None

    def _held(self, display: Display) -> Step:
        """The step to all elements of a literal container."""
        node, scope = display.node, display.scope
        parts: list[ast.expr] = []
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            parts = node.elts
        elif isinstance(node, ast.Dict):
            parts = node.values
        elif isinstance(node, ast.Call):
            parts = [word.value for word in node.keywords]
        elif isinstance(node, COMPREHENSIONS):
            parts = [node.value if isinstance(node, ast.DictComp) else node.elt]
            scope = scope.facts.scope_of[node]
        return Step(tuple(Occurrence(part, scope, display.statement) for part in parts))

    def _rest(self, node: ast.List | ast.Tuple, rest: Rest) -> ast.List:
        """The list for a starred target, from a literal list."""
        if (node, rest) not in self._rests:
            end = len(node.elts) - rest.after
            around = (*node.elts[: rest.before], *node.elts[end:])
            plain = not any(isinstance(each, ast.Starred) for each in around)
            taken = node.elts[rest.before : end] if plain else node.elts
            self._rests[node, rest] = ast.copy_location(ast.List(taken, ast.Load()), node)
        return self._rests[node, rest]

    # Additions

    def additions(self, at: Occurrence) -> Iterator[ItemBinding]:
        """Yield the later additions to the container of a (dotted) name, by assignment or by a method.

        They may name it otherwise: ``self.seen.append(x)`` where `at` is ``log.seen``.
        """
        last = last_name(at.node)
        items = [*self._script.item_bindings(last), *self._of_several.get(last, ())]
        name = dotted(at.node) if items else ""
        places = [at] if name else []
        if isinstance(at.node, ast.Attribute) and any(dotted(each.base) != name for each in items):
            places += self._first_places(at)
        named = [(place, dotted(place.node)) for place in places]
        for item in items if named else ():
            bases = {dotted(each) for each in alternatives(item.base) or [item.base]}
            if any(name in bases and _may_hold(place, item) for place, name in named):
                yield item

    def _first_places(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the names under which the containers that a name may be are made."""
        for value in self._names.values(at.node, at.scope, at.statement):
            if isinstance(value, Display):
                yield from _first_names(value)

    @cached_property
    def _of_several(self) -> dict[str, list[ItemBinding]]:
        """The additions to one of several containers, ``(a if c else b).append(x)``, by the names
        of these.
        """
        found: dict[str, list[ItemBinding]] = {}
        for item in self._script.item_bindings(""):
            for each in alternatives(item.base):
                found.setdefault(last_name(each), []).append(item)
        return found

    def _added(self, at: Occurrence, key: object = None) -> Iterator[Step]:
        """Yield the steps to later additions, under the name here or under the container's first name."""
        # A recursive function may extend its list by its own results, for each part of its argument.
        added = list(self._bindings_of_added(at, key))
        if not added:
            return
        if at.node in self._open or len(self._open) >= _DEEPEST:
            yield unseen_in(at)
            return
        self._open.add(at.node)
        try:
            yield from [self._addition(each) for each in added]
        finally:
            self._open.discard(at.node)

    def _bindings_of_added(self, at: Occurrence, key: object) -> Iterator[Binding]:
        places = (at, *self._first_places(at))
        for item in dict.fromkeys(item for place in places for item in self._names.additions(place)):
            other = _constant(item.key) if item.key is not None else None
            if key is None or other is None or key == other:
                yield item.binding

    def _addition(self, binding: Binding) -> Step:
        if binding.value is None:
            return Step()
        at = Occurrence(binding.value, binding.scope, binding.statement)
        call = binding.target
        method = call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""
        all_of_it = method in _ADDING_ALL and isinstance(call, ast.Call) and binding.value in call.args
        if all_of_it or binding.kind == "element":
            return self._names.elements(at, binding.path)
        return self._names.unpacked(at, binding.path)


def _is_display(value: Value, of_dictionary: bool) -> TypeGuard[Display]:
    """Return whether a value is a literal container of the kind in question."""
    if not isinstance(value, Display):
        return False
    return isinstance(value.node, ast.Dict | ast.DictComp | ast.Call) is of_dictionary


def _numbered(call: ast.Call) -> ast.expr | None:
    """The dataset whose elements a call numbers, like ``data.enumerate()``; None for any other call."""
    method = call.func
    return method.value if isinstance(method, ast.Attribute) and method.attr == "enumerate" else None


def _may_be_one(name: str, here: Scope, there: Scope) -> bool:
    """Return whether a name may be the same object at two places: yes, unless it is local to another function
    there.

    Two comprehensions of a function may iterate over one container.
    """
    owner = owner_of(name, there)
    if owner is None or owner.function() is here.function():
        return True
    return owner is owner_of(name, here) or any(each.kind == "parameter" for each in owner.bindings[name])


def _first_names(display: Display) -> Iterator[Occurrence]:
    """The names that the statement that writes a container out binds to it."""
    match display.statement.node if display.statement is not None else None:
        case ast.Assign(targets, value):
            for target in targets:
                for one, held in parts_assigned(target, value):
                    if held is display.node and not isinstance(one, ast.Tuple | ast.List):
                        yield Occurrence(one, display.scope, display.statement)
        case ast.AnnAssign(target, _, value) if value is display.node:
            yield Occurrence(target, display.scope, display.statement)


def _may_hold(place: Occurrence, item: ItemBinding) -> bool:
    """Return whether a name means the same container where something is added to it."""
    return not isinstance(place.node, ast.Name) or _may_be_one(place.node.id, place.scope, item.binding.scope)


def _constant(node: ast.expr) -> object:
    """The number or string of a constant key; None for any other."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _constant(node.operand)
        return -number if isinstance(number, int) else None
    return node.value if isinstance(node, ast.Constant) else None
