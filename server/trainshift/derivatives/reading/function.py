"""A function to differentiate, and the facts about it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from trainshift.derivatives.reading.kinds import Kind
from trainshift.derivatives.reading.module import Module
from trainshift.derivatives.tables import table
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.rewrite.renaming import identifiers
from trainshift.python.rewrite.separate_targets import loops_with_names, separate_targets
from trainshift.python.rewrite.single_exit import PythonSingleExit
from trainshift.python.rewrite.terms import copied, names_bound, names_read, own_nodes, walk
from trainshift.python.syntax.call_binding import bind_call, defaults, parameters
from trainshift.python.syntax.chunk_syntax import imported_names
from trainshift.python.syntax.fresh_names import fresh_name
from trainshift.python.values.points_to import PointsTo

Rows = Mapping[str, table.Row]
# Container methods that mutate it.
CHANGING_METHODS = frozenset(("append", "extend", "insert", "update", "pop"))


class Alias(Struct, frozen=True):
    """Two names that may be one object, because of a statement.

    `unless`: a condition under which they are different, such as for numbers. `is_twice`: a container with
    both names may hold one object in two places.
    """

    node: ast.stmt
    name: str
    other: str
    unless: ast.expr | None = None
    is_twice: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """A key that distinguishes two reasons."""
        return id(self.node), self.name, self.other, self.unless is None

    def asked(self) -> ast.stmt:
        """A run-time check that two possible aliases are different objects."""
        assert self.unless is not None
        names = f"{self.name} and {self.other} are one array"
        if self.name == self.other:
            names = f"two parts of {self.name} are one"
        return ast.Assert(copied(self.unless), ast.Constant(f"{names}, which is changed"))


class Summary(Struct, frozen=True):
    """The summary of a function's calls, by the function's names for outer objects.

    `returned` may be in its value, and it may mutate the parameters `mutated`, or elements of the kinds in
    `changed`.
    """

    returned: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    mutated: frozenset[str] = frozenset()


class Conflict(Struct, frozen=True):
    """A mutation of an object that two names share; with `whole`, of a whole array, such as by `+=`."""

    alias: Alias
    node: ast.stmt
    whole: bool

    @property
    def line(self) -> int:
        """The line of the change."""
        return getattr(self.node, "lineno", 0)


class AliasQueries(Protocol):
    """The queries about another function's names."""

    changed: set[str]
    in_place: set[int]
    grown: set[str]

    def with_names(self, names: set[str]) -> set[str]:
        """Names with all names that were ever aliases of them."""

    def altered(self) -> set[str]:
        """The names of mutated objects, including their aliases."""

    def showing(self, changed: set[str]) -> set[str]:
        """The variables that may show mutations of some variables, including these."""

    def sources(self, node: ast.expr) -> set[str]:
        """The variables whose value, or a part of it, may be in that of an expression."""

    def active(self, name: str) -> bool:
        """Return whether a variable, also one of another function, is active."""

    def meets(self, one: str, other: str) -> bool:
        """Return whether two variables may have a container or an array in common."""

    def conflicts(self) -> Iterable[Conflict]:
        """The mutations of objects that two names share."""


class Whole(Protocol):
    """A function's queries about all functions that are differentiated together."""

    module: Module
    rows: Rows
    reverse: bool
    arrays: bool
    tensors: bool
    functions: dict[str, Function]
    captured_bars: dict[tuple[Function, str], str]
    dot_names: dict[tuple[Function | None, str], str]

    def function(self, name: str) -> Function:
        """A function of the file."""

    def all_kinds(self) -> Iterable[Kind]:
        """The kinds of all variables, with those of their elements."""

    @property
    def points(self) -> PointsTo:
        """The objects of all functions, in the form to be differentiated."""

    @property
    def changes(self) -> bool:
        """Return whether a function may change a container or an array at all."""

    def every(self) -> Iterable[Function]:
        """All functions."""

    def escaping(self) -> list[Function]:
        """The functions that are used as values."""

    def inside(self, function: Function) -> list[Function]:
        """The functions inside one."""

    def made_name(self, function: Function) -> str:
        """The name of a function's derivative."""

    def signature(self, function: Function) -> tuple[list[str], set[str]]:
        """The parameters with a derivative, and those whose current adjoints are passed in."""

    def outer_bar(self, owner: Function, name: str) -> str:
        """The name of the adjoint of a captured variable."""

    def is_called(self, function: Function) -> bool:
        """Return whether a function is called by one that is differentiated."""

    def aliases(self, function: Function) -> AliasQueries:
        """The possible aliases among the names of a function."""

    def summary(self, function: Function) -> Summary:
        """The summary of a function's calls."""

    def made_function(self, function: Function) -> list[ast.stmt]:
        """The replacement of an inner function's definition."""


class Function:
    """A function to differentiate: its statements in the form for the mode, and facts about it."""

    def __init__(self, node: ast.FunctionDef, parent: Function | None, whole: Whole) -> None:
        self.node = node
        self.name = node.name
        self.parent = parent
        self.whole = whole
        self.params = [each.arg for each in parameters(node.args)]
        self.foreign: set[str] = set()
        for each in own_nodes(node.body):
            if isinstance(each, ast.Nonlocal):
                self.foreign.update(each.names)
        self.local = (set(self.params) | names_bound(node.body)) - self.foreign
        self.imports: dict[str, str] = {}
        """Its imports, by name."""
        for each in own_nodes(node.body):
            if isinstance(each, ast.Import | ast.ImportFrom):
                self.imports.update((name, full) for _, name, full in imported_names(each))
        self.used = set(whole.module.names) | identifiers(node)
        if parent is not None:
            self.used |= parent.written
        self.written: frozenset[str] = frozenset(self.used)
        self.result = ""
        self.body = list(node.body)
        self.kinds: dict[str, Kind] = {}
        self.value = Kind()
        self.varied: set[str] = set()
        self.useful: set[str] = set()
        # By variable: the variables that become useful with it, and the function that reads them.
        self.feeding: dict[str, list[tuple[Function, ast.expr]]] = {}
        self.returns = False
        self.escapes = False
        # The outer variables whose contents it mutates, by any name or call.
        self.altered: set[str] = set()
        # Its variables that may be the caller's array, which `+=` mutates in place.
        self.shown: set[str] = set()
        # The lists that a loop iterates over and may mutate in its body.
        self.sequences: set[str] = set()
        # The text of slices that are queried, by the names that they get.
        self.slices: dict[str, str] = {}
        self.nested: dict[str, Function] = {}
        self.exposed: dict[tuple[int, ...], frozenset[str]] = {}
        """The names that are live before some of its statements, by the identities of these."""
        self.body = loops_with_names(self.body, self.fresh)
        self.local |= names_bound(self.body) - self.foreign
        if whole.reverse:
            self.result = self._result()
            body = separate_targets(self.body, self.fresh)
            self.body = PythonSingleExit(self.result, self.fresh).body(body)
            self.local |= names_bound(self.body) - self.foreign

    def _result(self) -> str:
        free = [each for each in ("value", "result", "output") if each not in self.used]
        found = free[0] if free else self.fresh("value")
        self.used.add(found)
        return found

    def fresh(self, base: str) -> str:
        """A new name for the outermost function: the base, with the next free number if needed."""
        used = self.used.union(self._adjoints_around(), self.whole.module.functions)
        found = fresh_name(base, used, separator="" if base == "t" else "_")
        self.used.add(found)
        return found

    def _adjoints_around(self) -> set[str]:
        """The adjoints that sibling functions, inside the same outer functions, add to."""
        around = self.outer
        return {bar for (owner, _), bar in self.whole.captured_bars.items() if owner in around}

    @property
    def outer(self) -> list[Function]:
        """The functions around it, innermost first."""
        return [] if self.parent is None else [self.parent, *self.parent.outer]

    def temporary(self) -> str:
        """t1, t2, …"""
        found = fresh_name("t", self.used, numbered=True, separator="")
        self.used.add(found)
        return found

    def owner(self, name: str) -> Function | None:
        """The function that owns a variable; None for a global one."""
        found: Function | None = self
        while found is not None and name not in found.local:
            found = found.parent
        return found

    def dotted(self, node: ast.expr) -> str | None:
        """The full name of an expression's value, if it belongs to a library."""
        if isinstance(node, ast.Attribute):
            return self.whole.module.member(self.dotted(node.value), node.attr)
        if not isinstance(node, ast.Name):
            return None
        for each in (self, *self.outer):
            if node.id in each.imports:
                return each.imports[node.id]
            if node.id in each.local:
                return None
        return self.whole.module.dotted(node)

    def kind(self, name: str) -> Kind:
        """The kind of a variable."""
        owner = self.owner(name) or self
        return owner.kinds.setdefault(name, Kind())

    @cached_property
    def counts(self) -> set[str]:
        """The variables that are arguments of `range`, so that they are whole numbers."""
        calls = (each for each in own_nodes(self.node.body) if isinstance(each, ast.Call))
        given = [one for each in calls if getattr(each.func, "id", "") == "range" for one in each.args]
        return {each.id for each in given if isinstance(each, ast.Name)}

    @property
    def gives_functions(self) -> bool:
        """Return whether its result is or contains a function."""
        return any(each.has("function") for each in self.value.with_elements())

    @property
    def is_outlived(self) -> bool:
        """Return whether inner functions may be called after it ended: they are in its result, its arguments
        or its captures.
        """
        if self.gives_functions or not any(each.escapes for each in self.nested.values()):
            return self.gives_functions
        kinds = [*map(self.kind, self.params), *(owner.kind(name) for owner, name in self.reached)]
        return any(each.has("function") for kind in kinds if kind.changes for each in kind.with_elements())

    def kept(self) -> set[str]:
        """Its mutated variables that inner functions keep after it has ended."""
        inside = [each for each in self.nested.values() if each.escapes] if self.is_outlived else []
        names = {name for each in inside for owner, name in each.reached if owner is self}
        return {each for each in names if self.kind(each).container and self.kind(each).changes}

    @property
    def required(self) -> int:
        """The number of its parameters without a default."""
        arguments = self.node.args
        return len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)

    def default(self, param: str) -> ast.expr | None:
        """The default of a parameter."""
        return defaults(self.node.args).get(param)

    def may_be_none(self, param: str) -> bool:
        """Return whether the argument of a parameter may be None: by its default, or a test."""
        default = self.default(param)
        if isinstance(default, ast.Constant) and default.value is None:
            return True
        tests = (each for each in own_nodes(self.body) if isinstance(each, ast.Compare))
        return any(ast.unparse(each) in (f"{param} is None", f"{param} is not None") for each in tests)

    def takes(self, call: ast.Call) -> bool:
        """Return whether it can be called with the arguments of a call."""
        return bind_call(call, self.node.args).fits

    def takes_by_place(self, call: ast.Call) -> bool:
        """Return whether a call passes all active arguments by position, so that the names are not needed."""
        given = [each for each in self.params[: len(call.args)] if not self.kind(each).has("function")]
        return not call.keywords and self.required == len(call.args) and given == self.handed()

    def handed(self) -> list[str]:
        """The parameters with a derivative if it is called as a value: all required ones, and other active
        ones.
        """
        own = [each for each in self.params if not self.kind(each).has("function")]
        required = self.params[: self.required]
        return [each for each in own if each in required or self.active(each)]

    def active(self, name: str) -> bool:
        """Return whether a variable is active."""
        owner = self.owner(name)
        return owner is not None and name in owner.varied and name in owner.useful

    @property
    def acts(self) -> bool:
        """Return whether it, or an inner function, mutates its arguments or outer variables."""
        return any(
            each.changes_outside or any(each.kind(param).changes for param in each.params)
            for each in (self, *self.whole.inside(self))
        )

    @property
    def changes_outside(self) -> bool:
        """Return whether it assigns outer variables, or mutates their objects."""
        return bool(self.outside)

    def forget(self) -> None:
        """Forget the facts about outer variables."""
        for each in ("outside", "reached", "around"):
            self.__dict__.pop(each, None)

    @cached_property
    def reached(self) -> frozenset[tuple[Function, str]]:
        """The outer variables, with their functions, that it, its inner functions or its callees name."""
        return self._around(Function._named) | self.outside

    @cached_property
    def outside(self) -> frozenset[tuple[Function, str]]:
        """The outer variables, with their functions, that it or its callees assign or mutate."""
        return self._around(Function._changed)

    def _around(
        self, look: Callable[[Function], tuple[set[str], list[Function]]]
    ) -> frozenset[tuple[Function, str]]:
        """The outer variables that it, or a function to follow, uses: `look` returns both."""
        used: dict[Function, set[str]] = {}

        def following(function: Function) -> list[Function]:
            used[function], others = look(function)
            return others

        inside = {*reachable([self], following)}
        found = ((function.owner(name), name) for function in inside for name in used[function])
        return frozenset((owner, name) for owner, name in found if owner is not None and owner not in inside)

    @property
    def free(self) -> list[tuple[Function, str]]:
        """The outer variables, with their functions, that its text names."""
        owners = ((self.owner(name), name) for name in self._names)
        return [(owner, name) for owner, name in owners if owner is not None and owner is not self]

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(each.id for each in walk(self.node) if isinstance(each, ast.Name))

    @property
    def captured_inside(self) -> set[str]:
        """The names that functions inside read."""
        return set[str]().union(*(each.names_read for each in self.nested.values()))

    @cached_property
    def names_read(self) -> frozenset[str]:
        """The names that its text reads."""
        return frozenset(names_read(self.node))

    @cached_property
    def around(self) -> set[str]:
        """The variables around it that its own lines name."""
        return {each for each in self._named()[0] if self.owner(each) is not None}

    def _named(self) -> tuple[set[str], list[Function]]:
        """The outer variables that its own lines name, and the inner functions that they name or call."""
        names, following = set(self.foreign), [*self.nested.values()]
        for node in own_nodes(self.node.body):
            match node:
                case ast.Name(name) if name not in self.local and (owner := self.owner(name)):
                    following += [owner.nested[name]] if name in owner.nested else []
                    names.add(name)
                case ast.Name(name) if name in self.whole.functions and self.owner(name) is None:
                    following.append(self.whole.functions[name])
                case ast.Call(ast.Name(name)) if self.kind(name).has("function"):
                    following += self.whole.escaping()
        return names, following

    def _changed(self) -> tuple[set[str], list[Function]]:
        """The variables that its own lines assign or mutate, and the functions that they call."""
        names, following = self.foreign | self.altered, list[Function]()
        for node in own_nodes(self.node.body):
            match node:
                case ast.Subscript(ctx=ast.Store()):
                    names.add(root_of(node) or "")
                case ast.Call(ast.Attribute(attr=method) as place) if method in CHANGING_METHODS:
                    names.add(root_of(place) or "")
                case ast.Call(ast.Name(name)) if (owner := self.owner(name)) is not None:
                    following += [owner.nested[name]] if name in owner.nested else self.whole.escaping()
                case ast.Call(ast.Name(name)) if name in self.whole.functions:
                    following.append(self.whole.functions[name])
        return names, following

    def bindings(self, name: str) -> int:
        """The number of nodes that bind a variable: assignments, definitions, and its parameter."""
        return self._bindings[name]

    @cached_property
    def _bindings(self) -> Counter[str]:
        found = Counter(self.params)
        for node in own_nodes(self.node.body):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found[node.id] += 1
            elif isinstance(node, ast.FunctionDef):
                found[node.name] += 1
        return found

    def is_given_elsewhere(self, name: str) -> bool:
        """Return whether a variable has more than one assignment, in any function."""
        own = self.bindings(name) == 1 and name not in self.foreign
        return not own or any(name in each.foreign for each in self.whole.inside(self))

    def assignments(self, name: str) -> Sequence[ast.AST]:
        """The statements, loops and definitions that bind a variable."""
        return self._assigned.get(name, ())

    @cached_property
    def _assigned(self) -> dict[str, list[ast.AST]]:
        """The nodes that bind each variable."""
        found: dict[str, list[ast.AST]] = {}
        for each in own_nodes(self.node.body):
            if isinstance(each, ast.stmt | ast.comprehension) and not isinstance(each, ast.If | ast.While):
                target = getattr(each, "target", each) if isinstance(each, ast.For) else each
                for name in names_bound([target]):
                    found.setdefault(name, []).append(each)
        return found

    @cached_property
    def _filled(self) -> dict[str, ast.stmt]:
        """The statement that replaces a default of None by an empty container, by parameter."""
        found: dict[str, ast.stmt] = {}
        inside = {
            each.id for one in self.nested.values() for each in walk(one.node) if isinstance(each, ast.Name)
        }
        for node in self.node.body:
            match node:
                case ast.If(
                    ast.Compare(ast.Name(tested), [ast.Is()], [ast.Constant(None)]),
                    [ast.Assign([ast.Name(name)], ast.Dict([]) | ast.List([]))],
                    [],
                ) if tested == name and name in self.params and name not in inside:
                    default = self.default(name)
                    none = isinstance(default, ast.Constant) and default.value is None
                    if none and len(self.assignments(name)) == 1:
                        found[name] = node
        return found

    def fills(self, name: str) -> ast.stmt | None:
        """The statement that replaces a missing argument by an empty container, if that is its only
        assignment: the caller does not share that container.
        """
        called = name in self._filled and not self.escapes and self.whole.is_called(self)
        return self._filled[name] if called else None

    def is_rebound(self, name: str) -> bool:
        """Return whether a variable is rebound, other than by `+=` and the like."""
        return self.fills(name) is None and not all(
            isinstance(each, ast.AugAssign) for each in self.assignments(name)
        )

    def captured(self) -> list[str]:
        """The active variables of outer functions that it reads, sorted."""
        if self.parent is None:
            return []
        places: dict[str, tuple[int, int]] = {}
        for each in walk(self.node):
            if isinstance(each, ast.Name) and each.id not in self.local and self.owner(each.id):
                place = (getattr(each, "lineno", 0), getattr(each, "col_offset", 0))
                places[each.id] = min(place, places.get(each.id, place))
        own = sorted(places, key=lambda name: (places[name], name))
        return [each for each in own if self.active(each) and not self.kind(each).has("function")]


def root_of(node: ast.expr) -> str | None:
    """The variable that contains an expression as a part."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def bound(named: Function, node: ast.Call) -> list[tuple[str, ast.expr]]:
    """The parameters that a call of a function of the file passes, with their arguments."""
    return list(bind_call(node, named.node.args).given.items())
