"""Plain numbers: rates that are certainly numbers rather than schedules, although their values are
unknown.
"""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Statement, last_name

_NUMBERS = frozenset({"float", "int"})
# Calls whose results are never multiplied as objects.
_MAKING = frozenset({"float", "int", "abs", "round", "pow", "numpy", "item"})
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_OPTIONS = frozenset({"click.option", "click.argument"})
_OPTION_TYPES = _NUMBERS | {"FLOAT", "INT", "FloatRange", "IntRange"}


class PlainNumbers:
    """The expressions of one program that are numbers: schedules have no arithmetic, and no command line
    passes one.
    """

    def __init__(self, program: Program) -> None:
        self._names = program.names

    def is_number(self, at: Occurrence) -> bool:
        """Return whether all sources of an expression's value are numbers."""
        return self._is_number(at, set())

    def _is_number(self, at: Occurrence, met: set[int]) -> bool:
        node = at.node
        if id(node) in met:
            return True
        met.add(id(node))
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int | float)
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, _ARITHMETIC)
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.USub | ast.UAdd)
        if isinstance(node, ast.Call) and last_name(node.func) in _MAKING:
            return True
        if self._is_option(node, at.scope, at.statement):
            return True
        if isinstance(node, ast.Name):
            _, bindings = self._names.lookup(node.id, at.scope, at.statement)
            return bool(bindings) and all(self._is_bound(each, met) for each in bindings)
        sources = self._names.all_sources(at)
        return bool(sources) and all(self._is_number(each, met) for each in sources)

    def _is_bound(self, binding: Binding, met: set[int]) -> bool:
        """Return whether a name is bound to a number."""
        if binding.kind == "parameter" and binding.inner is not None and self._is_declared(binding):
            return True
        step = self._names.source_of(binding)
        return (
            bool(step.sources) and not step.unseen and all(self._is_number(one, met) for one in step.sources)
        )

    def _is_declared(self, binding: Binding) -> bool:
        """Return whether a parameter is a number by its annotation, or by its command-line option."""
        annotation = binding.target.annotation if isinstance(binding.target, ast.arg) else None
        if annotation is not None:
            named = {part.id for part in ast.walk(annotation) if isinstance(part, ast.Name)} - {"Optional"}
            if named and named <= _NUMBERS:
                return True
        return self._is_given(binding)

    def _is_given(self, binding: Binding) -> bool:
        """Return whether the command line passes a number for a parameter, by an option of click."""
        function = binding.inner
        assert function is not None
        for decorator in getattr(function.node, "decorator_list", ()):
            if not isinstance(decorator, ast.Call) or not isinstance(binding.target, ast.arg):
                continue
            outside = function.parent or function
            if not self._names.full_names(decorator.func, outside, function.statement) & _OPTIONS:
                continue
            words = [each.value for each in decorator.args if isinstance(each, ast.Constant)]
            if binding.target.arg in (str(each).lstrip("-").replace("-", "_").lower() for each in words):
                given = {each.arg: each.value for each in decorator.keywords}
                kind, default = given.get("type"), given.get("default")
                if kind is not None:
                    kind = kind.func if isinstance(kind, ast.Call) else kind
                    return last_name(kind) in _OPTION_TYPES
                return isinstance(default, ast.Constant) and isinstance(default.value, int | float)
        return False

    def _is_option(self, node: ast.expr, scope: Scope, statement: Statement | None) -> bool:
        """Return whether the value is an attribute of parsed command-line options."""
        if not isinstance(node, ast.Attribute):
            return False
        if self._names.full_names(node.value, scope, statement) & {"absl.flags.FLAGS"}:
            return True
        if not isinstance(node.value, ast.Name):
            return False
        _, bindings = self._names.lookup(node.value.id, scope, statement)
        return any(
            isinstance(binding.value, ast.Call) and last_name(binding.value.func).startswith("parse")
            for binding in bindings
        )
