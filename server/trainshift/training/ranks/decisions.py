"""Decisions: tests by which one rank may take a different number of training steps than the others.

Such a test depends on the rank's own batches, its clock, a random draw, or the results of an environment,
such as episodes of different lengths.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Container, Iterable, Iterator
from enum import Enum
from itertools import takewhile

from msgspec import Struct

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.python.flow import exits
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Site, Statement, arguments, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.call_chains import statements_around
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.execution.executions import Executions, innermost_loop
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.loop_kinds import SESSION_PATTERNS
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.ranks.own_batches import OwnBatches
from trainshift.training.uniformity import environments as worlds
from trainshift.training.uniformity.environments import Worlds
from trainshift.training.uniformity.set_variables import SetVariables
from trainshift.training.uniformity.uniformity import Of, Uniformity
from trainshift.training.uniformity.verdict import Cause

# Exceptions that a person, or the end of the data, raises on all ranks.
_OF_ALL = frozenset({"KeyboardInterrupt", "OutOfRangeError", "StopIteration"})
_AGREED = ("allgather_object", "allreduce", "broadcast_object")


class Decides(Enum):
    """The outcome of a test: a loop ends, or a step is taken or skipped."""

    END = "end"
    SKIPS = "skips where it holds"
    STEPS = "steps where it holds"
    CHOOSES = "takes one step or another"


class Decision(Struct, frozen=True):
    """A statement whose test decides, rank by rank, how many steps are taken.

    With `is_together`, all ranks reach it at the same time, so that they can decide together.
    """

    statement: Statement
    test: ast.expr
    decides: Decides
    is_together: bool


class Decisions:
    """The decisions of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @cached_property
    def all(self) -> list[Decision]:
        """Every decision, in text order."""
        program = self._program
        trains = program.fact(WhatTrains).statement_trains
        loops = dict.fromkeys(
            each for each in program.script.statements if isinstance(each.node, LOOPS) and trains(each)
        )
        found: dict[Statement, tuple[ast.expr, Decides]] = {}
        for loop in loops:
            found.update(_decided(program, loop, loops))
        found = {**dict(_in_functions(program, loops, found)), **found}
        ordered = sorted(found.items(), key=lambda each: program.script.statement_span(each[0]))
        return [
            Decision(each, test, decides, _is_together(program, each, test, loops, found))
            for each, (test, decides) in ordered
        ]

    @cached_property
    def caught(self) -> list[Statement]:
        """The `try` statements in a training loop that continue with the next step after a failure."""
        program = self._program
        trains = program.fact(WhatTrains).statement_trains
        return [
            each
            for each in program.script.statements
            if isinstance(each.node, ast.Try)
            and any(map(trains, each.branches["body"]))
            and (loop := innermost_loop(each)) is not None
            and trains(loop)
            and any(map(_goes_on, each.node.handlers))
        ]

    @property
    def is_needed(self) -> bool:
        """Return whether the ranks have to decide anything together."""
        return any(each.is_together for each in self.all)


def can_send(program: Program, scope: Scope) -> bool:
    """Return whether ranks can exchange Python objects in some code: not in graphs, and not beside
    a session.
    """
    patterns = {each.pattern for each in program.fact(Loops).own}
    return patterns.isdisjoint(SESSION_PATTERNS) and not program.fact(Executions).is_in_graph(scope)


def _goes_on(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler catches errors that only one rank may meet, and continues the loop."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if all(each is not None and last_name(each) in _OF_ALL for each in caught):
        return False
    found = exits.completions(handler.body)
    return exits.FALL in found or exits.CONTINUE in found


def _is_together(
    program: Program,
    statement: Statement,
    test: ast.expr,
    loops: Container[Statement | None],
    exits: Container[Statement],
) -> bool:
    """Return whether all ranks reach the test in every iteration of the loop, after the same number of
    steps.
    """
    ends = isinstance(statement.node, ast.While)
    loop = statement if ends else innermost_loop(statement)
    if loop is None or loop not in loops or not isinstance(statement.node, ast.If | ast.While):
        return False
    if not can_send(program, statement.scope):
        return False
    if not ends and (
        statement.parent is not loop
        or any(_leaves_more(each, loop) for each in statement.walk())
        or _is_passed_over(program, statement, loop, exits)
    ):
        return False
    inside = [each for each in loop.walk() if each is not loop]
    trains = program.fact(WhatTrains).statement_trains
    for each in inside:
        if (
            each is not statement
            and (each in loops or trains(each))
            and isinstance(each.node, (ast.If, *LOOPS))
        ):
            if _differs(program, each):
                return False
            if any(part in exits for part in each.walk()):
                return False
    is_met = any(_is_met(program, statement, each) for each in ast.walk(test) if isinstance(each, ast.Name))
    if not is_met and not program.fact(Worlds).asked_by(Occurrence(test, statement.scope, statement)):
        return True
    return not is_met and not any(above in loops for above in statements_around(program.names, loop))


def _differs(program: Program, statement: Statement) -> bool:
    """Return whether ranks may decide an inner test differently, or loop over different numbers of
    elements.
    """
    node = statement.node
    if isinstance(node, ast.If | ast.While):
        return _asks(program, statement, node.test)
    assert isinstance(node, ast.For | ast.AsyncFor)
    at = Occurrence(node.iter, statement.scope, statement)
    if program.fact(Worlds).asked_by(at):
        return _asks(program, statement, node.iter)
    uniformity = program.fact(Uniformity)
    counts = isinstance(node.iter, ast.Call) and last_name(node.iter.func) == "range"
    return not all(map(uniformity.is_meant, uniformity.causes(at, Of.VALUE if counts else Of.LENGTH)))


def _is_met(program: Program, statement: Statement, name: ast.Name) -> bool:
    """Return whether a name holds a result of an environment: episodes of different ranks end
    independently.
    """
    trains = program.fact(WhatTrains).site_trains
    return any(
        isinstance(each.value, ast.Call)
        and isinstance(each.value.func, ast.Attribute)
        and each.value.func.attr in worlds.ASKING
        and not trains(program.script.site_of(each.value))
        for each in program.names.bindings(Occurrence(name, statement.scope, statement))
    )


def _leaves_more(statement: Statement, loop: Statement) -> bool:
    """Return whether a statement leaves the function, or a loop other than this one."""
    is_break = isinstance(statement.node, ast.Break) and innermost_loop(statement) is not loop
    return is_break or isinstance(statement.node, ast.Return)


def _is_passed_over(
    program: Program, statement: Statement, loop: Statement, together: Container[Statement]
) -> bool:
    """Return whether a rank may start its next iteration alone, before it reaches the statement.

    A `continue` on which the ranks decide `together`, directly in the loop, does not count.
    """
    is_uniform = program.fact(Uniformity).is_uniform
    for each in takewhile(lambda one: one is not statement, loop.walk()):
        if isinstance(each.node, ast.Continue) and innermost_loop(each) is loop:
            for above in takewhile(lambda one: one is not loop, each.ancestors()):
                node = above.node
                if isinstance(node, ast.If) and above.parent is loop:
                    if above in together or _is_agreed(program, node.test):
                        continue
                if not isinstance(node, ast.If) or not is_uniform(Occurrence(node.test, above.scope, above)):
                    return True
    return False


def _is_agreed(program: Program, test: ast.expr) -> bool:
    """Return whether the ranks have exchanged the value that a test reads."""
    calls = (part for part in ast.walk(test) if isinstance(part, ast.Call))
    horovod = program.fact(Horovod)
    return any(horovod.is_call(program.script.site_of(each), *_AGREED) for each in calls)


def _decided(
    program: Program, loop: Statement, loops: Container[Statement | None]
) -> Iterator[tuple[Statement, tuple[ast.expr, Decides]]]:
    inside = list(loop.walk())
    if isinstance(loop.node, ast.For | ast.AsyncFor) and program.fact(Worlds).asked_by(
        Occurrence(loop.node.iter, loop.scope, loop)
    ):
        yield loop, (loop.node.iter, Decides.END)
    tests = [
        (each, each.node.test, decides)
        for each in inside
        if isinstance(each.node, ast.If | ast.While)
        and (decides := _decides(program, each, loops)) is not None
    ]
    skips = any(decides is not Decides.END for _, _, decides in tests)
    batches = _batches(program, loop, inside) if skips else set[Binding]()
    for statement, test, decides in tests:
        skipped = batches if decides is not Decides.END else set[Binding]()
        if _asks(program, statement, test, skipped):
            yield statement, (test, decides)


def _decides(program: Program, statement: Statement, loops: Container[Statement | None]) -> Decides | None:
    """The effect of a test on the training around it or inside it; None if it has none."""
    if isinstance(statement.node, ast.While):
        return Decides.END if statement in loops else None
    if _leaves(program, statement, loops):
        return Decides.END
    trains = program.fact(WhatTrains).statement_trains
    body, other = (any(map(trains, statement.branches.get(name, ()))) for name in ("body", "orelse"))
    if body and other:
        return Decides.CHOOSES
    if body or other:
        return Decides.STEPS if body else Decides.SKIPS
    loop = innermost_loop(statement)
    if loop in loops and exits.CONTINUE in program.fact(ControlFlow).completions([statement]):
        assert loop is not None
        behind = [*takewhile(lambda one: one is not statement, reversed(list(loop.walk())))]
        if any(trains(each) or _ends(program, each, loops) for each in behind):
            return Decides.SKIPS if _continues(program, statement.branches["body"]) else Decides.STEPS
    return None


def _ends(program: Program, statement: Statement, loops: Container[Statement | None]) -> bool:
    """Return whether a statement is a test that may leave a loop that trains."""
    return isinstance(statement.node, ast.If) and _leaves(program, statement, loops)


def _continues(program: Program, block: list[Statement]) -> bool:
    return exits.CONTINUE in program.fact(ControlFlow).completions(block)


def _returning(
    program: Program, known: Container[Statement]
) -> dict[Scope, list[tuple[Statement, ast.expr]]]:
    """The tests of training functions that may return before a step, by function, except those in `known`."""
    what, flow = program.fact(WhatTrains), program.fact(ControlFlow)
    found: dict[Scope, list[tuple[Statement, ast.expr]]] = {}
    leaving: dict[Scope, list[tuple[Statement, ast.expr]]] = {}
    for statement in program.script.statements:
        function = statement.scope.function()
        if function is None or function not in what.functions:
            continue
        if function in leaving and what.statement_trains(statement):
            found.setdefault(function, []).extend(leaving.pop(function))
        if isinstance(statement.node, ast.If) and statement not in known:
            if exits.RETURN in flow.completions([statement]):
                leaving.setdefault(function, []).append((statement, statement.node.test))
    return found


def _in_functions(
    program: Program, loops: Iterable[Statement], known: Container[Statement]
) -> Iterator[tuple[Statement, tuple[ast.expr, Decides]]]:
    """The early returns of training functions that depend on the batch they receive."""
    batches: dict[Site, list[ast.expr]] | None = None
    for function, tests in _returning(program, known).items():
        if batches is None:
            batches = {site: given for loop in loops for site, given in _trained(program, loop).items()}
        sites = [site for site in program.names.callers(function)[0] if site in batches]
        given = {
            bindings[0]
            for site in sites
            for name, bindings in function.bindings.items()
            if bindings[0].kind == "parameter"
            and program.names.argument(site, function, name) in batches[site]
        }
        for statement, test in tests:
            if given and _asks(program, statement, test, given):
                yield statement, (test, Decides.SKIPS)


def _trained(program: Program, loop: Statement) -> dict[Site, list[ast.expr]]:
    """The training calls in a loop, each with its arguments that contain batch data."""
    inside = set(loop.walk())
    trains = program.fact(WhatTrains).site_trains
    sites = (each for each in program.script.sites if each.statement in inside and trains(each))
    return {
        site: [each for each in arguments(site.node) if _batch_in(program, of_call(site).part(each), inside)]
        for site in sites
    }


def _batch_in(program: Program, at: Occurrence, inside: Container[Statement | None]) -> set[Binding]:
    """The bindings, inside a loop, of the names in an expression, without loop counters."""
    names = (at.part(each) for each in ast.walk(at.node) if isinstance(each, ast.Name))
    found = ((each, program.names.bindings(each)) for each in names)
    return {
        binding
        for name, bindings in found
        for binding in bindings
        if binding.statement in inside and not _counts(program, name)
    }


def _batches(program: Program, loop: Statement, inside: list[Statement]) -> set[Binding]:
    """The bindings in a loop that hold its batches, or the data that the batches come from."""
    held = set(inside)
    given = ((site, each) for site, found in _trained(program, loop).items() for each in found)
    starts = {each for site, given in given for each in _batch_in(program, of_call(site).part(given), held)}

    def behind(binding: Binding) -> set[Binding]:
        if binding.value is None:
            return set()
        return _batch_in(program, Occurrence(binding.value, binding.scope, binding.statement), held)

    return set(reachable(starts, behind))


def _comes_of(program: Program, at: Occurrence, bindings: Container[Binding]) -> bool:
    """Return whether a value depends on one of some bindings."""
    return any(
        binding in bindings
        for each in program.fact(Uniformity).behind(at)
        if isinstance(each.node, ast.Name)
        for binding in program.names.bindings(each)
    )


def _counts(program: Program, at: Occurrence) -> bool:
    """Return whether all ranks agree on a name, such as the number of a step or an epoch."""
    if program.fact(Uniformity).is_uniform(at):
        return True
    bindings = program.names.bindings(at)
    return bool(bindings) and all(_is_count(program, each) for each in bindings)


def _is_count(program: Program, binding: Binding) -> bool:
    """Return whether a binding is a constant, an increment or a loop counter."""
    value, statement = binding.value, binding.statement
    if isinstance(value, ast.Constant) or (statement and isinstance(statement.node, ast.AugAssign)):
        return True
    return binding.kind == "element" and value is not None and _numbers(program, binding, value, binding.path)


def _numbers(program: Program, binding: Binding, value: ast.expr, path: tuple[object, ...]) -> bool:
    """Return whether the part of the elements at a path is only a loop counter."""
    if not isinstance(value, ast.Call):
        return False
    names = program.names.full_names(value.func, binding.scope, binding.statement)
    if "builtins.enumerate" in names:
        return path[:1] == (0,)
    if "builtins.zip" in names and path and isinstance(path[0], int) and path[0] < len(value.args):
        return _numbers(program, binding, value.args[path[0]], path[1:])
    return "builtins.range" in names


def causes_of(program: Program, statement: Statement, node: ast.expr) -> list[Cause]:
    """The causes for which ranks may decide a test differently."""
    uniformity, own = program.fact(Uniformity), program.fact(OwnBatches)
    at = Occurrence(node, statement.scope, statement)
    reached = (
        uniformity.causes(each, own=own.cause) for each in (at, *program.fact(SetVariables).behind(at))
    )
    return [cause for causes in reached for cause in causes if not uniformity.is_meant(cause)]


def _asks(program: Program, statement: Statement, node: ast.expr, batches: Collection[Binding] = ()) -> bool:
    """Return whether a test depends on an environment, the clock, a draw, or a rank's own data."""
    at = Occurrence(node, statement.scope, statement)
    if program.fact(Worlds).asked_by(at):
        return not _is_agreed(program, node)
    if causes_of(program, statement, node):
        return True
    return bool(batches) and _comes_of(program, at, batches)


def _leaves(program: Program, statement: Statement, loops: Container[Statement | None]) -> bool:
    """Return whether a statement may leave a loop that trains."""
    found = program.fact(ControlFlow).completions([statement])
    if innermost_loop(statement) in loops and any(_is_of_library(program, each) for each in statement.walk()):
        return True
    return exits.RETURN in found or (exits.BREAK in found and innermost_loop(statement) in loops)


def _is_of_library(program: Program, statement: Statement) -> bool:
    """Return whether a statement raises an exception that the calling library catches: ``TrialPruned()``."""
    raised = statement.node.exc if isinstance(statement.node, ast.Raise) else None
    raised = raised.func if isinstance(raised, ast.Call) else raised
    names = program.names.full_names(raised, statement.scope, statement) if raised is not None else ()
    packages = {name.partition(".")[0] for name in names}
    return any(map(program.fact(Libraries).roles, packages - {"builtins", "tensorflow"}))
