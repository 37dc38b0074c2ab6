"""Places: the lines, comments and indentation of the statements of a function."""

from __future__ import annotations

import ast
import re

from trainshift.python.source.comments import Comments
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.static_graphs.expanding.expressions import Expressions

_ELSE = re.compile(r"\s*else\s*:")


class Places:
    """Where the statements of one function stand, and which comments are theirs."""

    def __init__(self, expressions: Expressions, comments: Comments) -> None:
        self.write = expressions
        self.know = expressions.knowledge
        self.comments = comments
        self.source = expressions.source
        self._graph = 0

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
        """The comments and empty lines between two lines, those of at least a column."""
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
        """The comments of a header that are in none of its expressions."""
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
        """The last line of a statement, with the comments that stand deeper below it."""
        end = self._lines_of(statement.node)[1]
        if not statement.branches:
            return end
        line, column = end + 1, statement_column(statement)
        last = end
        while line <= len(self.source.line_starts):
            if line in self.comments and not self._line(line)[: self.comments[line].column].strip():
                if self.comments[line].column <= column:
                    break
                last = line
            elif self._line(line).strip():
                break
            line += 1
        return last

    def last_line(self, block: list[Statement]) -> int:
        """The last line of a function's body, with the comments that belong to it."""
        last, column = self._end_of(block[-1]), statement_column(block[0])
        line = last + 1
        while line <= len(self.source.line_starts):
            if line in self.comments and not self._line(line)[: self.comments[line].column].strip():
                if self.comments[line].column < column:
                    break
                last = line
            elif self._line(line).strip():
                break
            line += 1
        return last

    def _tail(self, end: int) -> str:
        """The comment that stands right behind a statement."""
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
        """The comment behind an `else` that has a line of its own."""
        line = self._else_line(block)
        is_own = line < self._first_line(block[0])
        return [self.comments[line].text] if is_own and line in self.comments else []

    def _header_end(self, block: list[Statement]) -> int:
        line = self._first_line(block[0]) - 1
        while not self._line(line).strip() or (
            line in self.comments and not self._line(line)[: self.comments[line].column].strip()
        ):
            line -= 1
        return line

    def _header_end_or(self, body: list[Statement], statement: Statement) -> int:
        first = self._first_line(body[0])
        start = self._first_line(statement)
        return self._header_end(body) if first > start else start

    def _last(self, block: list[Statement]) -> int:
        return self._end_of(block[-1])


def is_elif(statement: Statement) -> bool:
    """Whether an `if` is the `elif` of another one."""
    parent = statement.parent
    return (
        parent is not None
        and isinstance(statement.node, ast.If)
        and isinstance(parent.node, ast.If)
        and statement.branch == "orelse"
        and statement.node.col_offset == parent.node.col_offset
    )


def without_elif(line: str) -> str:
    """The first line of an `elif` as that of an `if`."""
    return line.removeprefix("el") if line.startswith("elif") else line


def node_is_decorated(node: ast.stmt) -> bool:
    """Whether decorators stand above a statement."""
    return bool(getattr(node, "decorator_list", ()))


def statement_column(statement: Statement) -> int:
    """The column where a statement begins."""
    return statement.node.col_offset
