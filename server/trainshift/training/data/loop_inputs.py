"""Loop inputs: the data of each training loop, their owner and order, and the number of steps."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.expressions import ExpressionsByKind
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function, Unknown, UserInstance
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    Statement,
    argument,
    arguments,
    children,
    dotted,
)
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.backward_slice import sliced
from trainshift.python.values.call_chains import callers_around, calls_leading_to
from trainshift.training.execution.executions import Executions, innermost_loop
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.horovod_api import RANK, SIZE
from trainshift.training.learning_rates.double_scaling import DoubleScaling
from trainshift.training.loops.loop_kinds import SESSION_PATTERNS, Loop, Pattern
from trainshift.training.loops.steps import Steps
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.uniformity import verdict
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.certainty import is_given
from trainshift.training.uniformity.draws import TENSORFLOW
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.verdict import Uniform, Verdict, joined

_GIVEN = (("x", 0), ("generator", 0), ("y", 1))
_SERVICES = ("send_to_data_service", "distribute", "data_service", "tf_data_service")
_BATCHING = {"batch": (0, "batch_size"), "padded_batch": (0, "batch_size"), "next_batch": (0, "batch_size")}
# Readers, and their argument for the batch size.
_READING = {
    "flow": 2, "flow_from_directory": 5, "flow_from_dataframe": None, "image_dataset_from_directory": 5,
    "text_dataset_from_directory": 4, "make_csv_dataset": 1, "make_batched_features_dataset": 1,
}  # fmt: skip
_SOURCES = (
    "tensorflow.keras.datasets.",
    "tensorflow.data.",
    "tensorflow.keras.utils.",
    "tensorflow.keras.preprocessing.",
    "tensorflow.examples.",
    "tensorflow.contrib.learn.datasets.",
)
_NO_SOURCES = ("tensorflow.", "horovod.", "builtins.", "math.", "time.", "os.")
_READ = (ast.Name, ast.Attribute, ast.Call)
_FUNCTIONS = (ast.Lambda, ast.Name, ast.Attribute)
_STOPPING = ("StopAtStepHook",)
_ROUNDS = ("range", "trange", "xrange")


class Feed(Struct, eq=False):
    """The input of one training loop: the data or the counts that it iterates over.

    `trail` are the sources of its data.  `steps`, `epochs` and `batches` are the expressions for its length
    and its batch size.
    """

    loop: Loop
    site: Site
    is_fit: bool
    data: list[Occurrence] = field(default_factory=list)
    trail: list[Occurrence] = field(default_factory=list)
    calls: list[Site] = field(default_factory=list)
    steps: list[Occurrence] = field(default_factory=list)
    epochs: list[Occurrence] = field(default_factory=list)
    batches: list[Occurrence] = field(default_factory=list)


class Feeds:
    """The feeds of one program's loops."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._uniformity = program.fact(Uniformity)
        self._trails = program.fact(Trails)
        self._draws = self._uniformity.draws
        self._known: dict[Loop, Feed] = {}

    def of(self, loop: Loop) -> Feed:
        """The input of a loop."""
        if loop not in self._known:
            self._known[loop] = self._read(loop)
        return self._known[loop]

    def _read(self, loop: Loop) -> Feed:
        site = loop.sites[0]
        feed = Feed(loop, site, loop.is_call and loop.pattern is Pattern.OPTIMIZER)
        around = list(self._around(site))
        if feed.is_fit:
            for name, data in _GIVEN:
                self._add(feed.data, site, data, name)
            self._add(feed.steps, site, None, "steps_per_epoch", "samples_per_epoch")
            position = 3 if site.name == "fit" else None
            self._add(feed.epochs, site, position, "epochs", "nb_epoch")
            self._add(feed.batches, site, 2 if site.name == "fit" else None, "batch_size")
        elif loop.pattern is Pattern.ESTIMATOR:
            feed.data = [self._at(each, site) for each in site.node.args[:2]]
            feed.data += [self._at(word.value, site) for word in site.node.keywords]
            self._add(feed.steps, site, None, "steps", "max_steps")
        else:
            feed.data = [*self._iterated(around)] or list(self._inside(loop))
            if not feed.data:
                feed.data = [self._at(each, site) for each in site.node.args]
            feed.data += [each for each in self._inside(loop) if self._cuts_by_rank(each)]
            self._bounds(feed, around)
        if loop.is_call:
            feed.epochs += self._divided_rounds(around)
        for spec in self._script.sites_named("TrainSpec") if loop.pattern is Pattern.ESTIMATOR else ():
            self._add(feed.steps, spec, 1, "max_steps")
            source = argument(spec.node, 0, "input_fn")
            feed.data += [self._at(source, spec)] if source is not None else []
        trail = {
            (id(at.node), id(at.scope)): at for data in feed.data for at in self._trails.behind(data, True)
        }
        feed.trail = list(trail.values())
        feed.calls = self._trails.calls(feed.trail)
        for call in feed.calls:
            self._of_call(feed, call)
        feed.batches += self._sliced(feed)
        for hook in self._script.sites_named(*_STOPPING):
            self._add(feed.steps, hook, 1, "last_step")
            self._add(feed.steps, hook, 0, "num_steps")
        return feed

    def _of_call(self, feed: Feed, call: Site) -> None:
        if call.name == "take":
            self._add(feed.steps, call, 0, "count")
        elif call.name == "repeat" and not feed.is_fit:
            self._add(feed.epochs, call, 0, "count")
        elif call.name in _BATCHING:
            position, name = _BATCHING[call.name]
            self._add(feed.batches, call, position, name)
        elif call.name in _READING:
            self._add(feed.batches, call, _READING[call.name], "batch_size")

    def _sliced(self, feed: Feed) -> Iterator[Occurrence]:
        """The batches that are sliced from arrays: ``x[i:i + n]``, ``x[i * n:(i + 1) * n]``."""
        for at in feed.trail:
            if not isinstance(at.node, ast.Slice) or at.node.lower is None:
                continue
            lower, upper = at.node.lower, at.node.upper
            if not isinstance(upper, ast.BinOp) or self._uniformity.on_rank(at.part(lower)):
                continue
            if isinstance(upper.op, ast.Add) and ast.unparse(upper.left) == ast.unparse(lower):
                yield at.part(upper.right)
            elif isinstance(upper.op, ast.Mult) and isinstance(lower, ast.BinOp):
                if ast.unparse(upper.right) == ast.unparse(lower.right):
                    yield at.part(upper.right)

    @staticmethod
    def _at(node: ast.expr, site: Site) -> Occurrence:
        return Occurrence(node, site.scope, site.statement)

    def _add(self, found: list[Occurrence], site: Site, position: int | None, *names: str) -> None:
        given = self._names.given(site, position, *names)
        found += [each for each in given if not _is_none(each.node)]

    # Loops of the script's own

    def _around(self, site: Site) -> Iterator[Statement]:
        """The loops around a step, in its function and around the calls of that function, innermost first."""
        for each in calls_leading_to(self._names, site):
            for above in each.statement.path():
                if isinstance(above.node, LOOPS) and above.scope.function() is each.scope.function():
                    yield above

    def _iterated(self, around: list[Statement]) -> Iterator[Occurrence]:
        """Yield the iterables of loops, without counts."""
        for statement in around:
            node = statement.node
            if isinstance(node, ast.For | ast.AsyncFor):
                of = Occurrence(node.iter, statement.scope, statement)
                if not self._counts(of):
                    yield of

    def _counts(self, of: Occurrence) -> bool:
        """Return whether a loop iterates over numbers: ``range(n)``, also wrapped in a progress bar."""
        node = of.node
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _ROUNDS:
                return True
            if name in ("enumerate", "tqdm", "zip") and node.args:
                return all(self._counts(of.part(each)) for each in node.args)
            return name == "count"
        step = self._names.steps_back(of)
        return step is not None and bool(step.sources) and all(map(self._counts, step.sources))

    def _inside(self, loop: Loop) -> Iterator[Occurrence]:
        """Yield the inputs of a step outside a data loop: its arguments, and the inputs of its loss."""
        for site in loop.sites:
            yield from self._handed(site)
            for step in self._program.fact(Steps).steps:
                if step.site is site:
                    for gradient in step.gradients:
                        target = argument(gradient.site.node, 0, "target")
                        if target is not None:
                            yield self._at(target, gradient.site)
            if loop.pattern in SESSION_PATTERNS or site.name == "train_on_batch":
                yield from (self._at(each, site) for each in site.node.args)
                yield from (self._at(word.value, site) for word in site.node.keywords)

    def _cuts_by_rank(self, at: Occurrence) -> bool:
        """Return whether a rank selects its part of the data that a value comes from."""
        cuts = {each.node for each in self.cuts}
        return bool(cuts) and any(each.node in cuts for each in self._trails.behind(at, True))

    @cached_property
    def cuts(self) -> list[Occurrence]:
        """The subscripts by rank that select rows of data, rather than a GPU or variables."""
        subscripts = self._program.fact(ExpressionsByKind).of(ast.Subscript)
        return [
            at
            for at in subscripts
            if isinstance(at.node, ast.Subscript)
            and isinstance(at.node.ctx, ast.Load)
            and self._uniformity.on_rank(at.part(at.node.slice))
            and _takes_rows(at.node)
        ]

    def _handed(self, site: Site) -> Iterator[Occurrence]:
        """Yield the arguments that calls pass to the function of a step, except models and optimizers."""
        for each in calls_leading_to(self._names, site):
            for caller in callers_around(self._names, each):
                for given in caller.node.args:
                    values = self._names.site_values(given, caller)
                    if not self._names.may_be(
                        values, *api.MODEL, *api.OPTIMIZERS, *api.VARIABLE, *api.METRIC
                    ):
                        yield self._at(given, caller)

    def _divided_rounds(self, around: list[Statement]) -> Iterator[Occurrence]:
        """Yield the counts of repeated whole loops (rounds) that depend on the number of ranks."""
        for statement in around:
            if isinstance(statement.node, ast.For | ast.AsyncFor):
                for call in ast.walk(statement.node.iter):
                    if isinstance(call, ast.Call) and getattr(call.func, "id", "") in _ROUNDS and call.args:
                        of = Occurrence(call.args[-1], statement.scope, statement)
                        if self._uniformity.on_size(of):
                            yield of

    def _bounds(self, feed: Feed, around: list[Statement]) -> None:
        """Find the bounds of loops of the script: the innermost loop counts steps, enclosing loops count
        epochs. A loop that also takes a step beside an inner loop, such as that of a critic, counts steps
        too.
        """
        inner = True
        for number, statement in enumerate(around):
            inner = inner and (not number or self._steps_beside(statement, around[0]))
            node, found = statement.node, feed.steps if inner else feed.epochs
            if isinstance(node, ast.For | ast.AsyncFor):
                for call in ast.walk(node.iter):
                    if isinstance(call, ast.Call) and getattr(call.func, "id", "") in _ROUNDS and call.args:
                        found.append(
                            Occurrence(call.args[-1 if len(call.args) < 3 else 1], statement.scope, statement)
                        )
                step = self._names.steps_back(Occurrence(node.iter, statement.scope, statement))
                for source in step.sources if step is not None else ():
                    if isinstance(source.node, ast.Call) and getattr(source.node.func, "id", "") in _ROUNDS:
                        found.append(source.part(source.node.args[-1]))
            elif isinstance(node, ast.While):
                feed.steps += self._compared(node.test, statement)
            for below in statement.walk():
                if isinstance(below.node, ast.If) and below.scope is statement.scope:
                    if isinstance(below.node.body[-1], ast.Break):
                        feed.steps += self._compared(below.node.test, below)

    def _steps_beside(self, outer: Statement, inner: Statement) -> bool:
        """Return whether a loop takes a step itself, and not only in an inner loop."""
        trains, executions = self._program.fact(WhatTrains), self._program.fact(Executions)
        function = inner.scope.function()
        return any(
            trains.site_trains(site) and function not in executions.functions_reached(site.statement)
            for site in self._script.sites
            if innermost_loop(site.statement) is outer and site.statement is not inner
        )

    def _compared(self, test: ast.expr, statement: Statement) -> Iterator[Occurrence]:
        """The sides of the comparisons of a test."""
        for node in ast.walk(test):
            if isinstance(node, ast.Compare):
                for side in (node.left, *node.comparators):
                    yield Occurrence(side, statement.scope, statement)

    # Facts about data

    def is_own(self, feed: Feed) -> bool:
        """Return whether each rank has data of its own: by its rank, drawn at random, or through a data
        service.
        """
        return self._is_by_rank(feed) or any(
            call.name in _SERVICES or (self._draws.is_draw(call) and self._draws.of(call).diverges)
            for call in feed.calls
        )

    def _is_by_rank(self, feed: Feed) -> bool:
        return any(call in self._ranks for call in feed.calls) or any(
            self._uniformity.on_rank(at) for at in feed.trail if isinstance(at.node, ast.Subscript | ast.Call)
        )

    @cached_property
    def _ranks(self) -> set[Site]:
        return set(self._horovod.calls(*RANK))

    @cached_property
    def _sizes(self) -> set[Site]:
        return set(self._horovod.calls(*SIZE))

    def is_seen(self, feed: Feed) -> bool:
        """Return whether the script shows the source of all data."""
        if not feed.data:
            return False
        if not any(map(self._is_source, feed.trail)):
            return False
        for call in feed.calls:
            callee = self._names.callee(call)
            if isinstance(call.node.func, ast.Name) and (
                not callee or any(isinstance(each, Unknown) for each in callee)
            ):
                return False
        handed = {name for call in feed.calls for name in self._handed_back(call)}
        for at in feed.trail:
            if isinstance(at.node, ast.Name) and not self._names.member_of_library(at.node):
                step = self._names.steps_back(at)
                if at.node in handed or self._is_handed_by_library(at.node, at):
                    continue
                if step is not None and step.unseen and not step.sources and not step.within:
                    values = self._names.values(*at[:3])
                    if not values or any(isinstance(each, Unknown) for each in values):
                        return False
        return True

    def _handed_back(self, call: Site) -> Iterator[ast.Name]:
        """Yield the parameter reads in functions that a call passes to a library: ``ds.map(parse)``."""
        if any(isinstance(each, Function) for each in self._names.callee(call)):
            return
        for given in arguments(call.node):
            values = self._names.site_values(given, call) if isinstance(given, _FUNCTIONS) else ()
            for function in (each.scope for each in values if isinstance(each, Function)):
                for node in ast.walk(function.node) if function.node is not None else ():
                    if isinstance(node, ast.Name) and _is_parameter(node, function):
                        yield node

    @staticmethod
    def _is_handed_by_library(name: ast.Name, at: Occurrence) -> bool:
        """Return whether a name is an argument that a library passes to a method: the index of
        ``__getitem__``.
        """
        function = at.scope.function()
        if function is None or function.owner() is None or function.name == "__init__":
            return False
        return function.name.startswith("__") and _is_parameter(name, function)

    def _is_source(self, at: Occurrence) -> bool:
        """Return whether an expression is a library call that returns data, outside of a graph."""
        if not isinstance(at.node, ast.Call):
            return False
        site = self._script.site_of(at.node)
        values = self._names.site_values(site.node, site)
        if self._names.may_be(values, *api.DATASET) or self._draws.is_draw(site):
            return True
        names = self._names.full_names(site.node.func, site.scope, site.statement)
        return any(name.startswith(_SOURCES) or not name.startswith(_NO_SOURCES) for name in names)

    def order(self, feed: Feed) -> Verdict:
        """Return whether all ranks iterate the data in one order."""
        orderings = list(self._orderings(feed))
        found = joined([*map(self._draws.of, orderings), self._of_fit(feed)])
        seeds = [each for call in orderings for each in self._draws.seeds(call)]
        # People may start each rank with a seed of its own.
        return verdict.Unknown() if found.is_uniform and any(map(self._is_of_settings, seeds)) else found

    def seeds(self, feed: Feed) -> list[Occurrence]:
        """The seeds of the calls that order a loop's data."""
        found = (self._draws.given(call) for call in self._orderings(feed) if self._draws.shuffles(call))
        return [each for each in found if each is not None]

    def _orderings(self, feed: Feed) -> Iterator[Site]:
        """Yield the calls that draw an order or data, including those that shuffle the source data
        in place.
        """
        for call in feed.calls:
            if self._draws.shuffles(call) or self._draws.is_draw(call):
                yield call
        names = {dotted(at.node) for at in feed.trail if isinstance(at.node, ast.Name | ast.Attribute)}
        for site in self._script.sites_named("shuffle"):
            if site not in feed.calls and site.node.args and dotted(site.node.args[0]) in names:
                yield site

    def _of_fit(self, feed: Feed) -> Verdict:
        """The order in which `fit` itself reads the rows of arrays and the batches of a sequence."""
        if not feed.is_fit or not feed.data:
            return Uniform()
        data = feed.data[0]
        values = self._names.values(*data[:3])
        if self._names.may_be(values, *api.DATASET) or self._is_generator(data):
            return Uniform()
        shuffle = self._names.given(feed.site, 7 if feed.site.name == "fit" else None, "shuffle")
        if any(isinstance(each.node, ast.Constant) and not each.node.value for each in shuffle):
            return Uniform()
        if any(call.name in _READING for call in feed.calls):
            return Uniform()
        return self._draws.of_library(TENSORFLOW, feed.site)

    def _is_generator(self, data: Occurrence) -> bool:
        """Return whether the data of a `fit` come from a generator of the script."""
        if isinstance(data.node, ast.Call):
            functions = self._names.called_functions(self._script.site_of(data.node))
            return any(each.is_generator for each in functions)
        step = self._names.steps_back(data)
        return step is not None and any(map(self._is_generator, step.sources))

    def is_divided(self, feed: Feed) -> bool:
        """Return whether steps, epochs or data follow the number of ranks."""
        counted = (*feed.steps, *feed.epochs)
        return any(map(self._uniformity.on_size, counted)) or any(call in self._sizes for call in feed.calls)

    def is_counted_outside(self, feed: Feed) -> bool:
        """Return whether a number of steps comes from outside of the script."""
        return any(self._is_unseen(each) for each in feed.steps)

    def _is_of_settings(self, at: Occurrence) -> bool:
        """Return whether a value comes from a setting of the run."""
        behind = self._trails.behind(at)
        values = (self._names.values(*each[:3]) for each in behind if isinstance(each.node, _READ))
        return any(is_given(value) for found in values for value in found)

    def _is_unseen(self, at: Occurrence) -> bool:
        for each in self._trails.behind(at):
            if isinstance(each.node, _READ) and any(map(is_given, self._names.values(*each[:3]))):
                return True
            step = self._names.steps_back(each) if isinstance(each.node, ast.Name | ast.Attribute) else None
            if step is None or step.within:
                continue  # An element is known as well as its container is.
            if step.unseen and not self._names.member_of_library(each.node):
                values = self._names.values(*each[:3])
                if any(isinstance(value, Unknown) for value in values) and not any(
                    isinstance(value, Function | UserInstance) for value in values
                ):
                    return True
        return False

    def keeps_global_batch(self, feed: Feed) -> bool:
        """Return whether the batch of each rank is a part of one batch for all."""
        return any(self._divides(at) for batch in feed.batches for at in sliced(batch, self._computed_from))

    def _computed_from(self, at: Occurrence) -> Iterable[Occurrence]:
        """The expressions from which a number is computed, without the code behind an attribute's object."""
        step = self._names.steps_back(at)
        if step is not None:
            return step.sources
        return (at.part(part) for part in children(at.node) if isinstance(part, ast.expr))

    def _divides(self, at: Occurrence) -> bool:
        node = at.node
        return (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.FloorDiv | ast.Div)
            and self._uniformity.on_size(at.part(node.right))
        )

    def multiplied_batch(self, feed: Feed) -> Occurrence | None:
        """The batch of a loop that is multiplied by the number of ranks, if there is one."""
        for batch in feed.batches:
            if self._program.fact(DoubleScaling).count(batch) and not self.keeps_global_batch(feed):
                return batch
        return None

    def takes_part(self, feed: Feed, batch: Occurrence) -> bool:
        """Return whether each rank takes its part of a batch's rows, by its number."""
        parts = (at for at in feed.trail if isinstance(at.node, ast.Subscript))
        return any(self._uniformity.on_rank(at.part(at.node.slice)) for at in parts) or any(  # type: ignore[attr-defined]
            call.name == "shard" and self._is_behind(batch, call) for call in feed.calls
        )

    def _is_behind(self, batch: Occurrence, call: Site) -> bool:
        """Return whether a dataset is batched before a call of its method."""
        function = call.node.func
        if not isinstance(function, ast.Attribute):
            return False
        trail = self._trails.behind(Occurrence(function.value, call.scope, call.statement), True)
        return any(each.node is batch.node for each in trail)


def _takes_rows(node: ast.Subscript) -> bool:
    """Return whether a subscript by rank selects data, rather than a GPU or a variable of the environment."""
    text = ast.unparse(node.value).lower()
    return "gpu" not in text and "device" not in text and "environ" not in text


def _is_parameter(name: ast.Name, function: Scope) -> bool:
    return any(isinstance(each.target, ast.arg) for each in function.bindings.get(name.id, ()))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
