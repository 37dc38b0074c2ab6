"""Own values: training loops that a rank may leave by itself, because it decides by what it has computed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.core.text.facts import Statement
from trainshift.core.training.executions import LOOPS
from trainshift.core.training.horovod import Horovod
from trainshift.core.training.loop_kinds import Loop
from trainshift.core.training.loops import Loops
from trainshift.core.training.what_trains import WhatTrains

_READING = frozenset({"run", "eval"})
_LEAVING = (ast.Break, ast.Return)


def own_exits(program: Program) -> list[tuple[Statement, ast.expr]]:
    """The statements that leave a training loop, or end it, by a rank's own values, and their tests."""
    found: dict[Statement, ast.expr] = {}
    for loop in program.fact(Loops).own:
        if isinstance(loop.statement.node, LOOPS):
            found.update(_exits(program, loop))
    return sorted(found.items(), key=lambda each: program.script.statement_span(each[0]))


def _exits(program: Program, loop: Loop) -> Iterator[tuple[Statement, ast.expr]]:
    inside = list(loop.statement.walk())
    names = _own_names(program, inside)
    for statement in inside:
        node = statement.node
        if not isinstance(node, ast.If | ast.While):
            continue
        leaves = isinstance(node, ast.While) or any(
            isinstance(part.node, _LEAVING) and part.scope is statement.scope for part in statement.walk()
        )
        read = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
        if leaves and not read.isdisjoint(names):
            yield statement, node.test


def _own_names(program: Program, inside: list[Statement]) -> set[str]:
    """The names that hold what a training step, or a run of a session, gives."""
    names: set[str] = set()
    size = -1
    while len(names) > size:  # A name may be computed from another one.
        size = len(names)
        for statement in inside:
            node = statement.node
            if isinstance(node, ast.Assign) and _is_own(program, node.value, names):
                targets = [part for target in node.targets for part in ast.walk(target)]
                names.update(part.id for part in targets if isinstance(part, ast.Name))
    return names


def _is_own(program: Program, node: ast.expr, names: set[str]) -> bool:
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in names:
            return True
        if isinstance(part, ast.Call):
            site = program.script.site_of(part)
            if program.fact(Horovod).is_call(site, "allreduce"):
                return False
            if program.fact(WhatTrains).site_trains(site) or site.name in _READING:
                return True
    return False
