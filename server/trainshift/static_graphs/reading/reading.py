"""Reading: the static functions of a file, and the facts about them.

Other code accesses static functions through ``program.fact(Reading)``.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator

from msgspec.structs import replace

from trainshift.core.program import Program
from trainshift.python.flow.def_use import names_read
from trainshift.python.flow.exits import leaves
from trainshift.python.flow.solver import Diverges
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.script import Script
from trainshift.python.names.values import Class, Function, Instance, UserInstance
from trainshift.python.names.values import Value as Thing
from trainshift.python.syntax.call_binding import bind_call, bind_values, parameters
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Site, hides_arguments
from trainshift.python.values.heap import Attribute
from trainshift.static_graphs.domain.abstract_values import (
    NOTHING,
    UNKNOWN,
    AbstractValue,
    Dim,
    Env,
    Size,
    constant,
    join,
    python,
    shallow,
    tensor,
)
from trainshift.static_graphs.reading.elements import given_back
from trainshift.static_graphs.reading.entries import (
    TO_STATIC,
    Entry,
    entries,
    is_excluded,
    is_layer,
)
from trainshift.static_graphs.reading.evaluator import NO_CALL, Evaluator, is_self_member
from trainshift.static_graphs.reading.frame import Call, Frame, Words, at_site
from trainshift.static_graphs.reading.function import Mode, StaticFunction, Truth, Why
from trainshift.static_graphs.reading.stores import (
    Cell,
    Stores,
    outer_name,
    placed,
    places_in,
    store,
    with_stored,
)
from trainshift.static_graphs.reading.type_inference import Uses, may_be_told
from trainshift.static_graphs.reading.walker import Walker
from trainshift.static_graphs.tables.shapes import dtype_of

# After this many readings, the arguments and the result of a function are unknown.
_PATIENCE = 60
# Calls up to this depth are followed at once; others are queued.
_MOST_NESTED = 8


class Reading:
    """The static functions that involve a program's first file."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._walk = _Walk(program)
        self._walk.run()
        if self._walk.is_hasty:
            again = _Walk(program, frozenset(self._walk.functions))
            again.run()
            self._walk = self._walk if again.is_hasty else again

    @property
    def everywhere(self) -> list[StaticFunction]:
        """The static functions of all files, the strongest modes first."""
        return list(self._walk.functions.values())

    @cached_property
    def functions(self) -> list[StaticFunction]:
        """The static functions in the file, in text order."""
        script = self.program.script
        found = [each for each in self.everywhere if each.script is script]
        return sorted(found, key=lambda each: script.span(each.node, each.scope).start)

    @cached_property
    def entries(self) -> list[Entry]:
        """The functions and layers that the file makes static."""
        return self._walk.entries

    def of(self, scope: Scope) -> StaticFunction | None:
        """The static function of a scope; None for any other."""
        return self._walk.functions.get(scope)

    def around(self, scope: Scope) -> StaticFunction | None:
        """The static function around some code."""
        function = scope.function()
        return self.of(function) if function is not None else None


class _Walk:
    """Interpret the static functions of a program, each again whenever its inputs grow."""

    def __init__(self, program: Program, foreseen: frozenset[Scope] = frozenset()) -> None:
        self.program = program
        self.values = Evaluator(program, self)
        self._uses = Uses(self.values.evaluate)
        self.walker = Walker(self.values, self._uses, self)
        self.assign, self.store = self.walker.assign, self.walker.store
        self._foreseen = foreseen
        self._asked_whether: set[tuple[Scope, bool]] = set()
        self.functions: dict[Scope, StaticFunction] = {}
        self.entries: list[Entry] = []
        self._stack: list[StaticFunction] = []
        self._waiting: dict[StaticFunction, None] = {}
        self._callers: dict[StaticFunction, set[StaticFunction]] = {}
        self._tries = False
        self._times: Counter[StaticFunction] = Counter()
        self._given_up: set[tuple[StaticFunction, str]] = set()
        self._heap: Stores = {}
        self._changed: set[StaticFunction] = set()
        self._grown: dict[Hashable, None] = {}
        self._within: dict[Scope, set[StaticFunction]] = {}
        self._free: dict[Scope, list[tuple[str, Scope]]] = {}

    def run(self) -> None:
        """Read all static functions."""
        script = self.program.script
        self.entries = sorted(entries(script), key=lambda each: -each.mode)
        for entry in self.entries:
            if not is_excluded(self.values.home(entry.function), entry.function):
                self._start(entry)
        for function in self._forwards(script):
            if function not in self.functions:
                why = Why(function.node or ast.Pass(), function)
                self._add(function, Mode.OPEN, why, is_entry=True)
                self._give_from_outside(self.functions[function])
                self._settle()

    def _settle(self) -> None:
        """Interpret functions until no arguments or results grow."""
        while self._waiting:
            self._read(next(iter(self._waiting)))
            if self._grown and not self._waiting:
                readers = self.values.lookups.forget(self._grown)
                self._grown.clear()
                for function in [*self.functions.values()]:
                    if function in readers:
                        self._waiting[function] = None
                        if function.is_entry and not function.has_spec:
                            self._give_from_outside(function)

    def _forwards(self, script: Script) -> Iterator[Scope]:
        """The `forward` of every layer of a file."""
        for scope in script.scopes:
            if scope.kind == "function" and scope.name == "forward" and scope.owner() is not None:
                owner = scope.owner()
                if owner is not None and is_layer(script, owner) and not is_excluded(script, scope):
                    yield scope

    def _add(self, scope: Scope, mode: Mode, why: Why, *, is_entry: bool = False) -> StaticFunction:
        function = StaticFunction(scope, self.values.home(scope), mode, why, is_entry)
        self.functions[scope] = function
        self._waiting[function] = None
        self._grown[scope] = None
        return function

    # Entries

    def _start(self, entry: Entry) -> None:
        known = self.functions.get(entry.function)
        why = Why(entry.node, entry.scope)
        if known is not None:
            known.is_entry = True
            if known.mode < entry.mode:
                self._strengthen(known, entry.mode, why)
        else:
            known = self._add(entry.function, entry.mode, why, is_entry=True)
        has_spec = entry.spec is not None and self._specify(known, entry)
        known.has_spec = known.has_spec or has_spec
        if not known.has_spec:
            self._give_from_outside(known)
        self._settle()

    def _strengthen(self, function: StaticFunction, mode: Mode, why: Why) -> None:
        function.mode, function.why = mode, why
        self._waiting[function] = None

    def _specify(self, function: StaticFunction, entry: Entry) -> bool:
        """Give an entry the tensors of its `input_spec`; return whether that describes them."""
        assert entry.spec is not None
        value = self.values.evaluate(entry.spec, Frame(entry.scope, None, {}))
        if value.items is None:
            return False
        names = [each.arg for each in function.positional]
        defaults = self._defaults(function)
        for index, name in enumerate(names):
            given = self._specified(value.items[index]) if index < len(value.items) else defaults.get(name)
            if given is not None:
                self._give(function, name, given)
        return True

    def _specified(self, value: AbstractValue) -> AbstractValue:
        """The value that an `InputSpec`, or a structure of them, describes."""
        specs = [
            each for each in value.things if isinstance(each, Instance) and each.cls.endswith("InputSpec")
        ]
        if specs:
            return join(map(self._of_spec, specs))
        if value.items is not None:
            return replace(value, items=tuple(map(self._specified, value.items)))
        if value.element is not None:
            return replace(value, element=self._specified(value.element))
        return value

    def _of_spec(self, thing: Instance) -> AbstractValue:
        place = at_site(self.program.script.site_of(thing.node))
        given = [self.values.evaluate(each, place) for each in thing.node.args]
        words = {
            each.arg: self.values.evaluate(each.value, place) for each in thing.node.keywords if each.arg
        }
        shape = words.get("shape") or (given[0] if given else None)
        asked = words.get("dtype") or (given[1] if len(given) > 1 else None)
        dtype = dtype_of(asked) if asked is not None else "float32"
        if shape is None or shape.items is None:
            return tensor(dtype)
        return tensor(dtype, tuple(map(_spec_size, shape.items)))

    # Parameters

    def _defaults(self, function: StaticFunction) -> dict[str, AbstractValue]:
        found: dict[str, AbstractValue] = {}
        for name, bindings in function.scope.bindings.items():
            for binding in bindings:
                if binding.kind == "parameter" and binding.value is not None:
                    found[name] = self.values.evaluate(binding.value, Frame(binding.scope, None, {}))
        return found

    def _give(self, function: StaticFunction, name: str, value: AbstractValue) -> None:
        value = replace(value, sources=frozenset({name}) if value.tensor else frozenset(), views=frozenset())
        old = function.parameters.get(name, NOTHING)
        new = shallow(old.joined(value))
        new = self._patiently(function, name, old, new)
        if new != old:
            function.parameters[name] = new
            self._waiting[function] = None

    def _give_from_outside(self, function: StaticFunction) -> None:
        """Give an entry its known arguments: from calls outside static functions, and from defaults."""
        with self.values.lookups.reading(function):
            self._give_arguments(function)

    def _give_arguments(self, function: StaticFunction) -> None:
        defaults = self._defaults(function)
        first = int(function.takes_self)
        calls = [
            (bind_call(site.node, function.node.args, first), at_site(site))
            for site in self._calls_of(function.scope)
        ]
        for argument in function.positional:
            name = argument.arg
            default = defaults.get(name)
            found: list[AbstractValue] = []
            for call, frame in calls:
                if name in call.given:
                    found.append(_as_tensor(self.values.evaluate(call.given[name], frame)))
                else:
                    found.append(UNKNOWN if default is None or call.is_hidden else _as_tensor(default))
            value = join(found)
            if value.is_nothing:
                value = UNKNOWN
                if default is not None and default.among("bool", "str"):
                    value = python(*default.python)
                elif default is not None and default.among("None", "list", "dict", "set"):
                    value = UNKNOWN.joined(python(*default.python))
            self._give(function, name, value)
        for argument in function.node.args.kwonlyargs:
            default = defaults.get(argument.arg, NOTHING)
            known = python(*default.python) if default.among("bool", "str") else UNKNOWN
            self._give(function, argument.arg, known)

    def _calls_of(self, function: Scope) -> list[Site]:
        """The calls of an entry outside static functions, as far as known."""
        return [each for each in self._calls.get(function, ()) if not self._is_static(each.scope)]

    def _is_static(self, scope: Scope) -> bool:
        function = scope.function()
        return function is not None and function in self.functions

    @cached_property
    def _calls(self) -> dict[Scope, list[Site]]:
        """The file's calls of functions and layers in the workspace, by callee."""
        found: dict[Scope, list[Site]] = {}
        names = self.program.script.names
        bound = self.program.script.code.bound_names
        for site in self.program.script.sites:
            func = site.node.func
            if site.name not in bound or names.member_of_library(func):
                continue
            if is_self_member(self.program.script, func, site.scope) or self._is_class(func, site):
                continue
            called = self.values.evaluate(func, at_site(site))
            for value in self._callees(called.things):
                if value not in found or site not in found[value]:
                    found.setdefault(value, []).append(site)
        return found

    def _is_class(self, func: ast.expr, site: Site) -> bool:
        """Return whether a callee is the first parameter of a class method, so that the call creates an
        object.
        """
        return (
            isinstance(func, ast.Name)
            and func.id == "cls"
            and self.program.script.names.is_self(func, site.scope)
        )

    def _callees(self, things: Iterable[Thing]) -> Iterator[Scope]:
        for value in reachable(things, self._made_static):
            function = value.scope if isinstance(value, Function) else None
            if isinstance(value, UserInstance):
                function = self.program.script.names.function_named(value.scope, "forward")
            if function is not None:
                yield function

    def _made_static(self, value: Thing) -> Iterable[Thing]:
        """Return the function given to `to_static`, if a value is its result."""
        if not isinstance(value, Instance) or value.cls not in TO_STATIC or not value.node.args:
            return ()
        return self.values.evaluate(
            value.node.args[0], at_site(self.program.script.site_of(value.node))
        ).things

    # Reading

    def _read(self, function: StaticFunction) -> None:
        if function in self._stack:
            self._waiting[function] = None
            return
        self._waiting.pop(function, None)
        self._stack.append(function)
        self._times[function] += 1
        try:
            with self.values.lookups.reading(function):
                value = shallow(self.walker.walk(function, self._begin(function)))
        except (RecursionError, Diverges):
            if len(self._stack) > 1:  # It is read again from the top, below no other function.
                self._waiting[function] = None
                return
            function.is_too_deep = True
            value = UNKNOWN
        finally:
            self._stack.pop()
        if function.is_too_deep:
            self._give_up(function)
        value = function.returns.joined(value)
        value = self._patiently(function, "return", function.returns, value)
        if value != function.returns:
            function.returns = value
            self._changed.add(function)
            self._grown[function.scope] = None
        if function in self._changed:
            self._changed.discard(function)
            for reader in (function, *self._within.get(function.scope, ())):
                self._waiting.update(dict.fromkeys(self._callers.get(reader, ())))

    def _give_up(self, function: StaticFunction) -> None:
        """Let everything that a function may pass on or store be unknown, if its statements are not read."""
        function.kinds.clear()
        stores: dict[Cell, AbstractValue] = {}
        for node in function.own_nodes:
            match node:
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    stores[Attribute(name)] = UNKNOWN
                case ast.Call(func=func):
                    called = self.values.evaluate(func, Frame(function.scope, None, {}))
                    for scope in self._callees(called.things):
                        why = Why(node, function.scope, function)
                        known = self.functions.get(scope) or self._add(scope, function.mode, why)
                        for argument in parameters(known.node.args)[int(known.takes_self) :]:
                            self._give(known, argument.arg, UNKNOWN)
                        for name, _ in self._free_names(scope):
                            if store(known.closure, name, UNKNOWN):
                                self._waiting[known] = None
        for name in function.scope.declared_global | function.scope.declared_nonlocal:
            stores[outer_name(function.script, function.scope, name)] = UNKNOWN
        for cell, value in stores.items():
            if store(function.stored, cell, value):
                self.stored_more(function, cell)

    def _patiently(
        self, function: StaticFunction, what: str, old: AbstractValue, new: AbstractValue
    ) -> AbstractValue:
        """Return a function's new result, or argument, or unknown if it has changed for too long."""
        if (function, what) in self._given_up:
            return UNKNOWN
        if new == old or self._times[function] <= _PATIENCE:
            return new
        self._given_up.add((function, what))
        return UNKNOWN

    def _begin(self, function: StaticFunction) -> Env:
        env = {}
        for name, bindings in function.scope.bindings.items():
            binding = next((each for each in bindings if each.statement is None), None)
            if binding is None:
                continue
            if binding.kind != "parameter":  # `*args`, `**kwargs`
                is_tuple = function.node.args.vararg is binding.target
                value = python("tuple" if is_tuple else "dict", element=UNKNOWN)
                env[name] = placed(value, binding.target or function.node)
                continue
            value = function.parameters.get(name, UNKNOWN)
            annotation = getattr(binding.target, "annotation", None)
            if value.unknown and annotation is not None and self._names_a_tensor(annotation, binding):
                value = replace(value, tensor=value.tensor or tensor().tensor, unknown=False)
                value = replace(value, sources=frozenset({name}))
            told = getattr(annotation, "id", "")
            if told in ("int", "float", "bool", "str"):
                value = python(told) if value == UNKNOWN else value
            elif may_be_told(value):
                value = self._uses.by_use(name, None, function, value)
            env[name] = placed(value, binding.target or function.node)
        if function.takes_self:
            own = function.node.args
            first = [*own.posonlyargs, *own.args][:1]
            owner = function.scope.owner()
            if first and owner is not None:
                env[first[0].arg] = self.values.of_thing(UserInstance(owner, NO_CALL))
        return env

    def _names_a_tensor(self, annotation: ast.expr, binding: Binding) -> bool:
        names = self.values.home(binding.scope).names.full_names(annotation, binding.scope)
        return any(each.startswith("paddle") and each.rpartition(".")[2] == "Tensor" for each in names)

    # Cells of the heap, and names of enclosing functions

    def enclose(self, inner: Scope, frame: Frame) -> None:
        """Record the names around an inner function that is made static itself."""
        known = self.functions.get(inner)
        if known is not None:
            self._close(known, frame)

    def stored_more(self, function: StaticFunction, cell: Cell) -> None:
        """Interpret again the functions that depend on a cell of the heap."""
        self._changed.add(function)
        value = function.stored.get(cell)
        if value is None or not store(self._heap, cell, value):
            return
        self._grown[cell] = None

    def from_heap(self, value: AbstractValue, attribute: str = "") -> AbstractValue:
        """The possible values of an object outside static functions, from all stores to it."""
        if attribute:
            cell = Attribute(attribute)
            self.values.lookups.note(cell)
            value = value.joined(self._heap.get(cell, NOTHING))
        while True:
            for place in places_in(value):
                self.values.lookups.note(place)
            found = with_stored(value, self._heap)
            if found == value:
                return value
            value = found

    def is_walked(self, scope: Scope) -> bool:
        """Return whether a scope is, or is inside, a static function, all of whose stores are known."""
        function = scope.function()
        is_walked = function is not None and (function in self.functions or function in self._foreseen)
        if function is not None:
            self._asked_whether.add((function, is_walked))
        return is_walked

    @property
    def is_hasty(self) -> bool:
        """Return whether a function was wrongly treated as a static one, or as a plain one."""
        return any((function in self.functions) != is_walked for function, is_walked in self._asked_whether)

    def _close(self, inner: StaticFunction, frame: Frame) -> None:
        """Record the possible values of the names around an inner function at its calls."""
        caller = frame.function
        assert caller is not None
        for name, holder in self._free_names(inner.scope):
            around = self.functions.get(holder)
            value = frame.env.get(name) if holder is caller.scope else None
            if (
                value is None
                and self.values.home(caller.scope).names.lookup(name, caller.scope, None)[0] is holder
            ):
                value = frame.env.get(name, caller.closure.get(name))
            if value is None and around is not None:
                self._within.setdefault(holder, set()).add(inner)
                value = around.bound.get(name)
            if value is not None and store(inner.closure, name, value):
                self._waiting[inner] = None

    def _free_names(self, inner: Scope) -> list[tuple[str, Scope]]:
        """Return the names that a nested function takes from outer functions, with their scopes."""
        if inner not in self._free:
            found = []
            is_nested = inner.parent is not None and inner.parent.function() is not None
            assert inner.node is not None
            for name in sorted(names_read(inner.node) | inner.declared_nonlocal) if is_nested else ():
                holder, _ = self.values.home(inner).names.lookup(name, inner, None)
                if holder is not None and holder is not inner:
                    found.append((name, holder))
            self._free[inner] = found
        return self._free[inner]

    def called(self, function: Scope, frame: Frame, call: Call | None = None) -> AbstractValue:
        """The result of a function in the workspace that Paddle converts together with its caller; without
        a call, that of a property.
        """
        caller = frame.function
        if caller is None:
            return self._called_outside(function)
        given = (*call.given, *call.words.values()) if call is not None else ()
        if isinstance(function.node, ast.AsyncFunctionDef) or self._tries:
            self.values.hand_to_unseen(given, frame)
            return UNKNOWN
        way = self._other_way(function)
        if way:
            return self.unconverted(function, call.given, call, way) if call is not None else UNKNOWN
        known = self.functions.get(function)
        node = call.node if call is not None else None
        why = Why(node or caller.node, caller.scope, caller)
        if known is None:
            known = self._add(function, caller.mode, why)
        elif known.mode < caller.mode and not (known.is_entry and known.mode is not Mode.OPEN):
            self._strengthen(known, caller.mode, why)
        if node is not None:
            others = caller.calls.get(node, ())
            if known not in others:
                caller.calls[node] = (*others, known)
        self._callers.setdefault(known, set()).add(caller)
        self._hand(known, call)
        self._close(known, frame)
        if known in self._waiting and known not in self._stack and len(self._stack) < _MOST_NESTED:
            self._read(known)
        self.walker.store(known.stored, frame)
        return known.returns if node is None else given_back(known.returns, (node,), given)

    def _called_outside(self, function: Scope) -> AbstractValue:
        """Return the result of a function for code outside of static functions."""
        self.values.lookups.note(function)
        known = self.functions.get(function)
        if known is not None:
            return known.returns
        return self.values.lookups.ask((function, "returns"), lambda: shallow(self._given_by(function)))

    def _given_by(self, function: Scope) -> AbstractValue:
        """Return the values of a function's `return` statements, outside static functions."""
        node = function.node
        if isinstance(node, ast.Lambda):
            return self.values.evaluate(node.body, Frame(function, function.statement, {}))
        if not isinstance(node, ast.FunctionDef) or function.is_generator:
            return UNKNOWN
        found = [
            self.values.evaluate(each, Frame(function, statement, {})) for each, statement in function.returns
        ]
        return join(found) if found and leaves(node.body) else join([*found, constant(None)])

    def _other_way(self, function: Scope) -> str:
        """Return the kind of call for which Paddle does not convert a function although it looks plain."""
        if function.is_generator:
            return "a generator"
        if is_excluded(self.values.home(function), function):
            return "`not_to_static`"
        if isinstance(function.node, ast.Lambda):
            around = function.parent.function() if function.parent is not None else None
            if around is None or around not in self.functions:
                return "a lambda that is bound outside"
        return ""

    def unconverted(
        self, function: Scope, given: tuple[AbstractValue, ...], call: Call, way: str
    ) -> AbstractValue:
        """The result of a function in the workspace that Paddle does not convert with its caller."""
        frame = call.frame
        if frame.function is None:
            return UNKNOWN
        if self._tries or isinstance(function.node, ast.AsyncFunctionDef):
            self.values.hand_to_unseen(given, frame)
            return UNKNOWN
        tried = StaticFunction(function, self.values.home(function), frame.function.mode, frame.function.why)
        tried.parameters.update(bind_values(tried.node.args, given, {}, int(tried.takes_self))[0])
        self._close(tried, frame)
        self._waiting.pop(tried, None)
        self._tries = True
        try:
            value = self.walker.walk(tried, self._begin(tried))
        finally:
            self._tries = False
        self.walker.store(tried.stored, frame)
        if Truth.GRAPH in tried.truths.values():
            frame.function.unconverted[call.node] = way
        return UNKNOWN if function.is_generator else value.joined(UNKNOWN)

    def _hand(self, function: StaticFunction, call: Call | None) -> None:
        """Pass a call's arguments to a function."""
        given: tuple[AbstractValue, ...] = ()
        words: Words = {}
        is_hidden = False
        if call is not None:
            given, words, is_hidden = call.given, call.words, hides_arguments(call.node)
            if function.takes_self and isinstance(call.node.func, ast.Attribute):
                if any(isinstance(each, Class) for each in self._of_class(call.node, function)):
                    given = given[1:]
        defaults = self._defaults(function)
        first = int(function.takes_self)
        bound, _ = bind_values(function.node.args, () if is_hidden else given, words, first)
        for argument in parameters(function.node.args)[first:]:
            default = UNKNOWN if is_hidden else defaults.get(argument.arg, NOTHING)
            self._give(function, argument.arg, bound.get(argument.arg, default))

    def _of_class(self, node: ast.Call, function: StaticFunction) -> frozenset[object]:
        assert isinstance(node.func, ast.Attribute)
        site_scope = next((each.scope for each in self._stack[-1:]), function.scope)
        return frozenset(self.values.home(site_scope).names.values(node.func.value, site_scope))


def _as_tensor(value: AbstractValue) -> AbstractValue:
    """An entry's argument: NumPy arrays become tensors."""
    if "ndarray" in value.python:
        return replace(value, python=value.python - {"ndarray"}, tensor=value.tensor or tensor().tensor)
    return value


def _spec_size(value: AbstractValue) -> Size:
    if isinstance(value.constant, int) and not isinstance(value.constant, bool):
        return value.constant if value.constant >= 0 else Dim.SPEC
    return Dim.SPEC if value.is_none else Dim.ANY
