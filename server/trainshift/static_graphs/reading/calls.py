"""Calls in static functions: the value of each, and the functions that become static by it."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace

from trainshift.libraries.containers import ADDING, METHODS, MUTATING
from trainshift.python.names.values import Class, Function, Instance, Library, Member, UserInstance
from trainshift.python.names.values import Value as Thing
from trainshift.python.syntax.chunk_syntax import Scope
from trainshift.python.values.heap import Attribute
from trainshift.static_graphs.reading.abstract_values import (
    NO_CONSTANT,
    NOTHING,
    NUMBER,
    UNKNOWN,
    AbstractValue,
    Dim,
    constant,
    join,
    ordered,
    python,
    tensor,
)
from trainshift.static_graphs.reading.elements import (
    element_of,
    in_any_order,
    put_under,
    updated,
    value_under,
)
from trainshift.static_graphs.reading.entries import NOT_TO_STATIC, TO_STATIC, is_layer
from trainshift.static_graphs.reading.expressions import Expressions
from trainshift.static_graphs.reading.frame import Frame
from trainshift.static_graphs.reading.heap import MUTABLE, Cell
from trainshift.static_graphs.tables import api
from trainshift.static_graphs.tables.api import Operation
from trainshift.static_graphs.tables.layers import shape_after
from trainshift.static_graphs.tables.results import result

Words = Mapping[str, AbstractValue]
# What going through the container gives, of a list as a list: `zip` and its like pair it.
_HOLDING = frozenset({"LayerList", "Sequential", "LayerDict", "ParameterList", "ModuleList", "ModuleDict"})
_ALWAYS = {
    **dict.fromkeys(("isinstance", "hasattr", "callable", "issubclass", "any", "all"), python("bool")),
    **dict.fromkeys(("str", "repr", "format", "chr", "hex", "bin"), python("str")),
    **dict.fromkeys(("type", "id", "hash", "open", "input", "object"), python("object")),
    "print": python("None"),
}
"""What functions of Python's give, whatever they are given."""
_CASTS = {"int": "int64", "float": "float32", "bool": "bool"}
_ARRAYS = frozenset({"paddle.tensor.create_array", "paddle.tensor.array.create_array"})


class Calls(Expressions):
    """Evaluates calls."""

    def _call(self, node: ast.Call, frame: Frame) -> AbstractValue:
        given = tuple(self.evaluate(each, frame) for each in node.args)
        words = {word.arg: self.evaluate(word.value, frame) for word in node.keywords if word.arg}
        for word in node.keywords:
            if word.arg is None:
                self.evaluate(word.value, frame)
        called = node.func
        found = NOTHING
        callee = self.evaluate(called, frame)
        names: set[str] = set()
        if isinstance(called, ast.Attribute) and not self._is_library(called, frame):
            base = self.holder(called, frame)
            found = self._method(called, base, given, words, frame)
            if base.tensor is not None:
                names.add(f"paddle.Tensor.{called.attr}")
        for thing in ordered(callee.things):
            if isinstance(thing, Library):
                names.add(thing.name)
            elif isinstance(thing, Instance):
                names.add(f"{thing.cls}.__call__")
            found = found.joined(self._of(thing, node, given, words, frame, callee))
        if frame.function is not None:
            frame.function.named[node] = frozenset(names)
        if found.is_nothing and not callee.things:
            if callee.is_nothing and frame.function is not None:
                return NOTHING
            return UNKNOWN if "layer" not in callee.python else tensor()
        if callee.unknown and not callee.things:
            found = found.joined(UNKNOWN)
        return replace(found, sources=found.sources | {node}) if found.tensor and not found.sources else found

    def _is_library(self, node: ast.Attribute, frame: Frame) -> bool:
        return bool(self.home(frame.scope).names.member_of_library(node))

    # Methods of what is no object of a class

    def _method(
        self,
        called: ast.Attribute,
        base: AbstractValue,
        given: tuple[AbstractValue, ...],
        words: Words,
        frame: Frame,
    ) -> AbstractValue:
        name = called.attr
        found = NOTHING
        if base.tensor is not None:
            operation = api.method(name)
            found = UNKNOWN
            if operation is not None:
                alone = replace(base, python=frozenset(), array=False, unknown=False)
                found = result(operation, _given(operation, (alone, *given), words))
                if name.endswith("_") or name in ("reshape", "flatten", "squeeze", "unsqueeze", "detach"):
                    found = replace(found, views=base.sources | base.views)
                if name.endswith("_"):
                    found = replace(found, sources=base.sources)
        if base.array or base.python & MUTABLE:
            found = found.joined(self._of_container(called, base, given, words, frame))
        if "ndarray" in base.python:
            found = found.joined(UNKNOWN if name in ("item", "tolist") else python("ndarray"))
        if base.among("str"):
            found = found.joined(python("list", element=python("str")) if "split" in name else python("str"))
        return found

    def _of_container(
        self,
        called: ast.Attribute,
        base: AbstractValue,
        given: tuple[AbstractValue, ...],
        words: Words,
        frame: Frame,
    ) -> AbstractValue:
        """What a method of a list, dict or set gives; what it puts there is noted."""
        name, element = called.attr, base.whole_element
        if name in ADDING and (given or words):
            self._grow(called.value, base, name, given, words, frame)
            if name == "setdefault":
                return join([element or NOTHING, *given[1:]])
            return python("None")
        if name in MUTATING:
            self.assign(called.value, in_any_order(base), frame, is_change=True)
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
        return python("int" if name in ("index", "count") else "None")

    def _grow(
        self,
        holder: ast.expr,
        base: AbstractValue,
        name: str,
        given: tuple[AbstractValue, ...],
        words: Words,
        frame: Frame,
    ) -> None:
        """A container takes other elements."""
        grown = base
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
            element = base.whole_element
            if name == "append" and base.items is not None and len(base.items) < 32 and not base.array:
                grown = replace(base, items=(*base.items, added))
            else:
                grown = replace(
                    base, items=None, keys=None, element=added if element is None else element.joined(added)
                )
        self.store(dict.fromkeys(base.places, added), frame)
        self.assign(holder, grown, frame, is_change=True)

    # What a callee may be

    def _of(
        self,
        thing: Thing,
        node: ast.Call,
        given: tuple[AbstractValue, ...],
        words: Words,
        frame: Frame,
        callee: AbstractValue,
    ) -> AbstractValue:
        if isinstance(thing, Library):
            return self._of_library(thing.name, node, given, words, frame)
        if isinstance(thing, Function):
            return self.called(thing.scope, thing.owner, given, dict(words), frame, node)
        if isinstance(thing, UserInstance):
            return self._of_object(thing, node, given, words, frame)
        if isinstance(thing, Class):
            layer = is_layer(self.home(thing.scope), thing.scope)
            return python("layer" if layer else "object", things=frozenset({UserInstance(thing.scope, node)}))
        if isinstance(thing, Instance):
            return self._of_instance(thing, node, given, words, frame)
        if isinstance(thing, Member) and thing.name == "create_parameter":
            return tensor(*_created(given, words))
        if isinstance(thing, Member) and thing.name in ("add_sublayer", "add_module", "add_parameter"):
            return given[1] if len(given) > 1 else UNKNOWN
        return UNKNOWN

    def _of_object(
        self,
        thing: UserInstance,
        node: ast.Call,
        given: tuple[AbstractValue, ...],
        words: Words,
        frame: Frame,
    ) -> AbstractValue:
        names = self.home(thing.scope).names
        own = names.function_named(thing.scope, "__call__")
        function = own or names.function_named(thing.scope, "forward")
        if function is not None:
            return self.called(function, thing, given, dict(words), frame, node)
        for base in sorted(names.library_bases(thing.scope)):
            if api.is_layer_class(base) and base != api.LAYER:
                return _by_returns(api.layer_returns(base))
        return UNKNOWN

    def _of_instance(
        self, thing: Instance, node: ast.Call, given: tuple[AbstractValue, ...], words: Words, frame: Frame
    ) -> AbstractValue:
        name = thing.cls.rpartition(".")[2]
        if thing.cls in TO_STATIC:
            first = thing.node.args[0] if thing.node.args else None
            return UNKNOWN if first is None else self._through(first, thing, node, given, words, frame)
        if thing.cls == "functools.partial" and thing.node.args:
            given_first, *preset = self.evaluate_call_arguments(thing)
            return join(
                self.unconverted(each.scope, (*preset, *given), frame, node, "`partial`")
                for each in ordered(given_first.things)
                if isinstance(each, Function)
            ).joined(UNKNOWN)
        if name == "Sequential":
            held = self.evaluate_call_arguments(thing)
            value = given[0] if given else UNKNOWN
            for layer in held:
                for each in ordered(layer.things):
                    value = self._of(each, node, (value,), {}, frame, layer)
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

    def _through(
        self,
        first: ast.expr,
        thing: Instance,
        node: ast.Call,
        given: tuple[AbstractValue, ...],
        words: Words,
        frame: Frame,
    ) -> AbstractValue:
        """A call of what `to_static` was given."""
        site = self.program.script.site_of(thing.node)
        inner = self.evaluate(first, Frame(site.scope, site.statement, {}))
        return join(self._of(each, node, given, words, frame, inner) for each in ordered(inner.things))

    def evaluate_call_arguments(self, thing: Instance) -> list[AbstractValue]:
        """What a container of layers was made of, in order."""
        try:
            site = self.program.script.site_of(thing.node)
        except KeyError:
            return []
        place = Frame(site.scope, site.statement, {})
        values = [self.evaluate(each, place) for each in thing.node.args]
        if len(values) == 1 and values[0].items is not None:
            return list(values[0].items)
        return values

    # Libraries

    def _of_library(
        self, full_name: str, node: ast.Call, given: tuple[AbstractValue, ...], words: Words, frame: Frame
    ) -> AbstractValue:
        root, _, name = full_name.rpartition(".")
        if root == "builtins":
            return self._builtin(name, node, given, words, frame)
        if full_name in _ARRAYS:
            return AbstractValue(array=True, element=NOTHING)
        if full_name in TO_STATIC | NOT_TO_STATIC and given:
            return given[0]
        operation = api.function(full_name)
        if operation is not None:
            found = result(operation, _given(operation, given, words))
            if given and (name.endswith("_") or name in ("reshape", "flatten", "squeeze", "unsqueeze")):
                found = replace(found, views=given[0].sources | given[0].views)
            return found
        known = self.of_instance(Instance(full_name, node), frame)
        if api.is_layer_class(full_name) and name in _HOLDING:
            values = [each for value in given for each in (value.items or (value.whole_element or value,))]
            return replace(known, element=join(values)) if values else known
        if root == "math":
            return python("float", "int")
        if full_name in ("copy.copy", "copy.deepcopy") and given:
            return given[0]
        return known

    def _builtin(
        self, name: str, node: ast.Call, given: tuple[AbstractValue, ...], words: Words, frame: Frame
    ) -> AbstractValue:
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
            for word, value in words.items():
                made = put_under(made, constant(word), value)
            return made
        if name == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            named = node.args[1].value
            found = self.member(first, named, frame) if isinstance(named, str) else UNKNOWN
            return found.joined(given[2]) if len(given) > 2 else found
        if name == "setattr" and len(given) > 2 and isinstance(given[1].constant, str):
            self.store({Attribute(given[1].constant): given[2]}, frame)
            return python("None")
        if name in ("map", "filter") and len(given) > 1:
            elements = tuple(map(element_of, given[1:]))
            results = [
                self.unconverted(each.scope, elements, frame, node, f"`{name}`")
                for each in first.things
                if isinstance(each, Function)
            ]
            return python("list", element=join(results) if results and name == "map" else elements[0])
        if name == "super":
            things = self.home(frame.scope).names.values(node, frame.scope, frame.statement)
            return self.of_things(things, frame)
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

    @abstractmethod
    def store(self, stores: Mapping[Cell, AbstractValue], frame: Frame) -> None:
        """Note that values are stored in cells of the heap."""

    @abstractmethod
    def unconverted(
        self, function: Scope, given: tuple[AbstractValue, ...], frame: Frame, node: ast.Call, way: str
    ) -> AbstractValue:
        """What a function of the workspace gives that Paddle does not convert with its caller."""


def _cast(name: str, given: tuple[AbstractValue, ...]) -> AbstractValue:
    """What `int`, `float` or `bool` makes of its argument."""
    first = given[0] if given else NOTHING
    if first.tensor is not None:
        made = tensor(_CASTS[name], (), counts=first.tensor.counts)
        return made if first.is_tensor else made.joined(python(name))
    return python(name) if not first.unknown else python(name).joined(UNKNOWN)


def _range(name: str, given: tuple[AbstractValue, ...]) -> AbstractValue:
    number = tensor("int64", ())
    if not any(each.is_tensor for each in given):
        may_be_tensor = any(each.tensor is not None or each.unknown for each in given)
        number = number.joined(python("int")) if may_be_tensor else python("int")
    return python("range", element=number)


def _enumerated(name: str, given: tuple[AbstractValue, ...]) -> AbstractValue:
    first = given[0] if given else NOTHING
    number = tensor("int64", ()) if first.is_tensor else python("int")
    return python("enumerate", element=python("tuple", items=(number, element_of(first))))


def _zipped(name: str, given: tuple[AbstractValue, ...]) -> AbstractValue:
    return python("zip", element=python("tuple", items=tuple(map(element_of, given))))


def _gathered(name: str, given: tuple[AbstractValue, ...]) -> AbstractValue:
    """What a function of Python's makes of the elements of its argument: a list, or what it is called."""
    kind = name if name in ("list", "tuple", "set") else "list"
    if not given:
        return python(kind, items=())
    first = given[0]
    if first.items is None or first.keys is not None or name in ("sorted", "reversed", "set"):
        return python(kind, element=element_of(first))
    return python(kind, items=first.items)


def _reckoned(name: str, given: tuple[AbstractValue, ...]) -> AbstractValue:
    """What a function of Python's makes of numbers, or of containers of numbers."""
    first = given[0] if given else NOTHING
    if name == "abs" and first.is_tensor and first.tensor is not None:
        return tensor(first.dtype or NUMBER, first.tensor.shape, counts=first.tensor.counts)
    parts = [part for each in given for part in _summands(each)]
    values = [element_of(each) if each.python & {"list", "tuple"} else each for each in given]
    known = [each.tensor for each in values if each.tensor is not None]
    if not known:
        return join(values) if not any(each.unknown for each in values) else UNKNOWN
    made = tensor(NUMBER, counts=next((each.counts for each in known if each.counts), None))
    is_sure = any(each.is_tensor for each in parts) and name not in ("max", "min")
    if is_sure or all(each.is_tensor for each in parts):
        return made
    return replace(join(values), tensor=made.tensor, constant=NO_CONSTANT)


_BY_ARGUMENTS: dict[str, Callable[[str, tuple[AbstractValue, ...]], AbstractValue]] = {
    **dict.fromkeys(_CASTS, _cast),
    **dict.fromkeys(("list", "tuple", "set", "sorted", "reversed", "iter"), _gathered),
    **dict.fromkeys(("max", "min", "sum", "abs", "round", "pow", "divmod"), _reckoned),
    "range": _range,
    "enumerate": _enumerated,
    "zip": _zipped,
}
"""What functions of Python's give, by their name and what they are given."""


def _summands(value: AbstractValue) -> list[AbstractValue]:
    """What is reckoned with where a value is given: itself, or what it holds, as far as that is seen."""
    if not value.python & {"list", "tuple"}:
        return [value]
    return list(value.items) if value.items is not None and value.is_python else [element_of(value)]


def _taken_out(name: str, base: AbstractValue, given: tuple[AbstractValue, ...]) -> AbstractValue:
    """What `pop` and its like take out of a container."""
    if name == "popitem":
        return python("tuple", items=(UNKNOWN, base.whole_element or UNKNOWN))
    last = base.items[-1:] if base.items is not None and base.keys is None and not given else None
    return last[0] if last else join([base.whole_element or UNKNOWN, *given[1:]])


def _pairs(base: AbstractValue) -> AbstractValue:
    """What the method `items` of a dict gives."""
    if base.keys is not None and base.items:
        pairs = zip(base.keys, base.items, strict=True)
        return python(
            "list", items=tuple(python("tuple", items=(constant(key), each)) for key, each in pairs)
        )
    return python("list", element=python("tuple", items=(UNKNOWN, base.whole_element or UNKNOWN)))


def _given(operation: Operation, given: tuple[AbstractValue, ...], words: Words) -> dict[str, AbstractValue]:
    """What an operation is given, by parameter."""
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
