"""Choose the parameters to differentiate by, if none are named."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from trainshift.derivatives.reading.function import root_of
from trainshift.derivatives.reading.module import Module
from trainshift.derivatives.reading.rename_bound import dotted_in, rename_bound
from trainshift.derivatives.tables.rows import rows
from trainshift.derivatives.tables.table import STILL
from trainshift.derivatives.tables.table_numpy import METHODS, STILL_METHODS
from trainshift.python.rewrite.renaming import identifiers
from trainshift.python.rewrite.terms import walk
from trainshift.python.syntax.call_binding import bind_call, parameters
from trainshift.python.syntax.iteration import Gets, Step, parts_given, step
from trainshift.python.syntax.unpacking import parts_assigned

_ANNOTATED = {"int": "annotated int", "str": "annotated str", "bool": "annotated bool"}

# The methods of containers; the table knows those of arrays.
_METHODS = frozenset(
    ("items", "values", "get", "append", "extend", "insert", "pop", "copy", "update", "setdefault")
)
# These functions take counts, or arguments that are not values.
_COUNTING = frozenset(
    f"builtins.{each}" for each in ("range", "len", "int", "isinstance", "print", "str")
) | frozenset(
    f"{module}.{each}"
    for module in ("numpy", "tensorflow")
    for each in ("zeros", "ones", "empty", "eye", "identity", "tri", "one_hot")
)
# Represents an argument of a function in the file; the use of its parameter decides.
_GIVEN = "given"
# Represents an element of a set, or a key of a dict: an index if it is also used as one.
_KEY = "a key"


def chosen(module: Module, node: ast.FunctionDef) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """The parameters of a function that can have a derivative, and the others with the reason."""
    taken: list[str] = []
    left: list[tuple[str, str]] = []
    for each in parameters(node.args):
        annotation = each.annotation.id if isinstance(each.annotation, ast.Name) else ""
        if annotation in _ANNOTATED:
            left.append((each.arg, _ANNOTATED[annotation]))
        elif uses := _Uses(module).of(node, each.arg):
            left.append((each.arg, f"used only as {uses}"))
        else:
            taken.append(each.arg)
    return taken, tuple(left)


class _Uses:
    """The uses of a parameter: only in counts, indices and conditions, or as a value.

    The uses of its parts count, and so do those of a parameter to which a call passes it.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.dotted: Callable[[ast.expr], str | None] = module.dotted
        self.bound: set[str] = set()
        self.names: set[str] = set()
        self.found: set[str] = set()
        self.asked: set[tuple[str, str]] = set()

    def of(self, node: ast.FunctionDef, name: str) -> str:
        self._function(node, name)
        self.found -= {_GIVEN, _KEY}
        if "" in self.found or not self.found:
            return ""
        return " and ".join(sorted(self.found))

    def _function(self, node: ast.FunctionDef, name: str) -> None:
        """All uses of a parameter of a function."""
        outer, self.names = self.names, {name}
        around, self.dotted = (self.dotted, self.bound), dotted_in(node, self.module)
        self.bound = identifiers(node, bound_only=True)
        known = 0
        while known < len(self.names):
            known = len(self.names)
            for each in walk(node):
                for target, value in _pairs(each):
                    if self._is_part(value):
                        self.names |= {one.id for one in walk(target) if isinstance(one, ast.Name)}
        for line in node.body:
            self._node(line, "")
        self.names, (self.dotted, self.bound) = outer, around

    def _is_part(self, node: ast.expr) -> bool:
        """Return whether an expression is or contains the parameter or a part of it, or depends on it: its
        uses count as the parameter's.
        """
        match node:
            case ast.Name() | ast.Subscript():
                return root_of(node) in self.names
            case ast.BinOp(left, op, right):
                # The factor of a repeated list is a count.
                parts = [left, right]
                if isinstance(op, ast.Mult) and any(isinstance(each, ast.List) for each in parts):
                    parts = [each for each in parts if isinstance(each, ast.List)]
                return any(map(self._is_part, parts))
            case ast.UnaryOp(ast.USub() | ast.UAdd(), operand):
                return self._is_part(operand)
            case ast.List(elts) | ast.Tuple(elts):
                return any(map(self._is_part, elts))
            case ast.Call(ast.Name("list" | "tuple" | "reversed" | "sorted"), [inner]):
                return self._is_part(inner)
            case ast.Call(ast.Attribute(base, "pop" | "copy")):
                return self._is_part(base)
        return False

    def _node(self, node: ast.AST, role: str) -> None:
        match node:
            case ast.Name():
                if node.id in self.names and isinstance(node.ctx, ast.Load):
                    self.found.add(role)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.comprehension():
                for _, value in _pairs(node):
                    self._node(value, _GIVEN if self._is_part(value) else role)
                others = ("iter" if isinstance(node, ast.For | ast.comprehension) else "value", "target")
                for field, each in ast.iter_fields(node):
                    if field not in others:
                        self._all(each, "a condition" if field == "ifs" else role)
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
            case ast.Set():
                self._all(node.elts, _KEY)
            case ast.SetComp() | ast.DictComp():
                self._node(node.elt if isinstance(node, ast.SetComp) else node.key, _KEY)
                self._all([*node.generators, getattr(node, "value", None)], role)
            case ast.Dict():
                self._all([each for each in node.keys if each is not None], _KEY)
                self._all(node.values, role)
            case ast.Call(func=ast.Attribute(base, "add" | "discard")) if self.dotted(node.func) is None:
                # Only sets have these.
                self._all([base, *node.args], _KEY)
            case ast.Attribute():
                self._node(
                    node.value,
                    "a constant" if isinstance(node.value, ast.Name) and node.attr != "T" else role,
                )
            case ast.Call(func=ast.Name(name)) if name in self.module.functions and name not in self.bound:
                self._called(node, rename_bound(self.module.functions[name], self.module), role)
            case ast.Call() if self.dotted(node.func) in _COUNTING:
                self._all([*node.args, *node.keywords], "a count")
            case ast.Expr(ast.Call(ast.Attribute(base, "append" | "extend" | "insert"), [*places, value])):
                self._node(base, _GIVEN)
                self._all(places, "an index")
                self._node(value, _GIVEN if self._is_part(value) else role)
            case ast.Expr(ast.Call(ast.Attribute(attr="pop" | "remove")) as call):
                self._node(call, _GIVEN)
            case ast.Call(
                ast.Attribute(base, "pop" | "get" | "remove" | "index" | "count" as word), [key, *others]
            ) if self.dotted(node.func) is None:
                self._node(base, role)
                self._node(key, "an index" if word in ("pop", "get") else "a condition")
                self._all(others, role)
            case ast.Call(func=ast.Attribute(base, attr)) if (
                attr in _METHODS | METHODS | STILL_METHODS and self.dotted(node.func) is None
            ):
                self._node(base, role)
                self._arguments(node, f"numpy.{attr}", [base, *node.args], role)
            case ast.Call():
                self._node(node.func, "")
                self._arguments(node, self.dotted(node.func) or "", node.args, role)
            case ast.BinOp(op=ast.Mult()) if isinstance(node.left, ast.List):
                self._node(node.left, role)
                self._node(node.right, "a count")
            case ast.BinOp(op=ast.Mult()) if isinstance(node.right, ast.List):
                self._node(node.right, role)
                self._node(node.left, "a count")
            case _:
                self._all(list(ast.iter_child_nodes(node)), role)

    def _arguments(self, node: ast.Call, dotted: str, given: list[ast.expr], role: str) -> None:
        row = rows().get(dotted)
        for place, each in enumerate(given):
            # A shape may be given as several numbers.
            still = row is not None and row.params[min(place, len(row.params) - 1)] in STILL
            if each in node.args:
                self._node(each, "a count" if still else role)
        for keyword in node.keywords:
            still = (row.param(keyword.arg or "") if row else keyword.arg) in STILL | {"reverse"}
            still = still and dotted != "builtins.dict"
            self._node(keyword.value, "a count" if still else role)

    def _called(self, node: ast.Call, callee: ast.FunctionDef, role: str) -> None:
        """Treat the arguments of a call of a function in the file like that function's parameters."""
        bound = bind_call(node, callee.args)
        if bound.surplus or bound.is_hidden:
            self._all([*node.args, *node.keywords], role)
            return
        for param, value in bound.given.items():
            before, self.found = self.found, set()
            self._node(value, _GIVEN)
            flows = _GIVEN in self.found
            self.found = before | self.found - {_GIVEN}
            if flows and (callee.name, param) not in self.asked:
                self.asked.add((callee.name, param))
                self._function(callee, param)

    def _all(self, nodes: object, role: str) -> None:
        for each in nodes if isinstance(nodes, list) else [nodes]:
            if isinstance(each, ast.AST):
                self._node(each, role)


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of a statement with their values or iterables."""
    match node:
        case ast.Assign(targets, value):
            for each in targets:
                yield from parts_assigned(each, value)
        case ast.AnnAssign(target, _, ast.expr() as value) | ast.AugAssign(target, _, value):
            yield target, value
        case ast.Expr(ast.Call(ast.Attribute(base, "append" | "extend" | "insert"), [*_, value])):
            yield base, value
        case ast.For(target, source) | ast.comprehension(target, source):
            for part in parts_given(target, source):
                if part.gets in (Gets.ELEMENT, Gets.VALUE) or step(part.source)[0] is Step.COUNTS:
                    yield part.target, part.source
