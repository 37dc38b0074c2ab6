"""The bindings that names have in runs of random programs are among those that are looked up."""

from __future__ import annotations

import ast

import pytest

from support.random_programs import NAMES, random_program, run
from trainshift.python.names import reaching_bindings as reaching
from trainshift.python.names.script import Script, read_script
from trainshift.python.syntax.chunk_syntax import Statement

PROGRAMS = 4
"""The number of programs in one test."""
RUNS = 5
SEEDS = range(0, 136, PROGRAMS)


def statements(script: Script) -> dict[tuple[int, int], Statement]:
    """The statements of the program, by their places."""
    return {
        (each.node.lineno, each.node.col_offset): each
        for each in script.statements
        if each.scope.function() is not None
    }


def owners(program: ast.FunctionDef) -> dict[int, ast.stmt]:
    """The statement that each node of a program is of, which for a handler is the `try`."""
    found: dict[int, ast.stmt] = {}

    def go(node: ast.AST, statement: ast.stmt) -> None:
        statement = node if isinstance(node, ast.stmt) else statement
        found[id(node)] = statement
        for child in ast.iter_child_nodes(node):
            go(child, statement)

    go(program, program)
    return found


@pytest.mark.sampled
@pytest.mark.in_turns(2)
@pytest.mark.parametrize("first", SEEDS)
def test_bindings_that_are_read_are_looked_up(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "_SUPPRESSING", frozenset({"manager"}))
    for seed in range(first, first + PROGRAMS):
        program = random_program(seed)
        script = read_script(ast.unparse(program))
        assert isinstance(script, Script)
        placed, owner = statements(script), owners(program)
        for number in range(RUNS):
            for event in run(program, number).events:
                if event.kind != "read" or event.node is None or event.by is None:
                    continue
                at = owner[id(event.node)]
                statement = placed[at.lineno, at.col_offset]
                by = owner[id(event.by)]
                _, bindings = script.names.lookup(event.name, statement.scope, statement)
                places = {each.statement.node.lineno for each in bindings if each.statement is not None}
                # A statement may read its own binding while it is evaluated.
                last = (by.end_lineno if isinstance(by, ast.FunctionDef) else None) or by.lineno
                known = by is at or any(by.lineno <= each <= last for each in places)
                assert known, (event.name, at.lineno, by.lineno, ast.unparse(program))
                assert event.name in NAMES
