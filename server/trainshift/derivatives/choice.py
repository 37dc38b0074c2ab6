"""Which parameters a function is differentiated by where none are named (SPEC-AD 3.1)."""

from __future__ import annotations

import ast

_ANNOTATED = {"int": "annotated int", "str": "annotated str", "bool": "annotated bool"}


def chosen(node: ast.FunctionDef) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """The parameters that can have a derivative, and the others with the reason."""
    taken: list[str] = []
    left: list[tuple[str, str]] = []
    for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        annotation = each.annotation.id if isinstance(each.annotation, ast.Name) else ""
        if annotation in _ANNOTATED:
            left.append((each.arg, _ANNOTATED[annotation]))
        elif uses := _Uses(each.arg).of(node):
            left.append((each.arg, f"used only as {uses}"))
        else:
            taken.append(each.arg)
    return taken, tuple(left)


class _Uses:
    """How a parameter is used: as counts, indices and conditions alone, or as a value."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: set[str] = set()

    def of(self, node: ast.FunctionDef) -> str:
        for each in node.body:
            self._node(each, "")
        if "" in self.found or not self.found:
            return ""
        return " and ".join(sorted(self.found))

    def _node(self, node: ast.AST, role: str) -> None:
        match node:
            case ast.Name():
                if node.id == self.name and isinstance(node.ctx, ast.Load):
                    self.found.add(role)
            case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
                self._node(node.test, "a condition")
                for field, each in ast.iter_fields(node):
                    if field != "test":
                        self._all(each, role)
            case ast.Compare():
                self._all([node.left, *node.comparators], "a condition")
            case ast.UnaryOp(op=ast.Not()):
                self._node(node.operand, "a condition")
            case ast.Subscript():
                self._node(node.value, role)
                self._node(node.slice, "an index")
            case ast.Attribute():
                self._node(
                    node.value,
                    "a constant" if isinstance(node.value, ast.Name) and node.attr != "T" else role,
                )
            case ast.Call(func=ast.Name("range" | "len" | "int" | "isinstance" | "print" | "str")):
                self._all(node.args, "a count")
            case ast.Call():
                self._node(node.func, "")
                self._all(node.args, role)
                for each in node.keywords:
                    count = each.arg in ("axis", "keepdims", "shape", "dtype", "ddof")
                    self._node(each.value, "a count" if count else role)
            case ast.BinOp(op=ast.Mult()) if isinstance(node.left, ast.List):
                self._node(node.left, role)
                self._node(node.right, "a count")
            case ast.BinOp(op=ast.Mult()) if isinstance(node.right, ast.List):
                self._node(node.right, role)
                self._node(node.left, "a count")
            case _:
                self._all(list(ast.iter_child_nodes(node)), role)

    def _all(self, nodes: object, role: str) -> None:
        for each in nodes if isinstance(nodes, list) else [nodes]:
            if isinstance(each, ast.AST):
                self._node(each, role)
