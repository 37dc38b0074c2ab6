"""What lines of their own stand for, before all else is read: functions that only change something, as
`lambda v: log.append(v)` and `log.append` itself, and dicts that are others but for some keys."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any, TypeVar

from trainshift.derivatives import terms
from trainshift.derivatives.rename_bound import dotted_in, identifiers
from trainshift.derivatives.reading.function import CHANGING_METHODS
from trainshift.derivatives.reading.module import Module
from trainshift.derivatives.tables import table
from trainshift.python.rewrite.fresh_names import fresh_name
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS

_Line = TypeVar("_Line", bound=ast.stmt)


def desugar_calls(function: ast.FunctionDef, module: Module) -> ast.FunctionDef:
    """A function in which such calls are lines of their own: itself, where there are none."""
    dotted = dotted_in(function, module)
    made = _Acting(dotted, {id(each.func) for each in terms.walk(function) if isinstance(each, ast.Call)})
    if not any(made.acts(each) or made.is_method(each) or made.copies(each) for each in terms.walk(function)):
        return function
    function = copy.deepcopy(function)
    made = _Acting(dotted, {id(each.func) for each in terms.walk(function) if isinstance(each, ast.Call)})
    made.taken = set(module.names) | identifiers(function)
    loops = [each for each in terms.walk(function) if isinstance(each, ast.For | ast.While)]
    stores = terms.counted(function.body)[1]
    made.rebound = terms.names_bound(loops) | {each for each in stores if stores[each] > 1}
    made.generic_visit(function)
    return function


class _Acting(ast.NodeTransformer):
    def __init__(self, dotted: Callable[[ast.expr], str | None], called: set[int]) -> None:
        self.dotted = dotted
        self.called = called
        # The variables that have several values, one after the other.
        self.rebound: set[str] = set()
        self.taken: set[str] = set()
        self.before: list[ast.stmt] = []
        self.line: list[ast.AST] = []

    def acts(self, node: ast.AST) -> bool:
        """Whether a function gives what a call gives that changes something: nothing."""
        call = node.body if isinstance(node, ast.Lambda) else getattr(node, "value", None)
        if not isinstance(node, ast.Lambda | ast.Return) or not isinstance(call, ast.Call):
            return False
        changes = isinstance(call.func, ast.Attribute) and call.func.attr in CHANGING_METHODS - {"pop"}
        return changes and self.dotted(call.func) is None

    def is_method(self, node: ast.AST) -> bool:
        """Whether a method that puts something into a list is a value, of a variable that has no other."""
        match node:
            case ast.Attribute(ast.Name(name), "append" | "extend"):
                value = id(node) not in self.called and name not in self.rebound
                return value and self.dotted(node) is None
        return False

    def copies(self, node: ast.AST) -> tuple[ast.expr, list[tuple[ast.expr, ast.expr]]] | None:
        """What `{**old, "a": x}` or `dict(old, a=x)` is a copy of, and the keys that it has besides."""
        match node:
            case ast.Dict([None, *keys], [old, *values]) if keys and None not in keys:
                return old, [(key, each) for key, each in zip(keys, values, strict=True) if key is not None]
            case ast.Call(ast.Name("dict"), [old], [_, *_] as given) if (
                self.dotted(node.func) == "builtins.dict"
                and all(each.arg for each in given)
                # What is given is worked out before the copy is made.
                and not any(isinstance(each, ast.Call) for one in given for each in terms.walk(one))
            ):
                return old, [(terms.constant(each.arg), each.value) for each in given]
        return None

    def visit(self, node: ast.AST) -> Any:
        """The lines that stand for one; in expressions, names for functions that act."""
        match node:
            case ast.Return() if self.acts(node):
                assert node.value is not None
                none = ast.Return(ast.Constant(None))
                return [ast.copy_location(each, node) for each in (ast.Expr(node.value), none)]
            case ast.Lambda() if self.acts(node) or self.copies(node.body):
                return self._function("function", node.args, ast.Return(node.body))
            case ast.Attribute(attr=attr) if self.is_method(node):
                self.called.add(id(node))
                line = ast.Return(ast.Call(node, [terms.name("each")], []))
                return self._function(attr, _arguments([ast.arg("each")]), line)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr() | ast.Return():
                return self._line(node)
            case ast.Lambda() | ast.IfExp() | ast.BoolOp() | ast.Compare():
                # What is in it may name its variables, or not be done.
                return node
            case ast.ListComp(elt, loops) | ast.GeneratorExp(elt, loops):
                loops[0].iter = self.visit(loops[0].iter)
                if self.copies(elt):
                    own = terms.names_bound([each.target for each in loops]) & terms.names_read(elt)
                    given = [ast.arg(each) for each in sorted(own)]
                    made = self._function("made", _arguments(given), ast.Return(elt))
                    node.elt = ast.Call(made, [terms.name(each.arg) for each in given], [])
                return node
            case _ if isinstance(node, COMPREHENSIONS):
                return node
            case ast.Dict() | ast.Call() if (found := self.copies(node)) and not self._follows_calls(node):
                return self._copied(*found)
        return self.generic_visit(node)

    def _function(self, base: str, arguments: ast.arguments, line: ast.Return) -> ast.expr:
        """The name of a function of one line."""
        name = self._fresh(base)
        made = ast.FunctionDef(name, arguments, [line], [])
        self.generic_visit(terms.inline(made))
        self.before.append(made)
        return terms.name(name)

    def _fresh(self, base: str) -> str:
        name = fresh_name(base, self.taken, numbered=True)
        self.taken.add(name)
        return name

    def _follows_calls(self, node: ast.Dict | ast.Call) -> bool:
        """Whether the line calls before it what may change something: that is done first."""
        return any(
            isinstance(each, ast.Call)
            and (each.end_lineno, each.end_col_offset) <= (node.lineno, node.col_offset)
            and self.dotted(each.func) not in table.CONSTANTS
            for each in self.line
        )

    def _copied(self, old: ast.expr, entries: list[tuple[ast.expr, ast.expr]]) -> ast.expr:
        name = self._fresh("made")
        lines: list[ast.stmt] = [terms.assign(name, terms.call("dict", self.visit(old)))]
        for key, value in entries:
            place = ast.Subscript(terms.name(name), key, ast.Store())
            lines.append(ast.Assign([place], self.visit(value)))
        self.before += lines
        return terms.name(name)

    def _line(self, node: _Line) -> list[ast.stmt]:
        outer, self.before = self.before, []
        around, self.line = self.line, [each for each in terms.walk(node) if hasattr(each, "end_lineno")]
        self.generic_visit(node)
        self.line = around
        made, self.before = self.before, outer
        if made:
            node.as_is = False  # type: ignore[attr-defined]
        return [*(ast.fix_missing_locations(ast.copy_location(each, node)) for each in made), node]


def _arguments(given: list[ast.arg]) -> ast.arguments:
    return ast.arguments([], given, None, [], [], None, [])
