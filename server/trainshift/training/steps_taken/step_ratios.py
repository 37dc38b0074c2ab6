"""Step ratios: parts of schedules, such as that of a loss's weight, that a script computes from its steps.

A rank takes only its share of the steps, so that such a schedule runs only so far.  Rates by a counter of the
script are those of `counted_rates`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.expressions import ExpressionsByKind
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Literal
from trainshift.python.syntax.chunk_syntax import Statement, dotted, last_name
from trainshift.python.values.backward_slice import sliced, sources
from trainshift.training.ranks.loss_states import LossStates
from trainshift.training.steps_taken.counters import Counters, is_count
from trainshift.training.steps_taken.step_division import Pace, Taken
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.set_variables import SetVariables

_ITERATIONS = "iterations"
_GLOBAL_STEPS = frozenset({"get_global_step", "get_or_create_global_step"})
# Calls that hand on a counter as a tensor, or as a number.
_HANDING = frozenset({"cast", "constant", "convert_to_tensor", "float", "int", "numpy"})
_COUNTS = _GLOBAL_STEPS | {_ITERATIONS}
_CHANGING = (ast.Add, ast.Div, ast.Mult, ast.Sub)


class StepRatio(NamedTuple):
    """A part of a schedule, and the counter in it, or else the name that it changes in each step.

    It is `of_rate` if it sets a learning rate, and not a loss.
    """

    at: Occurrence
    counter: ast.expr | None
    changed: str
    of_rate: bool


class StepRatios:
    """The values of one program between a rank's own steps, and the losses and rates that depend on them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = program.names
        self._counters = program.fact(Counters)
        self._pace = program.fact(Pace)

    @property
    def all(self) -> Iterator[StepRatio]:
        """Yield each such value in text order; one for each statement."""
        told: set[Statement | None] = set()
        for at, counter, changed in (*self._computed(), *self._changed()):
            is_known = counter is not None and self._is_counter(at.part(counter), of_script=True)
            of_rate = not self._sets_loss(at)
            if at.statement not in told and not (of_rate and (is_known or at.node not in self._of_rates)):
                told.add(at.statement)
                yield StepRatio(at, counter and self._read(at.part(counter)), changed, of_rate)

    def _computed(self) -> Iterator[tuple[Occurrence, ast.expr | None, str]]:
        if not self._counters.any and self._program.script.identifiers.isdisjoint(_COUNTS):
            return
        for at in self._program.fact(ExpressionsByKind).of(ast.BinOp, ast.Compare):
            found = self._scaled(at)
            if found is not None and self._is_counter(at.part(found)):
                yield at, found, ""

    def _scaled(self, at: Occurrence) -> ast.expr | None:
        """Return the part of an expression that may be a counter, if a ratio or a comparison has it."""
        node = at.node
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return None if self._agrees(at.part(node.right)) else node.left
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return node.right
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = ((node.left, node.right), (node.right, node.left))
            return next((one for one, other in sides if self._is_fraction(at.part(other))), None)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and at.statement not in self._counters.tests:
            limit = node.comparators[0]
            return node.left if is_count(limit) and not self._agrees(at.part(limit)) else None
        return None

    def _changed(self) -> Iterator[tuple[Occurrence, ast.expr | None, str]]:
        """Yield the numbers by which a statement changes a value a bit in each step: ``epsilon *= 0.99``."""
        for statement in self._program.script.statements:
            node = statement.node
            if isinstance(node, ast.AugAssign) and isinstance(node.op, _CHANGING):
                at = Occurrence(node.value, statement.scope, statement)
                if self._is_fraction(at) and self._counters.is_once_a_step(statement):
                    yield at, None, dotted(node.target)
            elif isinstance(node, ast.Assign) and (name := dotted(node.targets[0])):
                for part in statement.own_parts():
                    if isinstance(part, ast.BinOp) and isinstance(part.op, _CHANGING):
                        at = Occurrence(part, statement.scope, statement)
                        if dotted(part.left) == name and self._is_fraction(at.part(part.right)):
                            if self._counters.is_once_a_step(statement):
                                yield at, None, name

    def _sets_loss(self, at: Occurrence) -> bool:
        """Return whether a loss is computed from a value, or by its outcome as a test.

        So it is from the outputs of a layer or a model.
        """
        return self._counters.is_of_layer(at.scope) or at.node in self._of_losses or at.node in self._tested

    def _agrees(self, at: Occurrence) -> bool:
        return self._pace.agrees(*at[:3])

    def _is_fraction(self, at: Occurrence) -> bool:
        """Return whether an expression is a number that is no whole one."""
        if isinstance(at.node, ast.UnaryOp):
            at = at.part(at.node.operand)
        values = self._names.values(*at[:3])
        return bool(values) and all(isinstance(v, Literal) and isinstance(v.value, float) for v in values)

    def _is_counter(self, at: Occurrence, of_script: bool = False) -> bool:
        """Return whether an expression is a counter, or a parameter that gets one."""
        return any(self._counts(each, of_script) for each in sliced(at, self._handed))

    def _read(self, at: Occurrence) -> ast.expr:
        """Return the counter in an expression that makes a number or a tensor of it."""
        while isinstance(at.node, ast.Call) and (inner := self._handed(at)):
            at = inner[0]
        return at.node

    def _handed(self, at: Occurrence) -> tuple[Occurrence, ...]:
        node = at.node
        if isinstance(node, ast.UnaryOp):
            return (at.part(node.operand),)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            return at.part(node.left), at.part(node.right)
        if isinstance(node, ast.Call) and last_name(node.func) in _HANDING:
            given = node.args[0] if node.args else getattr(node.func, "value", None)
            return (at.part(given),) if given is not None else ()
        return sources(self._names, at)

    def _counts(self, at: Occurrence, of_script: bool) -> bool:
        node, is_share = at.node, self._pace.taken is Taken.SHARE
        if isinstance(node, ast.Call) and last_name(node.func) in _GLOBAL_STEPS:
            return is_share and not of_script
        if isinstance(node, ast.Attribute) and node.attr == _ITERATIONS:
            owner = self._names.values(node.value, at.scope, at.statement)
            is_optimizer = self._names.may_be(owner, *api.OPTIMIZERS) or last_name(node.value) == "optimizer"
            return is_share and is_optimizer and not of_script
        return at.statement is not None and self._counters.counts(node, at.statement)

    def _behind(self, ends: Iterable[Occurrence]) -> frozenset[ast.AST]:
        """The expressions behind others, also through variables that the script sets."""
        behind, states = self._program.fact(Trails).behind, self._program.fact(SetVariables)
        return frozenset(
            part.node for end in ends for each in (end, *states.behind(end)) for part in behind(each)
        )

    @cached_property
    def _of_losses(self) -> frozenset[ast.AST]:
        return self._behind(self._program.fact(LossStates).losses)

    @cached_property
    def _of_rates(self) -> frozenset[ast.AST]:
        return self._behind(each.value for each in self._counters.settings)

    @cached_property
    def _tested(self) -> frozenset[ast.AST]:
        """The expressions behind the tests that decide on a part of a loss."""
        behind, losses = self._program.fact(Trails).behind, self._of_losses
        found: set[ast.AST] = set()
        for statement in self._program.script.statements if losses else ():
            node = statement.node
            if isinstance(node, ast.If) and statement not in self._counters.tests:
                inside = (
                    part for block in statement.branches.values() for each in block for part in each.walk()
                )
                if any(not losses.isdisjoint(each.own_parts()) for each in inside):
                    test = Occurrence(node.test, statement.scope, statement)
                    found.update(each.node for each in behind(test))
        return frozenset(found)
