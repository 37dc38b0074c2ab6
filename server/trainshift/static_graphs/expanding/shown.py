"""Shown: what each statement of a file's static functions becomes in a graph (SPEC-STATIC §6, `--show`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from trainshift.core.program import Program
from trainshift.core.text.source import one_line
from trainshift.static_graphs.expanding.knowledge import Knowledge
from trainshift.static_graphs.expanding.words import GENERATED
from trainshift.static_graphs.reading.function import StaticFunction, Truth
from trainshift.static_graphs.reading.liveness import own_parts
from trainshift.static_graphs.reading.reading import Reading

_BECOMES = {
    ast.If: ("if", "cond", "PS01"),
    ast.IfExp: ("ternary", "cond", "PS12"),
    ast.While: ("while", "while_loop", "PS02"),
    ast.For: ("for", "while_loop", "PS04"),
    ast.Assert: ("assert", "assert", "PS14"),
}
_CASTS = frozenset({"int", "float", "bool"})


@dataclass(frozen=True, slots=True)
class Shown:
    """A statement, a ternary or a call: its place (offset), what it is, what it becomes and by which rule."""

    offset: int
    kind: str
    becomes: str
    code: str
    function: str
    mode: str
    why: str


def shown(program: Program, function: str = "") -> list[Shown]:
    """What the statements of the static functions of a file become, in text order."""
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
    """Why a function is static, in a few words."""
    why = function.why
    if why.caller is not None:
        return f"`{why.caller.name}` calls it"
    if why.node is function.node:
        return "it is the `forward` of a layer"
    return (
        f"`{one_line(ast.unparse(why.node))[:60]}`" if isinstance(why.node, ast.expr) else "it is made static"
    )
