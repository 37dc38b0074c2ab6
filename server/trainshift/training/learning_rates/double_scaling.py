"""Double scaling: check that each rate is multiplied by the number of ranks at most once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.names.memo import Questions
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Instance, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import (
    COMPREHENSIONS,
    Scope,
    Site,
    alternatives,
    argument,
    arguments,
    children,
)
from trainshift.python.values.made_objects import MadeObjects
from trainshift.training.horovod.defects import Flaw, at
from trainshift.training.horovod.existing_use import Horovod

_RATES = ("learning_rate", "lr", "initial_learning_rate")
# A value is followed through at most this many steps; beyond, it counts as scaled arbitrarily often.
_DEEPEST = 40
_MANY = 1_000_000


class DoubleScaling:
    """The scaling of one program's learning rates."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._scalings = Questions(0, _MANY, deepest=_DEEPEST)

    def flaws(self) -> Iterator[Flaw]:
        """Yield the optimizers whose rate is multiplied by the number of ranks more than once."""
        for site, values in self._program.fact(MadeObjects).all:
            if not any(map(self._is_optimizer, values)):
                continue
            first = argument(site.node, 0, *_RATES)
            for given in dict.fromkeys(
                (first, *(word.value for word in site.node.keywords if word.arg in _RATES))
            ):
                times = self._scaling(at(given, site)) if given is not None else 0
                if times >= _MANY:
                    yield Flaw(
                        "Trainshift cannot tell how often the rate of this optimizer is scaled",
                        site,
                        certain=False,
                    )
                elif times > 1:
                    yield Flaw("the rate of this optimizer is scaled twice", site)

    def count(self, of: Occurrence) -> int:
        """The largest number of factors `hvd.size()` in a number, on any path that computes it; 0
        if unknown.
        """
        times = self._scaling(of)
        return times if times < _MANY else 0

    def _is_optimizer(self, value: Value) -> bool:
        return isinstance(value, Instance) and api.is_subclass(value.cls, *api.OPTIMIZERS)

    def _scaling(self, of: Occurrence) -> int:
        """Compute `count` without its cache."""
        return self._scalings.ask((id(of.node), id(of.scope)), self._scaling_of, of)

    def _scaling_of(self, of: Occurrence) -> int:
        node = of.node
        if isinstance(node, ast.Call):
            site = self._script.site_of(node)
            if self._horovod.is_call(site, "size"):
                return 0 if self._horovod.moves_step(site) else 1
            if (step := self._names.steps_back(of)) is not None:
                return self._most(step.sources)
            functions = [*self._names.called_functions(site), *self._schedules(site)]
            returned = [Occurrence(value, each, where) for each in functions for value, where in each.returns]
            return self._most(returned or [of.part(each) for each in arguments(node)])
        if isinstance(node, ast.BinOp):
            sides = [self._scaling(of.part(side)) for side in (node.left, node.right)]
            if isinstance(node.op, ast.Mult):
                return sum(sides)
            return sides[0] if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Pow) else max(sides)
        if isinstance(node, ast.UnaryOp):
            return self._scaling(of.part(node.operand))
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) or alternatives(node):
            step = self._names.steps_back(of)
            return self._most(step.sources) if step is not None else 0
        if isinstance(node, COMPREHENSIONS):
            return 0
        return self._most([of.part(each) for each in children(node) if isinstance(each, ast.expr)])

    def _schedules(self, site: Site) -> Iterator[Scope]:
        """The `__call__` of an object of the script's own that a call makes."""
        for value in self._names.site_values(site.node, site):
            if isinstance(value, UserInstance):
                for cls in self._names.ancestry(value.scope):
                    bindings = cls.bindings.get("__call__", ()) if isinstance(cls, Scope) else ()
                    yield from (each.inner for each in bindings if each.inner is not None)

    def _most(self, sources: list[Occurrence] | tuple[Occurrence, ...]) -> int:
        return max((self._scaling(each) for each in sources), default=0)
