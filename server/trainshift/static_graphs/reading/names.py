"""Abstract values of names and attributes in static functions."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace

from trainshift.core.program import Program
from trainshift.python.names.memo import Revisable
from trainshift.python.names.script import Script
from trainshift.python.names.values import (
    Class,
    Display,
    Function,
    Instance,
    Library,
    Literal,
    Module,
    UserInstance,
)
from trainshift.python.names.values import Value as Thing
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Site, argument, dotted, root_name
from trainshift.static_graphs.reading.abstract_values import (
    NOTHING,
    NUMBERS,
    UNKNOWN,
    AbstractValue,
    Dim,
    Tensor,
    constant,
    join,
    ordered,
    python,
    shallow,
    tensor,
)
from trainshift.static_graphs.reading.elements import element_of, item_of
from trainshift.static_graphs.reading.entries import is_layer
from trainshift.static_graphs.reading.frame import Frame
from trainshift.static_graphs.reading.heap import MUTABLE
from trainshift.static_graphs.tables import api

# What these make of anything but tensors lacks the methods of tensors.
_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Compare)
_ATTRIBUTES: dict[str, AbstractValue] = {
    "ndim": python("int"),
    "dtype": python("object"),
    "place": python("object"),
    "name": python("str"),
    "stop_gradient": python("bool"),
    "persistable": python("bool"),
    "trainable": python("bool"),
}
# What a library that is none of Paddle's gives: numbers, strings, arrays of its own.
_PYTHON_ROOTS = frozenset(
    {"math", "os", "sys", "time", "random", "re", "json", "copy", "itertools", "logging"}
)

# A value that still grows after so many rounds, such as that of a list in itself, is unknown.
_MOST_ROUNDS = 20
# What makes the object of a method: one of its own class.  Heirs are left out, or all files would be read.
NO_CALL = ast.Call(ast.Name("object", ast.Load()), [], [])


def is_self_member(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Whether an expression is an attribute of ``self``."""
    root = root_name(node)
    return root is not None and root is not node and script.names.is_self(root, scope)


class Names(ABC):
    """Evaluates names and attributes of a program; subclasses know the rest."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.lookups = Revisable(NOTHING, UNKNOWN, rounds=_MOST_ROUNDS)

    def home(self, scope: Scope) -> Script:
        """The script that some code stands in."""
        return self.program.script.home(scope)

    @abstractmethod
    def evaluate(self, node: ast.expr, frame: Frame) -> AbstractValue:
        """What an expression may be; written down for the frame's function."""

    # Names

    def _constant(self, node: ast.Constant, frame: Frame) -> AbstractValue:
        return constant(node.value)

    def _name(self, node: ast.Name, frame: Frame) -> AbstractValue:
        known = frame.env.get(node.id)
        if known is not None:
            return known.bound() if not known.is_nothing else known
        return self._outer(node, frame)

    def _outer(self, node: ast.Name, frame: Frame) -> AbstractValue:
        """A name that the function has not bound: of a scope around it, of the module, or built in."""
        names = self.home(frame.scope).names
        holder, bindings = names.lookup(node.id, frame.scope, frame.statement)
        if frame.function is not None and holder is not None:
            closed = frame.function.closure.get(node.id)
            if closed is not None:
                return closed
            if holder is frame.function.scope:
                return NOTHING  # It is bound on no way that leads here.
        if bindings:
            value = self._filled(join(map(self.of_binding, bindings)), node.id, frame.scope)
            return self.from_heap(value)
        return self.of_things(names.values(node, frame.scope, frame.statement), frame)

    def _filled(self, value: AbstractValue, name: str, scope: Scope) -> AbstractValue:
        """Return a container with what code outside of static functions puts into what is called so."""
        if not value.python & MUTABLE:
            return value
        for item in self.home(scope).item_bindings(name):
            if not self.is_walked(item.binding.scope):
                added = self.of_binding(item.binding)
                method = getattr(getattr(item.binding.target, "func", None), "attr", "append")
                if method in ("extend", "update", "setdefault"):
                    added = UNKNOWN
                element = added.joined(value.whole_element or NOTHING)
                value = replace(value, items=None, keys=None, element=element)
        return value

    @abstractmethod
    def from_heap(self, value: AbstractValue, attribute: str = "") -> AbstractValue:
        """What a value that is kept outside of a static function may be, by all that is stored in it.

        It is that of an attribute of some object, if a name is given.
        """

    def of_binding(self, binding: Binding) -> AbstractValue:
        """What a binding outside of static functions gives its name."""
        return self.lookups.ask((binding,), lambda: shallow(self._of_binding(binding)))

    def _of_binding(self, binding: Binding) -> AbstractValue:
        names = self.home(binding.scope).names
        frame = Frame(binding.scope, binding.statement, {})
        if binding.kind in ("value", "element") and binding.value is not None:
            value = self.evaluate(binding.value, frame)
            if binding.kind == "element":
                value = element_of(value)
            for slot in binding.path:
                value = item_of(value, slot) if isinstance(slot, int) else UNKNOWN
            return value
        if binding.kind in ("import", "function", "class"):
            return self.of_things(names.bound(binding), frame)
        if binding.kind == "parameter" and binding.inner is not None:
            return self._of_parameter(binding, binding.inner)
        return UNKNOWN

    def _of_parameter(self, binding: Binding, function: Scope) -> AbstractValue:
        """What a function of the file's is given by the calls in its file, and by its default."""
        script = self.home(function)
        assert isinstance(binding.target, ast.arg)
        name, owner = binding.target.arg, function.owner()
        if owner is not None and script.names.is_self(ast.Name(name, ast.Load()), function):
            return self.of_thing(UserInstance(owner, NO_CALL), Frame(function, None, {}))
        default = UNKNOWN
        if binding.value is not None:
            default = self.evaluate(binding.value, Frame(binding.scope, None, {}))
        found = []
        for site in self._calls_in_file(script, function, owner):
            given = script.names.argument(site, function, name)
            found.append(
                default if given is None else self.evaluate(given, Frame(site.scope, site.statement, {}))
            )
        if found:
            return join(found)
        is_made = function.name == "__init__" and default.is_python and not default.is_none
        return default if is_made or default.among("bool", "str") else UNKNOWN

    def _calls_in_file(self, script: Script, function: Scope, owner: Scope | None) -> Iterator[Site]:
        """The calls of a function, or of the class that it is the `__init__` of, in its own file."""
        is_made = function.name == "__init__" and owner is not None
        wanted = owner if is_made else function
        for site in script.sites_named(wanted.name) if wanted is not None and wanted.name else ():
            if is_self_member(script, site.node.func, site.scope):
                continue
            for value in script.names.callee(site):
                if isinstance(value, Class | Function) and value.scope is wanted:
                    yield site

    def of_things(self, things: frozenset[Thing], frame: Frame) -> AbstractValue:
        """What is one of the values that names are resolved to."""
        return join(self.of_thing(thing, frame) for thing in ordered(things)) if things else UNKNOWN

    def of_thing(self, thing: Thing, frame: Frame) -> AbstractValue:
        """What a resolved value is."""
        known = frozenset({thing})
        if isinstance(thing, Library | Module):
            is_function = isinstance(thing, Library) and api.function(thing.name) is not None
            return python("function" if is_function else "object", things=known)
        if isinstance(thing, Function):
            return python("function", things=known)
        if isinstance(thing, Class):
            return python("class", things=known)
        if isinstance(thing, UserInstance):
            layer = is_layer(self.home(thing.scope), thing.scope)
            return python("layer" if layer else "object", things=known)
        if isinstance(thing, Literal):
            return python("int", "float") if thing.value is ... else constant(thing.value)
        if isinstance(thing, Display):
            return self.evaluate(thing.node, Frame(thing.scope, thing.statement, {}))
        if isinstance(thing, Instance):
            return self.of_instance(thing, frame)
        return UNKNOWN

    def of_instance(self, thing: Instance, frame: Frame) -> AbstractValue:
        """What a library's class or function made."""
        known = frozenset({thing})
        if api.is_layer_class(thing.cls):
            return python("layer", things=known)
        operation = api.function(thing.cls)
        if operation is not None:
            if operation.returns == "tensor":
                return tensor()
            return UNKNOWN if operation.returns in ("", "tensors") else python("object")
        root, _, name = thing.cls.partition(".")
        if root == "builtins":
            return (
                python(name)
                if name in NUMBERS or name in ("str", "list", "dict", "tuple", "set")
                else UNKNOWN
            )
        if root == "numpy":
            return python("ndarray")
        if root in _PYTHON_ROOTS or root == "paddle":
            return python("object", things=known)
        return AbstractValue(unknown=True, things=known)

    # Attributes

    def _attribute(self, node: ast.Attribute, frame: Frame) -> AbstractValue:
        known = frame.env.get(dotted(node)) if isinstance(node.value, ast.Name | ast.Attribute) else None
        if known is not None and not known.is_nothing:
            self.evaluate(node.value, frame)
            return known.bound()
        script = self.home(frame.scope)
        library = script.names.member_of_library(node)
        if library:
            return self.of_things(library, frame)
        return self.member(self.holder(node, frame), node.attr, frame, node)

    def holder(self, node: ast.Attribute, frame: Frame) -> AbstractValue:
        """What an attribute is asked of; numbers, strings and containers make nothing that has a tensor's."""
        base = self.evaluate(node.value, frame)
        is_seen = base.tensor is None and base.unknown
        is_made = is_seen and (isinstance(node.value, _OPERATIONS) or _is_own_item(node.value, frame))
        if is_seen and frame.function is None and node.attr in api.only_tensors():
            return tensor().joined(python("ndarray"))  # What is no static function's may be NumPy's.
        return tensor() if is_made and node.attr in api.only_tensors() else base

    def member(
        self, base: AbstractValue, name: str, frame: Frame, node: ast.Attribute | None = None
    ) -> AbstractValue:
        """What an attribute of a value is."""
        found = NOTHING
        if base.tensor is not None:
            found = found.joined(self._of_tensor(base, base.tensor, name))
        for thing in ordered(base.things):
            found = found.joined(self._of_thing_named(thing, name, frame))
        if base.python and not base.things:
            is_known = not base.python & {"object", "layer"}
            found = found.joined(python("function") if is_known else UNKNOWN)
        if base.array:
            found = found.joined(python("function"))
        if base.unknown and not base.things:
            found = found.joined(UNKNOWN)
        return found

    def _of_tensor(self, base: AbstractValue, known: Tensor, name: str) -> AbstractValue:
        if name in ("shape", "_shape"):
            if known.shape is None:
                return python("list", element=self.size(known.loose))
            return python("list", items=tuple(map(self.size, known.shape)))
        if name in ("T", "mT"):
            return tensor(known.dtype, known.shape[::-1] if known.shape is not None else None)
        if name == "ndim" and known.shape is not None:
            return constant(len(known.shape))
        if name in ("grad", "data", "real", "imag"):
            return tensor(known.dtype, known.shape)
        return _ATTRIBUTES.get(name, python("function") if api.method(name) else UNKNOWN)

    def size(self, size: int | Dim) -> AbstractValue:
        """What a dimension of a tensor's shape is in a graph."""
        if isinstance(size, int):
            return constant(size)
        if size is Dim.ANY:
            return AbstractValue(python=frozenset({"int"}), unknown=True)
        return tensor("int32", (), counts=size)

    def _of_thing_named(self, thing: Thing, name: str, frame: Frame) -> AbstractValue:
        names = self.home(frame.scope).names
        if isinstance(thing, Library):
            return python("object", things=frozenset({Library(f"{thing.name}.{name}")}))
        if isinstance(thing, UserInstance):
            if name == "training":
                return python("bool")
            given = [self.of_binding(each) for each in self.own_bindings(thing, name)]
            held = join([*given, *self._registered(thing, name)])
            held = self.from_heap(self._filled(held, name, thing.scope), name)
            method = self.home(thing.scope).names.function_named(thing.scope, name)
            if method is not None and any(_last(each) == "property" for each in _decorators(method)):
                return self.called(method, thing, (), {}, frame, None)
            if method is not None:
                held = held.joined(python("function", things=frozenset({Function(method, thing)})))
            if not held.is_nothing:
                return held
            return UNKNOWN
        if isinstance(thing, Class):
            method = self.home(thing.scope).names.function_named(thing.scope, name)
            if method is not None:
                return python("function", things=frozenset({Function(method)}))
        if isinstance(thing, Module):
            return self.of_things(names.attribute_of(thing, name), frame)
        return UNKNOWN

    def own_bindings(self, thing: UserInstance, name: str) -> Iterator[Binding]:
        """How the methods of an object's classes, and these themselves, bind an attribute of it."""
        for cls in self.home(thing.scope).names.ancestry(thing.scope):
            if isinstance(cls, Scope):
                own, others = self.home(cls).names.assigned_attributes
                every = [*own.get((cls, name), ()), *(each.binding for each in others.get(name, ()))]
                yield from (each for each in every if not self.is_walked(each.scope))
                yield from (each for each in cls.bindings.get(name, ()) if each.kind == "value")

    def _registered(self, thing: UserInstance, name: str) -> Iterator[AbstractValue]:
        """The tensors that a layer keeps under a name: `self.register_buffer("name", ...)`."""
        for cls in self.home(thing.scope).names.ancestry(thing.scope):
            home = self.home(cls) if isinstance(cls, Scope) else None
            for site in home.sites_named("register_buffer", "add_parameter") if home is not None else ():
                first = argument(site.node, 0, "name")
                if site.scope.owner() is cls and getattr(first, "value", None) == name:
                    given = argument(site.node, 1, "tensor", "parameter")
                    known = UNKNOWN if given is None else self.evaluate(given, _place(site))
                    yield known if known.is_tensor else tensor()

    @abstractmethod
    def is_walked(self, scope: Scope) -> bool:
        """Whether a scope is, or lies in, a static function, of which all that it stores is known."""

    @abstractmethod
    def called(
        self,
        function: Scope,
        owner: UserInstance | None,
        given: tuple[AbstractValue, ...],
        words: dict[str, AbstractValue],
        frame: Frame,
        node: ast.Call | None,
    ) -> AbstractValue:
        """What a function of the workspace gives that Paddle converts with its caller."""


def _place(site: Site) -> Frame:
    return Frame(site.scope, site.statement, {})


def _is_own_item(node: ast.expr, frame: Frame) -> bool:
    """Whether it is an element of what a static function's own name holds."""
    root = root_name(node) if isinstance(node, ast.Subscript) else None
    if root is None or frame.function is None or isinstance(node.value, ast.Attribute):  # type: ignore[attr-defined]
        return False
    return root.id in frame.function.scope.bindings or root.id in frame.function.closure


def _last(node: ast.expr) -> str:
    return getattr(node, "attr", "") or getattr(node, "id", "")


def _decorators(function: Scope) -> list[ast.expr]:
    return list(getattr(function.node, "decorator_list", ()))
