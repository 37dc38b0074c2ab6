"""Building: the statements of a function as forms, with their comments (PS01-PS06, PS10, PS14)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from trainshift.libraries.containers import ADDING
from trainshift.python.flow.def_use import Names, names_bound, names_read
from trainshift.python.source.comments import Comments
from trainshift.python.syntax.chunk_syntax import Statement, dotted, is_elif, targets_of
from trainshift.python.syntax.fresh_names import fresh_name
from trainshift.static_graphs.domain.abstract_values import AbstractValue, python, tensor
from trainshift.static_graphs.expanding.exit_flags import leave_kept, leave_loop
from trainshift.static_graphs.expanding.expressions import Expressions, unseen
from trainshift.static_graphs.expanding.ir import (
    Branch,
    Code,
    Exit,
    Form,
    Kept,
    Loop,
    Plain,
    VarInfo,
    bound_in,
    exits,
    info_of,
    scalar,
    walk,
)
from trainshift.static_graphs.expanding.refusal import CannotExpand
from trainshift.static_graphs.expanding.walrus import renew, stay, taken_out
from trainshift.static_graphs.reading.function import Truth
from trainshift.static_graphs.reporting import exits as leaving

_ELSE = re.compile(r"\s*else\s*:")
_NUMBER = VarInfo(python("int"))
_COUNTER = _NUMBER.joined(scalar("int64"))
_CONTAINERS = frozenset({"list", "tuple", "dict", "str", "layer"})


class Builder:
    """Build the forms of one function; `wanted` selects the statements to expand."""

    def __init__(self, expressions: Expressions, comments: Comments, wanted: set[Statement] | None) -> None:
        self.write = expressions
        self.know = expressions.knowledge
        self.comments = comments
        self.source = expressions.source
        self._graph = 0
        self.wanted = wanted
        self.taken: set[str] = set()

    def _lines_of(self, node: ast.AST) -> tuple[int, int]:
        span = self.write.script.span(node, self.know.function.scope)
        return self.source.line_of(span.start) + 1, self.source.line_of(span.end) + 1

    def _first_line(self, statement: Statement) -> int:
        node = statement.node
        decorators = getattr(node, "decorator_list", ())
        return min(self._lines_of(each)[0] for each in (node, *decorators))

    def _line(self, number: int) -> str:
        starts = self.source.line_starts
        end = starts[number] if number < len(starts) else len(self.source.text)
        return self.source.text[starts[number - 1] : end].rstrip("\r\n")

    def _leading(self, after: int, before: int, least: int = 0) -> list[str]:
        """The comments and empty lines between two lines, with at least a given indentation."""
        found = []
        for number in range(after + 1, before):
            if number in self.comments:
                _, column, text = self.comments[number]
                if column >= least:
                    found.append(text)
            elif not self._line(number).strip():
                found.append("")
        return found

    def beside(self, node: ast.AST) -> str:
        """The comment at the end of a statement's last line."""
        end = self._lines_of(node)[1]
        return self.comments[end].text if end in self.comments else ""

    def _in_header(self, statement: Statement, first: list[Statement], *inside: ast.AST) -> list[str]:
        """The comments of a header that are outside its expressions."""
        start = self._first_line(statement)
        body_on_line = first and self._first_line(first[0]) == start
        stop = self._header_end(first) + 1 if first and not body_on_line else start + 1
        held = {line for node in inside for line in range(self._lines_of(node)[0], self._lines_of(node)[1])}
        found = []
        for line in range(start, stop):
            if line in self.comments and line not in held and not body_on_line:
                if self.comments[line].column > statement_column(statement) or line == start:
                    found.append(self.comments[line].text)
        return found

    def _end_of(self, statement: Statement) -> int:
        """The last line of a statement, with more deeply indented comments below it."""
        end = self._lines_of(statement.node)[1]
        if not statement.branches:
            return end
        return self._with_comments(end, statement_column(statement) + 1)

    def last_line(self, block: list[Statement]) -> int:
        """The last line of a function's body, with the comments that belong to it."""
        return self._with_comments(self._end_of(block[-1]), statement_column(block[0]))

    def _with_comments(self, last: int, least: int) -> int:
        """The last line of a statement, including directly following comments with at least its
        indentation.
        """
        for line in range(last + 1, len(self.source.line_starts) + 1):
            if self._is_comment(line):
                if self.comments[line].column < least:
                    break
                last = line
            elif self._line(line).strip():
                break
        return last

    def _is_comment(self, line: int) -> bool:
        """Return whether a line contains only a comment."""
        return line in self.comments and not self._line(line)[: self.comments[line].column].strip()

    def _tail(self, end: int) -> str:
        """The comment at the end of a statement's line."""
        line = self.source.line_of(end) + 1
        if line not in self.comments:
            return ""
        between = self.source.text[end : self.source.line_starts[line - 1] + self.comments[line].column]
        return self.comments[line].text if not between.strip() else ""

    def _relative(self, text: str, start: int, node: ast.stmt) -> list[str]:
        """Lines without the statement's own indentation; lines within strings begin with a mark."""
        column = start - self.source.line_start(start)
        margin = self.source.text[start - column : start]
        raw = "\0"
        first, *rest = (
            text.splitlines()
            if not any(c in text for c in "\f\v\x1c\x1d\x1e\x85\u2028\u2029")
            else text.replace("\r\n", "\n").split("\n")
        )
        inside = self._lines_in_strings(node)
        found = [first]
        base = self.source.line_of(start) + 1
        for index, line in enumerate(rest, 1):
            if base + index in inside:
                found.append(raw + line)
            else:
                found.append(line[len(margin) :] if not line[: len(margin)].strip() else line.lstrip())
        return found

    def _lines_in_strings(self, node: ast.AST) -> set[int]:
        found: set[int] = set()
        for each in ast.walk(node):
            if isinstance(each, ast.JoinedStr) or (
                isinstance(each, ast.Constant) and isinstance(each.value, str | bytes)
            ):
                if hasattr(each, "lineno"):
                    first, last = self._lines_of(each)
                    found.update(range(first + 1, last + 1))
        return found

    def _else_line(self, block: list[Statement]) -> int:
        """The line of the `else` above a block."""
        line = self._first_line(block[0])
        if is_elif(block[0]):
            return line
        while line > 0 and not _ELSE.match(self._line(line)):
            line -= 1
        return line

    def _above_else(self, before: list[Statement], block: list[Statement]) -> list[str]:
        """The comments and empty lines above an `else` that do not belong to the block before."""
        found: list[str] = []
        for line in range(self._last(before) + 1, self._else_line(block)):
            _, column, text = self.comments.get(line, (line, 0, ""))
            if column < statement_column(before[0]):
                found.append(text)
            else:
                found = [each for each in found if each]
        return found

    def _beside_else(self, block: list[Statement]) -> list[str]:
        """The comment after an `else` that has a line of its own."""
        line = self._else_line(block)
        is_own = line < self._first_line(block[0])
        return [self.comments[line].text] if is_own and line in self.comments else []

    def _header_end(self, block: list[Statement]) -> int:
        line = self._first_line(block[0]) - 1
        while not self._line(line).strip() or self._is_comment(line):
            line -= 1
        return line

    def _header_end_or(self, body: list[Statement], statement: Statement) -> int:
        first = self._first_line(body[0])
        start = self._first_line(statement)
        return self._header_end(body) if first > start else start

    def _last(self, block: list[Statement]) -> int:
        return self._end_of(block[-1])

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
            if getattr(node, "decorator_list", ())
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
        """A compound statement that stays as a whole, with its expressions rewritten for the graph."""
        if isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return self.source.text[start:end]
        for each in statement.walk():
            if isinstance(each.node, ast.For):
                self.write.check_ends(each.node.iter)
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
        """Refuse a statement that an expanded function, or a part of the graph, cannot contain."""
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
                raise CannotExpand(node, "a graph cannot unpack a tensor with `*`", "PD16")

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
        """An assertion of tensors, after those of Python that are asserted with it; None if it stays."""
        test = node.test
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        stays = [self.know.kind(each).is_python and not self.know.changes(each) for each in parts]
        if any(stays) and self._graph:
            raise CannotExpand(node, "this is asserted once, while the graph is built")
        if all(stays):
            return None
        if node.msg is not None and not isinstance(node.msg, ast.Constant | ast.JoinedStr):
            raise CannotExpand(node.msg, "the message is not a string")
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
            self.write.check_ends(node.iter)
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

    def block(self, statements: list[Statement], after: int, until: int) -> list[Form]:
        """The forms of a block between two lines."""
        found: list[Form] = []
        last = after
        for statement in statements:
            first = self._first_line(statement)
            forms = self._statement(statement, self._leading(last, first))
            found += forms
            last = self._end_of(statement)
        tail = self._leading(last, until, statement_column(statements[0]) if statements else 0)
        while tail and not tail[-1]:
            tail.pop()
        if tail and any(tail):
            found.append(Plain([], leading=tail))
        return found

    def _is_wanted(self, statement: Statement) -> bool:
        return self.wanted is None or statement in self.wanted

    def _is_graph(self, statement: Statement) -> bool:
        node = statement.node
        if not isinstance(node, ast.If | ast.While | ast.For) or not self._is_wanted(statement):
            return False
        return self.know.truth(node) is not Truth.PYTHON

    def _statement(self, statement: Statement, leading: list[str]) -> list[Form]:
        node = statement.node
        _check_growing(node)
        if self._is_graph(statement):
            return self._converted(statement, leading)
        if statement.branches and any(
            self._is_graph(each)
            or (isinstance(each.node, ast.Break | ast.Continue | ast.Return) and self._leaves(each))
            for each in statement.walk()
        ):
            kept = self._kept(statement, leading)
            return [kept, *self._afterwards(statement)] if kept.is_loop else [kept]
        if isinstance(node, ast.Break | ast.Continue | ast.Return) and self._leaves(statement):
            value = node.value if isinstance(node, ast.Return) else None
            return [Exit(_word(node), node, leading, self.beside(node), value)]
        outer = self.write.cuts_gradients
        items = (item for each in statement.walk() for item in getattr(each.node, "items", ()))
        self.write.cuts_gradients = outer or any(map(self._cuts_gradients, items))
        found = self._plain(statement, leading)
        self.write.cuts_gradients = outer
        return [found]

    def _leaves(self, statement: Statement) -> bool:
        """Return whether a statement leaves code that becomes part of the graph."""
        if not self._is_wanted(statement) and self.wanted is not None:
            return False
        return any(map(self._is_graph, self.know.function.left_by(statement)))

    def _kept(self, statement: Statement, leading: list[str], *, is_chained: bool = False) -> Kept:
        """A compound statement that Python runs; with `is_chained` it stays an `elif`."""
        node = statement.node
        self._check(statement)
        if not isinstance(node, ast.If | ast.For | ast.While | ast.With):
            raise CannotExpand(node, "control flow on tensors within this statement is not expanded")
        blocks: list[tuple[Plain, list[Form]]] = []
        is_loop = isinstance(node, ast.For | ast.While)
        parts = [(name, block) for name, block in statement.branches.items() if block]
        parts = parts[:1] if is_loop else parts
        is_whole = isinstance(node, ast.With) or (isinstance(node, ast.If) and len(parts) > 1)
        outer = self.write.cuts_gradients
        cuts = isinstance(node, ast.With) and any(map(self._cuts_gradients, node.items))
        self.write.cuts_gradients = outer or cuts
        for index, (name, block) in enumerate(parts):
            above = self._above_else(parts[index - 1][1], block) if name == "orelse" else []
            if name == "orelse" and is_elif(block[0]) and not self._is_graph(block[0]):
                chained = self._kept(block[0], [], is_chained=True)
                chained.blocks[0][0].lines[:0] = above
                blocks += chained.blocks
                is_whole = chained.is_whole
                continue
            until = self._until(statement, name)
            head = self._head(statement, name, block)
            head_line = self._else_line(block) if name != "body" else self._header_end_or(block, statement)
            if name == "body" and not is_chained:
                head.lines[0] = without_elif(head.lines[0])
            head.lines[:0] = above
            blocks.append((head, self.block(block, head_line, until)))
        self.write.cuts_gradients = outer
        return Kept(blocks, node, leading, is_loop, is_whole, cuts)

    def _cuts_gradients(self, item: ast.withitem) -> bool:
        """Return whether tensors may lose their gradients within a context manager."""
        names = self.know.function.named.get(item.context_expr, frozenset())  # type: ignore[call-overload]
        return not names or any(each.endswith(("no_grad", "set_grad_enabled")) for each in names)

    def _afterwards(self, statement: Statement) -> list[Form]:
        """The `else` of a loop, which runs if nothing leaves the loop."""
        orelse = statement.branches.get("orelse", [])
        if not orelse:
            return []
        if leaving(self.know.function, statement, ast.Break):
            raise CannotExpand(statement.node, "a loop with `break` and `else` is not expanded", "PD09")
        found = self.block(orelse, self._else_line(orelse), self._end_of(statement) + 1)
        above = [*self._above_else(statement.branches["body"], orelse), *self._beside_else(orelse)]
        return [Plain([], leading=above), *found] if above else found

    def _until(self, statement: Statement, name: str) -> int:
        """The line below a block of a statement: that of its `else`, or the one after it."""
        orelse = statement.branches.get("orelse", [])
        return self._else_line(orelse) if name == "body" and orelse else self._end_of(statement) + 1

    def _converted(self, statement: Statement, leading: list[str]) -> list[Form]:
        node = statement.node
        self._graph += 1
        try:
            if isinstance(node, ast.If):
                named = taken_out(node.test, self.write)
                if named:
                    named[0].leading, leading = leading, []
                asserted = self._asserted(statement, node, leading)
                return [*named, *(asserted or [self._branch(statement, node, leading)])]
            assert isinstance(node, ast.For | ast.While)
            return self._loop(statement, node, leading)
        finally:
            self._graph -= 1

    def _branch(self, statement: Statement, node: ast.If, leading: list[str]) -> Form:
        truth = self.know.truth(node)
        body, orelse = statement.branches.get("body", []), statement.branches.get("orelse", [])
        test, rest = node.test, self._python_first(node, truth)
        if truth is Truth.EITHER and self.know.function.loops_around(statement):
            truth = Truth.GRAPH if self.write.check_flags(test) else truth
        above = [*leading, *self._in_header(statement, body, node.test)]
        ends = self._end_of(statement) + 1
        else_line = self._else_line(orelse) if orelse else ends
        forms = self.block(body, self._header_end_or(body, statement), else_line)
        others: list[Form] = []
        else_leading: list[str] = []
        if orelse:
            else_leading = [*self._above_else(body, orelse), *self._beside_else(orelse)]
            others = self.block(orelse, else_line, ends)
        is_swapped = False
        if rest is not None:
            test = rest[-1]
            truth = Truth.GRAPH
        elif truth is Truth.EITHER and isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            is_swapped, test = True, test.operand
        condition = self.write.condition(test, truth)
        is_sure = truth is Truth.GRAPH and not self.write.may_be_python(test)
        branch = Branch(condition, forms, others, node, is_sure, above, else_leading, is_swapped)
        self.write.applied("PS01" if truth is Truth.GRAPH else "PS18", node)
        if rest is None:
            return branch
        first = " and ".join(_bracketed(self.write.text(each), each) for each in rest[:-1])
        reads = frozenset[str]().union(*(names_read(each) for each in rest[:-1]))
        branch.leading = []
        return Kept([(Plain([f"if {first}:"], reads), [branch])], node, above)

    def _asserted(self, statement: Statement, node: ast.If, leading: list[str]) -> list[Form]:
        """An `if` that raises, as an assertion (PD18), and its other branch; nothing for any other
        statement.
        """
        blocks = [statement.branches.get("body", []), statement.branches.get("orelse", [])]
        places = [place for place, block in enumerate(blocks) if _only_raises(block)]
        if not places or self.know.truth(node) is not Truth.GRAPH:
            return []
        raising, other = blocks[places[0]][0], blocks[1 - places[0]]
        test = self.write.condition(node.test, Truth.GRAPH)
        text = test.text
        if not places[0]:
            text = self.write.as_tensor(text) if self.write.may_be_python(node.test) else text
            text = f"{self.write.paddle}.logical_not({text})"
        message = self._message(raising.node)
        above = [*leading, *self._in_header(statement, blocks[0], node.test)]
        start = self._else_line(blocks[1]) if places[0] else self._header_end_or(blocks[0], statement) + 1
        start = min(start, self._first_line(raising))
        until = self._until(statement, "orelse" if places[0] else "body")
        above += self._leading(start - 1, until)
        self.write.needs.add("static_assert")
        self.write.applied("PS14", node)
        made = Plain([f"static_assert({text}{message})"], test.reads, leading=above)
        if not other:
            return [made]
        line = self._else_line(blocks[1])
        if places[0]:
            return [made, *self.block(other, self._header_end(other), line)]
        beside = self._beside_else(other)
        found = self.block(other, line, self._end_of(statement) + 1)
        return [made, Plain([], leading=beside), *found] if beside else [made, *found]

    def _message(self, node: ast.stmt) -> str:
        """The text of an exception, as an argument for an assertion."""
        raised = getattr(node, "exc", None)
        given = raised.args if isinstance(raised, ast.Call) else []
        if len(given) == 1 and isinstance(given[0], ast.Constant | ast.JoinedStr):
            return f", {self.write.text(given[0])}"
        return ""

    def _python_first(self, node: ast.If, truth: Truth) -> list[ast.expr] | None:
        """The parts of `python and tensor` without an `else`, Python's first; None for any other
        condition.
        """
        test = node.test
        if not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)) or truth is Truth.PYTHON:
            return None
        is_python = [self.know.kind(each).is_python and not self.know.changes(each) for each in test.values]
        return test.values if not node.orelse and all(is_python[:-1]) and not is_python[-1] else None

    def fresh(self, base: str) -> str:
        """A name that the function does not use."""
        name = fresh_name(base, self.know.names | self.taken, first=2)
        self.taken.add(name)
        return name

    def _loop(self, statement: Statement, node: ast.For | ast.While, leading: list[str]) -> list[Form]:
        truth = self.know.truth(node)
        block = statement.branches.get("body", [])
        head = (node.test,) if isinstance(node, ast.While) else (node.target, node.iter)
        above = [*leading, *self._in_header(statement, block, *head)]
        body = self.block(block, self._header_end_or(block, statement), self._until(statement, "body"))
        self._graph -= 1
        after = self._afterwards(statement)
        self._graph += 1
        is_left = bool(exits(body, "break", "return"))
        if isinstance(node, ast.For) and self._is_container(node.iter):
            if is_left and self._is_target_read(statement, node, body):
                raise CannotExpand(
                    node, "the loop goes on in the graph, and its variable is read after it", "PD08"
                )
            kept = Kept([(self._head(statement, "body", block), body)], node, leading, is_loop=True)
            return [*leave_kept(kept, self.fresh, self.write), *after]
        loop = Loop(Code(""), body, node, leading=above)
        if isinstance(node, ast.While):
            renew(loop, taken_out(node.test, self.write))
            self.write.check_flags(node.test)
            self.write.pin(names_read(node.test) & self.know.made_tensors_in(statement))
            is_endless = isinstance(node.test, ast.Constant) and node.test.value
            if is_endless and not is_left:
                raise CannotExpand(node, "nothing in the graph ends this loop")
            if is_endless:
                pass
            elif is_left and not isinstance(node.test, ast.BoolOp | ast.UnaryOp):
                loop.test = Code(self.write.operand(node.test), names_read(node.test))
            else:
                loop.test = self.write.condition(node.test, truth)
            self.write.applied("PS02", node)
        else:
            self.write.pin(frozenset(names_bound(node.target)) & _counts_beside_tensors(body))
            self._for(loop, statement, node, is_left=is_left)
        if is_left and any(map(self._goes_too_far, head)):
            if isinstance(node, ast.While):
                raise CannotExpand(
                    node,
                    "after `break` the graph evaluates the condition once more, which may go out of range",
                )
        return [*leave_loop(loop, self.fresh, self.write), *after]

    def _goes_too_far(self, node: ast.expr) -> bool:
        """Return whether an expression reads an element that may not exist in a further iteration."""
        asked = (each for each in ast.walk(node) if isinstance(each, ast.Subscript))
        return any(not self.know.is_shape(each.value) for each in asked)

    def _is_container(self, node: ast.expr) -> bool:
        """Return whether a loop certainly iterates over a Python container, which is finite."""
        value = self.know.kind(node)
        if isinstance(node, ast.Call) and value.python & {"zip", "enumerate"}:
            return value.is_python and all(map(self._is_container, node.args))
        return value.is_python and value.python <= _CONTAINERS

    def _is_target_read(self, statement: Statement, node: ast.For, body: list[Form]) -> bool:
        """Return whether the variable of a loop is read after it, or is returned."""
        names = frozenset(names_bound(node.target))
        ways_out = (each for each in walk(body) if isinstance(each, Exit))
        returned = [each.value for each in ways_out if each.value is not None]
        live = self.know.function.live_after(statement)
        return bool(names & live) or any(names & names_read(each) for each in returned)

    def _for(self, loop: Loop, statement: Statement, node: ast.For, *, is_left: bool) -> None:
        changed = bound_in(loop.body)
        is_read = self._is_target_read(statement, node, loop.body)
        call = node.iter if isinstance(node.iter, ast.Call) else None
        name = getattr(call.func, "id", "") if call is not None else ""
        if call is not None and name == "range" and isinstance(node.target, ast.Name):
            self._range(loop, node, call, own=is_read or node.target.id in changed, is_left=is_left)
            return
        given, start = node.iter, ""
        target: ast.expr = node.target
        if call is not None and name == "enumerate":
            if not (
                isinstance(target, ast.Tuple)
                and len(target.elts) == 2
                and isinstance(target.elts[0], ast.Name)
            ):
                raise CannotExpand(
                    node,
                    (
                        "this loop can be expanded only with two target names, as in `for i, x in "
                        "enumerate(xs)`"
                    ),
                    "PD10",
                )
            words = {each.arg: each.value for each in call.keywords}
            given = call.args[0]
            first = call.args[1] if len(call.args) > 1 else words.get("start")
            start = self._start(loop, node, first) if first is not None else ""
        value = self.know.kind(given)
        if not value.is_tensor and (is_left or not self._may_be_rows(value, target)):
            raise CannotExpand(node, unseen(self.write.source_of(given)), "PD07")
        self._rows(loop, node, given, start, is_enumerated=name == "enumerate")

    def _start(self, loop: Loop, node: ast.For, first: ast.expr) -> str:
        """The start of `enumerate`: a name of its own if the body may change it."""
        text = self.write.text(first)
        changed = set(bound_in(loop.body)) | set(names_bound(node.target))
        if isinstance(first, ast.Constant | ast.Name) and not names_read(first) & changed:
            return text
        name = self.fresh("start")
        known = info_of(self.know.kind(first))
        loop.before.append(_binding(name, text, names_read(first), known))
        return name

    def _may_be_rows(self, value: AbstractValue, target: ast.expr) -> bool:
        """Return whether a value is a tensor, or a list or tuple of tensors, by its elements."""
        row = target.elts[1] if isinstance(target, ast.Tuple) else target
        return value.python <= {"list", "tuple"} and not value.array and self.know.kind(row).is_tensor

    def _range(self, loop: Loop, node: ast.For, call: ast.Call, *, own: bool, is_left: bool) -> None:
        assert isinstance(node.target, ast.Name)
        given = [self.write.text(each) for each in call.args]
        if (
            call.keywords
            or not 1 <= len(given) <= 3
            or any(isinstance(each, ast.Starred) for each in call.args)
        ):
            raise CannotExpand(call, "this `range` cannot be read", "PD10")
        first = given[0] if len(given) > 1 else "0"
        last = given[1] if len(given) > 1 else given[0]
        step = given[2] if len(given) > 2 else "1"
        sign = _sign(call.args[2]) if len(given) > 2 else 1
        if not sign:
            raise CannotExpand(call.args[2], "the step of this `range` is not a literal", "PD10")
        changed = set(bound_in(loop.body)) | set(names_bound(node.target))
        end = call.args[1] if len(given) > 1 else call.args[0]
        if not isinstance(end, ast.Constant | ast.Name) or names_read(end) & changed:
            name = self.fresh("stop")
            loop.before.append(_binding(name, last, names_read(end), _COUNTER))
            last, reads = name, frozenset({name})
        else:
            reads = names_read(end)
        counter = self.fresh("index") if own else node.target.id
        must_be_tensor = is_left and not self.know.kind(end).is_tensor
        start = (
            self.write.number(first, "int64")
            if must_be_tensor or node.target.id in self.write.pinned
            else first
        )
        begin = names_read(call.args[0]) if len(given) > 1 else frozenset()
        known = (
            _COUNTER
            if start is not first
            else _NUMBER.or_tensor()
            if begin & self.know.became_tensors
            else _NUMBER
        )
        loop.before.append(_binding(counter, start, begin, known))
        if own:
            name, reads_counter = node.target.id, frozenset({counter})
            loop.before.append(_binding(name, counter, reads_counter, known.named(is_alias=True)))
            loop.body.insert(0, _binding(name, counter, reads_counter, _COUNTER.named(is_alias=True)))
        loop.test = Code(f"{counter} {'<' if sign > 0 else '>'} {last}", reads | {counter})
        loop.steps[counter] = (
            f"{counter} - {step[1:].strip()}" if step.startswith("-") else f"{counter} + {step}"
        )
        self.write.applied("PS03", node)

    def _rows(self, loop: Loop, node: ast.For, given: ast.expr, start: str, *, is_enumerated: bool) -> None:
        changed = set(bound_in(loop.body)) | set(names_bound(node.target))
        target: ast.expr = node.target
        rows = self.write.text(given)
        if not isinstance(given, ast.Name) or given.id in changed:
            name = self.fresh("rows")
            loop.before.append(_binding(name, rows, names_read(given), VarInfo(tensor())))
            rows, reads = name, frozenset({name})
        else:
            reads = names_read(given)
        if any(map(_goes_through_rows, walk(loop.body))):
            if not self.know.has_known_length(given):
                raise CannotExpand(node, "nested loops over tensors of unknown size fail in Paddle")
        counter = self.fresh("index")
        is_pinned = not self.write.pinned.isdisjoint(names_bound(node.target))
        begin, known = (self.write.number("0", "int64"), _COUNTER) if is_pinned else ("0", _NUMBER)
        loop.before.append(_binding(counter, begin, frozenset(), known))
        length = self.write.length(rows, is_sure=self.know.kind(given).is_tensor)
        loop.test = Code(f"{counter} < {length}", reads | {counter})
        loop.steps[counter] = f"{counter} + 1"
        first: list[Form] = []
        if is_enumerated:
            assert isinstance(target, ast.Tuple)
            name = self.write.source_of(target.elts[0])
            number = f"{counter} + {start}" if start and start != "0" else counter
            reads_number = frozenset({counter, start} if start.isidentifier() else {counter})
            first.append(_binding(name, number, reads_number, _COUNTER.named(is_alias=True)))
            target = target.elts[1]
        bound = names_bound(target)
        gives = {
            each.id: info_of(self.know.kind(each)) for each in ast.walk(target) if isinstance(each, ast.Name)
        }
        text = f"{self.write.source_of(target)} = {rows}[{counter}]"
        first.append(Plain([text], reads | {counter}, bound, gives=gives))
        loop.body[:0] = first
        self.write.applied("PS05" if is_enumerated else "PS04", node)


def _binding(name: str, text: str, reads: Names, known: VarInfo) -> Plain:
    """An assignment added by the expansion, with the known type of its value."""
    return Plain([f"{name} = {text}"], reads, (name,), gives={name: known})


def without_elif(line: str) -> str:
    """The first line of an `elif`, rewritten as an `if`."""
    return line.removeprefix("el") if line.startswith("elif") else line


def statement_column(statement: Statement) -> int:
    """The column where a statement begins."""
    return statement.node.col_offset


def _own(statement: Statement) -> Iterator[Statement]:
    """A statement and the nested ones that run with it, without those of inner functions and classes."""
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
    """The expressions of a statement and of all nested statements."""

    def __init__(self, statement: Statement) -> None:
        super().__init__(
            each
            for inner in statement.walk()
            for each in ast.iter_child_nodes(inner.node)
            if not isinstance(each, ast.stmt)
        )


def _only_raises(block: list[Statement]) -> bool:
    return len(block) == 1 and isinstance(block[0].node, ast.Raise) and block[0].node.exc is not None


def _goes_through_rows(form: Form) -> bool:
    """Return whether it is a loop over the rows of a tensor."""
    node = form.node if isinstance(form, Loop) else None
    return isinstance(node, ast.For) and getattr(getattr(node.iter, "func", None), "id", "") != "range"


def _counts_beside_tensors(body: list[Form]) -> Names:
    """The names that decide a branch that may be Python's, in a body that has a branch on a tensor too.

    SOT loses what such a branch binds if the test is a number (seen on Paddle 3.3.1).
    """
    branches = [each for each in walk(body) if isinstance(each, Branch)]
    if not any(each.is_sure for each in branches):
        return frozenset()
    return frozenset[str]().union(*(each.test.reads for each in branches if not each.is_sure))


def _word(node: ast.stmt) -> str:
    return (
        "break" if isinstance(node, ast.Break) else "continue" if isinstance(node, ast.Continue) else "return"
    )


def _bracketed(text: str, node: ast.expr) -> str:
    return f"({text})" if isinstance(node, ast.BoolOp | ast.IfExp | ast.Lambda) else text


def _sign(node: ast.expr) -> int:
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        return -1
    return 1 if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > 0 else 0


def _check_growing(node: ast.stmt) -> None:
    """Refuse a loop over a container that grows meanwhile: Paddle iterates over its initial contents."""
    for loop in ast.walk(node):
        name = dotted(loop.iter) if isinstance(loop, ast.For) else ""
        for part in ast.walk(loop) if name else ():
            if isinstance(part, ast.Attribute) and part.attr in ADDING and dotted(part.value) == name:
                raise CannotExpand(loop, f"`{name}` grows while this loop iterates over it; loop over a copy")
