"""Sources: the variables whose value, whole or in part, an expression may have (AD37)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from trainshift.derivatives.reading.function import Function, bound, root_of
from trainshift.derivatives.reading.indices import Indices
from trainshift.derivatives.reading.kinds import Kind
from trainshift.derivatives.reading.reader import FACTS, VIEWS, Reader
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import arguments
from trainshift.python.syntax.iteration import parts_given
from trainshift.python.syntax.unpacking import parts_assigned

_INTEGERS = frozenset(("builtins.int", "numpy.int32", "numpy.int64"))
HOLDING = frozenset(["list", "tuple", "dict", "reversed", "sorted", "zip", "enumerate", "max", "min"])
# Follows a parameter's name: its argument, whatever the name means later.
GIVEN = " given"
# Separates a variable from its function in places without a name.
OF = " of "


class Sources:
    """The possible sources of values, for one function."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.function = reader.function
        self.whole = reader.whole
        self.indices = Indices(reader)

    def sources(self, node: ast.expr) -> set[str]:
        """The variables whose value, or a part of it, may be in that of an expression."""
        match node:
            case ast.Name(name):
                return set() if self.function.owner(name) is None and OF not in name else {name}
            case ast.Subscript():
                return (
                    set()
                    if self._is_new_list(node) or self.indices.copies(node)
                    else self.sources(node.value)
                )
            case ast.Attribute():
                return set() if node.attr in FACTS else self.sources(node.value)
            case ast.BoolOp():
                return self._any(node.values)
            case ast.IfExp():
                return self.sources(node.body) | self.sources(node.orelse)
            case ast.Tuple() | ast.List():
                return self._any(node.elts)
            case ast.Dict():
                return self._any(node.values)
            case ast.ListComp() | ast.GeneratorExp():
                return self._made(node, node.elt)
            case ast.DictComp():
                return self._made(node, node.value)
            case ast.BinOp() if self.reader.kind(node).has("list", "tuple"):
                # The new list has the elements of both; the repeat count is not an element.
                parts = [node.left, node.right]
                if isinstance(node.op, ast.Mult):
                    parts = [each for each in parts if self.reader.kind(each).has("list", "tuple")]
                return set() if self._is_new_list(node) else self._any(parts)
            case ast.Call():
                return self._called(node)
        return set()

    def callees(self, call: ast.Call) -> list[Function]:
        """The functions of the file that a call may run."""
        target = self.reader.target(call)
        if target is not None:
            return [target]
        is_local = isinstance(call.func, ast.Name) and self.function.owner(call.func.id) is not None
        if is_local or not isinstance(call.func, ast.Name | ast.Attribute):
            return self.reader.possible(call)
        return []

    def given(self, callee: Function, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        """Yield the outer objects of a function, as parameters and captures, with their expressions at a
        call.
        """
        for param, argument in bound(callee, call):
            yield f"{param}{GIVEN}", argument
        for owner, name in callee.reached:
            yield name_of(callee, owner, name), terms.name(name_of(self.function, owner, name))

    def changed(
        self, callee: Function, call: ast.Call, given: Mapping[str, ast.expr]
    ) -> Iterator[tuple[ast.expr, Kind]]:
        """Yield the arguments that a call may mutate, with the kinds of their mutated parts: themselves
        or deeper.
        """
        known = [
            (argument, callee.kind(param))
            for param, argument in bound(callee, call)
            if param in self.whole.summary(callee).changed
        ]
        for owner, name in callee.outside:
            known.append((given[name_of(callee, owner, name)], owner.kind(name)))
        for argument, kind in known:
            for each in kind.with_elements() if not kind.has("function") else ():
                if each.has("changed"):
                    yield argument, each

    def _is_new_list(self, node: ast.expr) -> bool:
        """Return whether an expression makes a list that consists only of numbers from other containers."""
        made = isinstance(node, ast.BinOp) or isinstance(getattr(node, "slice", None), ast.Slice)
        if isinstance(node, ast.Call):
            made = self.reader.function.dotted(node.func) in (
                "builtins.list",
                "builtins.tuple",
                "builtins.sorted",
            )
        return made and not self.whole.arrays and self.reader.kind(node).holds_numbers

    def _any(self, nodes: list[ast.expr]) -> set[str]:
        return set[str]().union(*map(self.sources, nodes))

    def _made(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp, element: ast.expr) -> set[str]:
        with self.reader.inside(node):
            found = self.sources(element)
        for each in node.generators:
            if found & terms.names_bound([each.target]):
                found |= self.sources(each.iter)
        return found - terms.names_bound([each.target for each in node.generators])

    def _called(self, node: ast.Call) -> set[str]:
        given = arguments(node)
        found: set[str] = set()
        callees = self.callees(node)
        for callee in callees:
            returned = self.whole.summary(callee).returned
            for name, value in self.given(callee, node):
                if name in returned:
                    found |= self.sources(value)
        if callees:
            return found
        if isinstance(node.func, ast.Name) and self.function.owner(node.func.id):
            return self._any(given)
        dotted = self.reader.function.dotted(node.func) or ""
        last = dotted.rpartition(".")[2]
        if dotted.startswith("builtins."):
            return self._any(given) if last in HOLDING and not self._is_new_list(node) else set()
        if dotted.startswith("numpy."):
            return self.sources(node.args[0]) if last in VIEWS and node.args else set()
        if not dotted and isinstance(node.func, ast.Attribute):
            method, base = node.func.attr, node.func.value
            if method in ("get", "pop", "setdefault", "items", "values", *VIEWS):
                # The default for a missing key comes last.
                others = node.args[1:] if method in ("get", "pop", "setdefault") else []
                return self.sources(base) | self._any(others)
            if method == "copy" and self.reader.kind(base).element().container:
                return self.sources(base)
        return set()


def name_of(function: Function, owner: Function, name: str) -> str:
    """The name that one function uses for a variable of another function, the owner."""
    return name if function.owner(name) is owner else f"{name}{OF}{owner.name}"


def parts_of(target: ast.expr, value: ast.expr, each: bool) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """Yield the names and places in a target with their values, and whether a value may be a mere number.

    With `each`, the values are elements of the value.
    """
    if each:
        for part in parts_given(target, value):
            for leaf in terms.leaves(part.target):
                if not isinstance(leaf, ast.Tuple | ast.List):
                    yield leaf, part.source, True
        return
    for one, given in parts_assigned(target, value):
        if isinstance(one, ast.Tuple | ast.List):
            for inner in one.elts:
                yield from parts_of(inner, given, True)
        else:
            yield one, given, isinstance(given, ast.Subscript | ast.Name)


def may_follow(reader: Reader, value: ast.expr, targets: ast.expr) -> bool:
    """Return whether a value may be a part of an array that a store into targets changes."""
    whole, kind = reader.whole, reader.kind(value)
    if not (isinstance(value, ast.Subscript) and whole.arrays and whole.reverse) or whole.tensors:
        return False
    base = reader.kind(value.value)
    roots = {root_of(each) for each in terms.leaves(targets) if isinstance(each, ast.Subscript)}
    return root_of(value) in roots and not base.has("list", "dict") and not kind.has("list", "dict")


def is_no_part(held: str, value: ast.expr) -> ast.stmt:
    """Assert that a value that was read is not a view of an array, which the next store may mutate."""
    assert isinstance(value, ast.Subscript)
    array = terms.call("hasattr", terms.copied(value.value), terms.constant("shape"))
    said = f"{ast.unparse(value)} is a part of an array, which is changed"
    return ast.Assert(ast.BoolOp(ast.Or(), [ast.UnaryOp(ast.Not(), array), number(held)]), ast.Constant(said))


def number(value: ast.expr | str) -> ast.expr:
    """An expression that tests whether a variable or element is a number rather than an array, which may
    be a view, also one without axes.
    """
    read = terms.name(value) if isinstance(value, str) else terms.copied(value)
    array = terms.call("isinstance", read, terms.parsed("np.ndarray"))
    return ast.UnaryOp(ast.Not(), ast.BoolOp(ast.Or(), [array, terms.call("np.ndim", terms.copied(read))]))


def whole_numbers(function: Function, value: ast.expr) -> bool:
    """Return whether an expression makes an array of whole numbers for certain."""
    if not isinstance(value, ast.Call):
        return False
    dotted = function.dotted(value.func)
    made = {each.arg: each.value for each in value.keywords}
    types = [made["dtype"]] if "dtype" in made else value.args[1:2]
    if dotted in ("numpy.zeros", "numpy.ones", "numpy.empty") or "dtype" in made:
        return (dotted or "").startswith("numpy.") and any(
            function.dotted(each) in _INTEGERS for each in types
        )
    if dotted != "numpy.array" or len(value.args) != 1 or not isinstance(value.args[0], ast.List):
        return False
    inside = [each for each in terms.walk(value.args[0]) if not isinstance(each, ast.List | ast.Load)]
    return bool(inside) and all(
        isinstance(each, ast.Constant) and isinstance(each.value, int) for each in inside
    )
