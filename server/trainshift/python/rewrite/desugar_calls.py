"""Desugar calls to statements of their own: callbacks that only mutate (`lambda v: log.append(v)`, or
`log.append` itself), copies of dicts with other keys, and defaults of lambdas that are variables.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from trainshift.python.rewrite import terms
from trainshift.python.rewrite.origins import origin
from trainshift.python.rewrite.renaming import identifiers
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS
from trainshift.python.syntax.fresh_names import fresh_name

_CHANGING = frozenset(("append", "extend", "insert", "update"))
"""Methods that change a container and have no value."""

_Line = TypeVar("_Line", bound=ast.stmt)


def desugar_calls(
    function: ast.FunctionDef,
    dotted: Callable[[ast.expr], str | None],
    taken: Iterable[str],
    is_pure: Callable[[str], bool],
) -> ast.FunctionDef:
    """Return a function in which such calls are statements of their own; the same function if it has none.

    `dotted` returns the full name of an expression's value if it belongs to a library, `is_pure` returns for
    such a name whether a call mutates nothing, and `taken` are names in use.
    """
    made = _Acting(function, dotted, is_pure)
    nodes = terms.walk(function)
    if not any(made.acts(each) or made.is_method(each) or made.copies(each) for each in nodes):
        if not any(map(made.has_variable_defaults, nodes)):
            return function
    function = copy.deepcopy(function)
    made = _Acting(function, dotted, is_pure)
    made.taken = {*taken, *identifiers(function)}
    made.generic_visit(function)
    return function


class _Acting(ast.NodeTransformer):
    def __init__(
        self,
        function: ast.FunctionDef,
        dotted: Callable[[ast.expr], str | None],
        is_pure: Callable[[str], bool],
    ) -> None:
        nodes = terms.walk(function)
        self.dotted = dotted
        self.is_pure = is_pure
        self.calls: dict[str, list[ast.Call]] = {}
        for each in nodes:
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
                self.calls.setdefault(each.func.id, []).append(each)
        self.called = {id(each.func) for each in nodes if isinstance(each, ast.Call)}
        loops = [each for each in nodes if isinstance(each, ast.For | ast.While)]
        self.loads, self.stores = terms.counted(function.body)
        self.variables = terms.names_bound(function.body) | {
            each.arg for each in nodes if isinstance(each, ast.arg)
        }
        # The variables that have several values in turn.
        self.rebound = terms.names_bound(loops) | {each for each in self.stores if self.stores[each] > 1}
        self.taken: set[str] = set()
        self.before: list[ast.stmt] = []
        self.line: list[ast.AST] = []

    def acts(self, node: ast.AST) -> bool:
        """Return whether a function only passes on the result of a mutating call, which is None."""
        call = node.body if isinstance(node, ast.Lambda) else getattr(node, "value", None)
        if not isinstance(node, ast.Lambda | ast.Return) or not isinstance(call, ast.Call):
            return False
        changes = isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGING
        return changes and self.dotted(call.func) is None

    def has_variable_defaults(self, node: ast.AST) -> bool:
        """Return whether a variable is always a lambda with defaults that may depend on the function's
        parameters.
        """
        match node:
            case ast.Assign([ast.Name(name)], ast.Lambda(ast.arguments(defaults=[_, *_]) as given)):
                required = len(given.posonlyargs) + len(given.args) - len(given.defaults)
                calls = self.calls.get(name, [])
                return (
                    self.stores[name] == 1
                    and self.loads[name] == len(calls)
                    and all(len(each.args) == required and not each.keywords for each in calls)
                    and not any(isinstance(one, ast.Starred) for each in calls for one in each.args)
                    and any(terms.names_read(each) & self.variables for each in given.defaults)
                )
        return False

    def is_method(self, node: ast.AST) -> bool:
        """Return whether a list method that adds elements is used as the value of a variable that is bound
        once.
        """
        match node:
            case ast.Attribute(ast.Name(name), "append" | "extend"):
                value = id(node) not in self.called and name not in self.rebound
                return value and self.dotted(node) is None
        return False

    def copies(self, node: ast.AST) -> tuple[ast.expr, list[tuple[ast.expr, ast.expr]]] | None:
        """The dictionary that `{**old, "a": x}` or `dict(old, a=x)` copies, and the keys that it adds."""
        match node:
            case ast.Dict([None, *keys], [old, *values]) if keys and None not in keys:
                return old, [(key, each) for key, each in zip(keys, values, strict=True) if key is not None]
            case ast.Call(ast.Name("dict"), [old], [_, *_] as given) if (
                self.dotted(node.func) == "builtins.dict"
                and all(each.arg for each in given)
                # Arguments are evaluated before the copy is made.
                and not any(isinstance(each, ast.Call) for one in given for each in terms.walk(one))
            ):
                return old, [(terms.constant(each.arg), each.value) for each in given]
        return None

    def visit(self, node: ast.AST) -> Any:
        """The statements that replace a node; in expressions, names for mutating functions."""
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
            case ast.Assign(value=ast.Lambda() as value) if self.has_variable_defaults(node):
                return [*self._defaults(value, node), *self._line(node)]
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr() | ast.Return():
                return self._line(node)
            case ast.Lambda() | ast.IfExp() | ast.BoolOp() | ast.Compare():
                # Its body may use its own variables, or not run.
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
        """The name of a one-line function."""
        name = self._fresh(base)
        made = ast.FunctionDef(name, arguments, [line], [])
        self.generic_visit(terms.inline(made))
        self.before.append(made)
        return terms.name(name)

    def _defaults(self, function: ast.Lambda, node: ast.Assign) -> list[ast.stmt]:
        """The defaults of a lambda as separate variables, which its body reads."""
        arguments = function.args
        places = [*arguments.posonlyargs, *arguments.args]
        params = places[len(places) - len(arguments.defaults) :]
        names = {each.arg: self._fresh(each.arg) for each in params}
        lines = [
            terms.assign(names[each.arg], default)
            for each, default in zip(params, arguments.defaults, strict=True)
        ]
        arguments.posonlyargs = [each for each in arguments.posonlyargs if each not in params]
        arguments.args = [each for each in arguments.args if each not in params]
        arguments.defaults = []
        function.body = terms.copied(function.body, {old: terms.name(new) for old, new in names.items()})
        ast.fix_missing_locations(ast.copy_location(function.body, node.value))
        origin(node).is_verbatim = False
        return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in lines]

    def _fresh(self, base: str) -> str:
        name = fresh_name(base, self.taken, numbered=True)
        self.taken.add(name)
        return name

    def _follows_calls(self, node: ast.Dict | ast.Call) -> bool:
        """Return whether the line makes calls that may mutate objects before this one."""
        return any(
            isinstance(each, ast.Call)
            and (each.end_lineno, each.end_col_offset) <= (node.lineno, node.col_offset)
            and not self.is_pure(self.dotted(each.func) or "")
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
            origin(node).is_verbatim = False
        return [*(ast.fix_missing_locations(ast.copy_location(each, node)) for each in made), node]


def _arguments(given: list[ast.arg]) -> ast.arguments:
    return ast.arguments([], given, None, [], [], None, [])
