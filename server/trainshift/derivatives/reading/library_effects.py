"""Library effects: facts for the points-to analysis about a derivative's functions and libraries."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TypeAlias

from trainshift.derivatives.reading.function import Function, Whole
from trainshift.derivatives.reading.indices import Indices
from trainshift.derivatives.reading.kinds import Kind, read_only
from trainshift.derivatives.reading.nodes import Nodes
from trainshift.derivatives.reading.reader import FACTS, VIEWS
from trainshift.derivatives.tables.table_helpers import CONSTANTS as OF_HELPERS
from trainshift.libraries.containers import METHODS
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS
from trainshift.python.values.points_transfer import FunctionNode, Gives, Operation, body_of

Comprehension: TypeAlias = "ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp"
_PARTS = frozenset(("get", "items", "values", "keys", "copy"))


class ArrayPolicy:
    """Library calls return new objects, or views of arrays; parts of arrays may be views.

    A function is analysed in the form from which its derivative is made.
    """

    def __init__(self, whole: Whole) -> None:
        self.whole = whole
        self._functions: dict[FunctionNode, Function] = {each.node: each for each in whole.every()}
        self._nodes: dict[Function, Nodes] = {}
        self._bodies: dict[Function, list[ast.stmt]] = {}
        self._inside: dict[int, tuple[Comprehension, ...] | None] = {}
        for each in self._functions.values():
            for line in each.body:
                self._enter(line, ())

    def _enter(self, node: ast.AST, around: tuple[Comprehension, ...] | None) -> None:
        """Record the comprehensions around a statement's expressions; None for those that use a lambda's
        names.
        """
        waiting = [(node, around)]
        while waiting:
            node, around = waiting.pop()
            if isinstance(node, ast.Lambda):
                around = None
            elif isinstance(node, COMPREHENSIONS) and around is not None:
                around = *around, node
            if around != ():
                self._inside[id(node)] = around
            waiting += [(each, around) for each in ast.iter_child_nodes(node)]

    def _read(self, node: ast.AST, function: FunctionNode) -> Nodes | None:
        """The reader of the kinds of a function's expressions; None in a lambda with names of its own."""
        owner = self._functions.get(function)
        if owner is None or self._inside.get(id(node), ()) is None:
            return None
        if owner not in self._nodes:
            self._nodes[owner] = Nodes(owner)
        return self._nodes[owner]

    def _kind(self, nodes: Nodes, node: ast.expr) -> Kind:
        """The inferred kind of an expression."""
        around = self._inside.get(id(node))
        if not around:
            with read_only():
                return nodes.reader.kind(node)
        with ExitStack() as stack:
            stack.enter_context(read_only())
            for each in around:
                stack.enter_context(nodes.reader.inside(each))
            return nodes.reader.kind(node)

    def function(self, name: str) -> FunctionNode | None:
        """The function behind a name of the file."""
        if name in self.whole.functions:
            return self.whole.functions[name].node
        return self.whole.module.functions.get(self.whole.module.aliases.get(name, name))

    def body(self, function: FunctionNode) -> Sequence[ast.stmt]:
        """The statements of a function, in the form to be differentiated."""
        known = self._functions.get(function)
        if known is None:
            return body_of(function)
        if known not in self._bodies:
            result = [ast.Return(terms.name(known.result))] if known.result else []
            self._bodies[known] = [*known.body, *result]
        return self._bodies[known]

    def is_object(self, node: ast.expr, function: FunctionNode) -> bool:
        """Return whether an expression may be a mutable object: not a variable for numbers."""
        nodes = self._read(node, function)
        if nodes is None or not isinstance(node, ast.Name | ast.Subscript | ast.BinOp | ast.UnaryOp):
            return True
        if isinstance(node, ast.Name) and nodes.function.owner(node.id) is None:
            return True
        if isinstance(node, ast.Subscript):
            if isinstance(node.ctx, ast.Store) and self._kind(nodes, node.value).has("array"):
                return False  # An array copies the stored value.
            if isinstance(node.slice, ast.Slice) and not self.whole.arrays:
                return True
        if self.whole.arrays:
            return id(node) in self._inside or not nodes.settled(node)
        return not self._kind(nodes, node).numeric

    def is_view(self, node: ast.Subscript | ast.Attribute, function: FunctionNode) -> bool:
        """Return whether a part may be one of an array."""
        known = isinstance(node, ast.Attribute) and node.attr in FACTS
        return not known and self.has_views(node.value, function)

    def is_copy(self, node: ast.Subscript, function: FunctionNode) -> bool:
        """Return whether a subscript creates a copy of the selected elements."""
        nodes = self._read(node, function)
        return nodes is not None and Indices(nodes.reader).copies(node)

    def has_views(self, node: ast.expr, function: FunctionNode) -> bool:
        """Return whether an expression may be an array, over which a loop yields views."""
        if not self.whole.arrays:
            return False
        nodes = self._read(node, function)
        return nodes is None or self._kind(nodes, node).arrayish

    def operation(self, node: ast.BinOp | ast.AugAssign, function: FunctionNode) -> Operation:
        """An operator joins lists, and mutates lists and arrays in place."""
        nodes = self._read(node, function)
        if nodes is None:
            return Operation()
        kind = self._kind(nodes, node.target if isinstance(node, ast.AugAssign) else node)
        arrays = self.whole.arrays and kind.arrayish and not self.whole.tensors
        return Operation(kind.has("list", "tuple"), kind.has("list") or arrays)

    def callees(self, node: ast.Call, function: FunctionNode) -> Sequence[FunctionNode]:
        """The functions that a called value may be."""
        nodes = self._read(node, function)
        if nodes is None or nodes.function.dotted(node.func) is not None:
            return []
        named = isinstance(node.func, ast.Name) and nodes.function.owner(node.func.id) is None
        if named or isinstance(node.func, ast.Attribute):
            return []
        with read_only():
            return [each.node for each in nodes.reader.possible(node)]

    def call(self, node: ast.Call, function: FunctionNode) -> Gives | None:
        """The result of a library call; builtin functions belong to the analysis itself."""
        nodes = self._read(node, function)
        dotted = (
            nodes.function.dotted(node.func) if nodes is not None else self.whole.module.dotted(node.func)
        )
        dotted = dotted or "builtins."
        if isinstance(node.func, ast.Name) and (
            node.func.id in OF_HELPERS or node.func.id in self.whole.rows
        ):
            return Gives(new=True)
        if isinstance(node.func, ast.Call) and isinstance(node.func.func, ast.Name):
            if node.func.func.id == "type":  # Of the type of another container.
                return Gives(elements=tuple(node.args), new=True)
        if not dotted.startswith("builtins."):
            views = dotted.rpartition(".")[2] in VIEWS
            return Gives(same=tuple(node.args[:1]) if views else (), new=True)
        if isinstance(node.func, ast.Attribute):
            method, base = node.func.attr, node.func.value
            if method in VIEWS:
                return Gives(same=(base,), new=True)
            plain = method == "copy" and nodes is not None and not self._kind(nodes, base).element().container
            if plain or (method not in METHODS and method not in _PARTS):
                return Gives(new=True)
        return None
