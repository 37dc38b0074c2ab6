"""The transfer functions of the points-to analysis, for statements, expressions and calls."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from trainshift.libraries.containers import METHODS
from trainshift.python.flow.cfg import Point, Role
from trainshift.python.flow.def_use import uses
from trainshift.python.syntax.call_binding import bind_call, parameter_names
from trainshift.python.syntax.chunk_syntax import arguments
from trainshift.python.syntax.collect import as_load
from trainshift.python.syntax.iteration import beside
from trainshift.python.values.heap import (
    ANY,
    DEEPEST,
    NO_CELLS,
    REST,
    SHOWN,
    UNKNOWN,
    Attribute,
    Bits,
    Cells,
    Heap,
    Object,
    Objects,
    Sort,
    State,
    Variable,
    bits_of,
    elements_of,
    key_of,
    union,
    united,
)

FunctionNode: TypeAlias = "ast.FunctionDef | ast.Lambda"


class Gives(Struct, frozen=True):
    """The result of calling a function whose code is not available.

    `same`: its value may be one of these; `part`: it may be in one of these; `holding`: it is a new container
    of these; `elements`: it is a new container of their elements.  `changed`: these may be mutated.
    """

    same: tuple[ast.expr, ...] = ()
    part: tuple[ast.expr, ...] = ()
    holding: tuple[ast.expr, ...] = ()
    elements: tuple[ast.expr, ...] = ()
    changed: tuple[ast.expr, ...] = ()
    new: bool = False


NOTHING = Gives()


class Operation(Struct, frozen=True):
    """The possible effects of an operator: join its operands' elements, mutate its target."""

    joins: bool = True
    in_place: bool = True


class Policy(Protocol):
    """The client's facts about functions of the file, libraries, and kinds of values."""

    def function(self, name: str) -> FunctionNode | None:
        """The function behind a name of the module."""

    def is_object(self, node: ast.expr, function: FunctionNode) -> bool:
        """Return whether the value of an expression in a function may be a mutable object."""

    def is_view(self, node: ast.Subscript | ast.Attribute, function: FunctionNode) -> bool:
        """Return whether a subscript or attribute may be a view, sharing memory with its base."""

    def is_copy(self, node: ast.Subscript, function: FunctionNode) -> bool:
        """Return whether a subscript creates a copy, sharing nothing with its base."""

    def has_views(self, node: ast.expr, function: FunctionNode) -> bool:
        """Return whether the elements of an expression's value may be views of it."""

    def operation(self, node: ast.BinOp | ast.AugAssign, function: FunctionNode) -> Operation:
        """The possible effects of an operator on objects in a function."""

    def body(self, function: FunctionNode) -> Sequence[ast.stmt]:
        """The statements of a function."""

    def callees(self, node: ast.Call, function: FunctionNode) -> Sequence[FunctionNode]:
        """The possible functions of a called value; none if they are unknown."""

    def call(self, node: ast.Call, function: FunctionNode) -> Gives | None:
        """The result of calling a function whose code is not available; None if it is unknown."""


class Summary(Struct, frozen=True):
    """The summary of a function's calls: result, mutations and final state."""

    returned: Bits = 0
    changed: Bits = 0
    state: State | None = None
    is_known: bool = True


class FunctionScope(Struct):
    """A function, and the names that are its own."""

    node: FunctionNode
    parent: FunctionScope | None
    own: frozenset[str]
    declared_global: frozenset[str]
    free: frozenset[str]
    definitions: Mapping[str, FunctionNode]
    """The inner functions whose names are bound only once."""
    is_lazy: bool

    def variable(self, name: str) -> Variable:
        """The variable that a name of the function means."""
        scope: FunctionScope | None = self
        if name in self.declared_global:
            return None, name
        while scope is not None and name not in scope.own:
            scope = scope.parent
        return (scope.node if scope is not None else None), name

    def around(self) -> Iterator[FunctionScope]:
        """The function, then the functions around it."""
        scope: FunctionScope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


class Whole(Protocol):
    """The analysis of all functions, as seen from one point."""

    policy: Policy
    catches: bool
    objects: Objects
    scopes: dict[ast.AST, FunctionScope]

    def summary(self, function: FunctionNode) -> Summary:
        """The summary of a function's calls."""

    def capturing(self, variable: Variable) -> Sequence[FunctionScope]:
        """The functions inside that of a variable that know it."""


class Flow(Protocol):
    """The analysis of one function, as seen from one point, which also records facts in it."""

    scope: FunctionScope
    moves: set[int]
    changed: dict[Point, Bits]
    changed_by: dict[ast.AST, Bits]
    stored: dict[Point, dict[Bits, Bits]]
    assigned: dict[Point, set[Variable]]
    given: dict[ast.Call, Bits]
    loads: dict[ast.expr, ast.expr]
    parts: dict[ast.expr, list[ast.expr]]
    returned: Bits

    @property
    def whole(self) -> Whole:
        """The analysis of all functions."""


def body_of(function: FunctionNode) -> list[ast.stmt]:
    """The statements of a function, unchanged."""
    if isinstance(function, ast.Lambda):
        return [ast.copy_location(ast.Return(function.body), function.body)]
    return function.body


_COPIES = frozenset({"list", "tuple", "set", "frozenset", "sorted", "deque"})
_SHOWN = frozenset({"reversed", "iter"})
"""The functions that iterate over a container with its contents at that time."""
_NO_OBJECT = frozenset(
    ["len", "range", "sum", "float", "int", "str", "abs", "bool", "print", "isinstance", "hasattr", "round",
     "any", "all", "repr", "ord", "chr", "type", "id", "format", "divmod", "pow", "complex", "hash"]
)  # fmt: skip
_NO_OBJECT_METHODS = frozenset({"index", "count", "join", "format", "startswith", "endswith", "item"})


class Transfer:
    """The transfer function of one point: applies its effects to a state."""

    def __init__(self, flow: Flow, state: State, point: Point | None) -> None:
        self.flow = flow
        self.whole = flow.whole
        self.policy = flow.whole.policy
        self.objects = flow.whole.objects
        self.scope = flow.scope
        self.point = point
        self.heap = Heap(self.objects, state)
        self._consumed: set[int] = set()
        """The calls of lazy functions whose values are gone through at once."""
        self._is_unknown = False
        """True while unknown code runs."""

    def named(self, name: str) -> Bits:
        """The possible objects of a name."""
        variable = self.scope.variable(name)
        owner = self.whole.scopes.get(variable[0]) if variable[0] is not None else None
        if owner is self.scope or variable in self.heap.variables:
            return self.heap.variables.get(variable, 0)
        if owner is not None and name in owner.definitions:
            return self.objects.intern(Object(Sort.FUNCTION, owner.definitions[name]))
        if owner is None and (function := self.policy.function(name)) is not None:
            return self.objects.intern(Object(Sort.FUNCTION, function))
        return self.objects.intern(Object(Sort.OUTER, variable)) | (self.heap.escaped & UNKNOWN)

    def change(self, bits: Bits, node: ast.AST) -> None:
        """Note that objects may be changed."""
        if self.point is not None:
            self.flow.changed[self.point] = self.flow.changed.get(self.point, 0) | bits
            self.flow.changed_by[node] = self.flow.changed_by.get(node, 0) | bits

    def note_store(self, bits: Bits, value: Bits) -> None:
        """Note that objects may get others."""
        if self.point is not None and value:
            noted = self.flow.stored.setdefault(self.point, {})
            noted[bits] = noted.get(bits, 0) | value

    def store(self, bits: Bits, key: Hashable, value: Bits, node: ast.AST, *, weak: bool = False) -> None:
        """Put objects into others, which mutates these."""
        self.change(bits, node)
        self.note_store(bits, value)
        self.heap.store(bits, key, value, weak=weak)

    # Points.

    def pass_point(self, point: Point) -> None:
        """Apply the effects of a point."""
        node = point.node
        match point.role, node:
            case Role.ITERABLE, ast.For(iter=source):
                self._iterate(source, node, "")
            case Role.TARGET, ast.For(target=target, iter=source):
                self.bind(target, self._picked(source, node, ""), node)
            case Role.STATEMENT, ast.stmt():
                self.heap.age(node)
                self._statement(node)
            case Role.EXIT | Role.RAISED, _:
                self._keep_captured()
            case (Role.SUBJECT | Role.CONTEXT | Role.LEAVE | Role.CAPTURE | Role.CAUGHT | Role.ITERABLE
                  | Role.TARGET), _:  # fmt: skip
                used = uses(*point.parts)
                if point.role is not Role.LEAVE:
                    self.unknown(union(self.named(name) for name in used.read), node)
                for part in point.parts if point.role in (Role.SUBJECT, Role.ITERABLE) else ():
                    self.heap.escape(self.value(part) if isinstance(part, ast.expr) else 0)
                caught = [node.name] if isinstance(node, ast.ExceptHandler) and node.name else []
                for name in (*used.bound, *caught):
                    self.heap.variables[self.scope.variable(name)] = UNKNOWN
            case Role.CASE, _:
                pass
            case _:
                for part in point.parts:
                    if isinstance(part, ast.expr):
                        self.value(part)

    def _keep_captured(self) -> None:
        """Add the objects that inner functions have captured to those that outlive the call."""
        for name in self.scope.own:
            variable = self.scope.node, name
            for index in self.keepers(variable):
                kept: Cells = {Attribute(name): self.heap.variables.get(variable, 0)}
                self.heap.heap[index] = united(self.heap.heap.get(index, NO_CELLS), kept)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets, value):
                self._assign(node, targets, value)
            case ast.Expr(ast.Call(ast.Attribute(base), [*_, value])) if id(
                node
            ) in self.flow.moves or _is_taken_from([base], value):
                before = dict(self.heap.twice)
                self.value(node.value)
                self.heap.twice = before
            case ast.AnnAssign(target, _, value) if value is not None:
                self.bind(target, self.value(value), node)
            case ast.AugAssign(target, op, value):
                self._augmented(node, target, op, self.value(value))
            case ast.Raise() if not self.whole.catches:
                pass  # Nothing runs after it.
            case ast.Return(value):
                self.flow.returned |= self.value(value) if value is not None else 0
            case ast.Delete(targets):
                for removed in targets:
                    if isinstance(removed, ast.Subscript | ast.Attribute):
                        gone = self.value(removed.value)
                        self.change(gone, node)
                        self.heap.mix(gone)
            case ast.FunctionDef(name=name, decorator_list=decorators):
                made = self.objects.intern(Object(Sort.FUNCTION, node))
                for each in (*decorators, *default_values(node)):
                    self.heap.escape(self.value(each))
                self.heap.variables[self.scope.variable(name)] = (
                    self.unknown(made, node) if decorators else made
                )
            case ast.ClassDef() | ast.AsyncFunctionDef() | ast.Import() | ast.ImportFrom():
                used = uses(node)
                for inner in ast.walk(node):
                    if isinstance(inner, ast.FunctionDef):
                        self.heap.escape(self.objects.intern(Object(Sort.FUNCTION, inner)))
                self.unknown(union(self.named(name) for name in used.read | used.captured), node)
                for name in used.bound.keys() | used.rebound:
                    self.heap.variables[self.scope.variable(name)] = UNKNOWN
            case _:
                parts = (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))
                found = union(map(self.value, parts))
                if isinstance(node, ast.Raise):
                    self.heap.escape(found)

    def _assign(self, node: ast.Assign, targets: list[ast.expr], value: ast.expr) -> None:
        known, before = self.value(value), dict(self.heap.twice)
        views = self._views(known, value) if any(map(_has_parts, targets)) else 0
        for target in targets:
            self.bind(target, known, node, views)
        if id(node) in self.flow.moves or _is_taken_from(targets, value):
            self.heap.twice = before

    def _augmented(self, node: ast.AugAssign, target: ast.expr, op: ast.operator, value: Bits) -> None:
        if target not in self.flow.loads:
            self.flow.loads[target] = as_load(target)  # Once, because the place may create objects.
        old = self.value(self.flow.loads[target])
        if not (old | value) or not self.policy.is_object(target, self.scope.node):
            self.bind(target, 0, node)
            return
        does = self.policy.operation(node, self.scope.node)
        if does.in_place:
            self.change(old, node)
        if not does.joins:
            self._rebind(target, old if does.in_place else 0, self.heap.make(node), node)
            return
        added = self.heap.held(value)
        self.note_store(old, added)
        if old & (self.heap.escaped | UNKNOWN):
            self.heap.escape(added)
        made = 0
        if not old or any(each.sort is not Sort.MADE for each in self.objects.described(old)):
            made = self.heap.make(node)
        for index in bits_of(old & ~UNKNOWN | made):
            inner = self.heap.held(1 << index) if 1 << index != made else self.heap.held(old)
            again = self.heap.doubled(value) | self.heap.common(added, inner)
            again |= inner if isinstance(op, ast.Mult) else 0
            self.heap.fill(1 << index, added | (inner if 1 << index == made else 0), again)
        self._rebind(target, old, made, node)

    def _rebind(self, target: ast.expr, old: Bits, made: Bits, node: ast.AST) -> None:
        """Rebind a target to its old objects or new ones; neither counts as stored twice because of this."""
        if not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Slice):
            self.bind(target, old | made, node)
            return
        holder, key = self.value(target.value), key_of(target.slice)
        before = dict(self.heap.twice)
        made = made if self.policy.is_object(target, self.scope.node) else 0
        self.store(holder, key, made, node, weak=True)
        self.heap.twice = before

    def bind(self, target: ast.expr, value: Bits, node: ast.AST, views: Bits = 0) -> None:
        """Bind a target to objects; `views` are parts that share memory with other parts."""
        match target:
            case ast.Name(name):
                self.heap.variables[self.scope.variable(name)] = (
                    value if self.policy.is_object(target, self.scope.node) else 0
                )
            case ast.Starred(inner):
                self.heap.age(target)
                made = self.heap.make(target)
                self.heap.fill(made, self.heap.held(value), self.heap.doubled(value))
                self.bind(inner, made, node)
            case ast.Tuple(elts) | ast.List(elts):
                starred = any(isinstance(each, ast.Starred) for each in elts)
                for place, each in enumerate(elts):
                    whole = isinstance(each, ast.Starred)
                    part = self.heap.held(value, ANY if starred else place) | views
                    self.bind(each, value if whole else part, node, views)
            case ast.Subscript(base, place):
                holder, keyed = self.value(base), self.value(place)
                if not self.policy.is_object(target, self.scope.node):
                    value = keyed = 0
                if isinstance(place, ast.Slice):
                    self.heap.mix(holder)
                    self.store(holder, ANY, self.heap.held(value), node)
                    self.heap.double(holder, self.heap.doubled(value))
                else:
                    self.store(holder, key_of(place), value, node)
                    if keyed:  # The key of a dict is also an element.
                        self.heap.fill(holder, keyed, 0)
            case ast.Attribute(base, name):
                self.store(self.value(base), Attribute(name), value, node)

    def _views(self, bits: Bits, node: ast.expr) -> Bits:
        """The possible values of an expression that share memory with their elements."""
        return bits if bits and self.policy.has_views(node, self.scope.node) else 0

    # The iterables of loops.

    def _iterate(self, source: ast.expr, loop: ast.AST, path: str) -> None:
        """Evaluate a loop's iterable; its elements are taken later."""
        if parts := beside(source):
            for place, each in enumerate(parts):
                self._iterate(each, loop, f"{path}.{place}")
        else:
            self.heap.variables[loop, f" iterated{path}"] = self.value(source)

    def _picked(self, source: ast.expr, loop: ast.AST, path: str) -> Bits:
        """The next element of a loop's iterable."""
        if not (parts := beside(source)):
            whole = self.heap.variables.get((loop, f" iterated{path}"), 0)
            return self.heap.held(whole) | self._views(whole, source)
        self.heap.age(source)
        cells: dict[Hashable, Bits] = {}
        for place, each in enumerate(parts):
            cells[place] = self._picked(each, loop, f"{path}.{place}")
        made = self.heap.make(source)
        self.heap.heap[made.bit_length() - 1] = cells
        return made

    # Expressions.

    def value(self, node: ast.expr) -> Bits:
        """The possible objects of an expression; also applies its effects."""
        self.heap.age(node)
        found = self._value(node)
        return found if not found or self.policy.is_object(node, self.scope.node) else 0

    def _value(self, node: ast.expr) -> Bits:
        match node:
            case ast.Name(name):
                return self.named(name)
            case ast.Subscript(base, place):
                holder = self.value(base)
                self.value(place)
                if holder and self.policy.is_copy(node, self.scope.node):
                    return self.heap.make(node)
                found = holder if self.policy.is_view(node, self.scope.node) else 0
                if not isinstance(place, ast.Slice):
                    return found | self.heap.held(holder, key_of(place))
                made = self.heap.make(node)
                if place.lower is None and place.step is None:
                    self.heap.copy(made, holder)
                else:
                    self.heap.fill(made, self.heap.held(holder), self.heap.doubled(holder))
                return made | found
            case ast.Attribute(base, name):
                holder = self.value(base)
                found = holder if self.policy.is_view(node, self.scope.node) else 0
                return found | self.heap.held(holder, Attribute(name))
            case ast.NamedExpr(ast.Name(name), inner):
                found = self.heap.variables[self.scope.variable(name)] = self.value(inner)
                return found
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
                return self._displayed(node)
            case ast.IfExp(test, body, orelse):
                self.value(test)
                return self.perhaps(body) | self.perhaps(orelse)
            case ast.BoolOp(values=[first, *others]):
                return self.value(first) | union(self.perhaps(each) for each in others)
            case ast.BinOp() | ast.UnaryOp():
                return self._operation(node)
            case ast.Call():
                return self._call(node)
            case ast.Yield() | ast.YieldFrom() | ast.Await():
                return self.unknown(self.value(node.value) if node.value is not None else 0, node)
            case ast.Lambda() | ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
                return self._scoped(node)
        found = union(self.value(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))
        return found if isinstance(node, ast.Starred) else 0

    def _displayed(self, node: ast.List | ast.Tuple | ast.Set | ast.Dict) -> Bits:
        """The object that a display makes."""
        match node:
            case ast.List(elts) | ast.Tuple(elts) | ast.Set(elts):
                starred = isinstance(node, ast.Set) or any(isinstance(each, ast.Starred) for each in elts)
                return self._display(node, [(ANY if starred else at, each) for at, each in enumerate(elts)])
            case ast.Dict(keys, values):
                pairs: list[tuple[Hashable, ast.expr]] = []
                for key, each in zip(keys, values, strict=True):
                    pairs.append((ANY if None in keys or key is None else key_of(key), each))
                    pairs += [] if key is None or isinstance(key, ast.Constant) else [(ANY, key)]
                return self._display(node, pairs)

    def _scoped(
        self, node: ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp
    ) -> Bits:
        """The object that a lambda or a comprehension makes."""
        match node:
            case ast.GeneratorExp():
                # It runs when it is iterated.
                made = self._comprehension(node)
                return made | self.unknown(made | union(map(self.named, uses(node).captured)), node)
            case ast.Lambda():
                self.heap.escape(union(self.value(each) for each in default_values(node)))
                made = self.objects.intern(Object(Sort.FUNCTION, node))
                return made | (self.unknown(made, node) if self.heap.in_rounds else 0)
        return self._comprehension(node)

    def perhaps(self, node: ast.expr) -> Bits:
        """The objects that an expression may be, which may not be evaluated.

        Its new objects are distinguished from its earlier ones, whether or not it is evaluated now.
        """
        if node not in self.flow.parts:
            self.flow.parts[node] = [each for each in ast.walk(node) if isinstance(each, ast.expr)]
        for inner in self.flow.parts[node]:
            self.heap.age(inner)
        before = self.heap.state()
        found = self.value(node)
        self.heap.join(before)
        return found

    def _display(self, node: ast.expr, elements: list[tuple[Hashable, ast.expr]]) -> Bits:
        values = [(key, each, self.value(each)) for key, each in elements]
        made = self.heap.make(node)
        for key, each, value in values:
            again = 0
            if isinstance(each, ast.Starred) or (
                isinstance(node, ast.Dict) and each in node.values and None in node.keys
            ):
                again, value = self.heap.doubled(value), value | self.heap.held(value)
            again |= self.heap.common(self.heap.held(made), value)
            self.heap.share(value)
            cells = self.heap.heap.get(made.bit_length() - 1, NO_CELLS)
            self.heap.heap[made.bit_length() - 1] = {**cells, key: cells.get(key, 0) | value}
            self.heap.double(made, again)
        return made

    def _operation(self, node: ast.BinOp | ast.UnaryOp) -> Bits:
        """A new object, with the elements of both operands, if these have any: lists are joined and repeated
        this way.
        """
        if isinstance(node, ast.UnaryOp):
            found = self.value(node.operand)
            return self.heap.make(node) if found and not isinstance(node.op, ast.Not) else 0
        left, right = self.value(node.left), self.value(node.right)
        if not (left or right):
            return 0
        if not self.policy.operation(node, self.scope.node).joins:
            return self.heap.make(node)
        made, one, other = self.heap.make(node), self.heap.held(left), self.heap.held(right)
        again = self.heap.doubled(left) | self.heap.doubled(right) | self.heap.common(one, other)
        self.heap.fill(made, one | other, one | other if isinstance(node.op, ast.Mult) else again)
        return made

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Bits:
        names = [name for each in node.generators for name in uses(each.target).bound]
        saved = {
            self.scope.variable(name): self.heap.variables.get(self.scope.variable(name)) for name in names
        }
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        around, found, again = self.heap.in_rounds, 0, 0
        self._iterate(node.generators[0].iter, node.generators[0], "")
        self.heap.in_rounds = True
        before: State | None = None
        while before is None or self.heap.state() != before:
            before = self.heap.state()
            for each in node.generators:
                if each is not node.generators[0]:
                    self._iterate(each.iter, each, "")
                sources = union(bits for key, bits in self.heap.variables.items() if key[0] is each)
                again |= self.heap.doubled(sources)
                self.bind(each.target, self._picked(each.iter, each, ""), each)
                for test in each.ifs:
                    self.perhaps(test)
            found |= union(map(self.perhaps, elements))
            self.heap.join(before)
        self.heap.in_rounds = around
        for generator in node.generators:
            for key in [key for key in self.heap.variables if key[0] is generator]:
                del self.heap.variables[key]
        for variable, old in saved.items():
            self.heap.variables.pop(variable, None)
            self.heap.variables.update({variable: old} if old is not None else {})
        # A variable gets each element in turn; an object created in the loop is new in each iteration.
        inside = set(ast.walk(elements[-1]))
        once = len(node.generators) == 1 and (
            (isinstance(elements[-1], ast.Name) and elements[-1].id in names)
            or is_single(node.generators[0].iter)
        )
        new = union(
            1 << at
            for at in bits_of(found)
            if self.objects[at].where in inside and self.objects[at].depth < DEEPEST
        )
        made = self.heap.make(node)
        self.heap.fill(made, found, again & found if once else found & ~new)
        return made

    # Calls.

    def _call(self, node: ast.Call) -> Bits:
        gives = self.policy.call(node, self.scope.node)
        base = called = 0
        if gives is None and isinstance(node.func, ast.Attribute):
            base = self.value(node.func.value)
            called = self.heap.held(base, Attribute(node.func.attr))
        elif gives is None:
            called = self.value(node.func)
        functions = self._functions(called)
        if known := self.policy.callees(node, self.scope.node) if not functions and gives is None else ():
            functions, called = list(known), 0
        given = arguments(node)
        builtin = self._is_builtin(node.func) and gives is None and not functions
        if builtin and isinstance(node.func, ast.Name):
            lazy = node.func.id in ("map", "zip", "enumerate", "reversed", "iter", "filter")
            self._consumed |= {id(each) for each in node.args if not lazy or id(node) in self._consumed}
        values = {id(each): self._given(each, builtin) for each in given}
        self.flow.given[node] = self.flow.given.get(node, 0) | union(values.values())
        if gives is not None:
            return self._gives(node, gives, values)
        if functions:
            return self._called(node, functions, called, values)
        if isinstance(node.func, ast.Attribute):
            found = self._method(node, node.func.attr, base, values)
        else:
            found = self._builtin(node, values) if builtin else None
        return found if found is not None else self.unknown(base | called | union(values.values()), node)

    def _is_builtin(self, func: ast.expr) -> bool:
        return isinstance(func, ast.Name) and self.scope.variable(func.id)[0] is None

    def _given(self, node: ast.expr, consumed: bool) -> Bits:
        return (
            self._comprehension(node) if consumed and isinstance(node, ast.GeneratorExp) else self.value(node)
        )

    def _builtin(self, node: ast.Call, values: Mapping[int, Bits]) -> Bits | None:
        """The result of a builtin function; None for an unknown one."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        args, words = (
            [values[id(each)] for each in node.args],
            {each.arg: values[id(each.value)] for each in node.keywords},
        )
        if functions := words.pop("key", 0):
            self._apply(functions, self.heap.held(union(args)), node)
        if name in _NO_OBJECT:
            return 0
        if name in _SHOWN:
            return self._showing(node, union(args))
        if name in ("max", "min"):
            one = self.heap.held(args[0]) | self._views(args[0], node.args[0]) if len(args) == 1 else 0
            return (one or union(args if len(args) > 1 else ())) | words.get("default", 0)
        if name == "next":
            return self.heap.held(args[0]) | union(args[1:]) if args else 0
        is_lazy = name in ("zip", "enumerate") or (name == "map" and bool(args))
        if not is_lazy and name not in _COPIES and name not in ("dict", "OrderedDict"):
            return None
        return self._container(node, name, args, words)

    def _container(self, node: ast.Call, name: str, args: list[Bits], words: dict[str | None, Bits]) -> Bits:
        """The new container or iterator that a builtin function creates from its iterable."""
        if name in ("zip", "enumerate"):
            pair = self.heap.make(node.func)
            self.heap.heap[pair.bit_length() - 1] = {SHOWN: union(args)}
            args, words = [0], {"": pair}
        elif name == "map":
            pair, fresh = self._mapped(node, args)
            args, words = [0], {"": pair, "again": pair & ~fresh}
        elif name == "dict" and node.args and isinstance(node.args[0], ast.Call):
            words |= {"": self.heap.held(self.heap.held(args[0]))} if beside(node.args[0]) else {}
            args = [0] if beside(node.args[0]) else args
        made = self.heap.make(node)
        views = union(map(self._views, args, node.args)) if name in _COPIES else 0
        if name in ("list", "tuple"):
            self.heap.copy(made, union(args))
        else:
            self.heap.fill(made, self.heap.held(union(args)), self.heap.doubled(union(args)))
        self._hold_views(made, views)
        for value in words.values():
            self.heap.fill(made, value, self.heap.common(self.heap.held(made), value))
        return made

    def _mapped(self, node: ast.Call, args: list[Bits]) -> tuple[Bits, Bits]:
        """The result of `map`, and the part that the function creates anew for each element."""
        found = self._apply(args[0], self.heap.held(union(args[1:])), node)
        # It runs when it is iterated.
        found |= 0 if id(node) in self._consumed else self.unknown(union(args), node)
        return found, union(1 << at for at in bits_of(found) if self.objects[at].where is node)

    def _hold_views(self, made: Bits, views: Bits) -> None:
        """Put views into a new container, at each place those that share memory with its elements."""
        if views:
            keys = [each for each in self.objects.keys if not isinstance(each, Attribute)]
            index = made.bit_length() - 1
            cells = self.heap.heap.get(index, NO_CELLS)
            self.heap.heap[index] = united(cells, dict.fromkeys((*keys, REST), views))

    def _showing(self, node: ast.Call, source: Bits) -> Bits:
        """An iterator or a view, which yields the contents that its source has at the time of iteration."""
        made = self.heap.make(node)
        self.heap.heap[made.bit_length() - 1] = {SHOWN: source}
        self.heap.double(made, self.heap.doubled(source))
        return made

    def _apply(self, functions: Bits, given: Bits, node: ast.Call) -> Bits:
        """The results of functions that a builtin function calls with some objects."""
        found = 0
        for function in self._functions(functions):
            found |= self._leave(function, dict.fromkeys(parameter_names(function.args), given), node)
        if any(each.sort is not Sort.FUNCTION for each in self.objects.described(functions)):
            found |= self.unknown(functions | given, node)
        return found

    def _functions(self, bits: Bits) -> list[FunctionNode]:
        """The functions at hand among some objects."""
        places = (each.where for each in self.objects.described(bits) if each.sort is Sort.FUNCTION)
        return [each for each in places if isinstance(each, ast.FunctionDef | ast.Lambda)]

    def _gives(self, node: ast.Call, gives: Gives, values: Mapping[int, Bits]) -> Bits:
        def of(nodes: Iterable[ast.expr]) -> list[Bits]:
            return [values[id(each)] if id(each) in values else self.value(each) for each in nodes]

        self.change(union(of(gives.changed)), node)
        found = union(of(gives.same)) | self.heap.held(union(of(gives.part)))
        holding, sources = of(gives.holding), of(gives.elements)
        if gives.new or holding or sources:
            made = self.heap.make(node)
            for part in (*holding, *map(self.heap.held, sources)):
                self.heap.fill(made, part, self.heap.common(self.heap.held(made), part))
            self.heap.double(made, self.heap.doubled(union(sources)))
            found |= made
        return found

    def _method(self, node: ast.Call, name: str, base: Bits, values: Mapping[int, Bits]) -> Bits | None:
        """The result of a builtin container's method, with its effects; None for other methods."""
        args = [values[id(each)] for each in node.args]
        key = key_of(node.args[0]) if node.args else ANY
        method = METHODS.get(name)
        if name in ("keys", "values"):
            return self._showing(node, base)
        if name == "copy":
            made = self.heap.make(node)
            self.heap.copy(made, base)
            return made
        if name == "items" or (not base and method is None and not union(values.values())):
            made, inside, again = self.heap.make(node), self.heap.held(base), self.heap.doubled(base)
            if name == "items":
                pair = self.heap.make(node.func)
                self.heap.fill(pair, inside | self.unknown(base, node), 0)
                inside = pair
            self.heap.fill(made, inside, again)
            return made
        if name == "get":
            return self.heap.held(base, key) | union(args[1:])
        if name in _NO_OBJECT_METHODS:
            return 0
        if method is None:
            return None
        found = self.heap.held(base, key if name == "setdefault" else ANY)
        self.change(base, node)
        if name not in ("append", "add", "setdefault", "update"):
            self.heap.mix(base)
        if method.element is not None and method.element < len(args):
            at = key if name == "setdefault" else ANY
            self.store(base, at, args[method.element], node, weak=True)
            found |= args[method.element]
        elif method.elements is not None and method.elements < len(args):
            source = args[method.elements]
            self.store(base, ANY, self.heap.held(source), node)
            self.heap.double(base, self.heap.doubled(source))
        for each in node.keywords if name == "update" else ():
            self.store(base, each.arg or ANY, values[id(each.value)], node)
        return found if name in ("pop", "popleft", "popitem", "setdefault") else 0

    def unknown(self, given: Bits, node: ast.AST | None) -> Bits:
        """The result of an unknown call, with its effects on all objects that it may reach."""
        self.heap.escape(given | UNKNOWN)
        self.note_store(given | UNKNOWN, given | UNKNOWN)
        around, self._is_unknown = self._is_unknown, True
        before: State | None = None
        while before is None or self.heap.state() != before:
            before = self.heap.state()
            for function in self._functions(self.heap.escaped):
                held, names = self.heap.state(), parameter_names(function.args)
                given_all = dict.fromkeys(names, UNKNOWN)
                self.heap.escape(self._leave(function, given_all, node or self.scope.node))
                self.heap.join(held)
        self._is_unknown = around
        self.change(UNKNOWN, node or self.scope.node)
        self.heap.mix(self.heap.escaped)
        return UNKNOWN

    def _called(
        self, node: ast.Call, functions: list[FunctionNode], called: Bits, values: Mapping[int, Bits]
    ) -> Bits:
        """The joined result of functions one of which is called, with their effects."""
        before, everything = self.heap.state(), union(values.values())
        found, after = 0, list[State]()
        for function in functions:
            self.heap.restore(before)
            found |= self._leave(function, self._bound(node, function, values), node)
            after.append(self.heap.state())
        if any(each.sort is not Sort.FUNCTION for each in self.objects.described(called)):
            self.heap.restore(before)
            found |= self.unknown(everything | called, node)
        for each in after:
            self.heap.join(each)
        return found

    def _bound(self, node: ast.Call, function: FunctionNode, values: Mapping[int, Bits]) -> dict[str, Bits]:
        """The arguments of a call by parameter."""
        call = bind_call(node, function.args)
        given = {name: values[id(each)] for name, each in call.given.items()}
        for name, default in call.defaulted.items():
            given[name] = 0 if isinstance(default, ast.Constant) else UNKNOWN
        rest = [each.arg for each in (function.args.vararg, function.args.kwarg) if each is not None]
        if call.is_hidden or call.surplus or rest:
            everything = union(values.values())
            everything |= self.heap.held(everything)
            made = self.heap.make(node, depth=DEEPEST)
            self.heap.fill(made, everything, everything)
            given |= dict.fromkeys(rest, made)
            if call.is_hidden:
                given |= {name: everything | given.get(name, 0) for name in (*call.defaulted, *call.missing)}
        return given

    def _leave(self, function: FunctionNode, given: Mapping[str, Bits], node: ast.AST) -> Bits:
        """Apply a function's summary after a call, with placeholders replaced by the arguments."""
        summary = self.whole.summary(function)
        if not summary.is_known:
            for variable in map(self.whole.scopes[function].variable, self.whole.scopes[function].free):
                self.heap.escape(self.named_first(variable))
                self.heap.variables[variable] = self.named_first(variable) | UNKNOWN
            self.heap.escape(union(given.values()))
            return UNKNOWN if self._is_unknown else self.unknown(0, node)
        state = summary.state
        if state is None:
            return 0
        replaced = _Replaced(self, function, given, node)
        first, parts = dict(self.heap.heap), dict[int, dict[int, Cells]]()
        before: State | None = None
        while before is None or self.heap.state() != before:
            before = self.heap.state()
            replaced.forget()
            for variable, bits in state.variables.items():
                if variable[0] is None or (variable[0] in self.whole.scopes and variable[0] is not function):
                    self._assign_outer(variable, replaced.of(bits))
            for index, cells in state.heap.items():
                mine_all = replaced.of(1 << index)
                again = 0
                if mine_all & ~UNKNOWN:
                    again = replaced.of(state.twice.get(index, 0)) | self._met(cells, replaced)
                for onto in bits_of(mine_all & ~UNKNOWN):
                    mine = self.heap.heap.get(onto, NO_CELLS)
                    added = {key: replaced.of(inner) for key, inner in cells.items()}
                    self.note_store(1 << onto, union(added.values()))
                    self.heap.share(union(added.values()), first)
                    self.heap.heap[onto] = united(mine, added)
                    both = 0
                    if self.objects[index].is_outer:
                        parts.setdefault(onto, {})[index] = added
                        mine = first.get(onto, NO_CELLS)
                        for other, its in parts[onto].items():
                            mine = united(mine, its) if other != index else mine
                        both = union(
                            self.heap.common(inner, elements_of(mine, key))
                            for key, inner in added.items()
                            if not isinstance(key, Attribute)
                        )
                    self.heap.double(1 << onto, again | both)
                if mine_all & (UNKNOWN | self.heap.escaped):
                    self.heap.escape(replaced.of(union(cells.values())))
            self.heap.shared |= replaced.of(state.shared)
            if state.escaped:
                self.heap.escape(replaced.of(state.escaped & ~UNKNOWN))
        self.change(replaced.of(summary.changed), node)
        if state.escaped & UNKNOWN and not self._is_unknown:
            self.unknown(0, node)
            replaced.forget()
        return replaced.of(summary.returned)

    def _met(self, cells: Cells, replaced: _Replaced) -> Bits:
        """The objects that a container holds twice because a call passes one object for two placeholders.

        Objects at two places of one container are the same only if that container already held an object
        twice.
        """
        parts: dict[Hashable, Bits] = {}
        again = seen = 0
        for key, inner in cells.items():
            for index in bits_of(0 if isinstance(key, Attribute) else inner):
                known = self.objects[index]
                if known.sort is Sort.MADE:
                    continue  # An object made by the function is none of those that it already knows.
                part = (
                    ("inside", known.of)
                    if known.sort is Sort.INSIDE
                    else index
                    if key is ANY
                    else ("at", key)
                )
                parts[part] = parts.get(part, 0) | replaced.of(1 << index)
                if known.sort is Sort.INSIDE and known.of is not None:
                    again |= self.heap.doubled(replaced.of(1 << known.of)) & self.heap.spread(
                        replaced.of(1 << index)
                    )
        for bits in parts.values():
            again |= self.heap.common(seen, bits)
            seen |= bits
        return again

    def _assign_outer(self, variable: Variable, bits: Bits) -> None:
        """Record the values that a call assigns to a callee's outer variable, in any activation."""
        if self.point is not None:
            self.flow.assigned.setdefault(self.point, set()).add(variable)
        ended = self.keepers(variable)
        is_open = variable[0] is None or any(each.node is variable[0] for each in self.scope.around())
        weak = self._is_unknown or not is_open or any(self.kept(variable, index) for index in ended)
        self.heap.variables[variable] = bits | (self.named_first(variable) if weak else 0)
        for index in ended if weak else ():
            cells = self.heap.heap.get(index, NO_CELLS)
            self.heap.heap[index] = united(cells, {Attribute(variable[1]): bits})

    def keepers(self, variable: Variable) -> list[int]:
        """The functions that keep a variable of an enclosing function that has ended."""
        if variable[0] is None:
            return []
        return [
            self.objects.intern(Object(Sort.FUNCTION, each.node)).bit_length() - 1
            for each in self.whole.capturing(variable)
        ]

    def kept(self, variable: Variable, index: int) -> Bits:
        """The captured value of a variable when its function ended."""
        return self.heap.heap.get(index, NO_CELLS).get(Attribute(variable[1]), 0)

    def named_first(self, variable: Variable) -> Bits:
        """The possible initial values of a variable of any function."""
        if variable in self.heap.variables or variable[0] is self.scope.node:
            return self.heap.variables.get(variable, 0)
        return self.objects.intern(Object(Sort.OUTER, variable))


class _Replaced:
    """The placeholders and objects of a called function, in terms of the function that calls it."""

    def __init__(
        self, turn: Transfer, function: FunctionNode, given: Mapping[str, Bits], node: ast.AST
    ) -> None:
        self.turn = turn
        self.function = function
        self.given = given
        self.node = node
        self._known: dict[int, Bits] = {}
        self._first = dict(turn.heap.variables)

    def forget(self) -> None:
        """Compute placeholders again, because the heap has grown."""
        self._known = {}

    def of(self, bits: Bits) -> Bits:
        """The caller's objects for those of the called function."""
        found = 0
        for index in bits_of(bits):
            if index not in self._known:
                self._known[index] = 0
                self._known[index] = self._of(index)
            found |= self._known[index]
        return found

    def _of(self, index: int) -> Bits:
        turn = self.turn
        known = turn.objects[index]
        if (
            known.sort is Sort.PARAMETER
            and isinstance(known.where, tuple)
            and known.where[0] is self.function
        ):
            return self.given.get(known.where[1], 0)
        if known.sort is Sort.OUTER and isinstance(known.where, tuple):
            found = self._first[known.where] if known.where in self._first else turn.named_first(known.where)
            return found | union(turn.kept(known.where, each) for each in turn.keepers(known.where))
        if known.sort is Sort.INSIDE:
            assert known.of is not None
            base = self.of(1 << known.of)
            if known.depth >= DEEPEST:
                return turn.heap.closure(turn.heap.all_held(base))
            folded = known.key is None or known.key is REST
            return turn.heap.all_held(base) if folded else turn.heap.held(base, known.key)
        if known.sort is Sort.MADE:
            deep = known.depth + 1
            kept = index if deep < DEEPEST else None
            return turn.heap.make(
                self.node, kept, earlier=known.earlier or kept is None, depth=min(deep, DEEPEST)
            )
        return 1 << index


def moves_in(statements: Sequence[ast.stmt]) -> set[int]:
    """The stores that move elements: each stores an element that was just taken out of another place."""
    found: set[int] = set()
    for node in statements:
        match node:
            case ast.Assign([ast.Tuple(to)], ast.Tuple(of)) if len(to) == len(of):
                if sorted(map(ast.unparse, to)) == sorted(map(ast.unparse, of)):
                    found.add(id(node))
            case ast.If() | ast.For() | ast.While():
                found |= moves_in(node.body) | moves_in(node.orelse)
    for start in range(len(statements)):
        found |= _put_back(statements[start:])
    for first, second, third in zip(statements, statements[1:], statements[2:], strict=False):
        match first, second, third:
            case (
                ast.Assign([ast.Name(held)], ast.Subscript() as one),
                ast.Assign([ast.Subscript() as one_again], ast.Subscript() as other),
                ast.Assign([ast.Subscript() as other_again], ast.Name(held_again)),
            ) if held == held_again and _same(one, one_again) and _same(other, other_again):
                found |= {id(second), id(third)}
    return found


def _put_back(statements: Sequence[ast.stmt]) -> set[int]:
    """The indices of statements that store a value back where it was just taken from."""
    taken: dict[str, ast.expr] = {}
    put: dict[int, tuple[str, str]] = {}
    for node in statements:
        match node:
            case ast.Assign([ast.Name(name)], ast.Subscript() | ast.Call(ast.Attribute(attr="pop")) as place):
                if put or name in taken:
                    break
                taken[name] = place
            case ast.Assign([ast.Subscript() as place], ast.Name(name)) | ast.Expr(
                ast.Call(ast.Attribute() as place, [*_, ast.Name(name)])
            ) if name in taken:
                put[id(node)] = name, ast.unparse(place if isinstance(node, ast.Assign) else place.value)
            case _:
                break
    if len(taken) == 1 and len(put) == 1:
        ((name, onto),) = put.values()
        match taken[name]:
            case ast.Call(ast.Attribute(base)) if ast.unparse(base) in (onto, onto.partition("[")[0]):
                return set(put)
        return set()
    places = sorted(map(ast.unparse, taken.values()))
    names = sorted(name for name, _ in put.values())
    same = places == sorted(place for _, place in put.values()) and names == sorted(taken)
    return set(put) if put and same and len(set(places)) == len(places) else set()


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.unparse(one) == ast.unparse(other)


def _is_taken_from(targets: list[ast.expr], value: ast.expr) -> bool:
    """Return whether a value was taken from the container that it is put into, so that it is not there
    twice.
    """
    match targets, value:
        case [ast.Subscript(base) | (ast.Name() as base)], ast.Call(ast.Attribute(other, "pop"), [] | [_]):
            return ast.unparse(base) == ast.unparse(other)
    return False


def is_single(node: ast.expr) -> bool:
    """Return whether a sequence has at most one element."""
    match node:
        case ast.Constant(str(value)):
            return len(value) < 2
        case ast.List(elts) | ast.Tuple(elts):
            return len(elts) < 2 and not any(isinstance(each, ast.Starred) for each in elts)
    return False


def _has_parts(target: ast.expr) -> bool:
    return isinstance(target, ast.Tuple | ast.List)


def default_values(function: FunctionNode) -> list[ast.expr]:
    arguments = function.args
    return [*arguments.defaults, *(each for each in arguments.kw_defaults if each is not None)]
