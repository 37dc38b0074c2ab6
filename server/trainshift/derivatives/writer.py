"""What both modes do to write expressions: helpers and imports that are asked for, functions as values."""

from __future__ import annotations

import ast

from trainshift.derivatives import terms
from trainshift.derivatives.reading.function import Function, Whole
from trainshift.derivatives.reading.nodes import Nodes


class Writer:
    """Writes expressions of one function; `helpers` and `needs` are what they call and import."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.whole: Whole = function.whole
        self.nodes = Nodes(function)
        self.helpers: set[str] = set()
        self.needs: set[str] = set()
        self.out: list[ast.stmt] = []

    def helper(self, name: str, *args: ast.expr) -> ast.expr:
        """A call of a helper, which is then put into the file."""
        self.helpers.add(name)
        return terms.call(name, *(terms.copied(each) for each in args))

    def use(self, template: str) -> None:
        """Notes the modules and helpers that a template asks for."""
        for each in terms.template_names(template):
            if each in ("np", "math", "tf"):
                self.needs.add(each)
            elif each.startswith("_") and len(each) > 1:
                self.helpers.add(each)

    def plain(self, expr: ast.expr) -> ast.expr:
        """An expression of which no derivative is asked."""
        raise NotImplementedError

    def is_function(self, expr: ast.expr) -> bool:
        """Whether an expression names a function that is differentiated."""
        if not isinstance(expr, ast.Name):
            return False
        owner = self.function.owner(expr.id)
        if owner is None:
            return expr.id in self.whole.module.functions
        return owner.kind(expr.id).has("function")

    def as_function(self, expr: ast.expr) -> ast.expr:
        """What stands for a function that is handed over."""
        assert isinstance(expr, ast.Name)
        if self.function.owner(expr.id) is None:
            return terms.name(self.whole.made_name(self.whole.function(expr.id)))
        return self.plain(expr)
