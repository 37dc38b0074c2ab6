"""Loss states: variables that a loss reads, and that each rank sets by its own batches as it trains.

Center loss is an example: it moves the center of each class by the rows of a batch, without the optimizer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.divergence import CauseKind
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import class_around
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import Scope, Statement, argument, arguments, dotted, last_name
from trainshift.training.execution.executions import innermost_loop
from trainshift.training.loops.fits import Fits, method_argument
from trainshift.training.loops.steps import Steps
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.ranks.own_batches import OwnBatches
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.set_variables import Setting, SetVariables
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.verdict import Cause

_CALLED = ("call", "__call__")
_LOSSES = "keras.losses."
_JOINING = frozenset({"concat", "concatenate", "hstack", "stack", "vstack"})
_REDUCING = frozenset(
    {"float", "global_norm", "item", "mean", "norm", "reduce_max", "reduce_mean", "reduce_sum", "sum"}
)


class LossStates:
    """The variables of one program that its losses read and that it sets itself."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    def are_set_by(self, setting: Setting) -> bool:
        """Return whether a call sets a variable that a loss reads; layers and metrics keep their own."""
        cls = class_around(setting.site.scope)
        if cls is not None and self._names.descends(cls, *api.LAYER, *api.METRIC):
            return False
        made = self._program.fact(SetVariables).made(setting)
        return any(each in self._read for each in made)

    def cause(self, at: Occurrence) -> Cause | None:
        """Return the cause for which an expression differs, also if Keras hands it to a loss."""
        if isinstance(at.node, ast.Name) and at.node.id in self._given.get(at.scope.function(), ()):
            return Cause(CauseKind.DATA, at, None)
        return self._program.fact(OwnBatches).cause(at)

    @property
    def carried(self) -> Iterator[Occurrence]:
        """Yield the numbers that a turn of a training loop computes after its step, and that the loss of the
        next one reads: a weight of a loss, by the losses so far.  So are rows that it joins to those of
        earlier batches, as in a queue of negatives.

        What rows of a batch hand on themselves, such as states of an RNN, belongs to those rows.
        """
        for tape in self._program.fact(Steps).tapes:
            within = tape.with_statement
            if within is None:
                continue
            loop = innermost_loop(within)
            inside = set(within.walk())
            turn = loop.walk() if loop is not None else ()
            after = {each for each in turn if each is not loop and _is_after(each, within, loop)}
            for statement in inside:
                for node in statement.own_parts():
                    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                        at = Occurrence(node, statement.scope, statement)
                        yield from (
                            value
                            for value in self._given_to(at)
                            if value.statement is not None
                            and (value.statement in after or self._is_kept(node, value.statement, within))
                            and (self._reduces(value) or _joins(value.node, node))
                        )

    def _given_to(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the values that a variable is set to, and those that are added to it as to a container."""
        added = (each.binding for each in self._names.additions(at))
        for each in (*self._names.bindings(at), *added):
            node = each.statement.node if each.statement is not None else None
            value = node.value if isinstance(node, ast.AugAssign) else each.value
            if value is not None and each.kind == "value":
                yield Occurrence(value, each.scope, each.statement)

    def _is_kept(self, node: ast.Name | ast.Attribute, setting: Statement, tape: Statement) -> bool:
        """Return whether a function that trains sets, for its next call, what it reads under its tape."""
        function = setting.scope.function()
        if function is None or function not in self._program.fact(WhatTrains).functions:
            return False
        outlives = isinstance(node, ast.Attribute) or (
            node.id in function.declared_global | function.declared_nonlocal
        )
        return outlives and (function is not tape.scope.function() or _is_below(setting, tape))

    def _reduces(self, at: Occurrence) -> bool:
        """Return whether a value is a number that is computed from all rows of a batch."""
        behind = self._program.fact(Uniformity).behind(at)
        calls = (each.node for each in behind if isinstance(each.node, ast.Call))
        return any(last_name(each.func) in _REDUCING for each in calls)

    @cached_property
    def _read(self) -> frozenset[ast.AST]:
        """The expressions behind all losses."""
        behind = self._program.fact(Trails).behind
        return frozenset(each.node for loss in self.losses for each in behind(loss))

    @property
    def losses(self) -> Iterator[Occurrence]:
        """The losses that tapes and optimizers differentiate, and those that models are compiled with."""
        for target, site in self._program.fact(Uniformity).losses.items():
            if isinstance(target, ast.expr):
                yield Occurrence(target, site.scope, site.statement)
        for site in self._script.sites_named("minimize", "compute_gradients"):
            given = argument(site.node, 0, "loss")
            if given is not None:
                yield of_call(site).part(given)
        yield from self._compiled

    @cached_property
    def _compiled(self) -> list[Occurrence]:
        """The losses that models are compiled with."""
        compiles = self._program.fact(Fits).compiles
        given = ((each.site, method_argument(each.site, "loss")) for each in compiles)
        return [of_call(site).part(loss) for site, loss in given if loss is not None]

    @cached_property
    def _given(self) -> dict[Scope | None, frozenset[str]]:
        """The parameters by which Keras hands targets and predictions to a loss of the script."""
        values = (value for at in self._compiled for value in self._names.values(*at[:3]))
        handed = {value.scope for value in values if isinstance(value, Function)}
        functions = {each.scope.function() for each in self._script.statements}
        return {
            each: frozenset(name for name, given in each.bindings.items() if given[0].kind == "parameter")
            for each in functions
            if each is not None and (each in handed or self._is_of_loss(each))
        }

    def _is_of_loss(self, function: Scope) -> bool:
        """Return whether a function is the method by which a loss of the script computes."""
        owner = function.owner() if function.name in _CALLED else None
        bases = self._names.library_bases(owner) if owner is not None else ()
        return any(_LOSSES in (api.canonical(each) or each) for each in bases)


def _joins(value: ast.expr, held: ast.Name | ast.Attribute) -> bool:
    """Return whether a value joins what a variable holds and something else: ``concat([keys, queue], 0)``."""
    calls = (each for each in ast.walk(value) if isinstance(each, ast.Call))
    return any(
        last_name(each.func) in _JOINING and any(dotted(part) == dotted(held) for part in _read_in(each))
        for each in calls
    )


def _read_in(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the names and attributes in the arguments of a call."""
    for given in arguments(call):
        yield from (each for each in ast.walk(given) if isinstance(each, ast.Name | ast.Attribute))


def _is_after(statement: Statement, other: Statement, loop: Statement | None) -> bool:
    """Return whether a statement of a loop comes after another in a turn."""
    one, two = (next(each for each in of.path() if each.parent is loop) for of in (statement, other))
    return one.index > two.index


def _is_below(statement: Statement, other: Statement) -> bool:
    """Return whether a statement of a function stands below another one."""
    return getattr(statement.node, "lineno", 0) > getattr(other.node, "end_lineno", 0)
