"""Policy: what the points-to analysis has to know of the functions and libraries of a derivative."""

from __future__ import annotations

import ast

from trainshift.derivatives.reading.function import Function, Whole
from trainshift.derivatives.reading.sources import VIEWS
from trainshift.python.values.points_transfer import FunctionNode, Gives


class ArrayPolicy:
    """Calls of libraries give new objects, or views of arrays; parts of arrays may be views."""

    def __init__(self, whole: Whole) -> None:
        self.whole = whole
        self._functions: dict[FunctionNode, Function] = {each.node: each for each in whole.every()}

    def function(self, name: str) -> FunctionNode | None:
        """The function that a name of the file stands for."""
        if name in self.whole.functions:
            return self.whole.functions[name].node
        return self.whole.module.functions.get(self.whole.module.aliases.get(name, name))

    def is_object(self, node: ast.expr, function: FunctionNode) -> bool:
        """Whether an expression may be something that can be changed: no variable for numbers."""
        owner = self._functions.get(function) if isinstance(node, ast.Name) else None
        if owner is None or not isinstance(node, ast.Name) or owner.owner(node.id) is not owner:
            return True
        kind = owner.kind(node.id)
        return self.whole.arrays or not kind.numeric

    def is_view(self, node: ast.Subscript) -> bool:
        """Whether a part may be one of an array."""
        return self.whole.arrays

    def call(self, node: ast.Call) -> Gives | None:
        """What a call of a library gives; builtins are the analysis' own."""
        dotted = self.whole.module.dotted(node.func) or "builtins."
        if not dotted.startswith("builtins."):
            views = dotted.rpartition(".")[2] in VIEWS
            return Gives(same=tuple(node.args) if views else (), new=True)
        if isinstance(node.func, ast.Attribute) and node.func.attr in VIEWS:
            return Gives(same=(node.func.value,), new=True)
        return None
