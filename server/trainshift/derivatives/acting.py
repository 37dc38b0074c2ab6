"""Functions that only change something, as `lambda v: log.append(v)` and `log.append` itself: that is made a
line of its own, before all else is read."""

from __future__ import annotations

import ast
import copy
from typing import TypeVar

from trainshift.core.text.facts import COMPREHENSIONS
from trainshift.derivatives import terms
from trainshift.derivatives.apart import identifiers, unused
from trainshift.derivatives.reading.function import CHANGING_METHODS
from trainshift.derivatives.reading.module import Module

_Line = TypeVar("_Line", bound=ast.stmt)


def acting(function: ast.FunctionDef, module: Module) -> ast.FunctionDef:
    """A function in which such calls are lines of their own: itself, where there are none."""
    made = _Acting(module, {id(each.func) for each in terms.walk(function) if isinstance(each, ast.Call)})
    if not any(made.acts(each) or made.is_method(each) for each in terms.walk(function)):
        return function
    function = copy.deepcopy(function)
    made = _Acting(module, {id(each.func) for each in terms.walk(function) if isinstance(each, ast.Call)})
    made.taken = module.names | identifiers(function)
    loops = [each for each in terms.walk(function) if isinstance(each, ast.For | ast.While)]
    stores = terms.counted(function.body)[1]
    made.rebound = terms.names_bound(loops) | {each for each in stores if stores[each] > 1}
    made.generic_visit(function)
    return function


class _Acting(ast.NodeTransformer):
    def __init__(self, module: Module, called: set[int]) -> None:
        self.module = module
        self.called = called
        # The variables that have several values, one after the other.
        self.rebound: set[str] = set()
        self.taken: set[str] = set()
        self.before: list[ast.stmt] = []

    def acts(self, node: ast.AST) -> bool:
        """Whether a function gives what a call gives that changes something: nothing."""
        call = node.body if isinstance(node, ast.Lambda) else getattr(node, "value", None)
        if not isinstance(node, ast.Lambda | ast.Return) or not isinstance(call, ast.Call):
            return False
        changes = isinstance(call.func, ast.Attribute) and call.func.attr in CHANGING_METHODS - {"pop"}
        return changes and self.module.dotted(call.func) is None

    def is_method(self, node: ast.AST) -> bool:
        """Whether a method that puts something into a list is a value, of a variable that has no other."""
        match node:
            case ast.Attribute(ast.Name(name), "append" | "extend"):
                value = id(node) not in self.called and name not in self.rebound
                return value and self.module.dotted(node) is None
        return False

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
        """The lines that stand for one; in expressions, names for functions that act."""
        match node:
            case ast.Return() if self.acts(node):
                assert node.value is not None
                none = ast.Return(ast.Constant(None))
                return [ast.copy_location(each, node) for each in (ast.Expr(node.value), none)]
            case ast.Lambda() if self.acts(node):
                return self._function("function", node.args, node.body)
            case ast.Attribute(attr=attr) if self.is_method(node):
                given = ast.arguments([], [ast.arg("each")], None, [], [], None, [])
                return self._function(attr, given, ast.Call(node, [terms.name("each")], []))
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr() | ast.Return():
                return self._line(node)
            case _ if isinstance(node, COMPREHENSIONS):
                # What is in it may name its variables.
                return node
        return self.generic_visit(node)

    def _function(self, base: str, arguments: ast.arguments, call: ast.expr) -> ast.expr:
        name = unused(base, self.taken)
        self.taken.add(name)
        body: list[ast.stmt] = [ast.Expr(call), ast.Return(ast.Constant(None))]
        self.before.append(terms.inline(ast.FunctionDef(name, arguments, body, [])))
        return terms.name(name)

    def _line(self, node: _Line) -> list[ast.stmt]:
        outer, self.before = self.before, []
        self.generic_visit(node)
        made, self.before = self.before, outer
        if made:
            node.as_is = False  # type: ignore[attr-defined]
        return [*made, node]
