"""One statement of a static function as graph code.

Expanding an inner statement and then the outer one must have the same result as expanding only the outer one.
If it would not (a loop that a `break` of the inner statement ends, a number that the loop carries), the inner
one is refused, and the refusal names the outer one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from trainshift.core.program import Program
from trainshift.python.source.source import Source
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.python.syntax.slotted_ast import kind_of
from trainshift.static_graphs.expanding.door import Expansion, RefusedFunction, expand
from trainshift.static_graphs.reading.reading import Reading

_WORDS = {ast.If: "if", ast.For: "for", ast.While: "while"}


def expand_at(program: Program, function: str, line: int | None, read: Callable[[str], Program]) -> Expansion:
    """Expand the statement that begins on a line (from 1), including its contents, or without a line like
    `expand`.

    `function` is as for `expand`, `read` returns the program of another text of this file.  Functions that
    cannot be expanded are listed in `refused`.
    """
    if line is None:
        return expand(program, function)
    found = expand(program, function, line)
    if not found.edits:
        return found
    after = read(found.result)
    for statement, outer in _around(program, line):
        whole = expand(program, function, outer)
        now = _line_after(program.script.code.source, outer, found.result)
        then = expand(after, function, now) if now else None
        if then is None or then.result != (whole.result if whole.edits else found.result):
            word = _WORDS[kind_of(statement.node)]
            reason = f"this is part of the `{word}` on line {outer}; expand that one as a whole"
            if whole.refused and not whole.edits:
                reason = (
                    f"the `{word}` on line {outer} around it cannot be expanded: {whole.refused[0].reason}"
                )
            offset = program.script.code.source.line_starts[line - 1]
            title = found.applied[0].function if found.applied else function
            return Expansion(found.text, refused=[RefusedFunction(title, offset, reason)])
    return found


def _around(program: Program, line: int) -> list[tuple[Statement, int]]:
    """The `if`s and loops around the one that begins on a line, in its function, with their lines."""
    for function in program.fact(Reading).functions:
        for statement in function.statements:
            if kind_of(statement.node) in _WORDS and _line_of(program, statement) == line:
                above = (each for each in statement.ancestors() if each.scope is statement.scope)
                return [(each, _line_of(program, each)) for each in above if kind_of(each.node) in _WORDS]
    return []


def _line_of(program: Program, statement: Statement) -> int:
    script = program.script
    return script.code.source.line_of(script.header_span(statement).start) + 1


def _line_after(source: Source, line: int, result: str) -> int:
    """The new line of a header that was on another line before; 0 if it was removed."""
    lines, now = source.text.splitlines(), result.splitlines()
    header = lines[line - 1]
    before = lines[:line].count(header)
    places = [number for number, each in enumerate(now, 1) if each == header]
    return places[before - 1] if before <= len(places) else 0
