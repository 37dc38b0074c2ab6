"""Abstract values of the expressions of static functions."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from trainshift.core.program import Program
from trainshift.python.names.values import (
    Function,
)
from trainshift.python.syntax.slotted_ast import kind_of
from trainshift.static_graphs.reading.abstract_values import (
    NO_CONSTANT,
    NOTHING,
    NUMBERS,
    UNKNOWN,
    AbstractValue,
    Tensor,
    constant,
    join,
    join_envs,
    python,
    tensor,
)
from trainshift.static_graphs.reading.elements import (
    cut_out,
    element_of,
    item_of,
    put_under,
    sliced,
    updated,
    value_under,
)
from trainshift.static_graphs.reading.frame import Frame, truth_of
from trainshift.static_graphs.reading.function import Truth
from trainshift.static_graphs.reading.heap import MUTABLE
from trainshift.static_graphs.reading.names import Names
from trainshift.static_graphs.tables.shapes import combined

_IDENTITY = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: int.__add__,
    ast.Sub: int.__sub__,
    ast.Mult: int.__mul__,
}
_MADE: dict[type[ast.AST], str] = {ast.ListComp: "list", ast.SetComp: "set", ast.DictComp: "dict"}
_REFERENCES = (ast.Name, ast.Attribute, ast.Subscript)
"""What makes no container: it refers to one."""
_MOST_DEEP = 32


class Expressions(Names):
    """Evaluates expressions of a program; subclasses know what calls give."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._deep = 0

    def evaluate(self, node: ast.expr, frame: Frame) -> AbstractValue:
        """What an expression may be; written down for the frame's function."""
        if self._deep > _MOST_DEEP:
            return _unseen(node, frame)
        self._deep += 1
        try:
            read = self._READERS.get(kind_of(node))
            value = read(self, node, frame) if read is not None else UNKNOWN
            if value.tensor is not None and not value.sources:
                value = replace(value, sources=frozenset({node}))
            if value.python & MUTABLE and not value.places and not isinstance(node, _REFERENCES):
                value = replace(value, places=frozenset({node}))
            return frame.note(node, value)
        finally:
            self._deep -= 1

    @abstractmethod
    def _call(self, node: ast.Call, frame: Frame) -> AbstractValue:
        """What a call gives."""

    # Operators

    def _operation(self, node: ast.BinOp, frame: Frame) -> AbstractValue:
        left, right = self.evaluate(node.left, frame), self.evaluate(node.right, frame)
        return self.operated(node, left, right)

    def operated(self, node: ast.BinOp, left: AbstractValue, right: AbstractValue) -> AbstractValue:
        """What an operator makes of two operands."""
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
            made = tensor("bool", known.shape) if known is not None else NOTHING
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
            return tensor(
                "bool", next(each.tensor.shape for each in values if each.is_tensor and each.tensor)
            )
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
                self.assign(part.target, element_of(iterated), inner)
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
        self.assign(node.target, value, frame)
        return value

    def _lambda(self, node: ast.Lambda, frame: Frame) -> AbstractValue:
        inner = frame.scope.facts.scope_of[node]
        return python("function", things=frozenset({Function(inner)}))

    @abstractmethod
    def assign(
        self, target: ast.expr, value: AbstractValue, frame: Frame, *, is_change: bool = False
    ) -> None:
        """Give a value to a target; as a change of what it holds if it `is_change`."""

    _READERS: ClassVar[dict[type[ast.AST], Callable[..., AbstractValue]]] = {
        ast.Constant: Names._constant,
        ast.Name: Names._name,
        ast.Attribute: Names._attribute,
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


def _unseen(node: ast.expr, frame: Frame) -> AbstractValue:
    """Note that nothing is known of an expression, and of what stands in it."""
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
    """What an operator makes of two values of Python's, such as numbers."""
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
    """Lists or strings put together, or repeated."""
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
