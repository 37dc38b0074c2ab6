"""Own values: what each rank has computed for itself, and a rank must not decide by alone.

Losses of a rank's own batches, metrics of them, and what a model makes of a rank's own data. What a
collective gave is the same on all ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from trainshift.core.program import Program
from trainshift.core.ranks.averaging import Averaging
from trainshift.core.ranks.collectives import Collectives
from trainshift.core.ranks.dependence import COLLECTIVE, RANK, tests_around
from trainshift.core.ranks.seeds import Order, Seeds
from trainshift.core.ranks.trails import Trails
from trainshift.core.training.horovod import Horovod
from trainshift.core.training.loop_kinds import FITTING, SESSION_PATTERNS, Loop
from trainshift.libraries import api
from trainshift.python.flow.evaluation import LOOPS
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, Step
from trainshift.python.names.values import Instance
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, last_name

# What graphs get the rows of a batch by.
_INPUTS = frozenset(
    {
        "placeholder", "get_next", "batch", "shuffle_batch", "batch_join", "dequeue", "dequeue_many",
        "random_normal", "random_uniform", "normal", "uniform", "truncated_normal", "py_func",
    }
)  # fmt: skip
# What a model makes of data, besides a call of it.
_JUDGING = frozenset({"evaluate", "predict", "test_on_batch", "predict_on_batch"})


class OwnValues:
    """What the ranks of one program have computed for themselves."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._trails = program.fact(Trails)
        self._seeds = program.fact(Seeds)
        self._known_losses: dict[Loop, set[ast.AST]] = {}
        self._known_metrics: dict[Loop, set[ast.AST]] = {}

    # Tests

    def is_own(self, test: Occurrence, loop: Loop) -> bool:
        """Whether a test asks for what the rank's own step gave, or for what was set by such a test."""

        def setting(each: Occurrence) -> Iterator[Occurrence]:
            return iter(()) if each.node in self._equal else self._setting(each)

        tests = reachable([test], setting, lambda each: id(each.node))
        return any(self._asks_own(each, loop) for each in tests)

    def _asks_own(self, test: Occurrence, loop: Loop) -> bool:
        if test.node in self._equal:
            return False
        if self._asks_loss(test, loop):
            return True
        # What a function of the script is asked of a value, it may well decide by that: ``if stop(loss):``.
        asked = (
            test.part(given)
            for each in ast.walk(test.node)
            if isinstance(each, ast.Call)
            and self._names.called_functions(self._script.site_of(each))
            and not self.makes_equal(test.part(each))
            for given in each.args
        )
        return any(self._asks_loss(each, loop) for each in asked)

    def _setting(self, test: Occurrence) -> Iterator[Occurrence]:
        """The tests under which the names of a test were set."""
        names = (each for each in ast.walk(test.node) if isinstance(each, ast.Name | ast.Attribute))
        for step in (self._names.steps_back(test.part(each)) for each in names):
            for source in (step or Step()).sources:
                yield from tests_around(source.statement, test.statement)
        read = {each.id for each in ast.walk(test.node) if isinstance(each, ast.Name)}
        function = test.scope.function()
        for name, scope, statement in self._nonlocal:
            if name in read and any(each is function for each in _functions_around(scope)):
                yield from tests_around(statement, None)

    @cached_property
    def _nonlocal(self) -> list[tuple[str, Scope, Statement | None]]:
        """The names that functions set which stand in the function that has them."""
        return [
            (name, scope, binding.statement)
            for scope in self._script.scopes
            for name in sorted(scope.declared_nonlocal)
            for binding in scope.bindings.get(name, ())
        ]

    def makes_equal(self, at: Occurrence) -> bool:
        """Whether a collective leads to a value, and makes it the same on all ranks."""
        return any(each.node in self._equal for each in self._trails.behind(at))

    @cached_property
    def _equal(self) -> set[ast.expr]:
        return {site.node for site in self._horovod.calls(*COLLECTIVE)}

    # Losses, and what is computed of them

    def _asks_loss(self, test: Occurrence, loop: Loop) -> bool:
        """Whether a test asks for a result of the rank's own that no collective made equal."""
        if self.makes_equal(test):
            return False
        trail = self._trails.behind(test)
        if not loop.is_call:
            functions = {site.scope.function() for site in loop.sites} - {None}
            runs = (self._names.called_functions(site) for site in self._trails.calls(trail))
            if any(not functions.isdisjoint(each) for each in runs) and _reads_result(test):
                return True
        metrics = self._metrics(loop)
        if any(each.node in metrics for each in trail) or self._is_result(test, loop):
            return True
        return loop.pattern in SESSION_PATTERNS and self._fetches_own(test)

    def _is_result(self, at: Occurrence, loop: Loop) -> bool:
        """Whether a value comes of a step's loss or prediction, or of what a model makes of own data."""
        trail = self._trails.behind(at)
        if not self.losses(loop).isdisjoint(each.node for each in trail):
            return not (loop.is_call and self._is_of_shared_validation(trail, loop))
        return self._predicts(at, loop) or any(self._judges(site) for site in self._trails.calls(trail))

    def losses(self, loop: Loop) -> set[ast.AST]:
        """What the gradients of a loop are taken of, and what `fit` or `train_on_batch` gives."""
        if loop not in self._known_losses:
            found: set[ast.AST] = {site.node for site in loop.sites if site.name in FITTING}
            for site in self._program.fact(Collectives).sites:
                if site.name == "gradient":
                    found |= {each.node for each in self.of_argument(site, "target")}
            self._known_losses[loop] = found
        return self._known_losses[loop]

    def of_argument(self, site: Site, name: str) -> Iterator[Occurrence]:
        """What a call is given first, or by a name, and what that stands for."""
        given = argument(site.node, 0, name)
        if given is not None:
            at = Occurrence(given, site.scope, site.statement)
            step = self._names.steps_back(at)
            yield from step.sources if step is not None else (at,)

    def _predicts(self, at: Occurrence, loop: Loop) -> bool:
        """Whether a value comes of what a model gave in a step, as the loss of that step does."""
        loops = {each for nest in self.around(loop) for each in nest}
        return any(
            site in self._of_losses
            and not loops.isdisjoint(site.statement.ancestors())
            and self._names.may_be(self._names.site_values(site.node.func, site), *api.MODEL)
            for site in self._trails.calls(self._trails.behind(at))
        )

    @cached_property
    def _of_losses(self) -> set[Site]:
        """The calls that losses come of."""
        sites = [each for each in self._program.fact(Collectives).sites if each.name == "gradient"]
        targets = [each for site in sites for each in self.of_argument(site, "target")]
        return {site for each in targets for site in self._trails.calls(self._trails.behind(each))}

    def _metrics(self, loop: Loop) -> set[ast.AST]:
        """The calls that make metrics which are given results: ``mean.update_state(loss)``."""
        if loop not in self._known_metrics:
            self._known_metrics[loop] = {
                made
                for site, found in self._updates
                for given in site.node.args
                if self._is_of_step(site, loop)
                or self._is_result(Occurrence(given, site.scope, site.statement), loop)
                for made in found
            }
        return self._known_metrics[loop]

    def _is_of_step(self, site: Site, loop: Loop) -> bool:
        """Whether a call stands in the function of a step, by whose batch it goes."""
        function = site.scope.function()
        return function is not None and any(each.scope.function() is function for each in loop.sites)

    @cached_property
    def _updates(self) -> list[tuple[Site, list[ast.AST]]]:
        """The calls that add to metrics, with the calls that make these."""
        found: list[tuple[Site, list[ast.AST]]] = []
        for site in self._script.sites:
            called = site.node.func
            if not site.node.args or not isinstance(called, ast.Name | ast.Attribute):
                continue
            adds = isinstance(called, ast.Attribute) and site.name == "update_state"
            metric = called.value if adds and isinstance(called, ast.Attribute) else called
            made: list[ast.AST] = [
                each.node
                for each in self._names.site_values(metric, site)
                if isinstance(each, Instance) and self._names.is_a(each, *api.METRIC)
            ]
            if made:
                found.append((site, made))
        return found

    # Data that are a rank's own

    def judges_own(self, test: Occurrence) -> bool:
        """Whether a test asks for what a model makes of data that are the rank's own."""
        if self.makes_equal(test):
            return False
        return any(map(self._judges, self._trails.calls(self._trails.behind(test))))

    def _judges(self, site: Site) -> bool:
        """Whether a call has a model judge data that are the rank's own."""
        called = isinstance(site.node.func, ast.Name | ast.Attribute) and self._names.may_be(
            self._names.site_values(site.node.func, site), *api.MODEL
        )
        if not called and site.name not in _JUDGING:
            return False
        given = (Occurrence(each, site.scope, site.statement) for each in site.node.args[:2])
        return any(map(self._is_own_data, given))

    def _is_own_data(self, data: Occurrence) -> bool:
        return any(
            call in self._ranks or (self._seeds.is_draw(call) and self._seeds.order(call) is Order.OWN)
            for call in self._trails.calls(self._trails.behind(data, True))
        )

    @cached_property
    def _ranks(self) -> set[Site]:
        return set(self._horovod.calls(*RANK))

    def shares_validation(self, fit: Site) -> bool:
        """Whether all ranks validate on the same rows in a `fit`."""
        given = argument(fit.node, None, "validation_data")
        return given is not None and not self._is_of_rank(Occurrence(given, fit.scope, fit.statement))

    def _is_of_rank(self, data: Occurrence) -> bool:
        return any(call in self._ranks for call in self._trails.calls(self._trails.behind(data, True)))

    def _is_of_shared_validation(self, trail: list[Occurrence], loop: Loop) -> bool:
        """Whether a result of a `fit` is one of validation data that all ranks share."""
        keys = [each.node.value for each in trail if isinstance(each.node, ast.Constant)]
        asked = any(isinstance(key, str) and key.startswith("val_") for key in keys)
        return asked and all(map(self.shares_validation, loop.sites))

    # Sessions

    def _fetches_own(self, test: Occurrence) -> bool:
        """Whether a test asks for what a session computed of the rows that a minimized loss comes of."""
        made = (*self._program.fact(Averaging).minimizers, *self._script.sites_named("compute_gradients"))
        losses = [each for site in made for each in self.of_argument(site, "loss")]
        behind = self._trails.behind
        # Weights, which draw their initial values, are equal on all ranks.
        inputs = {
            site.node
            for loss in losses
            for site in self._trails.calls(behind(loss, True))
            if site.name in _INPUTS
        }
        nodes = {loss.node for loss in losses} | inputs
        return any(
            each.node in nodes
            for at in behind(test)
            for fetched in self._fetched(at)
            for each in behind(fetched, True)
        )

    def _fetched(self, at: Occurrence) -> Iterator[Occurrence]:
        """What a session was asked for where a name holds its answer: ``v, _ = session.run([loss, op])``."""
        if isinstance(at.node, ast.Call) and last_name(at.node.func) == "eval":
            assert isinstance(at.node.func, ast.Attribute)
            yield at.part(at.node.func.value)
        key = at.node.slice if isinstance(at.node, ast.Subscript) else None
        name = at.part(at.node.value) if isinstance(at.node, ast.Subscript) else at
        if not isinstance(name.node, ast.Name):
            return
        for binding in self._names.bindings(name):
            called = binding.value
            if not isinstance(called, ast.Call) or last_name(called.func) != "run" or not called.args:
                continue
            asked = replace(binding, value=called.args[0]).taken
            if isinstance(asked, ast.List | ast.Tuple | ast.Dict):
                asked = _element(asked, key)
            if asked is not None:
                yield Occurrence(asked, binding.scope, binding.statement)

    # Loops

    def around(self, loop: Loop) -> list[list[Statement]]:
        """The loop statements of a training loop, those of each function innermost first."""
        found: list[list[Statement]] = []
        sites, known = list(loop.sites), set[Site]()
        while sites:
            site = sites.pop()
            if site in known:
                continue
            known.add(site)
            outer = [each for each in site.statement.path() if isinstance(each.node, LOOPS)]
            own = [each for each in outer if each.scope.function() is site.scope.function()]
            if own:
                found.append(own)
            function = site.scope.function()
            sites += self._names.callers(function)[0] if function is not None else []
        return found


def _element(display: ast.List | ast.Tuple | ast.Dict, key: ast.expr | None) -> ast.expr | None:
    """What a constant picks out of a list or a dict that is written out."""
    if not isinstance(key, ast.Constant):
        return None
    if isinstance(display, ast.Dict):
        pairs = zip(display.keys, display.values, strict=True)
        named = (value for name, value in pairs if isinstance(name, ast.Constant) and name.value == key.value)
        return next(named, None)
    if isinstance(key.value, int) and 0 <= key.value < len(display.elts):
        return display.elts[key.value]
    return None


def _functions_around(scope: Scope) -> Iterator[Scope]:
    """The functions that a function stands in, innermost first."""
    around = scope.parent.function() if scope.parent is not None else None
    while around is not None:
        yield around
        around = around.parent.function() if around.parent is not None else None


def _reads_result(test: Occurrence) -> bool:
    return any(isinstance(each, ast.Compare | ast.Call) for each in ast.walk(test.node))
