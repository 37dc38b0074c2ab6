"""While slices: loops that count through arrays, from slice to slice.

    i = 0
    while i < len(x):
        step(x[i:i + 32])
        i += 32

Each rank takes its own iterations: it begins at the slice with its number, and advances by the number of
ranks.  It stops when the last rank has no slice left, so that all take equally many.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import Binding, Statement
from trainshift.training.data.index_loops import (
    IndexLoop,
    Numbered,
    cut_out,
    shared,
    told_apart,
)
from trainshift.training.data.loop_iterables import Iterated
from trainshift.training.data.turns import is_arithmetic, made_of
from trainshift.training.execution.executions import Executions
from trainshift.training.loops.steps import is_plain
from trainshift.training.loops.what_trains import WhatTrains


class Slices(Struct, frozen=True, eq=False):
    """A loop from slice to slice; `counting` are the initial value and the increment of its index.

    `turns` is the counting side of its test.
    """

    loop: Statement
    turns: IndexLoop
    counting: tuple[Occurrence, Occurrence]


def read_slices(program: Program) -> Iterator[Slices]:
    """The training loops of a program that count through arrays, from slice to slice."""
    trains, executions = program.fact(WhatTrains), program.fact(Executions)
    idle = program.fact(Iterated).idle
    for loop in program.script.statements:
        if isinstance(loop.node, ast.While) and trains.statement_trains(loop) and loop not in idle:
            found = _read(program, loop)
            if found is not None and not executions.is_traced(loop.scope):
                yield found


def _read(program: Program, loop: Statement) -> Slices | None:
    test = loop.node.test if isinstance(loop.node, ast.While) else None
    if (
        not isinstance(test, ast.Compare)
        or len(test.ops) > 1
        or not isinstance(test.ops[0], ast.Lt | ast.LtE)
    ):
        return None
    inside = [each for each in loop.walk() if each is not loop]
    changed = [
        part.id
        for each in inside
        for part in each.own_parts()
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    ]
    counters = [part for part in ast.walk(test) if isinstance(part, ast.Name) and part.id in changed]
    if len(counters) != 1 or counters[0] not in ast.walk(test.left) or not is_arithmetic(test.left):
        return None
    counter, where = counters[0], Occurrence(test.left, loop.scope, loop)
    if not _grows(test.left, counter):
        return None
    steps = [(each, _added(each, counter.id)) for each in loop.branches.get("body", ())]
    steps = [(each, added) for each, added in steps if added is not None]
    start = _start(program, loop, counter.id)
    if len(steps) != 1 or start is None or changed.count(counter.id) != 1:
        return None
    step, added = steps[0]
    first = start.statement
    if added is None or first is None or not _is_set_alone(start):
        return None
    if not _is_same(program, added, step, first, changed):
        return None
    numbered = Numbered(loop, [each for each in inside if each is not step], made_of({counter.id}, inside))
    cut = list(cut_out(numbered, test.comparators))
    if not cut or _is_read_after(program, step, counter.id):
        return None
    told = told_apart(program, where, numbered, frozenset({loop, step, first}))
    assert start.value is not None
    counting = Occurrence(start.value, start.scope, first), Occurrence(added, step.scope, step)
    return Slices(loop, told or shared(program, where, cut), counting)


def _is_set_alone(start: Binding) -> bool:
    """Return whether a statement only assigns a number to one name."""
    node = start.statement.node if start.statement is not None else None
    alone = isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    return alone and start.kind == "value" and isinstance(start.value, ast.Constant)


def _is_read_after(program: Program, step: Statement, name: str) -> bool:
    """Return whether a loop reads its counter after the increment, where it means another slice."""
    block, index = program.script.siblings(step)
    behind = (each for above in block[index + 1 :] for each in above.walk())
    return any(isinstance(part, ast.Name) and part.id == name for each in behind for part in each.own_parts())


def _grows(node: ast.expr, counter: ast.Name) -> bool:
    """Return whether an expression is a counter, or a sum with it."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return _grows(node.left, counter)
    return node is counter


def _added(statement: Statement, name: str) -> ast.expr | None:
    """The value that a statement adds to a name."""
    node = statement.node
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return node.value if isinstance(node.target, ast.Name) and node.target.id == name else None
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and len(node.targets) == 1:
        target, made = node.targets[0], node.value
        if isinstance(target, ast.Name) and target.id == name and isinstance(made.op, ast.Add):
            return made.right if isinstance(made.left, ast.Name) and made.left.id == name else None
    return None


def _start(program: Program, loop: Statement, name: str) -> Binding | None:
    """The last binding of a name before a loop, in the same block."""
    script = program.script
    found = script.module_bindings if loop.scope.kind == "module" else loop.scope.bindings
    before = [
        (script.statement_span(each.statement).start, each)
        for each in found.get(name, ())
        if each.statement is not None
    ]
    before = [each for each in before if each[0] < script.statement_span(loop).start]
    if not before:
        return None
    start = max(before, key=lambda each: each[0])[1]
    first = start.statement
    is_beside = first is not None and (first.parent, first.branch) == (loop.parent, loop.branch)
    return start if is_beside else None


def _is_same(
    program: Program, added: ast.expr, step: Statement, first: Statement, changed: list[str]
) -> bool:
    """Return whether the increment is constant and known before the loop."""
    if isinstance(added, ast.Constant):
        return isinstance(added.value, int) and added.value > 0
    if not is_plain(added) or any(
        isinstance(part, ast.Name) and part.id in changed for part in ast.walk(added)
    ):
        return False
    there = program.names.bindings(Occurrence(added, step.scope, step))
    return len(there) == 1 and there == program.names.bindings(Occurrence(added, first.scope, first))
