"""Read an expression as operations with derivatives: its active parts, and the values that the adjoint
pass needs.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from msgspec import Struct, field

from trainshift.derivatives.reading.function import Function, bound
from trainshift.derivatives.reading.reader import Reader
from trainshift.derivatives.reading.result import Impossible
from trainshift.derivatives.tables import table, templates
from trainshift.derivatives.tables.table_einsum import einsum
from trainshift.derivatives.tables.table_numpy import METHODS
from trainshift.python.rewrite import terms

# Operations that are recomputed rather than saved: they call nothing else.
CHEAP = frozenset(("len", "isinstance", "float", "abs", "int"))


class Node(Struct, eq=False):
    """One operation of an expression.

    `sort`: `still` (not active), `name`, `row` (of the table), `call` (of a function of the file), `item`,
    `display`, `joined` (lists one after the other), `repeated`.  `params` are the operands with their
    parameters' names. `held` is the name that holds the value, if any; with `needed`, the reverse pass reads
    it.
    """

    sort: str
    expr: ast.expr
    params: list[tuple[str, Node]] = field(default_factory=list)
    row: table.Row | None = None
    target: Function | None = None
    held: str | None = None
    needed: bool = False
    pending: bool = False

    @property
    def active(self) -> bool:
        """Return whether a derivative flows through it."""
        return self.sort != "still"


class Nodes:
    """Creates nodes for the expressions of one function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.whole = function.whole
        self.module = function.whole.module
        self.reader = Reader(function)

    def node(self, expr: ast.expr) -> Node:
        """The operations of an expression."""
        if not self._active(expr):
            return Node("still", expr)
        match expr:
            case ast.Name():
                return Node("name", expr)
            case ast.Subscript():
                return Node("item", expr, [("base", self.node(expr.value))])
            case ast.BinOp():
                return self._operation(expr)
            case ast.UnaryOp():
                row = table.OPERATORS[type(expr.op).__name__]
                return Node("row", expr, [("a", self.node(expr.operand))], row)
            case ast.Tuple() | ast.List():
                return Node("display", expr, [(str(i), self.node(each)) for i, each in enumerate(expr.elts)])
            case ast.Dict() | ast.Call(ast.Name("dict"), [], [_, *_]):
                return Node("display", expr, [("", self.node(each)) for _, each in terms.entries(expr) or ()])
            case ast.Attribute(attr="T"):
                turned = self.whole.rows["numpy.transpose.whole"]
                return Node("row", expr, [("x", self.node(expr.value))], turned)
            case ast.Call():
                return self._call(expr)
        raise self.unknown(expr)

    def unknown(self, expr: ast.expr) -> Impossible:
        """The refusal of an expression that no rule handles."""
        return self.refused(expr, f"no derivative of {ast.unparse(expr)} is known")

    def refused(self, expr: ast.expr, said: str) -> Impossible:
        """The refusal of an expression."""
        return Impossible((self.module.refusal(expr, said, self.function.node),))

    def _active(self, expr: ast.expr) -> bool:
        """Return whether a derivative flows out of an expression: it varies, and all of its parts
        are useful.
        """
        if not self.reader.value(expr):
            return False
        if isinstance(expr, ast.Name):
            return self.function.active(expr.id) and not self.function.kind(expr.id).has("function")
        return True

    def _operation(self, expr: ast.BinOp) -> Node:
        left, right = self.node(expr.left), self.node(expr.right)
        kinds = (self.reader.kind(expr.left), self.reader.kind(expr.right))
        whole = not self.reader.by_part(expr, *kinds)
        if isinstance(expr.op, ast.Add) and any(each.has("list", "tuple") for each in kinds) and whole:
            return Node("joined", expr, [("a", left), ("b", right)])
        if isinstance(expr.op, ast.Mult) and whole:
            for one, other, kind in ((left, right, kinds[0]), (right, left, kinds[1])):
                # The factor of a repeated list has no derivative.
                listed = kind.has("list", "tuple") and not other.active
                if isinstance(one.expr, ast.List | ast.Tuple) or listed:
                    return Node("repeated", expr, [("a", one), ("n", other)])
        if isinstance(expr.op, ast.MatMult):
            product = "tensorflow.matmul" if self.whole.tensors else "numpy.matmul"
            return Node("row", expr, [("a", left), ("b", right)], self.whole.rows[product])
        if isinstance(expr.op, ast.Pow):
            wide = table.TENSOR_POWER if self.whole.tensors else table.ARRAY_POWER
            row = wide if self.whole.arrays and not self.settled(expr) else table.POWER
            if not right.active and terms.is_number(expr.right):
                row = literal_power(expr.right.value)  # type: ignore[attr-defined]
            return Node("row", expr, [("a", left), ("b", right)], row)
        return Node("row", expr, [("a", left), ("b", right)], table.OPERATORS[type(expr.op).__name__])

    def _call(self, expr: ast.Call) -> Node:
        reader = self.reader
        target = reader.target(expr)
        if target is not None:
            return Node(
                "call", expr, [(p, self.node(each)) for p, each in bound(target, expr)], target=target
            )
        is_local = isinstance(expr.func, ast.Name) and self.function.owner(expr.func.id)
        if is_local or not isinstance(expr.func, ast.Name | ast.Attribute):
            return self._call_of_value(expr)
        dotted = self.function.dotted(expr.func)
        arguments = list(expr.args)
        if dotted is None and isinstance(expr.func, ast.Attribute):
            if expr.func.attr in ("get", "pop", "setdefault"):
                return Node("item", expr, [("base", self.node(expr.func.value))])
            dotted = method(expr.func.attr)
            if expr.func.attr in ("reshape", "transpose") and len(arguments) > 1:
                arguments = [ast.Tuple(arguments, ast.Load())]
            arguments.insert(0, expr.func.value)
        row = self.row(dotted or "", arguments, expr)
        if row is None:
            raise self.unknown(expr)
        named = [(row.param(each.arg), each.value) for each in expr.keywords if each.arg]
        given = [*zip(row.params, arguments, strict=False), *named]
        params = [(p, Node("still", each) if p in table.STILL else self.node(each)) for p, each in given]
        return Node("row", expr, params, row)

    def _call_of_value(self, expr: ast.Call) -> Node:
        """A call of a function value: by position, or by the names of its only candidate."""
        possible = self.reader.possible(expr)
        if not possible:
            raise self.unknown(expr.func)
        if all(each.takes_by_place(expr) for each in possible):
            return Node("call", expr, [(f"argument{i}", self.node(each)) for i, each in enumerate(expr.args)])
        if len(possible) == 1:
            given = [(param, self.node(each)) for param, each in bound(possible[0], expr)]
            return Node("call", expr, given, target=possible[0])
        said = f"{ast.unparse(expr.func)} may be one of several functions"
        raise self.refused(expr, f"{said}: write them without defaults, and pass arguments by position")

    def row(self, dotted: str, arguments: list[ast.expr], expr: ast.Call) -> table.Row | None:
        """The row of the table for a call."""
        rows = self.whole.rows
        if len(arguments) == 1 and dotted in ("builtins.max", "builtins.min"):
            dotted += ".all"
        if dotted == "builtins.sum" and len(arguments) + len(expr.keywords) == 2:
            # Applies to numbers and arrays: with a list as the start, it concatenates lists.
            start = [*arguments, *(each.value for each in expr.keywords)][1]
            dotted += "" if self.reader.kind(start).has("list", "tuple") else ".start"
        if dotted.startswith("builtins.sum") and self.whole.arrays and f"{dotted}.arrays" in rows:
            dotted += ".arrays"
        if dotted == "math.log" and len(arguments) == 2:
            dotted = "math.log2arguments"
        if dotted == "math.hypot":
            return table.hypot(len(arguments))
        module, _, called = dotted.partition(".")
        if called == "einsum" and isinstance(arguments[0], ast.Constant):
            return einsum(str(arguments[0].value), module)
        if self.whole.tensors and dotted == "builtins.abs":
            dotted = "tensorflow.abs"
        if dotted == "numpy.clip":
            dotted += self._bounds(rows[dotted], arguments, expr)
        if dotted == "numpy.pad":
            mode = _given(rows[dotted], arguments, expr).get("mode", ast.Constant("constant"))
            dotted += "" if ast.unparse(mode) == "'constant'" else ".repeating"
        if dotted == "numpy.arange" and len(arguments) == 3:
            dotted += ".step"
        whole = rows.get(f"{dotted}.whole")
        if whole is not None and len(arguments) == len(whole.params) and not expr.keywords:
            return whole
        if dotted not in rows and isinstance(expr.func, ast.Name):
            dotted = self.module.helpers.get(expr.func.id, dotted)
            if self.whole.tensors and f"{dotted}.tensors" in rows:
                dotted += ".tensors"
        return rows.get(dotted)

    def _bounds(self, row: table.Row, arguments: list[ast.expr], expr: ast.Call) -> str:
        """The bounds of a call of `clip`."""
        given = _given(row, arguments, expr)
        none = [
            each
            for each in ("low", "high")
            if isinstance(given.get(each, ast.Constant(None)), ast.Constant)
            and getattr(given.get(each), "value", None) is None
        ]
        return {"low": ".high", "high": ".low"}[none[0]] if len(none) == 1 else ""

    def open_indices(self, index: ast.expr) -> list[ast.expr]:
        """The parts of an index that may be arrays, and so may pick several places in any order."""
        if isinstance(index, ast.Tuple):
            return [part for each in index.elts for part in self.open_indices(each)]
        return [] if isinstance(index, ast.Slice) or self.settled(index) else [index]

    def settled(self, expr: ast.expr) -> bool:
        """Return whether an expression is certainly one number, so that nothing is broadcast."""
        if not self.whole.arrays:
            return True
        match expr:
            case ast.Constant():
                return True
            case ast.Name(name):
                return name in self._scalars()
            case ast.BinOp():
                matrix = isinstance(expr.op, ast.MatMult)
                return not matrix and self.settled(expr.left) and self.settled(expr.right)
            case ast.UnaryOp():
                return self.settled(expr.operand)
            case ast.Call():
                dotted = self.function.dotted(expr.func) or ""
                if dotted.startswith("math.") or dotted in ("builtins.len", "builtins.float", "builtins.int"):
                    return True
                last = dotted.rpartition(".")[2]
                whole = len(expr.args) == 1 and not expr.keywords
                if dotted.startswith("tensorflow."):
                    return last.removeprefix("reduce_") in REDUCING | {"logsumexp"} and whole
                if dotted.startswith("numpy."):
                    return last in REDUCING and whole
                if isinstance(expr.func, ast.Attribute) and not dotted:
                    return expr.func.attr in REDUCING and not expr.args and not expr.keywords
        return False

    def certain(self, expr: ast.expr) -> bool:
        """Return whether an expression is certainly neither an array nor a container."""
        return self.settled(expr) if self.whole.arrays else self.numeric(expr)

    def _scalars(self) -> set[str]:
        """The variables that are one number wherever they are assigned, parameters annotated float or int,
        and arguments of `range`.
        """
        found = getattr(self, "_known", None)
        if found is not None:
            return found  # type: ignore[no-any-return]
        arguments = self.function.node.args
        annotated = {
            each.arg
            for each in (*arguments.args, *arguments.kwonlyargs)
            if isinstance(each.annotation, ast.Name) and each.annotation.id in ("float", "int")
        }
        assigned: dict[str, list[ast.expr | None]] = {}
        for statement in self.function.body:
            for node in terms.walk(statement):
                match node:
                    case ast.Assign(targets=[ast.Name(name)]):
                        assigned.setdefault(name, []).append(node.value)
                    case ast.AugAssign(target=ast.Name(name)):
                        assigned.setdefault(name, []).append(node.value)
                    case ast.For(target=ast.Name(name), iter=ast.Call(func=ast.Name("range"))):
                        assigned.setdefault(name, []).append(ast.Constant(0))
                    case ast.Name(name, ctx=ast.Store()):
                        assigned.setdefault(name, [])
        counts: dict[str, int] = {}
        for statement in self.function.body:
            for node in terms.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    counts[node.id] = counts.get(node.id, 0) + 1
        annotated |= {each for each in self.function.counts if each not in counts}
        self._known = annotated | {
            name
            for name, values in assigned.items()
            if name not in self.function.params and len(values) == counts.get(name, 0)
        }
        while True:
            wrong = {
                name
                for name in self._known - annotated
                if not all(each is not None and self.settled(each) for each in assigned[name])
            }
            if not wrong:
                return self._known
            self._known -= wrong

    # Values for the adjoint pass.

    def marked(self, expr: ast.expr, active: bool = True) -> Node:
        """The operations of an expression, with the values marked that the adjoint pass needs; one that is
        not active has none.
        """
        root = self.node(expr) if active else Node("still", expr)
        if root.active:
            self.mark(root)
        return root

    def mark(self, node: Node) -> None:
        """Mark the values that the adjoint pass needs in all operations below, and the cotangents that
        may be too large.
        """
        if node.sort == "row" and node.row is not None:
            self.want_read(node, node.row.reverse)
            wide = node.row.elementwise and len(node.params) > 1
            for param, child in node.params:
                if wide:
                    others = [each for key, each in node.params if key != param]
                    same = all(terms.same(child.expr, each.expr) for each in others)
                    small = all(self.settled(each.expr) for each in others)
                    child.pending = node.pending or not (same or small)
                elif node.row.elementwise:
                    child.pending = node.pending
        if node.sort == "joined" or (node.sort == "repeated" and not self.written(node.params[0][1])):
            # The reverse pass asks for its length.
            self.want(node.params[0][1])
        if node.sort == "item":
            base = node.params[0][1]
            if base.sort not in ("name", "item"):
                base.needed = True
        if node.pending and node.sort in ("row", "item", "call") and not (node.row and node.row.elementwise):
            self.want(node)
        for _, child in node.params:
            if child.active:
                self.mark(child)

    def by_part(self, row: table.Row, node: Node, value: ast.expr) -> ast.expr:
        """The value or tangent of an operand: converted to an array if it is a list that NumPy treats
        elementwise.
        """
        listed = self.reader.kind(node.expr).has("list", "tuple")
        of_numpy = row.elementwise and row.name.startswith("numpy.")
        return terms.call("np.array", value) if listed and of_numpy else value

    def written(self, node: Node) -> bool:
        """Return whether a list or tuple is written down, number by number."""
        inside = [child.expr for _, child in node.params]
        return node.sort == "display" and not any(self.reader.kind(each).container for each in inside)

    def want_read(self, node: Node, derivatives: Mapping[str, str]) -> None:
        """Mark the values that the derivatives of a row's operands read."""
        operands = dict(node.params)
        used: set[str] = set()
        for param, child in node.params:
            if child.active and param in derivatives:
                used |= templates.names_of(derivatives[param])
        if "y" in used and "y" not in operands:
            node.needed = True
        for param in used & set(operands):
            self.want(operands[param])

    def want(self, node: Node) -> None:
        """Mark the value of an operation as needed in the adjoint pass."""
        if (
            node.sort in ("row", "call", "display", "joined", "repeated")
            or (node.sort == "still" and not cheap(node.expr))
            or (node.sort == "item" and not cheap(node.expr))
        ):
            node.needed = True

    def numeric(self, expr: ast.expr) -> bool:
        """Return whether a value is a number or array without elements to add to."""
        return self.reader.kind(expr).numeric


REDUCING = frozenset(["sum", "mean", "prod", "max", "min", "var", "std", "vdot", "trace", "item"])


def _given(row: table.Row, arguments: list[ast.expr], expr: ast.Call) -> dict[str, ast.expr]:
    """The arguments of a call, by the parameters of a row."""
    named = {row.param(each.arg): each.value for each in expr.keywords if each.arg}
    return dict(zip(row.params, arguments, strict=False)) | named


def method(attribute: str) -> str | None:
    """The row of a method of arrays or containers."""
    if attribute == "copy":
        return "copy"
    return f"numpy.{attribute}" if attribute in METHODS else None


def literal_power(exponent: float) -> table.Row:
    """The row of a power whose exponent is a literal."""
    if exponent == 0:
        return table.slope("Pow", "a b", {})
    if exponent == 1:
        return table.slope("Pow", "a b", {"a": "d"})
    if exponent == 2:
        return table.slope("Pow", "a b", {"a": "d * 2 * a"})
    return table.slope("Pow", "a b", {"a": f"d * {exponent!r} * a ** {exponent - 1!r}"})


def cheap(expr: ast.expr) -> bool:
    """Return whether an expression may be computed again: names, literals, arithmetic and elements."""
    for each in terms.walk(expr):
        if isinstance(each, ast.Call):
            if not (isinstance(each.func, ast.Name) and each.func.id in CHEAP):
                return False
        elif isinstance(each, ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp | ast.Lambda):
            return False
    return True
