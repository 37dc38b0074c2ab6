"""Evaluator: the abstract values of names, attributes, expressions and calls in static functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar, Protocol

from msgspec.structs import replace

from trainshift.core.program import Program
from trainshift.libraries.containers import ADDING, METHODS, MUTATING
from trainshift.python.names.classes import is_property
from trainshift.python.names.memo import Revisable
from trainshift.python.names.script import Script
from trainshift.python.names.values import (
    Class,
    Display,
    Function,
    Instance,
    Library,
    Literal,
    Member,
    Module,
    UserInstance,
)
from trainshift.python.names.values import Value as Thing
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Site, argument, dotted, root_name
from trainshift.python.syntax.slotted_ast import kind_of
from trainshift.python.values.heap import Attribute
from trainshift.static_graphs.domain.abstract_values import (
    NO_CONSTANT,
    NOTHING,
    NUMBER,
    NUMBERS,
    UNKNOWN,
    AbstractValue,
    Dim,
    Tensor,
    constant,
    join,
    join_envs,
    ordered,
    python,
    shallow,
    tensor,
)
from trainshift.static_graphs.reading.elements import (
    cut_out,
    element_of,
    in_any_order,
    item_of,
    put_anywhere,
    put_under,
    sliced,
    updated,
    value_under,
)
from trainshift.static_graphs.reading.entries import NOT_TO_STATIC, TO_STATIC, forward_of, is_layer
from trainshift.static_graphs.reading.frame import Call, Frame, Words, at_site, truth_of
from trainshift.static_graphs.reading.function import Truth
from trainshift.static_graphs.reading.stores import MUTABLE, Cell, places_in, put_into
from trainshift.static_graphs.tables import api
from trainshift.static_graphs.tables.api import Operation
from trainshift.static_graphs.tables.layers import shape_after
from trainshift.static_graphs.tables.results import result
from trainshift.static_graphs.tables.shapes import combined

# The results of these functions for other arguments than tensors lack the methods of tensors.
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
# The results of libraries other than Paddle: numbers, strings, arrays of their own.
_PYTHON_ROOTS = frozenset(
    {"math", "os", "sys", "time", "random", "re", "json", "copy", "itertools", "logging"}
)
# The libraries whose functions change no list, dict or object that they get, but for `shuffle`.
_UNCHANGING = _PYTHON_ROOTS | {"builtins", "collections", "numpy", "paddle", "typing", "warnings"}
# A value that still grows after this many rounds, such as that of a list in itself, is unknown.
_MOST_ROUNDS = 20
# The creation of a method's object: one of its own class.  Subclasses are left out, or all files would be
# read.
NO_CALL = ast.Call(ast.Name("object", ast.Load()), [], [])


def is_self_member(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Return whether an expression is an attribute of ``self``."""
    root = root_name(node)
    return root is not None and root is not node and script.names.is_self(root, scope)


_IDENTITY = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: int.__add__,
    ast.Sub: int.__sub__,
    ast.Mult: int.__mul__,
}
_MADE: dict[type[ast.AST], str] = {ast.ListComp: "list", ast.SetComp: "set", ast.DictComp: "dict"}
_REFERENCES = (ast.Name, ast.Attribute, ast.Subscript)
"""The expressions that refer to a container and make none."""
_MOST_DEEP = 32
# The elements of a container; of a list, as a list: `zip` and similar functions pair them.
_HOLDING = frozenset({"LayerList", "Sequential", "LayerDict", "ParameterList", "ModuleList", "ModuleDict"})
_ALWAYS = {
    **dict.fromkeys(("isinstance", "hasattr", "callable", "issubclass", "any", "all"), python("bool")),
    **dict.fromkeys(("str", "repr", "format", "chr", "hex", "bin"), python("str")),
    **dict.fromkeys(("type", "id", "hash", "open", "input", "object"), python("object")),
    "print": python("None"),
}
"""The results of Python's functions, whatever their arguments."""
_CASTS = {"int": "int64", "float": "float32", "bool": "bool"}
_ARRAYS = frozenset({"paddle.tensor.create_array", "paddle.tensor.array.create_array"})


def _is_made_by(node: ast.expr, value: AbstractValue) -> bool:
    """Return whether an expression makes a container, or an object of a class of the workspace."""
    if value.python & MUTABLE:
        return not isinstance(node, _REFERENCES)
    made = isinstance(node, ast.Call) and "object" in value.python
    return made and any(isinstance(each, UserInstance) and each.node is node for each in value.things)


class Host(Protocol):
    """The interface for the results of functions and the contents of the heap during evaluation."""

    def from_heap(self, value: AbstractValue, attribute: str = "") -> AbstractValue:
        """The possible values of an object outside static functions, from all stores to it.

        With a name, it is that attribute of an object.
        """

    def is_walked(self, scope: Scope) -> bool:
        """Return whether a scope is, or is inside, a static function, all of whose stores are known."""

    def called(self, function: Scope, frame: Frame, call: Call | None = None) -> AbstractValue:
        """The result of a function in the workspace that Paddle converts together with its caller; without
        a call, that of a property.
        """

    def assign(
        self, target: ast.expr, value: AbstractValue, frame: Frame, *, is_change: bool = False
    ) -> None:
        """Assign a value to a target; as a mutation of its object if `is_change`."""

    def store(self, stores: Mapping[Cell, AbstractValue], frame: Frame) -> None:
        """Record stores of values into cells of the heap."""

    def unconverted(
        self, function: Scope, given: tuple[AbstractValue, ...], call: Call, way: str
    ) -> AbstractValue:
        """The result of a function in the workspace that Paddle does not convert with its caller."""


class Evaluator:
    """The evaluator of a program's expressions; a `host` knows its functions and their stores."""

    def __init__(self, program: Program, host: Host) -> None:
        self.program = program
        self.host = host
        self.lookups = Revisable(NOTHING, UNKNOWN, rounds=_MOST_ROUNDS)
        self._deep = 0

    def home(self, scope: Scope) -> Script:
        """The script of some code."""
        return self.program.script.home(scope)

    # Names

    def _constant(self, node: ast.Constant, frame: Frame) -> AbstractValue:
        return constant(node.value)

    def _name(self, node: ast.Name, frame: Frame) -> AbstractValue:
        known = frame.env.get(node.id)
        if known is not None:
            return known.bound() if not known.is_nothing else known
        return self._outer(node, frame)

    def _outer(self, node: ast.Name, frame: Frame) -> AbstractValue:
        """A name that the function has not bound: of an outer scope, of the module, or a builtin."""
        names = self.home(frame.scope).names
        holder, bindings = names.lookup(node.id, frame.scope, frame.statement)
        if frame.function is not None and holder is not None:
            closed = frame.function.closure.get(node.id)
            if closed is not None:
                return closed
            if holder is frame.function.scope:
                return NOTHING  # It is bound on no path that leads here.
        if bindings:
            value = self._filled(join(map(self.of_binding, bindings)), node.id, frame.scope)
            return self.host.from_heap(value)
        return self.of_things(names.values(node, frame.scope, frame.statement))

    def _filled(self, value: AbstractValue, name: str, scope: Scope) -> AbstractValue:
        """Add to a container the values that code outside static functions puts into its name."""
        if not value.python & MUTABLE:
            return value
        for item in self.home(scope).item_bindings(name):
            if not self.host.is_walked(item.binding.scope):
                added = self.of_binding(item.binding)
                method = getattr(getattr(item.binding.target, "func", None), "attr", "append")
                if method in ("extend", "update", "setdefault"):
                    added = UNKNOWN
                value = put_anywhere(value, added)
        return value

    def of_binding(self, binding: Binding) -> AbstractValue:
        """The value of a binding outside of static functions."""
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
            return self.of_things(names.bound(binding))
        if binding.kind == "parameter" and binding.inner is not None:
            return self._of_parameter(binding, binding.inner)
        return UNKNOWN

    def _of_parameter(self, binding: Binding, function: Scope) -> AbstractValue:
        """The arguments of a function's parameter in the file's calls, and its default."""
        script = self.home(function)
        assert isinstance(binding.target, ast.arg)
        name, owner = binding.target.arg, function.owner()
        if owner is not None and script.names.is_self(ast.Name(name, ast.Load()), function):
            return self.of_thing(UserInstance(owner, NO_CALL))
        default = UNKNOWN
        if binding.value is not None:
            default = self.evaluate(binding.value, Frame(binding.scope, None, {}))
        found = []
        for site in self._calls_in_file(script, function, owner):
            given = script.names.argument(site, function, name)
            found.append(default if given is None else self.evaluate(given, at_site(site)))
        if found:
            return join(found)
        is_made = function.name == "__init__" and default.is_python and not default.is_none
        return default if is_made or default.among("bool", "str") else UNKNOWN

    def _calls_in_file(self, script: Script, function: Scope, owner: Scope | None) -> Iterator[Site]:
        """The calls of a function, or of its class if it is an `__init__`, in its own file."""
        is_made = function.name == "__init__" and owner is not None
        wanted = owner if is_made else function
        for site in script.sites_named(wanted.name) if wanted is not None and wanted.name else ():
            if is_self_member(script, site.node.func, site.scope):
                continue
            for value in script.names.callee(site):
                if isinstance(value, Class | Function) and value.scope is wanted:
                    yield site

    def of_things(self, things: frozenset[Thing]) -> AbstractValue:
        """The join of the abstract values of resolved values."""
        return join(self.of_thing(thing) for thing in ordered(things)) if things else UNKNOWN

    def of_thing(self, thing: Thing) -> AbstractValue:
        """The abstract value of a resolved value."""
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
            return self.of_instance(thing)
        return UNKNOWN

    def of_instance(self, thing: Instance) -> AbstractValue:
        """The abstract value of a library object."""
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
            return self.of_things(library)
        return self.member(self.holder(node, frame), node.attr, frame)

    def holder(self, node: ast.Attribute, frame: Frame) -> AbstractValue:
        """The object of an attribute access; numbers, strings and containers have no tensor attributes."""
        base = self.evaluate(node.value, frame)
        is_seen = base.tensor is None and base.unknown
        is_made = is_seen and (isinstance(node.value, _OPERATIONS) or _is_own_item(node.value, frame))
        if is_seen and frame.function is None and node.attr in api.only_tensors():
            return tensor().joined(python("ndarray"))  # A value from outside static functions may be NumPy's.
        return tensor() if is_made and node.attr in api.only_tensors() else base

    def member(self, base: AbstractValue, name: str, frame: Frame) -> AbstractValue:
        """The value of an object's attribute."""
        found = NOTHING
        if base.tensor is not None:
            found = found.joined(self._of_tensor(base.tensor, name))
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

    def _of_tensor(self, known: Tensor, name: str) -> AbstractValue:
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
        """The value of a dimension of a tensor's shape in a graph."""
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
            held = self.host.from_heap(self._filled(held, name, thing.scope), name)
            method = self.home(thing.scope).names.function_named(thing.scope, name)
            if method is not None and is_property(method):
                return self.host.called(method, frame)
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
            return self.of_things(names.attribute_of(thing, name))
        return UNKNOWN

    def own_bindings(self, thing: UserInstance, name: str) -> Iterator[Binding]:
        """Return the bindings of an attribute by the methods of an object's classes, and by these classes."""
        for cls in self.home(thing.scope).names.ancestry(thing.scope):
            if isinstance(cls, Scope):
                own, others = self.home(cls).names.assigned_attributes
                every = [*own.get((cls, name), ()), *(each.binding for each in others.get(name, ()))]
                yield from (each for each in every if not self.host.is_walked(each.scope))
                yield from (each for each in cls.bindings.get(name, ()) if each.kind == "value")

    def _registered(self, thing: UserInstance, name: str) -> Iterator[AbstractValue]:
        """The tensors that a layer keeps under a name: `self.register_buffer("name", ...)`."""
        for cls in self.home(thing.scope).names.ancestry(thing.scope):
            home = self.home(cls) if isinstance(cls, Scope) else None
            for site in home.sites_named("register_buffer", "add_parameter") if home is not None else ():
                first = argument(site.node, 0, "name")
                if site.scope.owner() is cls and getattr(first, "value", None) == name:
                    given = argument(site.node, 1, "tensor", "parameter")
                    known = UNKNOWN if given is None else self.evaluate(given, at_site(site))
                    yield known if known.is_tensor else tensor()

    def evaluate(self, node: ast.expr, frame: Frame) -> AbstractValue:
        """The possible values of an expression; recorded in the frame's function."""
        if self._deep > _MOST_DEEP:
            if frame.function is not None and any(isinstance(each, ast.Call) for each in ast.walk(node)):
                raise RecursionError  # The effects of its calls would be lost: the function is unknown.
            return _unseen(node, frame)
        self._deep += 1
        try:
            read = self._READERS.get(kind_of(node))
            value = read(self, node, frame) if read is not None else UNKNOWN
            if value.tensor is not None and not value.sources:
                value = replace(value, sources=frozenset({node}))
            if not value.places and _is_made_by(node, value):
                value = replace(value, places=frozenset({node}))
            return frame.note(node, value)
        finally:
            self._deep -= 1

    # Operators

    def _operation(self, node: ast.BinOp, frame: Frame) -> AbstractValue:
        left, right = self.evaluate(node.left, frame), self.evaluate(node.right, frame)
        return self.operated(node, left, right)

    def operated(self, node: ast.BinOp, left: AbstractValue, right: AbstractValue) -> AbstractValue:
        """The result of an operator on two operands."""
        found = NOTHING
        if left.tensor is not None or right.tensor is not None:
            plain = left.among("list", "tuple") or right.among("list", "tuple", "str")
            if plain and isinstance(node.op, ast.Add | ast.Mult):
                return python("list", element=left.whole_element or right.whole_element)
            bits = isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor)
            dtype = "bool" if bits and {left.dtype or "bool", right.dtype or "bool"} == {"bool"} else ""
            found = combined(left, right, dtype, divides=isinstance(node.op, ast.Div))
            if left.is_tensor or right.is_tensor:
                return found
        if left.unknown or right.unknown:
            found = found.joined(replace(UNKNOWN, numeric=left.is_numeric and right.is_numeric))
        types = left.python | right.python
        if isinstance(node.op, ast.Add | ast.Mult) and types & {"list", "tuple", "str"}:
            known = found.joined(_concatenated(left, right, node))
            both = left.python & NUMBERS and right.python & NUMBERS
            return known.joined(python(*(types & NUMBERS))) if both else known
        return found.joined(_reckoned(left, right, node.op)) if left.python and right.python else found

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> AbstractValue:
        value = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Not):
            frame.judge(node, truth_of(value))
            known = value.tensor
            made = tensor("bool", known.shape, counted=known.counted) if known is not None else NOTHING
            return made.joined(python("bool")) if not value.is_tensor else made
        if isinstance(value.constant, int | float) and not isinstance(value.constant, bool):
            return constant(-value.constant if isinstance(node.op, ast.USub) else value.constant)
        return replace(value, constant=NO_CONSTANT, sources=frozenset(), views=frozenset())

    def _choice(self, node: ast.BoolOp, frame: Frame) -> AbstractValue:
        values = [self.evaluate(each, frame) for each in node.values]
        truths = [truth_of(each) for each in values]
        is_graph = Truth.GRAPH in truths
        frame.judge(node, Truth.GRAPH if is_graph else _either(truths))
        if is_graph:
            tensors = [each.tensor for each in values if each.is_tensor and each.tensor]
            return tensor("bool", tensors[0].shape, counted=all(each.counted for each in tensors))
        return join(values)

    def _comparison(self, node: ast.Compare, frame: Frame) -> AbstractValue:
        values = [self.evaluate(each, frame) for each in (node.left, *node.comparators)]
        if all(isinstance(op, _IDENTITY) for op in node.ops):
            if len(values) == 2 and isinstance(node.ops[0], ast.Is | ast.IsNot) and values[1].is_none:
                known = True if values[0].is_none else None
                known = False if not values[0].unknown and "None" not in values[0].python else known
                if known is not None and not values[0].is_nothing:
                    return constant(known == isinstance(node.ops[0], ast.Is))
            return python("bool")
        found = NOTHING
        if any(each.tensor is not None for each in values):
            if any(each.among("list", "tuple", "str", "None") for each in values):
                return python("bool")
            left, right = values[0], values[1]
            found = combined(left, right, "bool")
            found = replace(found, tensor=replace(found.tensor or Tensor(), counts=None))
            if any(each.is_tensor for each in values):
                return found
        if any(each.unknown for each in values):
            found = found.joined(replace(UNKNOWN, numeric=all(each.is_numeric for each in values)))
        return found.joined(python("bool"))

    def _ternary(self, node: ast.IfExp, frame: Frame) -> AbstractValue:
        test = self.evaluate(node.test, frame)
        frame.judge(node, truth_of(test))
        body, orelse = self.evaluate(node.body, frame), self.evaluate(node.orelse, frame)
        if isinstance(test.constant, bool):
            return body if test.constant else orelse
        return join([body, orelse])

    # Containers

    def _display(self, node: ast.List | ast.Tuple | ast.Set, frame: Frame) -> AbstractValue:
        kind = kind_of(node).__name__.lower()
        parts = [self.evaluate(each, frame) for each in node.elts]
        if any(isinstance(each, ast.Starred) for each in node.elts) or kind == "set":
            return python(kind, element=join(parts))
        return python(kind, items=tuple(parts))

    def _starred(self, node: ast.Starred, frame: Frame) -> AbstractValue:
        return element_of(self.evaluate(node.value, frame))

    def _dict(self, node: ast.Dict, frame: Frame) -> AbstractValue:
        keys = [self.evaluate(key, frame) if key is not None else None for key in node.keys]
        values = [self.evaluate(each, frame) for each in node.values]
        found = python("dict", items=(), keys=())
        for key, value in zip(keys, values, strict=True):
            found = updated(found, value) if key is None else put_under(found, key, value)
        return found

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame
    ) -> AbstractValue:
        scope = frame.scope.facts.scope_of[node]
        inner = frame.inside(scope, dict(frame.env))
        while True:
            before = dict(inner.env)
            for part in node.generators:
                iterated = self.evaluate(part.iter, inner)
                self.host.assign(part.target, element_of(iterated), inner)
                for test in part.ifs:
                    inner.judge(test, truth_of(self.evaluate(test, inner)))
            if isinstance(node, ast.DictComp):
                self.evaluate(node.key, inner)
            made = self.evaluate(node.value if isinstance(node, ast.DictComp) else node.elt, inner)
            joined = join_envs([before, inner.env]) or before
            if joined == before:
                break
            inner = frame.inside(scope, joined)
        for name, value in inner.env.items():
            if name not in scope.bindings and value != frame.env.get(name):
                frame.env[name] = value.joined(frame.env.get(name, NOTHING)).bound()
        return python(_MADE.get(kind_of(node), "generator"), element=made)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> AbstractValue:
        base = self.evaluate(node.value, frame)
        index = self.evaluate(node.slice, frame)
        found = NOTHING
        if base.tensor is not None:
            found = sliced(base, base.tensor, node.slice, index)
        if base.python & {"dict", "list", "tuple"} or base.array:
            if isinstance(node.slice, ast.Slice):
                items = cut_out(base, node.slice)
                found = found.joined(
                    replace(
                        base,
                        tensor=None,
                        unknown=False,
                        items=items,
                        keys=None,
                        places=frozenset(),
                        element=base.whole_element if items is None else None,
                    )
                )
            elif _is_int(index.constant) and "dict" not in base.python:
                found = found.joined(item_of(base, index.constant))  # type: ignore[arg-type]
            elif base.among("dict"):
                found = found.joined(value_under(base, index) or UNKNOWN)
            else:
                found = found.joined(base.whole_element or UNKNOWN)
        elif base.things and "layer" in base.python:
            found = found.joined(base.whole_element or python("layer"))
        elif base.python:
            found = found.joined(
                python("str")
                if base.among("str")
                else python("ndarray")
                if base.among("ndarray")
                else UNKNOWN
            )
        return found.joined(UNKNOWN) if base.unknown or found.is_nothing else found

    def _slice(self, node: ast.Slice, frame: Frame) -> AbstractValue:
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                self.evaluate(part, frame)
        return python("object")

    def _string(self, node: ast.JoinedStr, frame: Frame) -> AbstractValue:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.evaluate(part.value, frame)
        return python("str")

    def _walrus(self, node: ast.NamedExpr, frame: Frame) -> AbstractValue:
        value = self.evaluate(node.value, frame)
        self.host.assign(node.target, value, frame)
        return value

    def _lambda(self, node: ast.Lambda, frame: Frame) -> AbstractValue:
        inner = frame.scope.facts.scope_of[node]
        return python("function", things=frozenset({Function(inner)}))

    _READERS: ClassVar[dict[type[ast.AST], Callable[..., AbstractValue]]] = {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.Attribute: _attribute,
        ast.BinOp: _operation,
        ast.UnaryOp: _unary,
        ast.BoolOp: _choice,
        ast.Compare: _comparison,
        ast.IfExp: _ternary,
        ast.List: _display,
        ast.Tuple: _display,
        ast.Set: _display,
        ast.Starred: _starred,
        ast.Dict: _dict,
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.DictComp: _comprehension,
        ast.Subscript: _subscript,
        ast.Slice: _slice,
        ast.JoinedStr: _string,
        ast.NamedExpr: _walrus,
        ast.Lambda: _lambda,
        ast.Call: lambda self, node, frame: self._call(node, frame),
    }

    def _call(self, node: ast.Call, frame: Frame) -> AbstractValue:
        given = tuple(self.evaluate(each, frame) for each in node.args)
        words = {word.arg: self.evaluate(word.value, frame) for word in node.keywords if word.arg}
        for word in node.keywords:
            if word.arg is None:
                self.evaluate(word.value, frame)
        call = Call(node, given, words, frame)
        called = node.func
        found = NOTHING
        callee = self.evaluate(called, frame)
        names: set[str] = set()
        if isinstance(called, ast.Attribute) and not self._is_library(called, frame):
            base = self.holder(called, frame)
            found = self._method(called, base, call)
            if base.tensor is not None:
                names.add(f"paddle.Tensor.{called.attr}")
        for thing in ordered(callee.things):
            if isinstance(thing, Library):
                names.add(thing.name)
            elif isinstance(thing, Instance):
                names.add(f"{thing.cls}.__call__")
            found = found.joined(self._of(thing, call))
        if frame.function is not None:
            frame.function.named[node] = frozenset(names)
            if self._is_unseen(called, callee, frame):
                self.hand_to_unseen((*given, *words.values()), frame)
        if found.is_nothing and not callee.things:
            if callee.is_nothing and frame.function is not None:
                return NOTHING
            return UNKNOWN if "layer" not in callee.python else tensor()
        if callee.unknown and not callee.things:
            found = found.joined(UNKNOWN)
        return replace(found, sources=found.sources | {node}) if found.tensor and not found.sources else found

    def _is_unseen(self, called: ast.expr, callee: AbstractValue, frame: Frame) -> bool:
        """Return whether a call may run code that is not seen, and so change the containers that it gets."""
        for thing in callee.things:
            full_name = thing.name if isinstance(thing, Library) else getattr(thing, "cls", "")
            root = full_name.partition(".")[0]
            if full_name and (root not in _UNCHANGING or full_name.endswith(".shuffle")):
                return True
        if callee.things or callee.is_nothing:
            return False
        if not isinstance(called, ast.Attribute) or self._is_library(called, frame):
            return callee.unknown
        base = self.evaluate(called.value, frame)
        return base.unknown or not base.python.isdisjoint(("object", "layer"))

    def hand_to_unseen(self, values: Iterable[AbstractValue], frame: Frame) -> None:
        """Record that code which is not seen may put anything into containers, and into plain objects."""
        stores: dict[Cell, AbstractValue] = {}
        for value in values:
            stores.update(dict.fromkeys(places_in(value), UNKNOWN))
            for thing in value.things:
                if isinstance(thing, UserInstance) and not is_layer(self.home(thing.scope), thing.scope):
                    own, others = self.home(thing.scope).names.assigned_attributes
                    names = {name for owner, name in own if owner is thing.scope} | others.keys()
                    stores.update({Attribute(name): UNKNOWN for name in names})
        if stores:
            self.host.store(stores, frame)

    def _is_library(self, node: ast.Attribute, frame: Frame) -> bool:
        return bool(self.home(frame.scope).names.member_of_library(node))

    # Methods of values that are not objects of a class

    def _method(self, called: ast.Attribute, base: AbstractValue, call: Call) -> AbstractValue:
        name = called.attr
        found = NOTHING
        if base.tensor is not None:
            operation = api.method(name)
            found = UNKNOWN
            if operation is not None:
                alone = replace(base, python=frozenset(), array=False, unknown=False)
                found = result(operation, _given(operation, (alone, *call.given), call.words))
                if name.endswith("_") or name in ("reshape", "flatten", "squeeze", "unsqueeze", "detach"):
                    found = replace(found, views=base.sources | base.views)
                if name.endswith("_"):
                    found = replace(found, sources=base.sources)
        if base.array or base.python & MUTABLE:
            found = found.joined(self._of_container(called, base, call))
        if "ndarray" in base.python:
            found = found.joined(UNKNOWN if name in ("item", "tolist") else python("ndarray"))
        if base.among("str"):
            found = found.joined(python("list", element=python("str")) if "split" in name else python("str"))
        return found

    def _of_container(self, called: ast.Attribute, base: AbstractValue, call: Call) -> AbstractValue:
        """The result of a method of a list, dict or set; records additions."""
        name, element, given = called.attr, base.whole_element, call.given
        if name in ADDING and (given or call.words):
            self._grow(called, base, call)
            if name == "setdefault":
                return join([element or NOTHING, *given[1:]])
            return python("None")
        if name in MUTATING:
            self.host.assign(called.value, in_any_order(base), call.frame, is_change=True)
        if name in ("pop", "popleft", "popitem"):
            return _taken_out(name, base, given)
        if name == "get":
            held = value_under(base, given[0]) if given else element
            return join([held or UNKNOWN, *(given[1:] or [constant(None)])])
        if name == "items":
            return _pairs(base)
        if name == "values":
            return (
                python("list", items=base.items) if base.items else python("list", element=element or UNKNOWN)
            )
        if name == "keys":
            return python("list", element=python("str"))
        if name == "copy":
            return replace(base, places=frozenset())
        if name.startswith("__"):
            self.hand_to_unseen((base,), call.frame)
            return UNKNOWN
        return python("int" if name in ("index", "count") else "None")

    def _grow(self, called: ast.Attribute, base: AbstractValue, call: Call) -> None:
        """Add elements to a container."""
        name, grown = called.attr, base
        given = [put_into(base.places, each) for each in call.given]
        words = {word: put_into(base.places, each) for word, each in call.words.items()}
        if name == "update":
            for each in given:
                grown = updated(grown, each)
            for word, value in words.items():
                grown = put_under(grown, constant(word), value)
            added = join([*(each.whole_element or UNKNOWN for each in given), *words.values()])
        else:
            added = given[-1] if given else join(words.values())
            if METHODS[name].elements is not None:
                added = element_of(added)
            if name == "append" and base.items is not None and len(base.items) < 32 and not base.array:
                grown = replace(base, items=(*base.items, added))
            else:
                grown = put_anywhere(base, added)
        self.host.store(dict.fromkeys(base.places, added), call.frame)
        self.host.assign(called.value, grown, call.frame, is_change=True)

    # Possible callees

    def _of(self, thing: Thing, call: Call) -> AbstractValue:
        given = call.given
        if isinstance(thing, Library):
            return self._of_library(thing.name, call)
        if isinstance(thing, Function):
            return self.host.called(thing.scope, call.frame, call)
        if isinstance(thing, UserInstance):
            return self._of_object(thing, call)
        if isinstance(thing, Class):
            return self.of_thing(UserInstance(thing.scope, call.node))
        if isinstance(thing, Instance):
            return self._of_instance(thing, call)
        if isinstance(thing, Member) and thing.name == "create_parameter":
            return tensor(*_created(given, call.words))
        if isinstance(thing, Member) and thing.name in ("add_sublayer", "add_module", "add_parameter"):
            return given[1] if len(given) > 1 else UNKNOWN
        return UNKNOWN

    def _of_object(self, thing: UserInstance, call: Call) -> AbstractValue:
        names = self.home(thing.scope).names
        function = forward_of(self.home(thing.scope), thing)
        if function is not None:
            return self.host.called(function, call.frame, call)
        for base in sorted(names.library_bases(thing.scope)):
            if api.is_layer_class(base) and base != api.LAYER:
                return _by_returns(api.layer_returns(base))
        return UNKNOWN

    def _of_instance(self, thing: Instance, call: Call) -> AbstractValue:
        name, given = thing.cls.rpartition(".")[2], call.given
        if thing.cls in TO_STATIC:
            first = thing.node.args[0] if thing.node.args else None
            return UNKNOWN if first is None else self._through(first, thing, call)
        if thing.cls == "functools.partial" and thing.node.args:
            given_first, *preset = self.evaluate_call_arguments(thing)
            return join(
                self.host.unconverted(each.scope, (*preset, *given), call, "`partial`")
                for each in ordered(given_first.things)
                if isinstance(each, Function)
            ).joined(UNKNOWN)
        if name == "Sequential":
            held = self.evaluate_call_arguments(thing)
            value = given[0] if given else UNKNOWN
            for layer in held:
                for each in ordered(layer.things):
                    value = self._of(each, replace(call, given=(value,), words={}))
            return value if held and not value.is_nothing else tensor()
        if api.is_layer_class(thing.cls):
            made = _by_returns(api.layer_returns(thing.cls))
            known = given[0].tensor if given and given[0].is_tensor else None
            if known is None or not made.is_tensor or made.tensor is None:
                return made
            options = frozenset(word.arg or "" for word in thing.node.keywords)
            shape = shape_after(thing.cls, known.shape, options=options)
            return replace(made, tensor=replace(made.tensor, shape=shape))
        return UNKNOWN

    def _through(self, first: ast.expr, thing: Instance, call: Call) -> AbstractValue:
        """A call of an object wrapped by `to_static`."""
        inner = self.evaluate(first, at_site(self.program.script.site_of(thing.node)))
        return join(self._of(each, call) for each in ordered(inner.things))

    def evaluate_call_arguments(self, thing: Instance) -> list[AbstractValue]:
        """The layers passed to a container of layers, in order."""
        try:
            site = self.program.script.site_of(thing.node)
        except KeyError:
            return []
        values = [self.evaluate(each, at_site(site)) for each in thing.node.args]
        if len(values) == 1 and values[0].items is not None:
            return list(values[0].items)
        return values

    # Libraries

    def _of_library(self, full_name: str, call: Call) -> AbstractValue:
        root, _, name = full_name.rpartition(".")
        given = call.given
        if root == "builtins":
            return self._builtin(name, call)
        if full_name in _ARRAYS:
            return AbstractValue(array=True, element=NOTHING)
        if full_name in TO_STATIC | NOT_TO_STATIC and given:
            return given[0]
        operation = api.function(full_name)
        if operation is not None:
            found = result(operation, _given(operation, given, call.words))
            if given and (name.endswith("_") or name in ("reshape", "flatten", "squeeze", "unsqueeze")):
                found = replace(found, views=given[0].sources | given[0].views)
            return found
        known = self.of_instance(Instance(full_name, call.node))
        if api.is_layer_class(full_name) and name in _HOLDING:
            values = [each for value in given for each in (value.items or (value.whole_element or value,))]
            return replace(known, element=join(values)) if values else known
        if root == "math":
            return python("float", "int")
        if full_name in ("copy.copy", "copy.deepcopy") and given:
            return given[0]
        return known

    def _builtin(self, name: str, call: Call) -> AbstractValue:
        node, given, frame = call.node, call.given, call.frame
        first = given[0] if given else NOTHING
        if name in _ALWAYS:
            return _ALWAYS[name]
        if name in _BY_ARGUMENTS:
            return _BY_ARGUMENTS[name](name, given)
        if name == "len":
            return self._length(first)
        if name == "dict":
            made = python("dict", items=(), keys=())
            if given:
                made = updated(made, first)
            for word, value in call.words.items():
                made = put_under(made, constant(word), value)
            return made
        if name == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            named = node.args[1].value
            found = self.member(first, named, frame) if isinstance(named, str) else UNKNOWN
            return found.joined(given[2]) if len(given) > 2 else found
        if name == "setattr" and len(given) > 2 and isinstance(given[1].constant, str):
            self.host.store({Attribute(given[1].constant): given[2]}, frame)
            return python("None")
        if name in ("map", "filter") and len(given) > 1:
            elements = tuple(map(element_of, given[1:]))
            results = [
                self.host.unconverted(each.scope, elements, call, f"`{name}`")
                for each in first.things
                if isinstance(each, Function)
            ]
            return python("list", element=join(results) if results and name == "map" else elements[0])
        if name == "super":
            things = self.home(frame.scope).names.values(node, frame.scope, frame.statement)
            return self.of_things(things)
        return UNKNOWN

    def _length(self, value: AbstractValue) -> AbstractValue:
        found = NOTHING
        if value.tensor is not None:
            shape = value.tensor.shape
            found = self.size(shape[0] if shape else value.tensor.loose)
        if value.array:
            found = found.joined(tensor("int64", (1,)))
        if value.items is not None:
            return found.joined(constant(len(value.items)))
        if value.python:
            found = found.joined(python("int"))
        return found.joined(UNKNOWN) if value.unknown and not value.python else found


def _is_own_item(node: ast.expr, frame: Frame) -> bool:
    """Return whether a node is an element of a container that a static function's own name holds."""
    root = root_name(node) if isinstance(node, ast.Subscript) else None
    if root is None or frame.function is None or isinstance(node.value, ast.Attribute):  # type: ignore[attr-defined]
        return False
    return root.id in frame.function.scope.bindings or root.id in frame.function.closure


def _unseen(node: ast.expr, frame: Frame) -> AbstractValue:
    """Record that an expression, with all of its parts, is unknown."""
    for each in ast.walk(node):
        if isinstance(each, ast.BoolOp | ast.IfExp) or (
            isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not)
        ):
            frame.judge(each, Truth.EITHER)
        if isinstance(each, ast.expr):
            frame.note(each, UNKNOWN)
    return UNKNOWN


def _either(truths: list[Truth]) -> Truth:
    return Truth.EITHER if Truth.EITHER in truths else Truth.PYTHON


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _reckoned(left: AbstractValue, right: AbstractValue, operator: ast.operator) -> AbstractValue:
    """The result of an operator on two Python values, such as numbers."""
    types = left.python | right.python
    work_out = _ARITHMETIC.get(kind_of(operator))  # type: ignore[arg-type]
    one, other = left.constant, right.constant
    if work_out is not None and _is_int(one) and _is_int(other):
        return constant(work_out(one, other))  # type: ignore[arg-type]
    if types <= NUMBERS:
        is_float = "float" in types or isinstance(operator, ast.Div | ast.Pow)
        return python("float" if is_float else "int")
    return python("object" if "object" in types else sorted(types)[0])


def _concatenated(left: AbstractValue, right: AbstractValue, node: ast.BinOp) -> AbstractValue:
    """The concatenation or repetition of lists or strings."""
    types = (left.python | right.python) & {"list", "tuple", "str"}
    if isinstance(node.op, ast.Add) and left.items is not None and right.items is not None:
        return python(*types, items=left.items + right.items)
    repeated, number = (left, right) if left.python & types else (right, left)
    if isinstance(node.op, ast.Mult) and repeated.items is not None and _is_int(number.constant):
        count: int = number.constant  # type: ignore[assignment]
        if len(repeated.items) * max(count, 0) <= 64:
            return python(*types, items=repeated.items * count)
    parts = [each for each in (left.whole_element, right.whole_element) if each is not None]
    return python(*types, element=join(parts) if parts else None)


def _cast(name: str, given: tuple[AbstractValue, ...]) -> AbstractValue:
    """The result of `int`, `float` or `bool`."""
    first = given[0] if given else NOTHING
    if first.tensor is not None:
        made = tensor(_CASTS[name], (), counts=first.tensor.counts)
        return made if first.is_tensor else made.joined(python(name))
    return python(name) if not first.unknown else python(name).joined(UNKNOWN)


def _range(name: str, given: tuple[AbstractValue, ...]) -> AbstractValue:
    number = tensor("int64", (), counted=True)
    if not any(each.is_tensor for each in given):
        may_be_tensor = any(each.tensor is not None or each.unknown for each in given)
        number = number.joined(python("int")) if may_be_tensor else python("int")
    return python("range", element=number)


def _enumerated(name: str, given: tuple[AbstractValue, ...]) -> AbstractValue:
    first = given[0] if given else NOTHING
    number = tensor("int64", (), counted=True) if first.is_tensor else python("int")
    return python("enumerate", element=python("tuple", items=(number, element_of(first))))


def _zipped(name: str, given: tuple[AbstractValue, ...]) -> AbstractValue:
    return python("zip", element=python("tuple", items=tuple(map(element_of, given))))


def _gathered(name: str, given: tuple[AbstractValue, ...]) -> AbstractValue:
    """The result of a builtin that collects its argument's elements: a list, or the builtin's own type."""
    kind = name if name in ("list", "tuple", "set") else "list"
    if not given:
        return python(kind, items=())
    first = given[0]
    if first.items is None or first.keys is not None or name in ("sorted", "reversed", "set"):
        return python(kind, element=element_of(first))
    return python(kind, items=first.items)


def _of_numbers(name: str, given: tuple[AbstractValue, ...]) -> AbstractValue:
    """The result of a builtin on numbers, or on containers of numbers."""
    first = given[0] if given else NOTHING
    if name == "abs" and first.is_tensor and first.tensor is not None:
        return replace(first, tensor=replace(first.tensor, dtype=first.dtype or NUMBER))
    parts = [part for each in given for part in _summands(each)]
    values = [element_of(each) if each.python & {"list", "tuple"} else each for each in given]
    known = [each.tensor for each in values if each.tensor is not None]
    if not known:
        return join(values) if not any(each.unknown for each in values) else UNKNOWN
    size = next((each.counts for each in known if each.counts), None)
    made = tensor(NUMBER, counts=size, counted=all(each.counted for each in known))
    is_sure = any(each.is_tensor for each in parts) and name not in ("max", "min")
    if is_sure or all(each.is_tensor for each in parts):
        return made
    return replace(join(values), tensor=made.tensor, constant=NO_CONSTANT)


_BY_ARGUMENTS: dict[str, Callable[[str, tuple[AbstractValue, ...]], AbstractValue]] = {
    **dict.fromkeys(_CASTS, _cast),
    **dict.fromkeys(("list", "tuple", "set", "sorted", "reversed", "iter"), _gathered),
    **dict.fromkeys(("max", "min", "sum", "abs", "round", "pow", "divmod"), _of_numbers),
    "range": _range,
    "enumerate": _enumerated,
    "zip": _zipped,
}


"""The results of Python's functions, by their name and arguments."""


def _summands(value: AbstractValue) -> list[AbstractValue]:
    """The operands in a value: itself or its elements, as far as known."""
    if not value.python & {"list", "tuple"}:
        return [value]
    return list(value.items) if value.items is not None and value.is_python else [element_of(value)]


def _taken_out(name: str, base: AbstractValue, given: tuple[AbstractValue, ...]) -> AbstractValue:
    """The result of `pop` and the like."""
    if name == "popitem":
        return python("tuple", items=(UNKNOWN, base.whole_element or UNKNOWN))
    last = base.items[-1:] if base.items is not None and base.keys is None and not given else None
    return last[0] if last else join([base.whole_element or UNKNOWN, *given[1:]])


def _pairs(base: AbstractValue) -> AbstractValue:
    """The result of a dict's `items`."""
    if base.keys is not None and base.items:
        pairs = zip(base.keys, base.items, strict=True)
        return python(
            "list", items=tuple(python("tuple", items=(constant(key), each)) for key, each in pairs)
        )
    return python("list", element=python("tuple", items=(UNKNOWN, base.whole_element or UNKNOWN)))


def _given(operation: Operation, given: tuple[AbstractValue, ...], words: Words) -> dict[str, AbstractValue]:
    """The arguments of an operation, by parameter."""
    found = dict(zip(operation.parameters, given, strict=False))
    if (
        len(given) > 2
        and operation.name in ("reshape", "transpose", "expand", "tile")
        and given[1].among("int")
    ):
        found["shape" if operation.name != "transpose" else "perm"] = python("list", items=given[1:])
    return found | dict(words)


def _by_returns(returns: str) -> AbstractValue:
    made = tensor(NUMBER)
    if returns == "tensor":
        return made
    if returns == "tensors":
        return python("tuple", element=made)
    return made.joined(python("tuple", element=made))


def _created(given: tuple[AbstractValue, ...], words: Words) -> tuple[str, tuple[int | Dim, ...] | None]:
    """The dtype and shape of a layer's parameter."""
    shape = words.get("shape") or (given[0] if given else None)
    items = shape.items if shape is not None else None
    sizes = [each.constant if isinstance(each.constant, int) else Dim.ANY for each in items or ()]
    asked = words.get("dtype")
    dtype = "float32" if asked is None else asked.constant if isinstance(asked.constant, str) else ""
    return dtype, tuple(sizes) if items is not None else None
