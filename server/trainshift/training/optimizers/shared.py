"""Shared optimizers: those stepped by `fit` in one mode of a script, and by a tape's loop in another.

Horovod's wrap for Keras averages the gradients of `fit`, but not those passed to `apply_gradients` (seen on
Horovod 0.28.1).  So such an optimizer may be wrapped for all modes, where it is created.  If only `compile`
gets the wrap, it is wrapped in the compiling mode, and the other mode keeps the script's optimizer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.uses import parts_of
from trainshift.python.syntax.chunk_syntax import Site, dotted, last_name
from trainshift.training.execution.executions import Executions
from trainshift.training.execution.graph_slice import calls_behind
from trainshift.training.loops.exclusive_modes import Modes
from trainshift.training.loops.fits import Compile, Fits
from trainshift.training.loops.steps import Step, Steps, is_plain


class InMode(Struct, frozen=True, eq=False):
    """A `compile` in the one mode that wraps an optimizer.

    `name` is the (dotted) name that holds the wrap from there on; empty if only the call gets it.
    """

    compile: Compile
    name: str


class Shared:
    """The optimizers of one script that fits and tapes share."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._modes = program.fact(Modes)

    def steps_of(self, site: Site) -> list[Step]:
        """The steps that apply a tape's gradients with a call's result."""
        return [step for step, calls in self._behind if site.node in calls]

    @cached_property
    def _behind(self) -> list[tuple[Step, set[ast.Call]]]:
        """Yield every step of a tape, with the calls behind its optimizer."""
        return [
            (step, calls_behind(self._script, step.receiver, step.site.scope, step.site.statement))
            for step in self._program.fact(Steps).steps
            if step.gradients and self._program.fact(Executions).custom_model(step.site.scope) is None
        ]

    def is_of_one_mode(self, site: Site, compile: Compile) -> bool:
        """Return whether each run steps an optimizer only by fits of `compile`'s model, or only by tapes."""
        keras = self._program.fact(Fits)
        fits = [fit for fit in (*keras.fits, *keras.batches) if compile in keras.compiles_of(fit)]
        return all(
            self._modes.exclude(of_call(fit.site), of_call(step.site), [site])
            for fit in fits
            for step in self.steps_of(site)
        )

    def in_modes(self, site: Site, compiles: list[Compile]) -> tuple[InMode, ...]:
        """The places at which each mode with a `fit` wraps a call's optimizer; none if that is impossible."""
        places = [of_call(each.site) for each in compiles]
        apart = all(self._modes.exclude(one, other, [site]) for one, other in combinations(places, 2))
        found = [self._in_mode(site, each) for each in compiles] if apart else [None]
        return tuple(each for each in found if each is not None) if None not in found else ()

    def _in_mode(self, site: Site, compile: Compile) -> InMode | None:
        """The wrap of a call's optimizer for the mode of `compile`; None if another mode may use the
        wrapped one.
        """
        given = compile.optimizer
        assert given is not None
        at = Occurrence(given, compile.site.scope, compile.site.statement)
        way = self._way_to(site, at)
        if not way or compile.site.deferred or not self._modes.runs_once(at, [site]):
            return None
        if not all(self._modes.exclude(at, of_call(step.site), [site]) for step in self.steps_of(site)):
            return None
        name = dotted(given) if self._can_be_bound(at) else ""
        known = {each.node for each in way}
        start = self._script.statement_span(compile.site.statement).start
        for read in self._reads({last_name(each.node) for each in way}):
            later = (
                dotted(read.node) == name != ""
                and read.scope.function() is at.scope.function()
                and read.statement is not None
                and self._script.statement_span(read.statement).start >= start
            )
            if not (read.node in known or later or self._modes.exclude(read, at, [site])):
                return None
        return InMode(compile, name)

    def _way_to(self, site: Site, at: Occurrence) -> list[Occurrence]:
        """The names through which an expression gets a call's result, if there is one path; else none."""
        way: list[Occurrence] = []
        while at.node is not site.node:
            step = self._names.steps_back(at)
            if step is None or step.unseen or len(step.sources) != 1 or at in way:
                return []
            if not isinstance(at.node, ast.Name | ast.Attribute | ast.Call):
                return []
            way.append(at)
            (at,) = step.sources
        node = site.statement.node
        alone = not isinstance(node, ast.Assign) or len(node.targets) == 1
        return [each for each in way if not isinstance(each.node, ast.Call)] if alone else []

    def _can_be_bound(self, at: Occurrence) -> bool:
        """Return whether a name may be rebound at a place where it is read."""
        if isinstance(at.node, ast.Name):
            home = self._names.lookup(at.node.id, at.scope, at.statement)[0]
            return home is at.scope.function() and at.scope.kind in ("module", "function")
        return is_plain(at.node)

    def _reads(self, names: set[str]) -> Iterator[Occurrence]:
        """Every place where a name, or an attribute, of one of these spellings is read."""
        for facts in self._script.facts:
            if names.isdisjoint(facts.loads):
                continue
            for statement in facts.statements:
                for node, scope, _ in parts_of(statement):
                    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                        if last_name(node) in names:
                            yield Occurrence(node, scope, statement)
