"""Indices of arrays: which places an index picks, whether one twice, and whether what it gives is a copy.

An index that is an array copies what it picks.  So a change of that is lost, and its adjoint is a new one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.derivatives.reading.nodes import Nodes
from trainshift.derivatives.reading.reader import Reader
from trainshift.python.rewrite import terms

# Functions that return several indices of an array.
_PLACES = frozenset(
    f"numpy.{each}" for each in ("arange", "argsort", "array", "flatnonzero", "ix_", "nonzero")
)
# Those that return each place once.
_DISTINCT = frozenset(f"numpy.{each}" for each in ("arange", "flatnonzero", "nonzero"))


class Indices:
    """The indices in one function."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.function = reader.function

    def copies(self, node: ast.Subscript) -> bool:
        """Return whether an element is certainly a copy, made by an index that is an array or a condition."""
        return self._copies(node.value, node.slice)

    def _copies(self, base: ast.expr, index: ast.expr) -> bool:
        match index:
            case ast.List():
                return True
            case ast.Tuple(elts):
                return any(self._copies(base, each) for each in elts)
            case ast.Compare():
                array = self.reader.kind(base).has("array", "computed")
                return array or terms.same(index.left, base)
            case ast.UnaryOp(ast.Invert() | ast.Not(), operand):
                return self._copies(base, operand)
            case ast.BinOp(left, ast.BitAnd() | ast.BitOr(), right):
                return self._copies(base, left) and self._copies(base, right)
            case ast.Name(name) if value := self._only_value(name):
                return self._copies(base, value)
            case ast.Call():
                return self.function.dotted(index.func) in _PLACES
        return False

    def in_copy(self, expr: ast.expr) -> bool:
        """Return whether an element is certainly a part of such a copy."""
        return any(self.copies(each) for each in self.array_parts(expr))

    def repeats(self, index: ast.expr, nodes: Nodes) -> bool:
        """Return whether an index may pick an element of an array more than once."""
        match index:
            case ast.Constant() | ast.Slice():
                return False
            case ast.Tuple(elts):
                return any(self.repeats(each, nodes) for each in elts)
            case ast.List(elts) if all(isinstance(each, ast.Constant) for each in elts):
                return len({ast.literal_eval(each) for each in elts}) < len(elts)
            case ast.Call(func, args, []) if (dotted := self.function.dotted(func)) in _DISTINCT:
                # `arange(-1, 3)` has the last place of three twice.
                return dotted == "numpy.arange" and len(args) != 1
            case ast.Name(name) if (value := self._only_value(name)) and self._only_selects(name):
                return self.repeats(value, nodes)
        return not nodes.settled(index) and not self._is_condition(index)

    def _is_condition(self, index: ast.expr) -> bool:
        """Return whether an index certainly consists of booleans: each selects another element."""
        match index:
            case ast.Compare():
                return True
            case ast.UnaryOp(ast.Invert(), operand):
                return self._is_condition(operand)
            case ast.BinOp(left, ast.BitAnd() | ast.BitOr(), right):
                return self._is_condition(left) and self._is_condition(right)
            case ast.Name(name) if value := self._only_value(name):
                return self._is_condition(value)
        return False

    def _only_value(self, name: str) -> ast.expr | None:
        """The value of a variable that is assigned once."""
        elsewhere = any(name in each.foreign for each in self.function.nested.values())
        match () if elsewhere or name in self.function.params else self.function.assignments(name):
            case [ast.Assign([ast.Name(_)], value)] if name not in terms.names_read(value):
                return value
        return None

    def _only_selects(self, name: str) -> bool:
        """Return whether a variable is only read as an index, so that nothing can change its value."""
        reads = {each for each in terms.inside(self.function.body) if _is_read(each, name)}
        for each in terms.inside(self.function.body):
            if isinstance(each, ast.Subscript):
                parts = each.slice.elts if isinstance(each.slice, ast.Tuple) else [each.slice]
                reads.difference_update(parts)
        return not reads

    def array_parts(self, expr: ast.expr) -> Iterator[ast.Subscript]:
        """Yield an element that may be one of an array, and those that it is a part of."""
        while isinstance(expr, ast.Subscript):
            if not self.reader.kind(expr.value).has("list", "tuple", "dict"):
                yield expr
            expr = expr.value


def _is_read(node: ast.AST, name: str) -> bool:
    """Return whether a node reads a variable."""
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
