"""Statements that stay as they are, with their expressions in the words of the graph (PS10, PS11, PS14)."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.python.flow.names import names_bound, names_read
from trainshift.python.syntax.chunk_syntax import Statement, targets_of
from trainshift.static_graphs.expanding.ir import (
    Plain,
)
from trainshift.static_graphs.expanding.named import stay
from trainshift.static_graphs.expanding.places import (
    Places,
    is_elif,
    node_is_decorated,
    statement_column,
    without_elif,
)
from trainshift.static_graphs.expanding.refusal import CannotExpand
from trainshift.static_graphs.reading.function import Truth


class Statements(Places):
    """Makes forms of the statements that stay."""

    def _plain(self, statement: Statement, leading: list[str]) -> Plain:
        node = statement.node
        self._check(statement)
        bound = stay(node, self.write) if not statement.branches else frozenset[str]()
        lines = self._text(statement)
        reads = frozenset[str]().union(*(names_read(each.node) for each in _own(statement))) - bound
        binds: dict[str, None] = {}
        for each in _own(statement):
            binds.update(dict.fromkeys(names_bound(each.node)))
            changed = self.know.held.is_changed_by(each)
            if changed:
                binds[changed] = None
        return Plain(lines, reads, tuple(binds), leading, "", node)

    def _text(self, statement: Statement) -> list[str]:
        node = statement.node
        first = self._first_line(statement)
        span = self.write.script.span(node, self.know.function.scope)
        start = (
            self.source.line_starts[first - 1] + statement_column(statement)
            if node_is_decorated(node)
            else span.start
        )
        if isinstance(node, ast.Assert):
            text = self._assertion(node) or self.write.rewritten(start, span.end, node)
        elif isinstance(node, ast.Expr) and self._is_print(node.value):
            text = self._printed(node.value)  # type: ignore[arg-type]
        elif isinstance(node, ast.Assign) and self._is_unpacked_shape(node):
            assert isinstance(node.value, ast.Attribute)
            self.write.applied("PS11", node)
            target = self.write.source_of(node.targets[0])
            base = self.write.text(node.value.value)
            paddle = self.write.paddle
            text = f"{target} = {paddle}.unstack({paddle}.shape({base}))"
        elif statement.branches:
            text = self._of_blocks(statement, start, span.end)
        else:
            text = self.write.rewritten(start, span.end, node)
        text = without_elif(text) if is_elif(statement) else text
        beside = self._tail(span.end)
        return (
            self._relative(text, start, node)
            if not beside
            else [*(lines := self._relative(text, start, node))[:-1], f"{lines[-1]}  {beside}"]
        )

    def _of_blocks(self, statement: Statement, start: int, end: int) -> str:
        """A compound statement that stays as a whole, its expressions in the words of the graph."""
        if isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return self.source.text[start:end]
        for each in statement.walk():
            if each is not statement:
                self._check(each)
                if isinstance(each.node, ast.Assert | ast.Expr) and self._becomes(each.node):
                    raise CannotExpand(each.node, "an assertion or print of tensors in Python's control flow")
        return self.write.rewritten(start, end, _Everything(statement))

    def _becomes(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Assert):
            return self.know.truth(node) is not Truth.PYTHON or self.know.changes(node.test)
        return isinstance(node, ast.Expr) and self._is_print(node.value)

    def _check(self, statement: Statement) -> None:
        """Refuse what cannot stand in a function that is expanded, or in a part of the graph."""
        node = statement.node
        inside = bool(self._graph)
        if isinstance(node, ast.Global | ast.Nonlocal):
            raise CannotExpand(node, "names of other scopes are bound here", "PD20")
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.FloorDiv):
                if self.write.halved(node, node.target, node.value) is not None:
                    raise CannotExpand(node, "write this `//=` as `=` and `//`")
            for target in targets_of(node):
                for each in ast.walk(target):
                    if not self.know.held.is_changed_by(statement):
                        self._check_target(each, node, inside=inside)
        if not inside:
            return
        if isinstance(node, ast.Raise):
            raise CannotExpand(node, "it would be raised while the graph is built; write an `assert`", "PD18")
        if isinstance(node, ast.Delete | ast.Try | ast.With | ast.Match | ast.Import | ast.ImportFrom):
            raise CannotExpand(node, "this happens once, while the graph is built, whatever the tensors are")
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            if not self._is_print(node.value) and not self.know.held.is_changed_by(statement):
                raise CannotExpand(
                    node, "this happens once, while the graph is built, whatever the tensors are", "PD19"
                )

    def _check_target(self, each: ast.AST, node: ast.stmt, *, inside: bool) -> None:
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store):
            value = self.know.kind(each.value)
            if value.tensor is not None or value.unknown or inside:
                raise CannotExpand(
                    node, "this writes into a tensor or container, which a graph may share", "PD21"
                )
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            if inside or isinstance(node, ast.AugAssign):
                raise CannotExpand(node, "this attribute is changed once, while the graph is built", "PD19")
        if isinstance(each, ast.Starred) and isinstance(node, ast.Assign):
            if self.know.kind(node.value).tensor is not None:
                raise CannotExpand(node, "a graph cannot spread a tensor", "PD16")

    def _is_unpacked_shape(self, node: ast.Assign) -> bool:
        if not (
            self.know.is_shape(node.value)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Tuple)
        ):
            return False
        assert isinstance(node.value, ast.Attribute)
        value = self.know.kind(node.value.value)
        if not value.is_tensor or any(isinstance(each, ast.Starred) for each in node.targets[0].elts):
            return False
        shape = value.tensor.shape if value.tensor is not None else None
        return shape is None or not all(isinstance(each, int) for each in shape)

    def _assertion(self, node: ast.Assert) -> str | None:
        """An assertion of tensors, after those of Python's that are asserted with it; None if it stays."""
        test = node.test
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        stays = [self.know.kind(each).is_python and not self.know.changes(each) for each in parts]
        if any(stays) and self._graph:
            raise CannotExpand(node, "this is asserted once, while the graph is built")
        if all(stays):
            return None
        if node.msg is not None and not isinstance(node.msg, ast.Constant | ast.JoinedStr):
            raise CannotExpand(node.msg, "the message is no text")
        self.write.needs.add("static_assert")
        self.write.applied("PS14", node)
        message = f", {self.write.text(node.msg)}" if node.msg is not None else ""
        found = []
        for part, is_python in zip(parts, stays, strict=True):
            if is_python:
                found.append(f"assert {self.write.text(part)}{message}")
            else:
                truth = self.know.truth(node if part is test else part)
                found.append(f"static_assert({self.write.condition(part, truth).text}{message})")
        return "\n".join(found)

    def _is_print(self, node: ast.expr) -> bool:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"):
            return False
        if self.write.script.module_bindings.get("print"):
            return False
        values = [self.know.kind(each) for each in node.args]
        if any(each.tensor is not None or each.unknown for each in values) or any(
            map(self.know.changes, node.args)
        ):
            return True
        if self._graph:
            raise CannotExpand(node, "this is printed once, while the graph is built", "PD19")
        return False

    def _printed(self, node: ast.Call) -> str:
        if node.keywords:
            raise CannotExpand(node, "a graph's `print` has no options", "PD19")
        self.write.needs.add("static_print")
        self.write.applied("PS10", node)
        return f"static_print({', '.join(map(self.write.text, node.args))})"

    def _head(self, statement: Statement, name: str, block: list[Statement]) -> Plain:
        node = statement.node
        if name == "orelse":
            line = self._else_line(block)
            is_own = line < self._first_line(block[0])
            return Plain([self._line(line).strip() if is_own else "else:"])
        binds: tuple[str, ...] = ()
        if isinstance(node, ast.For):
            parts: tuple[ast.AST, ...] = (node.target, node.iter)
            binds = names_bound(node.target)
        elif isinstance(node, ast.With):
            parts = tuple(
                each for item in node.items for each in (item.context_expr, item.optional_vars) if each
            )
            binds = tuple(each for item in node.items for each in names_bound(item.optional_vars))
        else:
            assert isinstance(node, ast.If | ast.While)
            parts = (node.test,)
        start = self.write.script.span(node, self.know.function.scope).start
        first = self.write.script.statement_span(block[0]).start
        if self._first_line(block[0]) == self._lines_of(parts[-1])[1]:
            end = start + len(self.source.text[start:first].rstrip())
        else:
            end = self.source.line_end(self.source.line_starts[self._header_end(block) - 1])
        text = self.write.rewritten(start, end, _Parts(parts))
        reads = frozenset[str]().union(*(names_read(each) for each in parts))
        return Plain(self._relative(text, start, node), reads, binds, [], "", node)


def _own(statement: Statement) -> Iterator[Statement]:
    """A statement and those in it that run with it: not those of a function or class that it makes."""
    yield statement
    if not isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for block in statement.branches.values():
            for each in block:
                yield from _own(each)


class _Parts(ast.AST):
    """Some expressions together."""

    _fields = ("parts",)

    def __init__(self, parts: Iterable[ast.AST]) -> None:
        super().__init__()
        self.parts = list(parts)


class _Everything(_Parts):
    """The expressions of a statement and of all in it."""

    def __init__(self, statement: Statement) -> None:
        super().__init__(
            each
            for inner in statement.walk()
            for each in ast.iter_child_nodes(inner.node)
            if not isinstance(each, ast.stmt)
        )
