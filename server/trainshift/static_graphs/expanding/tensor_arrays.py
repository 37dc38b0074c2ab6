"""The lists and dicts that a graph carries: those that grow (PS15), and those of fixed size (PS16)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.python.flow.def_use import Names
from trainshift.python.names.scoping import name_uses
from trainshift.python.syntax.chunk_syntax import Statement, own_parts, targets_of
from trainshift.static_graphs.domain.abstract_values import NUMBER, AbstractValue
from trainshift.static_graphs.expanding.refusal import CannotExpand
from trainshift.static_graphs.reading.function import StaticFunction

_JOINING = frozenset({"paddle.stack", "paddle.concat", "paddle.tensor.stack", "paddle.tensor.concat"})


def appended(statement: Statement) -> str:
    """The name of the list that a statement grows by `append`; empty for any other statement."""
    node = statement.node
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append":
        if isinstance(call.func.value, ast.Name) and len(call.args) == 1 and not call.keywords:
            return call.func.value.id
    return ""


def written(statement: Statement) -> str:
    """The name of the container whose element a statement sets; empty for any other statement."""
    match targets_of(statement.node):
        case [ast.Subscript(value=ast.Name(id=name))]:
            return name
    return ""


_DEPTH = 6
_SAME_DTYPE = frozenset(
    {"max", "min", "reshape", "transpose", "unsqueeze", "squeeze", "flatten", "detach", "clone"}
)
_REDUCING = frozenset({"sum", "mean"})


class Held:
    """The containers of one function that a graph carries.

    `arrays` are the literal lists that become a TensorArray, with the text of its dtype, `grown` their names;
    `fixed` are the literals whose elements are set.  `graph` is the control flow that becomes part of the
    graph.  The constructor raises CannotExpand for a container that a graph cannot carry.
    """

    def __init__(self, function: StaticFunction, graph: set[Statement]) -> None:
        self.function = function
        self._graph = graph
        self.arrays: dict[ast.expr, str] = {}
        self.fixed: dict[ast.expr, str] = {}
        self.grown: set[str] = set()
        self.set: set[str] = set()
        self._parents: dict[ast.AST, ast.AST] = {}
        inside = [each for each in function.statements if graph & set(each.ancestors())]
        grown = dict.fromkeys(appended(each) for each in inside if self._holds(appended(each), each))
        changed = dict.fromkeys(written(each) for each in inside if self._holds(written(each), each))
        if grown or changed:
            self._read_parents()
        for name in grown:
            self._grow(name)
            self.grown.add(name)
        for name in changed:
            self._fix(name, is_grown=name in grown)
            self.set.add(name)

    def kind_of(self, node: ast.AST) -> str:
        """The graph's form of a literal: an array, a dict or a list; empty if it cannot carry it."""
        return "array" if node in self.arrays else self.fixed.get(node, "")  # type: ignore[call-overload]

    def is_changed_by(self, statement: Statement) -> str:
        """The name of the container that a statement mutates, if the graph carries it; else empty."""
        name = appended(statement)
        if name:
            return name if name in self.grown else ""
        name = written(statement)
        return name if name in self.set else ""

    def _read_parents(self) -> None:
        for node in ast.walk(self.function.node):
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node

    def _holds(self, name: str, statement: Statement) -> bool:
        """Return whether a name that a statement mutates is a list or dict of the function's own."""
        if not name:
            return False
        node = next(
            each for each in own_parts(statement.node) if isinstance(each, ast.Name) and each.id == name
        )
        return bool(self.function.kind(node).python & {"list", "dict"})

    # Growing lists

    def _grow(self, name: str) -> None:
        """Record the literals of a growing list, or raise CannotExpand for a use that no array supports."""
        made = self._displays(name, ast.List)
        for use in self._uses(name):
            self._check_array_use(name, use)
        added = [each for each in self.function.statements if appended(each) == name]
        for each in added:
            for around in each.ancestors():
                if around in self._graph:
                    self._check_not_read(name, around)
            call = each.node.value  # type: ignore[attr-defined]
            if not self.function.kind(call.args[0]).is_tensor:
                raise CannotExpand(
                    each.node, f"`{name}` becomes a TensorArray, and this may not be a tensor", "PD25"
                )
        for display in made:
            first = [*getattr(display, "elts", ()), *(each.node.value.args[0] for each in added)]  # type: ignore[attr-defined]
            self.arrays[display] = self._dtype(display, first[0], name)

    def _check_not_read(self, name: str, around: Statement) -> None:
        """Refuse a list whose elements are read while it grows: Paddle loses their dimensions."""
        for node in ast.walk(around.node):
            if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == name:
                what = f"`{name}` is read where it grows, and Paddle loses the dimensions of the element"
                raise CannotExpand(node, what, "PD25")

    def _check_array_use(self, name: str, use: ast.Name) -> None:
        kind = self.function.kind(use)
        if kind.tensor is not None and not kind.python:
            return
        above = self._parents[use]
        beyond = self._parents.get(above)
        match above:
            case ast.Attribute(attr="append") if isinstance(self._parents.get(beyond or above), ast.Expr):
                return
            case ast.Subscript(ctx=ast.Load()) if above.value is use and self._is_index(above.slice):
                element = self.function.kind(above).tensor
                if element is None or element.rank != 0:
                    return
                what = "Paddle cannot read a tensor without dimensions back from a TensorArray"
                raise CannotExpand(above, what, "PD25")
            case ast.Call(func=ast.Name(id="len")) if isinstance(beyond, ast.Compare):
                if not isinstance(self._parents.get(beyond), ast.BoolOp):
                    return
            case ast.Call(func=ast.Name(id="len")) if _is_range(beyond):
                return
            case ast.Call() if above.args[:1] == [use] and self._joins(above):
                return
            case _:
                pass
        raise CannotExpand(
            above, f"`{name}` is a TensorArray in the graph, and this needs a list; stack it first", "PD25"
        )

    def _is_index(self, node: ast.expr) -> bool:
        kind = self.function.kind(node)
        if kind.among("int"):
            return True
        return kind.tensor is not None and kind.tensor.rank == 0 and not kind.unknown

    def _joins(self, call: ast.Call) -> bool:
        """Return whether it is `paddle.stack` or `paddle.concat` along a dimension counted from the front."""
        names = self.function.named.get(call, frozenset())
        if not names or not names <= _JOINING or len(call.args) > 2:
            return False
        words = {each.arg: each.value for each in call.keywords}
        axis = call.args[1] if len(call.args) > 1 else words.pop("axis", None)
        if words.keys() - {"axis"} or (axis is not None and not self.function.kind(axis).among("int")):
            return False
        if any(each.endswith(".stack") for each in names) and axis is not None:
            value = self.function.kind(axis).constant
            return isinstance(value, int) and value >= 0
        return True

    def _dtype(self, display: ast.expr, first: ast.expr, name: str) -> str:
        """The dtype of the first appended value, as text.

        It is the known dtype, or that of an expression with the same one: Paddle silently casts to it.
        """
        known = self.function.kind(first).dtype
        if known and known != NUMBER:
            return f'"{known}"'
        alike = self._alike(first, display, 0)
        if not alike:
            what = f"Trainshift cannot tell the dtype of the elements of `{name}`; write `.astype(...)`"
            raise CannotExpand(first, what, "PD25")
        return alike if alike.startswith('"') else f"{alike}.dtype"

    def _alike(self, node: ast.expr, display: ast.expr, depth: int) -> str:
        """An expression before a literal with the same dtype as another one; empty if there is none."""
        kind = self.function.kind(node)
        if depth > _DEPTH or not kind.is_tensor:
            return ""
        if kind.dtype and kind.dtype != NUMBER:
            return f'"{kind.dtype}"'
        match node:
            case ast.Name():
                return self._alike_name(node, display, depth)
            case ast.Subscript():
                return self._alike(self._element(node) or node.value, display, depth + 1)
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
                return self._alike_sum(node, display, depth)
            case ast.Call():
                return self._alike_call(node, display, depth)
        return ""

    def _element(self, node: ast.Subscript) -> ast.expr | None:
        """The initial value of a dict at a key."""
        key = self.function.kind(node.slice).constant
        for binding in self.function.scope.bindings.get(getattr(node.value, "id", ""), ()):
            if isinstance(binding.value, ast.Dict):
                for at, value in zip(binding.value.keys, binding.value.values, strict=True):
                    if isinstance(at, ast.Constant) and at.value == key:
                        return value
        return None

    def _alike_sum(self, node: ast.BinOp, display: ast.expr, depth: int) -> str:
        sides = (node.left, node.right)
        numbers = [each for each in sides if self._is_whole(each) or self.function.kind(each).among("float")]
        found = {self._alike(each, display, depth + 1) for each in sides if each not in numbers}
        if len(found) != 1 or "" in found:
            return ""
        alike = found.pop()
        if alike.startswith('"float') or (not numbers and not isinstance(node.op, ast.Div)):
            return alike
        if alike.startswith('"'):
            return ""
        sign = "/" if isinstance(node.op, ast.Div) else "*"
        return f"({alike} {sign} {1.0 if any(not self._is_whole(each) for each in numbers) else 1})"

    def _is_whole(self, node: ast.expr) -> bool:
        """Return whether an expression is a whole number, even if it is a tensor in the graph."""
        kind = self.function.kind(node)
        if kind.unknown or not kind.python <= {"int"} or kind.array:
            return False
        tensor = kind.tensor
        return tensor is None or (tensor.dtype.startswith("int") and tensor.rank == 0)

    def _alike_call(self, node: ast.Call, display: ast.expr, depth: int) -> str:
        func, names = node.func, self.function.named.get(node, frozenset())
        if "layer" in self.function.kind(func).python and self.function.kind(node).dtype == NUMBER:
            return '"float32"'
        if not isinstance(func, ast.Attribute) or not names:
            return ""
        if self._joins(node) and isinstance(node.args[0], ast.Name):
            grown = [each for each in self.function.statements if appended(each) == node.args[0].id]
            first = grown[0].node.value.args[0] if grown else None  # type: ignore[attr-defined]
            return self._alike(first, display, depth + 1) if first is not None else ""
        if all(each.startswith("paddle.Tensor.") for each in names):
            alike = self._alike(func.value, display, depth + 1)
            if func.attr in _SAME_DTYPE or (func.attr in _REDUCING and alike.startswith('"float')):
                return alike
            return f"{alike}.{func.attr}()" if func.attr in _REDUCING and alike[:1] not in ("", '"') else ""
        if len(node.args) == 1 and not node.keywords and all(each.startswith("paddle.") for each in names):
            alike = self._alike(node.args[0], display, depth + 1)
            if alike and not alike.startswith('"') and isinstance(func.value, ast.Name | ast.Attribute):
                return f"{ast.unparse(func)}({alike})"
        return ""

    def _alike_name(self, node: ast.Name, display: ast.expr, depth: int) -> str:
        """Like `_alike`, for a name: itself if it has a value before the literal, otherwise its bound
        value.
        """
        bindings = self.function.scope.bindings.get(node.id, ())
        later = [each for each in bindings if each.statement is not None]
        later = [each for each in later if each.statement and each.statement.node.lineno >= display.lineno]
        if len(later) < len(bindings):
            in_loops = all(
                any(around in self._graph and not isinstance(around.node, ast.If) for around in around_all)
                for around_all in (list(each.statement.ancestors()) for each in later if each.statement)
            )
            reads = [each for each in self._uses(node.id) if each.lineno >= display.lineno]
            is_tensor = all(self.function.kind(each).is_tensor for each in reads)
            return node.id if in_loops and is_tensor else ""
        only = later[0] if len(later) == 1 else None
        if only is None or only.value is None or only.path:
            return ""
        if only.kind == "value" or (only.kind == "element" and isinstance(only.value, ast.Name)):
            return self._alike(only.value, display, depth + 1)
        return ""

    # Containers that keep their size

    def _fix(self, name: str, *, is_grown: bool) -> None:
        """Record the literals of a container whose elements are set, or raise CannotExpand."""
        made = self._displays(name, ast.List, ast.Dict)
        for use in self._uses(name):
            self._check_fixed_use(name, use)
        first = made[0]
        if is_grown or len({each.__class__ for each in made}) > 1:
            raise CannotExpand(first, f"`{name}` grows and is written to in the graph", "PD25")
        kinds: dict[object, AbstractValue] = {}
        for display in made:
            keys = display.keys if isinstance(display, ast.Dict) else range(len(display.elts))  # type: ignore[attr-defined]
            values = display.values if isinstance(display, ast.Dict) else display.elts  # type: ignore[attr-defined]
            for key, value in zip(keys, values, strict=True):
                at = key.value if isinstance(key, ast.Constant) else key
                kind = self.function.kind(value)
                if isinstance(at, ast.AST) or at is None or not kind.is_tensor:
                    raise CannotExpand(value, f"`{name}` may hold something that is not a tensor", "PD25")
                self._check_same(name, value, kinds.setdefault(at, kind), kind)
            self.fixed[display] = "dict" if isinstance(display, ast.Dict) else "list"
        for each in self.function.statements:
            if written(each) != name:
                continue
            node = each.node
            assert isinstance(node, ast.Assign | ast.AugAssign)
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            assert isinstance(target, ast.Subscript)
            key_set = self.function.kind(target.slice).constant
            kind = self.function.kind(node.value if isinstance(node, ast.Assign) else node)
            if key_set not in kinds:
                what = f"`{name}` gets a new key, and a graph's dict keeps its keys"
                raise CannotExpand(node, what, "PD25")
            if not kind.is_tensor:
                raise CannotExpand(node, f"`{name}` may get something that is not a tensor", "PD25")
            self._check_same(name, node, kinds[key_set], kind)

    def _check_same(self, name: str, node: ast.AST, one: AbstractValue, other: AbstractValue) -> None:
        known = {each.dtype for each in (one, other)} - {"", NUMBER}
        ranks = {each.tensor.rank for each in (one, other) if each.tensor is not None} - {None}
        if len(known) > 1 or len(ranks) > 1:
            raise CannotExpand(node, f"an element of `{name}` changes its dtype or its rank", "PD12")

    def _check_fixed_use(self, name: str, use: ast.Name) -> None:
        above = self._parents[use]
        if isinstance(above, ast.Subscript) and above.value is use:
            if isinstance(self.function.kind(above.slice).constant, int | str):
                return
        if isinstance(above, ast.Call) and self._joins(above):
            return
        beyond = self._parents.get(above)
        if isinstance(above, ast.Return) or (isinstance(above, ast.Tuple) and isinstance(beyond, ast.Return)):
            return
        raise CannotExpand(
            above, f"`{name}` is carried by the graph; read its elements one by one here", "PD25"
        )

    # Names

    def _displays(self, name: str, *kinds: type[ast.expr]) -> list[ast.expr]:
        """The literals to which a name is bound; raises CannotExpand if it may be another container."""
        found: list[ast.expr] = []
        declared: Names = self.function.scope.declared_global | self.function.scope.declared_nonlocal
        for binding in self.function.scope.bindings.get(name, ()):
            node = binding.statement.node if binding.statement is not None else None
            given = binding.taken if binding.kind == "value" else None
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and given is not None:
                if isinstance(given, kinds) or _is_empty_list(given):
                    found.append(given)
                    continue
                if self.function.kind(given).is_tensor:
                    continue
            place = node if node is not None else self.function.node
            raise CannotExpand(place, f"Trainshift cannot tell which container `{name}` is", "PD25")
        if not found or name in declared:
            raise CannotExpand(self.function.node, f"`{name}` is not a list or dict of this function", "PD25")
        return found

    def _uses(self, name: str) -> Iterator[ast.Name]:
        """Yield the reads of a name; raises CannotExpand for one in an inner function."""
        function = self.function
        for use in name_uses(function.node, function.scope):
            if use.node.id == name and isinstance(use.node.ctx, ast.Load):
                if use.scope is not function.scope:
                    raise CannotExpand(use.node, f"`{name}` is read by a nested function", "PD25")
                yield use.node


def _is_empty_list(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "list" and not node.args


def _is_range(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range" and len(node.args) == 1
