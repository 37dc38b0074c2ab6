"""Shapes: the expressions that give the number of rows of a value, and those that give its other axes.

A rank may have more rows than another; the other axes, their number and the type are the same on all ranks.
"""

from __future__ import annotations

import ast
from typing import TypeGuard

from trainshift.core.program import Program
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import Binding, arguments
from trainshift.training.uniformity.one_axis import has_one_axis

SHAPE = frozenset({"dtype", "itemsize", "nbytes", "ndim", "ndims", "rank", "shape", "size"})
"""The attributes of an array or a tensor that its values do not decide."""
# Those that its rows decide.
_BY_ROWS = frozenset({"nbytes", "shape", "size"})
# Functions of packages of arrays that give a shape, or a number of elements or axes.
_PACKAGES = frozenset({"jax", "keras", "numpy", "tensorflow"})
_MEASURING = frozenset({"int_shape", "shape", "shape_n", "size"})
_RANKS = frozenset({"ndim", "rank"})
_LENGTH = "builtins.len"
_METHOD = "get_shape"
# What hands a shape on: methods and attributes of it, and functions.
_LISTING = frozenset({"as_list", "dims", "numpy"})
_PASSING = frozenset({"builtins.list", "builtins.tuple", "tensorflow.unstack"})
# A shape is followed through this many names and calls at most; anything behind more is not known as one,
# so that a doubt remains.
_DEEPEST = 8


class Shapes:
    """The shapes that one program reads."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = program.names

    def measured(self, at: Occurrence) -> Occurrence | None:
        """Return the value whose rows decide what an expression gives: a length or a shape; None if no rows
        do.
        """
        node = at.node
        if isinstance(node, ast.Attribute):
            return at.part(node.value) if node.attr in _BY_ROWS and not self._is_own(at) else None
        if not isinstance(node, ast.Call) or self.is_alike(at):
            return None
        given = arguments(node)
        if given and (self._calls(node, at, _MEASURING) or _LENGTH in self._called(node, at)):
            return at.part(given[0])
        return at.part(node.func.value) if self._is_method(node.func, at) else None

    def is_alike(self, at: Occurrence) -> bool:
        """Return whether an expression reads a shape, but no number of rows."""
        node = at.node
        if isinstance(node, ast.Attribute):
            return node.attr in SHAPE - _BY_ROWS and not self._is_own(at)
        if isinstance(node, ast.Subscript):
            shape = at.part(node.value)
            return _is_behind_rows(node.slice) and self._is_shape(shape) and not self._is_of_rows(shape, node)
        if isinstance(node, ast.Name):
            bindings = self._names.bindings(at)
            return bool(bindings) and all(map(self._is_axis, bindings))
        if isinstance(node, ast.Compare):
            return asks_none(node) and self._is_of_shape(at.part(node.left))
        if not isinstance(node, ast.Call) or not node.args:
            return False
        is_length = _LENGTH in self._called(node, at) and self._is_shape(at.part(node.args[0]))
        return is_length or self._calls(node, at, _RANKS)

    def _is_of_rows(self, shape: Occurrence, node: ast.Subscript) -> bool:
        """Return whether a subscript of a shape gives the rows of an array that has no other axis."""
        if ast.unparse(node.slice) != "-1":
            return False
        step = self._names.steps_back(shape)
        behind = (shape, *(step.sources if step is not None else ()))
        measured = (self.measured(each) for each in behind)
        return any(each is not None and has_one_axis(self._program, each, unsure=True) for each in measured)

    def _is_axis(self, binding: Binding) -> bool:
        """Return whether a name gets an axis other than the rows: ``rows, width = x.shape``."""
        if binding.value is None or binding.kind == "element" or binding.path[:1] in ((), (0,)):
            return False
        return self._is_shape(Occurrence(binding.value, binding.scope, binding.statement))

    def _is_of_shape(self, at: Occurrence) -> bool:
        """Return whether an expression is a shape, or one of its axes."""
        return self._is_shape(at.part(at.node.value) if isinstance(at.node, ast.Subscript) else at)

    def _is_method(self, node: ast.expr, at: Occurrence) -> TypeGuard[ast.Attribute]:
        """Return whether an expression is the method by which tensors give their shape."""
        return isinstance(node, ast.Attribute) and node.attr == _METHOD and not self._is_own(at.part(node))

    def _is_shape(self, at: Occurrence, depth: int = 0) -> bool:
        """Return whether an expression gives a shape, from its first axis on."""
        node = at.node
        if depth > _DEEPEST:
            return False
        if isinstance(node, ast.Attribute) and node.attr in _LISTING:
            return self._is_shape(at.part(node.value), depth + 1)
        if isinstance(node, ast.Attribute):
            return node.attr == "shape" and not self._is_own(at)
        if isinstance(node, ast.Name):
            bindings = self._names.bindings(at)
            return bool(bindings) and all(
                each.value is not None
                and each.kind != "element"
                and not each.path
                and self._is_shape(Occurrence(each.value, each.scope, each.statement), depth + 1)
                for each in bindings
            )
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr in _LISTING:
            return self._is_shape(at.part(node.func.value), depth + 1)
        if node.args and not _PASSING.isdisjoint(self._called(node, at)):
            return self._is_shape(at.part(node.args[0]), depth + 1)
        if self._calls(node, at, _MEASURING - {"size"}):
            return True
        return self._is_method(node.func, at)

    def _calls(self, node: ast.Call, at: Occurrence, functions: frozenset[str]) -> bool:
        """Return whether a call runs a function of a package of arrays."""
        called = (each.split(".") for each in self._called(node, at))
        return any(parts[0] in _PACKAGES and parts[-1] in functions for parts in called)

    def _called(self, node: ast.Call, at: Occurrence) -> frozenset[str]:
        return self._names.full_names(node.func, at.scope, at.statement)

    def _is_own(self, at: Occurrence) -> bool:
        """Return whether an attribute is one that the script sets or defines, or a library's function."""
        values = self._names.values(at.node, at.scope, at.statement)
        is_known = any(isinstance(each, Function) for each in values)
        return is_known or bool(self._names.full_names(*at[:3])) or bool(self._names.bindings(at))


def _is_behind_rows(index: ast.expr) -> bool:
    """Return whether a subscript of a shape leaves out its first axis: ``[1]``, ``[-1]``, ``[1:]``."""
    start = index.lower if isinstance(index, ast.Slice) else index
    return isinstance(start, ast.Constant | ast.UnaryOp) and ast.unparse(start) != "0"


def asks_none(node: ast.Compare) -> bool:
    """Return whether a comparison only tests for None: ``x is None``."""
    given = node.comparators[0]
    return (
        isinstance(node.ops[0], ast.Is | ast.IsNot)
        and isinstance(given, ast.Constant)
        and given.value is None
    )
