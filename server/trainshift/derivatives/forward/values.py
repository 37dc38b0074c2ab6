"""Forward mode of expressions: the value with its tangent (AD31)."""

from __future__ import annotations

import ast

from trainshift.derivatives.reading.function import Function, bound, root_of
from trainshift.derivatives.reading.kinds import Kind
from trainshift.derivatives.reading.nodes import Node
from trainshift.derivatives.reading.reader import VIEWS
from trainshift.derivatives.reading.sources import Sources
from trainshift.derivatives.tables import templates
from trainshift.derivatives.tables.table_helpers import JOINT
from trainshift.derivatives.writing.writer import Writer
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.terms import rebuilt_arguments


class Values(Writer):
    """The values and tangents of one function's expressions; `out` are the statements so far."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.out: list[ast.stmt] = []

    def begun(self, name: str, given: bool) -> ast.stmt:
        """The tangent of a parameter without a given direction."""
        zero = terms.constant(0.0)
        kind = self.function.kind(name)
        made = terms.assign(
            self.dot(name),
            zero if kind.numeric and not self.whole.arrays else self.helper("_zeros", terms.name(name)),
        )
        if not given:
            return made
        return ast.If(terms.is_none(self.dot(name)), [made], [])

    def dot(self, name: str) -> str:
        """The name of a variable's tangent."""
        owner = self.function.owner(name)
        dots = self.whole.dot_names
        key = (owner, name)
        if key not in dots:
            dots[key] = (owner or self.function).fresh(f"{name}_dot")
        return dots[key]

    # Expressions.

    def read(self, value: ast.expr) -> Node:
        node = self.nodes.node(value)
        if node.active:
            self._mark(node)
        return node

    def _mark(self, node: Node) -> None:
        if node.sort == "row" and node.row is not None:
            self.nodes.want_read(node, node.row.forward)
        for _, child in node.params:
            if child.active:
                self._mark(child)

    def ahead(self, node: Node, top: bool = False) -> ast.expr:
        """The value of an operation; parts that its tangent also needs get names."""
        if node.sort == "call":
            held, dot = self.function.temporary(), ""
            dot = self.function.fresh(f"{held}_dot")
            self.function.local.add(held)
            self.out.append(
                terms.assign(terms.display([terms.name(held), terms.name(dot)]), self.called(node))
            )
            node.held = held
            return terms.name(held)
        made = self.combined(node, self.ahead)
        if node.needed and not top:
            node.held = self.function.temporary()
            self.out.append(terms.assign(node.held, made))
            return terms.name(node.held)
        return made

    def called(self, node: Node) -> ast.expr:
        """The call of a function that returns the value and its tangent."""
        expr = node.expr
        assert isinstance(expr, ast.Call)
        new: dict[int, ast.expr] = {}
        for _, child in node.params:
            if self.is_function(child.expr):
                new[id(child.expr)] = self.as_function(child.expr)
                continue
            if child.active and not isinstance(child.expr, ast.Name):
                child.needed = child.sort == "row"
            made = self.ahead(child)
            if made is not child.expr:
                new[id(child.expr)] = made
        arguments, keywords = rebuilt_arguments(expr, new)
        if node.target is None:
            given = [child for _, child in node.params if not self.is_function(child.expr)]
            dots = [self.own_tangent(child) for child in given]
            return ast.Call(self.made_function(node), [*arguments, *dots], keywords)
        target = node.target
        if target.escapes:
            # Parameters with defaults are passed by name.
            late = zip(target.params[target.required :], arguments[target.required :], strict=False)
            keywords = [*(ast.keyword(param, each) for param, each in late), *keywords]
            arguments = arguments[: target.required]
        given_params = dict(node.params)
        for param in self.whole.signature(target)[0]:
            if param in given_params:
                name = Values(target).dot(param)
                keywords.append(ast.keyword(name, self.own_tangent(given_params[param], target.kind(param))))
        return ast.Call(self.made_function(node), arguments, keywords)

    def still(self, call: ast.Call) -> list[ast.keyword]:
        """The keywords of a call without a tangent."""
        given = super().still(call)
        target = self.nodes.reader.target(call)
        if target is None:
            return given
        values = dict(bound(target, call))
        asked = [each for each in self.whole.signature(target)[0] if each in values]
        if target.escapes:
            return given
        dots = [ast.keyword(Values(target).dot(each), self.zero(values[each])) for each in asked]
        return [*given, *dots]

    def tangent(self, node: Node) -> ast.expr:
        """The tangent of an operation."""
        if not node.active:
            return self.zero(node.expr)
        match node.sort:
            case "name":
                assert isinstance(node.expr, ast.Name)
                return terms.name(self.dot(node.expr.id))
            case "call":
                return terms.name(f"{node.held}_dot")
            case "row":
                return self._row(node)
            case "item":
                base = self.tangent(node.params[0][1])
                if isinstance(node.expr, ast.Subscript):
                    return ast.Subscript(base, self.plain(terms.copied(node.expr.slice)), ast.Load())
                assert isinstance(node.expr, ast.Call)
                assert isinstance(node.expr.func, ast.Attribute)
                arguments = [
                    self.zero(each) if place else terms.copied(each)
                    for place, each in enumerate(node.expr.args)
                ]
                return ast.Call(ast.Attribute(base, node.expr.func.attr, ast.Load()), arguments, [])
            case "display":
                parts = [self.own_tangent(child) for _, child in node.params]
                written = terms.entries(node.expr)
                if written is not None:
                    return ast.Dict([terms.copied(key) for key, _ in written], parts)
                return (
                    ast.List(parts, ast.Load()) if isinstance(node.expr, ast.List) else terms.display(parts)
                )
            case "joined":
                left, right = (self.tangent(child) for _, child in node.params)
                return ast.BinOp(left, ast.Add(), right)
            case "repeated":
                (_, one), (_, count) = node.params
                return ast.BinOp(self.tangent(one), ast.Mult(), self.value(count))
        raise AssertionError(node.sort)

    def own_tangent(self, node: Node, kind: Kind | None = None, name: str = "") -> ast.expr:
        """The tangent of an operation, as an object of its own, since it is mutated later together with the
        value: `kind` and `name` are the value's, if known. The tangent of `x + 1.0` is that of x, and must
        not be mutated.
        """
        tangent = self.tangent(node)
        if not self.whole.arrays or self.whole.tensors or node.sort != "row" or not _is_another(tangent):
            return tangent
        if Sources(self.nodes.reader).sources(node.expr):
            return tangent
        if name and self._is_altered(name):
            kind = None
        kinds = self.whole.all_kinds() if kind is None else [kind]
        if not any(each.has("changed") and each.arrayish for each in kinds):
            return tangent
        return ast.BinOp(tangent, ast.Add(), terms.constant(0.0))

    def _row(self, node: Node) -> ast.expr:
        row = node.row
        assert row is not None
        if row.name in JOINT:
            parts = [
                self.value(child) if param == "index" else self.tangent(child) for param, child in node.params
            ]
            return self.helper(row.name, *parts)
        values = self.operands(node, row)
        total: ast.expr | None = None
        for param, child in node.params:
            if not child.active or param not in row.forward:
                continue
            template = row.forward[param]
            self.use(template)
            tangent = self.nodes.by_part(row, child, self.tangent(child))
            made = terms.simplified(templates.filled(template, {**values, "d": tangent}, row.defaults))
            total = made if total is None else terms.summed(total, made)
        if total is None:
            return self.zero(node.expr)
        root = root_of(total)
        if (
            self.whole.arrays
            and root is not None
            and any(
                self.whole.dot_names.get((self.function.owner(each), each)) == root and self._is_altered(each)
                for each in terms.names_read(node.expr)
            )
        ):
            # A value of its own must not change when the array is mutated.
            total = ast.BinOp(total, ast.Add(), terms.constant(0.0))
        if self.whole.arrays and row.name in ("Add", "Sub", "numpy.add", "numpy.subtract"):
            for _, child in node.params:
                if not child.active and not self.nodes.settled(child.expr):
                    total = terms.summed(total, self.wide(self.value(child)))
        return total

    def _is_altered(self, name: str) -> bool:
        """Return whether a variable is changed in place, by whatever name."""
        aliases = self.whole.aliases(self.function)
        altered = aliases.altered()
        return name in altered or self.nodes.reader.kind(terms.name(name)).has("changed")

    def wide(self, value: ast.expr) -> ast.expr:
        """Zeros in an array's shape, which broadcast a tangent to that shape."""
        if self.whole.tensors:
            return self.helper("_zeros", value)
        return terms.call("np.zeros", terms.call("np.shape", value))

    def fills_itself(self, expr: ast.expr) -> bool:
        """Return whether an expression creates a dict with default elements."""
        match expr:
            case ast.Call(func, [ast.Name("float" | "int" | "list" | "dict")], []):
                return self.nodes.function.dotted(func) == "collections.defaultdict"
        return False

    def zero(self, expr: ast.expr) -> ast.expr:
        """The tangent of an inactive expression."""
        match expr:
            case ast.Constant():
                return terms.constant(0.0) if terms.is_number(expr) else terms.constant(None)
            case ast.List() | ast.Tuple():
                zeros = [self.zero(each) for each in expr.elts]
                return ast.List(zeros, ast.Load()) if isinstance(expr, ast.List) else terms.display(zeros)
            case ast.Dict() | ast.Call(ast.Name("dict"), [], [_, *_]):
                written = terms.entries(expr) or []
                return ast.Dict(
                    [terms.copied(key) for key, _ in written], [self.zero(each) for _, each in written]
                )
            case ast.IfExp(test, ast.Call() as one, ast.Constant() as other):
                # A container in one case, a number in the other.
                return ast.IfExp(self.plain(terms.copied(test)), self.zero(one), self.zero(other))
            case ast.Call() if self.fills_itself(expr):
                return terms.copied(expr)
            case ast.Call(ast.Name(name)) if self.nodes.module.helpers.get(name) in ("_cells", "_zeros"):
                return self.helper("_zeros", self.plain(expr))
        if self.is_function(expr):
            return terms.constant(None)
        if not self.whole.arrays and self.nodes.reader.kind(expr).numeric:
            return terms.constant(0.0)
        return self.helper("_zeros", self.plain(expr))


def _is_another(tangent: ast.expr) -> bool:
    """Return whether a tangent may be that of a variable, or show a part of it."""
    match tangent:
        case ast.IfExp(_, one, other):
            return _is_another(one) or _is_another(other)
        case ast.Call(ast.Attribute(ast.Name("np"), attr), [first, *_]):
            return attr in VIEWS and _is_another(first)
    return root_of(tangent) is not None
