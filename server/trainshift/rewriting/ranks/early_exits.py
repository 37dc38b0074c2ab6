"""Own values: training loops that a rank may leave by itself, because it decides by what it has computed.

So it is with what it has met in a world in which each rank goes its own way, as episodes of other lengths.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import takewhile

from trainshift.core.program import Program
from trainshift.core.training.alike import Alike
from trainshift.core.training.control_flow import ControlFlow
from trainshift.core.training.executions import Executions, innermost_loop
from trainshift.core.training.horovod import Horovod
from trainshift.core.training.what_trains import WhatTrains
from trainshift.libraries.containers import ADDING
from trainshift.python.flow import exits
from trainshift.python.flow.evaluation import LOOPS
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import Statement, last_name
from trainshift.rewriting.data.iterated import Iterated
from trainshift.rewriting.datasets.draws import OF_WORLDS, Draws

_READING = frozenset({"run", "eval"})
_GROWING = ADDING | {"update_state"}


@dataclass(frozen=True, slots=True)
class OwnExit:
    """A statement that leaves a training loop, or ends it, by a rank's own values, and what decides it.

    `is_together` tells that all ranks come to it at the same time, so that one can decide for all.
    """

    statement: Statement
    test: ast.expr
    is_together: bool


def own_exits(program: Program) -> list[OwnExit]:
    """The statements that leave a training loop, or end it, by a rank's own values, in text order."""
    trains = program.fact(WhatTrains).statement_trains
    loops = dict.fromkeys(
        each for each in program.script.statements if isinstance(each.node, LOOPS) and trains(each)
    )
    found: dict[Statement, ast.expr] = {}
    for loop in loops:
        found.update(_exits(program, loop, loops))
    exits = sorted(found.items(), key=lambda each: program.script.statement_span(each[0]))
    return [OwnExit(each, test, _is_together(program, each, test, loops, found)) for each, test in exits]


def _is_together(
    program: Program,
    statement: Statement,
    test: ast.expr,
    loops: Container[Statement | None],
    exits: Container[Statement],
) -> bool:
    """Whether all ranks come to what decides in each turn of the loop, after as many steps."""
    ends = isinstance(statement.node, ast.While)
    loop = statement if ends else innermost_loop(statement)
    traced = program.fact(Executions).is_traced(statement.scope) or program.fact(Executions).runs_in_graphs
    if loop is None or loop not in loops or not isinstance(statement.node, ast.If | ast.While) or traced:
        return False
    if not ends and (
        statement.parent is not loop
        or any(_leaves_more(each, loop) for each in statement.walk())
        or _is_passed_over(program, statement, loop)
    ):
        return False
    inside = [each for each in loop.walk() if each is not loop]
    names, trains = _own_names(program, inside), program.fact(WhatTrains).statement_trains
    for each in inside:
        if (
            each is not statement
            and (each in loops or trains(each))
            and isinstance(each.node, (ast.If, *LOOPS))
        ):
            asked = each.node.test if isinstance(each.node, ast.If | ast.While) else each.node.iter
            if _is_own(program, asked, names, True) or _asks(program, each, asked):
                return False
            if any(part in exits for part in each.walk()):
                return False
    if not _asks(program, statement, test):
        return True
    # What ends an episode of one rank does not end those of the others.
    bound = (
        each.value
        for name in ast.walk(test)
        if isinstance(name, ast.Name)
        for each in program.names.bindings(Occurrence(name, statement.scope, statement))
    )
    is_met = any(isinstance(each, ast.Call) and last_name(each.func) in OF_WORLDS for each in bound)
    return not is_met and not any(above in loops for above in program.fact(Iterated).above(loop))


def _leaves_more(statement: Statement, loop: Statement) -> bool:
    """Whether a statement leaves another loop than this one, or the function around it."""
    is_break = isinstance(statement.node, ast.Break) and innermost_loop(statement) is not loop
    return is_break or isinstance(statement.node, ast.Return)


def _is_passed_over(program: Program, statement: Statement, loop: Statement) -> bool:
    """Whether a rank may go on with its next turn of the loop by itself before it comes to the statement."""
    is_same = program.fact(Alike).is_same
    for each in takewhile(lambda one: one is not statement, loop.walk()):
        if isinstance(each.node, ast.Continue) and innermost_loop(each) is loop:
            for above in takewhile(lambda one: one is not loop, each.ancestors()):
                node = above.node
                if not isinstance(node, ast.If) or not is_same(Occurrence(node.test, above.scope, above)):
                    return True
    return False


def _exits(
    program: Program, loop: Statement, loops: Container[Statement | None]
) -> Iterator[tuple[Statement, ast.expr]]:
    inside = list(loop.walk())
    names = _own_names(program, inside)
    if isinstance(loop.node, ast.For | ast.AsyncFor) and _asks(program, loop, loop.node.iter):
        yield loop, loop.node.iter
    for statement in inside:
        node = statement.node
        if isinstance(node, ast.If):
            leaves = _leaves(program, statement, loops)
        else:
            leaves = isinstance(node, ast.While) and statement in loops
        if leaves and isinstance(node, ast.If | ast.While):
            if _is_own(program, node.test, names, False) or _asks(program, statement, node.test):
                yield statement, node.test


def _asks(program: Program, statement: Statement, node: ast.expr) -> bool:
    """Whether what decides comes of what a rank has met: ``state, reward, done = env.step(action)``."""
    if isinstance(node, ast.Call) and program.fact(Horovod).is_call(
        program.script.site_of(node), "broadcast_object"
    ):
        return False
    draws = program.fact(Draws).behind(Occurrence(node, statement.scope, statement))
    return any(draw.remedy is None and draw.site.name in OF_WORLDS for draw in draws)


def _leaves(program: Program, statement: Statement, loops: Container[Statement | None]) -> bool:
    """Whether a statement may leave a loop that trains."""
    found = program.fact(ControlFlow).completions([statement])
    return exits.RETURN in found or (exits.BREAK in found and innermost_loop(statement) in loops)


def _own_names(program: Program, inside: list[Statement]) -> set[str]:
    """The names that hold what a training step, a run of a session, or a world that is asked, gives."""
    names: set[str] = set()
    size = -1
    while len(names) > size:  # A name may be computed from another one.
        size = len(names)
        for statement in inside:
            for value, targets in _given(statement.node):
                if _is_own(program, value, names, True):
                    parts = (part for target in targets for part in ast.walk(target))
                    names.update(part.id for part in parts if isinstance(part, ast.Name))
    return names


def _given(node: ast.AST) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """What a statement gives to what: a name, or a container that it puts it into."""
    match node:
        case ast.Assign(value=value, targets=targets):
            yield value, targets
        case (
            ast.AugAssign(value=value, target=target)
            | ast.AnnAssign(value=ast.expr() as value, target=target)
        ):
            yield value, [target]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=name), args=given)):
            if name in _GROWING and isinstance(owner, ast.Name):
                for each in given:
                    yield each, [owner]


def _is_own(program: Program, node: ast.expr, names: set[str], of_steps: bool) -> bool:
    """Whether a value comes of one of these names, or `of_steps`, which it takes itself."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in names:
            return True
        if isinstance(part, ast.Call):
            site = program.script.site_of(part)
            if program.fact(Horovod).is_call(site, "allreduce", "broadcast_object"):
                return False
            if of_steps and (program.fact(WhatTrains).site_trains(site) or site.name in _READING):
                return True
            if of_steps and site.name in OF_WORLDS and isinstance(part.func, ast.Attribute):
                return True
    return False
