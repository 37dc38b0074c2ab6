"""Loop iterables: the iterables of a script's training loops."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS, Site, Statement, argument, expression_path
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.call_chains import statements_around
from trainshift.training.data.batches import drawn_in, draws_batches, takes_batches
from trainshift.training.data.turns import Gives, Turns
from trainshift.training.datasets.pipelines import Pipelines
from trainshift.training.execution.graph_slice import reaching_calls
from trainshift.training.loops.fits import Fit, Fits
from trainshift.training.loops.what_trains import WhatTrains


class Iteration(Struct, frozen=True, eq=False):
    """A training loop over data: a `for` with its iterable, or a `fit` with its data argument."""

    at: Occurrence
    statement: Statement
    fit: Fit | None = None


class Iterated:
    """The iterations of one program's training loops."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._novelties: dict[Statement, int] = {}

    @cached_property
    def all(self) -> list[Iteration]:
        """Every training `for`, and every `fit` whose data is known, the loops first."""
        found = [
            Iteration(Occurrence(statement.node.iter, statement.scope, statement), statement)
            for statement in self._script.statements
            if isinstance(statement.node, ast.For | ast.AsyncFor)
            and self._program.fact(WhatTrains).statement_trains(statement)
            and not self._is_of_state(statement)
        ]
        found += [*self._comprehensions(), *self._applied()]
        for fit in self._program.fact(Fits).fits:
            data = fit.given("x") or fit.given("generator")
            if data is not None:
                at = Occurrence(data, fit.site.scope, fit.site.statement, fit.site)
                found.append(Iteration(at, fit.site.statement, fit))
        return found

    def _comprehensions(self) -> Iterator[Iteration]:
        """The comprehensions that train: ``[step(batch) for batch in data]``."""
        trains = self._program.fact(WhatTrains)
        for site in self._script.sites:
            if site.deferred and trains.site_trains(site):
                for node in expression_path(site.statement.node, site.node):
                    if isinstance(node, COMPREHENSIONS):
                        at = Occurrence(node.generators[0].iter, site.statement.scope, site.statement)
                        if self._takes(at, site.statement):
                            yield Iteration(at, site.statement)
                        break

    def _applied(self) -> Iterator[Iteration]:
        """The calls that pass each element to a step: ``map(step, data)``, ``data.reduce(0.0, step)``."""
        names = self._program.names
        for site in self._script.sites_named("map", "reduce"):
            by_python = names.calls(site, "builtins.map", "functools.reduce")
            function = argument(site.node, 0 if by_python else 1, "reduce_func")
            data = argument(site.node, 1) if by_python else getattr(site.node.func, "value", None)
            if function is None or data is None or not self._is_step(function, site):
                continue
            if by_python and site.name == "map" and len(site.node.args) != 2:
                data = site.node  # A share of one row would no longer match the others.
            root = self._program.fact(Pipelines).read(Occurrence(data, site.scope, site.statement))
            if by_python or (site.name == "reduce" and root.is_dataset):
                yield Iteration(root.at, site.statement)

    def _is_step(self, function: ast.expr, site: Site) -> bool:
        """Return whether a function passed to another one trains."""
        trains = self._program.fact(WhatTrains).functions
        values = self._program.names.site_values(function, site)
        return any(isinstance(each, Function) and each.scope in trains for each in values)

    @cached_property
    def data(self) -> list[Iteration]:
        """The iterations over data rather than epochs: the innermost loops that take new data."""
        found = [each for each in self.all if each.fit is not None or each.statement not in self.idle]
        outer = {above for each in found for above in each.statement.ancestors() if each.fit is None}
        return [each for each in found if each.fit is not None or each.statement not in outer]

    @cached_property
    def idle(self) -> set[Statement]:
        """The loops that take no new data themselves, but run inside a divided loop that does.

        They iterate over gradients, optimizers or layers, split a batch into smaller ones, or step on it
        again.
        """
        trains = self._program.fact(WhatTrains)
        loops = [
            each
            for each in self._script.statements
            if isinstance(each.node, LOOPS) and trains.statement_trains(each)
        ]
        return {each for each in loops if self._is_idle(each)}

    def _is_idle(self, loop: Statement) -> bool:
        around = [each for each in self.above(loop) if isinstance(each.node, LOOPS)]
        novelty = self._novelty(loop)
        if any(self._novelty(each) > novelty for each in around):
            return True
        return self._is_of_state(loop) or (bool(around) and self._is_critic(loop))

    def _is_of_state(self, loop: Statement) -> bool:
        """Return whether a loop iterates over gradients, optimizers, layers or similar state rather than
        data.
        """
        if not isinstance(loop.node, ast.For | ast.AsyncFor):
            return False
        at = Occurrence(loop.node.iter, loop.scope, loop)
        is_of_state = self._program.fact(Turns).gives(at) is Gives.STATE
        return is_of_state and not takes_batches(self._program, loop)

    def _is_critic(self, loop: Statement) -> bool:
        """Return whether a loop makes extra steps (a critic's) inside a loop that makes a step of its own."""
        turns, outer = self._program.fact(Turns), self._program.fact(Turns).around(loop)
        if outer is None or not isinstance(loop.node, ast.For) or turns.cuts(loop, by_number=True):
            return False
        numbers = Occurrence(loop.node.iter, loop.scope, loop)
        inside, trains = {*loop.walk(), *self.above(loop)}, self._program.fact(WhatTrains)
        return turns.gives(numbers) is Gives.NUMBERS and any(
            site.statement not in inside
            and next((each for each in site.statement.path() if isinstance(each.node, LOOPS)), None) is outer
            and trains.site_trains(site)
            for site in self._script.sites
        )

    def _novelty(self, loop: Statement) -> int:
        """A score for the certainty that a loop's iterations take new data: 2, 1 if they draw them, else
        0.
        """
        if loop not in self._novelties:
            turns, program = self._program.fact(Turns), self._program
            takes = takes_batches(program, loop) or turns.cuts(loop, by_number=True)
            self._novelties[loop] = 2 if takes else int(drawn_in(program, loop) is not None)
        return self._novelties[loop]

    def _takes(self, at: Occurrence, statement: Statement) -> bool:
        """Return whether a comprehension iterates new data."""
        turns = self._program.fact(Turns)
        gives = turns.gives(at)
        return gives is Gives.NUMBERS or (gives is Gives.DATA and not turns.is_of_batch(at, statement))

    def above(self, statement: Statement) -> set[Statement]:
        """The enclosing statements of a statement, and those of the calls of its enclosing functions."""
        return statements_around(self._script.names, statement)

    @cached_property
    def around(self) -> set[Statement]:
        """The statements around each `fit`, each loop that takes data of its own, and their callers."""
        trains = self._program.fact(WhatTrains)
        loops = {each.statement for each in self.all if each.fit is not None}
        loops |= {
            each
            for each in self._script.statements
            if isinstance(each.node, LOOPS)
            and trains.statement_trains(each)
            and each not in self.idle
            and (takes_batches(self._program, each) or draws_batches(self._program, each))
        }
        return {above for each in loops for above in self.above(each)}

    def is_part(self, loop: Statement) -> bool:
        """Return whether a loop makes a part of the steps of a loop that also makes others, as in GANs."""
        around = {each for each in self.above(loop) if isinstance(each.node, LOOPS)}
        inside, function = set(loop.walk()), loop.scope.function()
        trains, names = self._program.fact(WhatTrains), self._program.names
        return any(
            around.intersection(site.statement.path())
            and site.statement not in inside
            and trains.site_trains(site)
            and (function is None or function not in names.called_functions(site))
            for site in self._script.sites
        )

    @cached_property
    def takes(self) -> set[Site]:
        """The `take` methods whose results some training loop, or a `fit`, iterates over."""
        takes = {site.node: site for site in self._script.sites_named("take")}
        return {
            site
            for each in self.all
            if takes
            for site in reaching_calls(self._script, takes, *each.at[:3])
            if isinstance(site.node.func, ast.Attribute)
        }

    def splits(self, site: Site) -> bool:
        """Return whether the rest of the dataset is used too: ``ds.take(n)`` and ``ds.skip(n)``."""
        return any(_parts(other) == _parts(site) for other in self._script.sites_named("skip"))


def _parts(site: Site) -> list[str]:
    """The receiver and the arguments of a method call."""
    function = site.node.func
    receiver = function.value if isinstance(function, ast.Attribute) else function
    return [ast.dump(receiver), *(ast.dump(given) for given in site.node.args)]
