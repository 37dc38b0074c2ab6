"""Layout: whole lines, guards and framed expressions as edits that fit the script's own indentation.

Nothing is reformatted.  A statement that shares its line (``a; print(b)``, ``if x: print(y)``) is
first set on a line of its own; those splits are prerequisites that equal ones collapse with.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Container, Iterator, Mapping, Sequence

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.source.comments import comments_in
from trainshift.python.source.edit import Edit, Side
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Site, Statement, expression_path
from trainshift.python.syntax.concrete import CallSyntax, read_call
from trainshift.python.syntax.precedence import ELEMENT, Frame, asked, does_more, level, parentheses


class Layout:
    """Makes edits of one script."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._source = program.script.source
        self._text = program.script.source.text

    @cached_property
    def unit(self) -> str:
        """One level of the file's indentation: that of its first indented block, else four spaces.

        A block that was taken out before the rules are asked, as a strategy's scope is, counts.
        """
        if self._program.whole.origin is not None:
            files = {each.script.path: each for each in self._program.whole.origin[0].files}
            if self._script.path in files:
                return files[self._script.path].fact(Layout).unit
        for statement in self._script.statements:
            if statement.parent is not None and statement.index == 0 and not _in_case(statement):
                start = self._script.statement_span(statement).start
                outer = self._script.statement_span(statement.parent).start
                inner_indent, outer_indent = self._source.indentation(start), self._source.indentation(outer)
                if len(inner_indent) > len(outer_indent) and inner_indent.startswith(outer_indent):
                    return inner_indent[len(outer_indent) :]
        return "    "

    def unit_at(self, statement: Statement) -> str:
        """One level of indentation in the blocks around the statement."""
        for current in statement.path():
            if current.parent is None or _in_case(current) or self._on_header_line(current.block[0]):
                continue
            inner = self._source.indentation(self._script.statement_span(current.block[0]).start)
            outer = self._source.indentation(self._script.statement_span(current.parent).start)
            if len(inner) > len(outer) and inner.startswith(outer):
                return inner[len(outer) :]
        return self._unit_of(statement)

    def _unit_of(self, statement: Statement) -> str:
        """One level of indentation in the statement's file."""
        return self._program.at(statement).fact(Layout).unit

    def line_end_at(self, code: Statement | Site) -> str:
        """The line ending of some code's file."""
        return self._program.at(code).script.source.newline

    def newline_at(self, statement: Statement) -> str:
        """A line ending, followed by the indentation of the statement's block."""
        return self.line_end_at(statement) + self.indentation(statement)

    def indentation(self, statement: Statement) -> str:
        """The indentation of the statement's block."""
        first = statement.block[0] if statement.parent is not None else statement
        if first.parent is not None and self._on_header_line(first):
            if _in_case(first):
                return self._source.indentation(self._script.statement_span(first).start) + self._unit_of(
                    first
                )
            return self.indentation(first.parent) + self._unit_of(first)
        return self._source.indentation(self._script.statement_span(first).start)

    def isolate(self, statement: Statement) -> tuple[Edit, ...]:
        """Edits that set the statement on lines of its own (none if it already is)."""
        edits = []
        span = self._script.statement_span(statement)
        newline = self.newline_at(statement)
        block = statement.block
        if statement.parent is not None and self._on_header_line(block[0]):
            first = self._script.statement_span(block[0]).start
            colon = self._text.rindex(":", 0, first) + 1
            edits.append(Edit(colon, first, newline))
        if statement.index > 0:
            before = self._script.statement_span(block[statement.index - 1])
            if self._same_line(before.end, span.start):
                edits.append(Edit(before.end, span.start, newline))
        if statement.index + 1 < len(block):
            after = self._script.statement_span(block[statement.index + 1])
            if self._same_line(span.end, after.start):
                edits.append(Edit(span.end, after.start, newline))
        return tuple(edits)

    def before(self, statement: Statement, lines: Sequence[str], rank: int = 0) -> Edit:
        """Insert lines above the statement's own code (below comments that precede it)."""
        newline = self.newline_at(statement)
        start = self._script.statement_span(statement).start
        return Edit(start, start, "".join(line + newline for line in lines), Side.BEFORE, rank)

    def after(self, statement: Statement, lines: Sequence[str]) -> Edit:
        """Insert lines below the statement, after its trailing comment."""
        newline = self.newline_at(statement)
        at = self._script.statement_span(statement).end
        block = statement.block
        following = block[statement.index + 1 : statement.index + 2]
        if not (following and self._same_line(at, self._script.statement_span(following[0]).start)):
            at = self._source.line_end(at)
        depth = sum(1 for _ in statement.ancestors())
        text = "".join(newline + line if line else self.line_end_at(statement) for line in lines)
        return Edit(at, at, text, Side.AFTER, -depth)

    def guard(self, statement: Statement, header: str) -> tuple[Edit, ...]:
        """Put the statement under a header such as ``if hvd.rank() == 0:`` and indent its lines."""
        span = self._script.statement_span(statement)
        newline = self.newline_at(statement)
        unit = self.unit_at(statement)
        edits = [Edit(span.start, span.start, header + newline + unit, Side.BEFORE)]
        fixed = self.lines_in_strings(statement)
        first, last = self._source.line_of(span.start), self._source.line_of(span.end)
        for line in range(first + 1, last + 1):
            start = self._source.line_starts[line]
            blank = not self._text[start : self._source.line_end(start)].strip()
            if line not in fixed and not blank:
                edits.append(Edit(start, start, unit, Side.WITHIN))
        return tuple(edits)

    def left_behind(self, statement: Statement, removed: Container[Statement]) -> Iterator[str]:
        """Yield a remark on the comment above a removed statement, if it describes nothing that is left."""
        start = self._source.line_start(self._script.statement_span(statement).start)
        comment = self._text[self._source.line_start(max(start - 1, 0)) : start].strip()
        if not comment.startswith("#"):
            return
        block, index = self._script.siblings(statement)
        for each in block[index:]:
            end = self._source.next_line(self._script.statement_span(each).end)
            below = self._text[end : self._source.line_end(end)].strip()
            if each not in removed:
                return
            if not below or below.startswith("#"):
                break
        yield f"the comment above the removed line stays: {comment}"

    def remove(self, statement: Statement, keep_block: bool) -> tuple[Edit, ...]:
        """Remove the statement, but not its comments; replace it by ``pass`` if `keep_block`."""
        span = self._script.statement_span(statement)
        kept = comments_in(self._text[span.start : span.end])
        if kept:
            end = self._source.line_end(span.end)
            behind = self._text[span.end : end].lstrip(" \t")
            end = end - len(behind) if behind.startswith("#") else span.end
            lines = [*kept, *(["pass"] if keep_block else [""] if end > span.end else [])]
            text = self.newline_at(statement).join(lines)
            return (*self.isolate(statement), Edit(span.start, end, text))
        if keep_block:
            return (Edit(span.start, span.end, "pass"),)
        block, index = statement.block, statement.index
        if index > 0:
            before = self._script.statement_span(block[index - 1])
            if self._same_line(before.end, span.start):
                return (Edit(before.end, span.end, ""),)
        if index + 1 < len(block):
            after = self._script.statement_span(block[index + 1])
            if self._same_line(span.end, after.start):
                return (Edit(span.start, after.start, ""),)
        end = self._source.line_end(span.end)
        rest = self._text[span.end : end].lstrip(" \t;")
        if rest:
            return (Edit(span.start, end - len(rest), ""),)
        return (Edit(self._source.line_start(span.start), self._source.next_line(span.end), ""),)

    def put(self, node: ast.expr, within: Statement | Site, frame: Frame) -> tuple[Edit, ...]:
        """Put a frame around an expression in place: ``a + b`` becomes ``(a + b) * 2``.

        The expression gets parentheses if the frame requires them, and the whole if its place does, unless it
        has some: ``(a).b`` becomes ``(a or c).b``.
        """
        path, spans = self._spans(node, within)
        code = self._text[spans[0].start : spans[0].end]
        before, after, own = frame.before, frame.after, spans[1:]
        inside = level(node, code) < frame.asks
        if frame.is_starred:
            at = spans[-1]
            inside = inside and not own
        else:
            at = own.pop(0) if inside and own else spans[0]
            inside = inside and at is spans[0]
            if not own and path and frame.level < asked(path[-1], node):
                before, after = f"({before}", f"{after})"
        if inside:
            before, after = f"{before}(", f"){after}"
        # Of expressions that begin or end at one place, the longer one is outside.
        end = Edit(at.end, at.end, after, nest=-at.start)
        return (Edit(at.start, at.start, before, nest=-at.end), end) if before else (end,)

    def replace(self, node: ast.expr, within: Statement | Site, code: str) -> tuple[Edit, ...]:
        """Replace an expression by other code; its comments follow the new code.

        An expression that binds a name, awaits or yields is still evaluated.
        """
        if does_more(node):
            return self.put(node, within, Frame("[", f", {code}][1]", ELEMENT))
        span = self._spans(node, within)[1][0]
        kept = comments_in(self._text[span.start : span.end])
        newline = self.line_end_at(within) + self._source.indentation(span.end)
        return (Edit(span.start, span.end, code + "".join(f"  {each}{newline}" for each in kept)),)

    def enclosed(self, node: ast.expr, within: Statement | Site) -> Span:
        """The span of an expression with all parentheses around it, except those of a call."""
        return self._spans(node, within)[1][-1]

    def _spans(self, node: ast.expr, within: Statement | Site) -> tuple[list[ast.AST], list[Span]]:
        """The enclosing nodes of an expression, and its spans without and with its own parentheses."""
        statement = within.statement if isinstance(within, Site) else within
        span = self._script.span(node, within)
        path = expression_path(statement.node, node)[:-1]
        parent = next((each for each in reversed(path) if hasattr(each, "lineno")), None)
        bounds = self._script.span(parent, within) if parent is not None else span
        if isinstance(parent, ast.Call) and node in parent.args:
            if isinstance(node, ast.GeneratorExp) and span.end == bounds.end:
                return path, [Span(span.start + 1, span.end - 1)]  # Its parentheses are those of the call.
            bounds = Span(bounds.start, bounds.end - 1)
        return path, [span, *parentheses(self._text, span, bounds)]

    def call_syntax(self, site: Site) -> tuple[int, CallSyntax]:
        """The call's offset in the script, and the relative offsets of its parts."""
        span = self._script.span(site.node, site)
        return span.start, read_call(self._text[span.start : span.end])

    def add_keyword(self, site: Site, name: str, value: str) -> tuple[Edit, ...]:
        """Add a keyword argument after the other arguments (before ``**rest``)."""
        return self.add_keywords(site, {name: value})

    def add_keywords(self, site: Site, given: Mapping[str, str]) -> tuple[Edit, ...]:
        """Add keyword arguments after the other arguments (before ``**rest``).

        Each goes on a line of its own if the line of the last argument begins with an argument.
        """
        if not given:
            return ()
        start, syntax = self.call_syntax(site)
        added = [f"{name}={value}" for name, value in given.items()]
        for argument in syntax.arguments:
            if argument.star == "**":
                at = start + argument.start
                return (Edit(at, at, f"{', '.join(added)}, "),)
        if not syntax.arguments:
            at = start + syntax.opening
            return (Edit(at, at, ", ".join(added)),)
        first, last = (start + syntax.arguments[index].start for index in (0, -1))
        at = start + syntax.arguments[-1].end
        line = self._source.line_start(last)
        lead = self._source.indentation(line)
        begins = any(start + each.start == line + len(lead) for each in syntax.arguments)
        comma = re.match(r"\s*,", self._text[at:])
        if not begins or (not comma and self._source.line_of(first) == self._source.line_of(at)):
            # After the text that other edits insert at the end of the last argument.
            return (Edit(at, at, f", {', '.join(added)}", rank=1),)
        newline = self.line_end_at(site) + lead
        end = self._source.line_end(at)
        if re.match(r",?[ \t]*#", self._text[at:end]):  # The comment stays beside its argument.
            own = () if comma else (Edit(at, at, ",", rank=1),)
            text = "".join(f"{newline}{each}," for each in added)
            return (*own, Edit(end, end, text if comma else text[:-1]))
        return (Edit(at, at, "".join(f",{newline}{each}" for each in added), rank=1),)

    def _on_header_line(self, first: Statement) -> bool:
        """Return whether the first statement of a block is on the line of the block's header."""
        start = self._script.statement_span(first).start
        line = self._source.line_start(start)
        # Text joined to the header's line by a backslash counts as on that line too.
        return bool(self._text[line:start].strip()) or self._is_joined(line)

    def _is_joined(self, line: int) -> bool:
        """Return whether a backslash joins the line that begins at an offset to the one before."""
        while line and self._text[line - 1] in "\r\n":
            line -= 1
        return line > 0 and self._text[line - 1] == "\\"

    def _same_line(self, end: int, start: int) -> bool:
        return ";" in self._text[end:start].partition("#")[0] and not self._own_line(start)

    def _own_line(self, start: int) -> bool:
        line = self._source.line_start(start)
        return not self._text[line:start].strip() and not self._is_joined(line)

    def lines_in_strings(self, statement: Statement) -> set[int]:
        """0-based numbers of the lines that begin inside a string of the statement."""
        lines: set[int] = set()
        for node in ast.walk(statement.node):
            if not isinstance(node, ast.Constant | ast.JoinedStr) or node.lineno == node.end_lineno:
                continue
            span = self._script.span(node, statement)
            first = self._source.line_of(span.start)
            for start, end in _string_rows(f"({self._text[span.start : span.end]})"):
                lines.update(range(first + start, first + end))
        return lines


def _in_case(statement: Statement) -> bool:
    """Return whether the statement's block is that of a `case`, one level below the `match` that is its
    parent.
    """
    return statement.branch.startswith("case")


def _string_rows(text: str) -> list[tuple[int, int]]:
    """The rows, from 1, that begin inside a multi-line string (half-open ranges)."""
    rows = []
    opened: list[int] = []
    starts = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
    ends = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING:
            rows.append((token.start[0], token.end[0]))
        elif token.type in starts:
            opened.append(token.start[0])
        elif token.type in ends:
            rows.append((opened.pop(), token.end[0]))
    return rows
