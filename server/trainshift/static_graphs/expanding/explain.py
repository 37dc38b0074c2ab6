"""Explain the graph operations of statements in static functions, for `--show`, hovers and hints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import own_parts
from trainshift.python.syntax.slotted_ast import kind_of
from trainshift.static_graphs.expanding.knowledge import Knowledge
from trainshift.static_graphs.expanding.words import GENERATED
from trainshift.static_graphs.reading.function import StaticFunction, Truth
from trainshift.static_graphs.reading.reading import Reading

_BECOMES = {
    ast.If: ("if", "cond", "PS01"),
    ast.IfExp: ("ternary", "cond", "PS12"),
    ast.While: ("while", "while_loop", "PS02"),
    ast.For: ("for", "while_loop", "PS04"),
    ast.Assert: ("assert", "assert", "PS14"),
}
_CASTS = frozenset({"int", "float", "bool"})
_HEADERS = (ast.If, ast.While, ast.For)
_WORD = re.compile(r"\w+")


class Shown(Struct, frozen=True):
    """A statement, a ternary or a call: its offset, its kind, its graph operation, and the rule."""

    offset: int
    kind: str
    becomes: str
    code: str
    function: str
    mode: str
    why: str


class Told(Struct, frozen=True):
    """The graph operation of a word in a static function, and the reason: the tensor, and its origin.

    `line` counts from 1; 0 for a parameter, or if unknown.
    """

    word: str
    becomes: str
    code: str
    function: StaticFunction
    why: str
    name: str = ""
    line: int = 0


class Header(Struct, frozen=True):
    """The header of an `if` or a loop: the end of its text (offset), and its graph operation."""

    end: int
    becomes: str
    function: StaticFunction


def shown(program: Program, function: str = "") -> list[Shown]:
    """The graph operations of the statements in a file's static functions, in text order."""
    script = program.script
    found = []
    for each in program.fact(Reading).functions:
        if each.name in GENERATED or (function and function not in (each.name, each.title)):
            continue
        knowledge = Knowledge(each)
        for statement in each.statements:
            for node in own_parts(statement.node):
                for kind, becomes, code in _told(node, knowledge):
                    offset = script.span(node, each.scope).start
                    mode = each.mode.name.lower()
                    found.append(Shown(offset, kind, becomes, code, each.title, mode, _why(each)))
    return sorted(found, key=lambda each: each.offset)


def headers(program: Program) -> list[Header]:
    """The `if`s and loops of the functions that have graph code, in text order."""
    found = []
    for each in program.fact(Reading).functions:
        if each.name in GENERATED:
            continue
        knowledge = Knowledge(each)
        told = []
        for statement in each.statements:
            if isinstance(statement.node, _HEADERS):
                becomes = next(becomes for _, becomes, _ in _told(statement.node, knowledge))
                if becomes == "either":
                    becomes = f"{_BECOMES[kind_of(statement.node)][1]} or Python"
                told.append(Header(program.script.header_span(statement).end, becomes, each))
        if any(header.becomes != "python" for header in told):
            found += told
    return sorted(found, key=lambda header: header.end)


def told_at(program: Program, offset: int) -> Told | None:
    """The graph operation of the word at an offset; None if it has none."""
    text = program.script.code.source.text
    start = program.script.code.source.line_start(offset)
    end = program.script.code.source.line_end(offset)
    word = next((w for w in _WORD.finditer(text, start, end) if w.start() <= offset <= w.end()), None)
    function = _around(program, offset) if word is not None else None
    if word is None or function is None:
        return None
    knowledge = Knowledge(function)
    for statement in function.statements:
        for node in own_parts(statement.node):
            if not hasattr(node, "lineno") or _word_of(program, function, node) != word.span():
                continue
            test = node.iter if isinstance(node, ast.For) else getattr(node, "test", node)
            for _, becomes, code in (*_told(node, knowledge), *_told_of_operator(node, function)):
                name, line = _because(program, function, test)
                return Told(word[0], becomes, code, function, _why(function), name, line)
    return None


def _around(program: Program, offset: int) -> StaticFunction | None:
    """The innermost static function around an offset."""
    found = None
    for each in program.fact(Reading).functions:
        span = program.script.span(each.node, each.scope)
        if span.start <= offset <= span.end and each.name not in GENERATED:
            found = each
    return found


def _word_of(program: Program, function: StaticFunction, node: ast.AST) -> tuple[int, int] | None:
    """The span of a node's word: ``if``, ``while``, ``and``, the name of a call."""
    script, text = program.script, program.script.code.source.text
    if isinstance(node, ast.IfExp | ast.BoolOp):
        one, other = (node.body, node.test) if isinstance(node, ast.IfExp) else node.values[:2]
        between = script.span(one, function.scope).end, script.span(other, function.scope).start
        word = "if" if isinstance(node, ast.IfExp) else _operator(node)
        start = text.find(word, *between)
        return (start, start + len(word)) if start >= 0 else None
    if isinstance(node, ast.Call):
        span = script.span(node.func, function.scope)
        return (span.start, span.end)
    first = _WORD.match(text, script.span(node, function.scope).start)
    return first.span() if first is not None else None


def _told_of_operator(node: ast.AST, function: StaticFunction) -> Iterator[tuple[str, str, str]]:
    if isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        word = _operator(node) if isinstance(node, ast.BoolOp) else "not"
        truth = function.truth(node)
        becomes = f"logical_{word}" if truth is Truth.GRAPH else "either"
        yield word, "python" if truth is Truth.PYTHON else becomes, "PS08"


def _operator(node: ast.BoolOp) -> str:
    return "and" if isinstance(node.op, ast.And) else "or"


def _because(program: Program, function: StaticFunction, test: ast.AST) -> tuple[str, int]:
    """The first tensor name in a condition, and the line where it was created."""
    for node in ast.walk(test):
        value = function.kind(node) if isinstance(node, ast.Name) else None
        if not isinstance(node, ast.Name) or value is None or value.tensor is None:
            continue
        bindings = function.scope.bindings.get(node.id, ())
        lines = [
            program.script.code.source.line_of(program.script.statement_span(each.statement).start) + 1
            for each in bindings
            if each.statement is not None and each.scope is function.scope
        ]
        earlier = [line for line in lines if line <= _line(program, function, node)]
        return node.id, max(earlier, default=0)
    return "", 0


def _line(program: Program, function: StaticFunction, node: ast.AST) -> int:
    return program.script.code.source.line_of(program.script.span(node, function.scope).start) + 1


def _told(node: ast.AST, knowledge: Knowledge) -> Iterator[tuple[str, str, str]]:
    for kind, (name, becomes, code) in _BECOMES.items():
        if isinstance(node, kind):
            truth = knowledge.truth_with(node, knowledge.became_tensors)
            if truth is Truth.PYTHON:
                yield name, "python", ""
            else:
                yield name, *((becomes, code) if truth is Truth.GRAPH else ("either", "PS18"))
            return
    if isinstance(node, ast.Subscript) and knowledge.is_size(node):
        yield "shape", "shape", "PS11"
    if not isinstance(node, ast.Call):
        return
    name = getattr(node.func, "id", "")
    values = [knowledge.kind(each) for each in node.args]
    has_tensor = any(each.tensor is not None for each in values)
    if name == "print":
        yield ("call", "print", "PS10") if has_tensor else ("call", "python", "")
    elif name in _CASTS and len(values) == 1:
        yield ("call", "cast", "PS09") if has_tensor else ("call", "python", "")
    elif name == "len" and len(values) == 1:
        is_array = values[0].array
        yield (
            ("call", "array" if is_array else "shape", "PS11")
            if knowledge.is_length(node) or is_array
            else (
                "call",
                "python",
                "",
            )
        )


def _why(function: StaticFunction) -> str:
    """Return the reason why a function is static, in a few words."""
    why = function.why
    if why.caller is not None:
        return f"`{why.caller.name}` calls it"
    if why.node is function.node:
        return "it is the `forward` of a layer"
    return (
        f"`{one_line(ast.unparse(why.node))[:60]}`" if isinstance(why.node, ast.expr) else "it is made static"
    )
