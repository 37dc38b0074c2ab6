"""The writer of expressions for both modes: helpers, imports and functions as values."""

from __future__ import annotations

import ast
from collections.abc import Callable

from trainshift.derivatives.reading.function import Function, Whole
from trainshift.derivatives.reading.nodes import Node, Nodes
from trainshift.derivatives.tables import templates
from trainshift.derivatives.tables.table import Row
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.terms import rebuilt


class Writer:
    """Write expressions of one function; `helpers` and `needs` are the called helpers and the imports."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.whole: Whole = function.whole
        self.nodes = Nodes(function)
        self.helpers: set[str] = set()
        self.needs: set[str] = set()

    def helper(self, name: str, *args: ast.expr) -> ast.expr:
        """A call of a helper, which is then added to the file."""
        self.helpers.add(name)
        return terms.call(name, *(terms.copied(each) for each in args))

    def use(self, template: str) -> None:
        """Record the modules and helpers that a template needs."""
        for each in templates.names_of(template):
            if each in ("np", "math", "tf"):
                self.needs.add(each)
            elif each.startswith("_") and len(each) > 1:
                self.helpers.add(each)

    def plain(self, expr: ast.expr) -> ast.expr:
        """An expression without a derivative; functions as values become their derivatives, which return
        the value first.
        """
        new: dict[int, ast.expr] = {}
        originals: set[int] = set()
        for each in terms.walk(expr):
            match each:
                case ast.Call() if self._of_value(each.func):
                    arguments = [self.plain(argument) for argument in each.args]
                    call = ast.Call(self.plain(each.func), arguments, self.still(each))
                    new[id(each)] = ast.Subscript(call, terms.constant(0), ast.Load())
                case ast.Call():
                    # Code that is not a value, and callees without a derivative, use the originals.
                    originals |= {id(part) for part in (each.func, *each.args)}
                case ast.Attribute():
                    # An attribute of a function belongs to the original.
                    originals.add(id(each.value))
                case ast.Name(ctx=ast.Load()):
                    owner = self.function.owner(each.id)
                    if owner is not None and each.id in owner.nested:
                        new[id(each)] = terms.name(self.whole.made_name(owner.nested[each.id]))
                    elif owner is None and id(each) not in originals and self.is_function(each):
                        new[id(each)] = self.as_function(each)
        return rebuilt(expr, new)

    def plain_statement(self, node: ast.stmt) -> ast.stmt:
        """A statement without a derivative."""
        match node:
            case ast.Expr():
                value = self.plain(node.value)
                return node if value is node.value else ast.copy_location(ast.Expr(value), node)
            case ast.Assert():
                test = self.plain(node.test)
                return node if test is node.test else ast.copy_location(ast.Assert(test, node.msg), node)
        return node

    def combined(self, node: Node, ahead: Callable[[Node], ast.expr]) -> ast.expr:
        """An operation, with what `ahead` makes of its operands."""
        made = [(child.expr, ahead(child)) for _, child in node.params]
        new = {id(old): each for old, each in made if each is not old}
        return rebuilt(node.expr, new) if node.params else self.plain(node.expr)

    def value(self, node: Node) -> ast.expr:
        """The value of an operation, as a name if it has one."""
        return terms.name(node.held) if node.held else self.plain(node.expr)

    def operands(self, node: Node, row: Row) -> dict[str, ast.expr]:
        """The expressions for an operation's operands in a template, and for its value `y`."""
        values = {param: self.nodes.by_part(row, child, self.value(child)) for param, child in node.params}
        return values if "y" in values else {**values, "y": self.value(node)}

    def _of_value(self, func: ast.expr) -> bool:
        """Return whether a call is one of a function that is a value."""
        if isinstance(func, ast.Name):
            return self.function.owner(func.id) is not None and self.is_function(func)
        return not isinstance(func, ast.Attribute)

    def still(self, call: ast.Call) -> list[ast.keyword]:
        """The keywords of a call without a derivative."""
        return [ast.keyword(each.arg, self.plain(each.value)) for each in call.keywords]

    def runs_code(self, call: ast.Call) -> bool:
        """Return whether a call is of a function of the file, or of one that is a value."""
        known = self.nodes.reader.target(call) is not None or self.is_function(call.func)
        return known or isinstance(call.func, ast.Subscript)

    def made_function(self, node: Node) -> ast.expr:
        """The derivative of the function that a call means."""
        expr = node.expr
        assert isinstance(expr, ast.Call)
        if node.target is None or self.nodes.reader.target(expr) is None:
            return self.plain(expr.func)
        return terms.name(self.whole.made_name(node.target))

    def is_function(self, expr: ast.expr) -> bool:
        """Return whether an expression names a function that is differentiated."""
        if not isinstance(expr, ast.Name):
            return False
        owner = self.function.owner(expr.id)
        if owner is None:
            return expr.id in self.whole.module.functions
        return owner.kind(expr.id).has("function")

    def as_function(self, expr: ast.expr) -> ast.expr:
        """The replacement of a function that is passed as an argument."""
        assert isinstance(expr, ast.Name)
        if self.function.owner(expr.id) is None:
            return terms.name(self.whole.made_name(self.whole.function(expr.id)))
        return self.plain(expr)


def with_last(node: ast.Expr, made: ast.expr) -> ast.Expr:
    """A call alone on its line, with another last argument; itself if that is the same."""
    call = node.value
    assert isinstance(call, ast.Call)
    if made is call.args[-1]:
        return node
    return ast.copy_location(ast.Expr(ast.Call(call.func, [*call.args[:-1], made], [])), node)
