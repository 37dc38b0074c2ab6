"""Counters: the variables that count steps, and the tests on them that end a training or save (spec.md 8)."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.entries import Role, is_bar
from trainshift.python.flow import exits
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import Script
from trainshift.python.names.uses import NameUses
from trainshift.python.names.values import UNKNOWN
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, dotted, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.training.data.divided_data import DividedData
from trainshift.training.data.division_places import Form
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.execution.executions import Executions, counted_in
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.learning_rates.rate_cases import RateCases
from trainshift.training.learning_rates.rate_settings import RateSetting, RateSettings
from trainshift.training.loops.steps import is_plain
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.rank_regions.root_only import RootOnly
from trainshift.training.ranks.own_batches import OwnBatches
from trainshift.training.steps_taken.step_division import Pace, Taken
from trainshift.training.uniformity.backward_slice import Trails

_LEAVING = frozenset({exits.BREAK, exits.RETURN, exits.RAISE, exits.END})
_COMPARED = (ast.Eq, ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.NotEq)
# Calls that return the value of a counter that is a TensorFlow variable.
_READING = frozenset({"int", "numpy", "value", "read_value", "cast", "float", "eval"})
# Methods of callbacks that Keras calls in each step.
_BY_BATCH = frozenset({"on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end"})
_CALLED = ("call", "__call__")
_BATCHING = ("batch", "padded_batch")
# The argument by which Keras tells a model that a call is one of a step.
_TRAINING = "training"
# Calls that return consecutive numbers.
_NUMBERS = frozenset({"builtins.range", "numpy.arange", "numpy.linspace"})
# Methods that draw this many values.
_DRAWING = ("bar", "errorbar", "fill_between", "loglog", "plot", "scatter", "semilogx", "semilogy", "step")


class Limit(Struct, frozen=True, eq=False):
    """A number of steps in the test of a statement, at which a training ends or its rate is set.

    With `every`, it is the number of steps between two saves, or two rates.
    """

    statement: Statement
    node: ast.expr
    every: bool


class Entries(Struct, frozen=True, eq=False):
    """A place that relies on the length of a list which gets one entry in each step of a rank's share.

    `count` is that number if it must be the length of the list: ``plt.plot(range(100), losses)``.
    """

    statement: Statement
    name: str
    count: ast.expr | None = None


class Counters:
    """The counters of one program that count the steps of which each rank takes its share."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._data = program.fact(DividedData)
        self._horovod = program.fact(Horovod)
        self._pace = program.fact(Pace)

    @cached_property
    def limits(self) -> list[Limit]:
        """The numbers of steps that do not match the share of a rank yet, in text order."""
        agrees = self._pace.agrees
        return [one for one in self._limits if not agrees(one.node, one.statement.scope, one.statement)]

    @cached_property
    def tests(self) -> set[Statement]:
        """The statements whose tests compare a counter with a number that is, or is to be, divided."""
        return {each.statement for each in self._limits}

    @cached_property
    def _limits(self) -> list[Limit]:
        statements = self._script.statements if self._counting else ()
        tests = (each for each in statements if isinstance(each.node, ast.If | ast.While))
        return [limit for statement in tests for limit in self._tested(statement)]

    @cached_property
    def totals(self) -> list[tuple[Site, ast.expr]]:
        """The progress bars whose total is the number of a loop's steps, of which each rank takes its
        share.
        """
        found = []
        for site in self._script.sites_named(*self._program.fact(Libraries).names(Role.PRINTS)):
            total = argument(site.node, None, "total")
            if total is None or getattr(total, "value", ...) is None:
                continue
            names = self._names.full_names(site.node.func, site.scope, site.statement)
            if any(map(is_bar, names)) and any(map(self._pace.is_shared, self._shown_by(site))):
                if not self._pace.agrees(total, site.scope, site.statement):
                    found.append((site, total))
        return found

    @cached_property
    def means(self) -> list[tuple[Occurrence, bool]]:
        """The divisors of means over a loop's iterations, of which each rank takes its share.

        Each with whether it is after the loop: ``for i in range(n): cost += c / n``.
        """
        found: dict[int, tuple[Occurrence, bool]] = {}
        for loop, shares in self._pace.loops.items():
            if shares and isinstance(loop.node, ast.For):
                for turns in self._turns(loop, loop.node):
                    for at, is_behind in self._divisors(loop, turns):
                        if not self._pace.agrees(*at[:3]):
                            found[id(at.node)] = at, is_behind
        return list(found.values())

    def _turns(self, loop: Statement, node: ast.For) -> Iterator[Occurrence]:
        """Yield the names in the bound of a loop."""
        for part in ast.walk(node.iter):
            if isinstance(part, ast.Call) and "builtins.range" in self._names.full_names(
                part.func, loop.scope, loop
            ):
                for end in part.args[:2]:
                    if isinstance(end, ast.BinOp) and self._horovod.divided(end, loop.scope, loop):
                        end = end.left
                    if isinstance(end, ast.Name | ast.Attribute):
                        yield Occurrence(end, loop.scope, loop)

    def _divisors(self, loop: Statement, turns: Occurrence) -> Iterator[tuple[Occurrence, bool]]:
        """Yield the divisions by the number of a loop's iterations, in the loop or after it."""
        block, index = self._script.siblings(loop)
        assert isinstance(loop.node, ast.For)
        own = {part.id for part in ast.walk(loop.node.target) if isinstance(part, ast.Name)}
        inside = set(loop.walk())
        behind = [each for after in block[index + 1 :] for each in after.walk()]
        for statement in (*inside, *behind):
            for part in statement.own_parts() if statement.scope is loop.scope else ():
                if not isinstance(part, ast.BinOp) or not isinstance(part.op, ast.Div):
                    continue
                at = Occurrence(part.right, statement.scope, statement)
                is_same = ast.dump(part.right) == ast.dump(turns.node)
                if is_same and self._names.bindings(at) == self._names.bindings(turns):
                    if not any(isinstance(each, ast.Name) and each.id in own for each in ast.walk(part.left)):
                        yield at, statement not in inside

    @cached_property
    def entries(self) -> list[Entries]:
        """The places that rely on one entry for each step, of which a rank has its share."""
        found: dict[tuple[Statement, str], Entries] = {}
        for site in self._script.sites_named("append"):
            held = getattr(site.node.func, "value", None)
            if not isinstance(held, ast.Name) or not self._pace.is_shared(site.statement):
                continue
            bound = self._names.bindings(Occurrence(held, site.scope, site.statement))
            loops = [each for each in site.statement.ancestors() if isinstance(each.node, LOOPS)]
            shared = [each for each in loops if self._pace.loops.get(each)]
            inside = {part for each in shared[-1:] for part in each.walk()}
            for read in self._program.fact(NameUses).of(held.id):
                at = Occurrence(read.node, read.scope, read.statement)
                if read.statement not in inside and self._names.bindings(at) == bound:
                    counted = self._counted_on(at)
                    if counted is not None:
                        found.setdefault((read.statement, held.id), counted)
        return list(found.values())

    def _counted_on(self, at: Occurrence) -> Entries | None:
        """The way in which a statement that reads a list relies on its length; None if it does not."""
        assert isinstance(at.node, ast.Name)
        assert at.statement is not None
        for part in at.statement.own_parts():
            if isinstance(part, ast.Subscript) and part.value is at.node:
                if any(map(self._numbers, (at.part(part.slice), *self._goes_through(at.part(part.slice))))):
                    return Entries(at.statement, at.node.id)
                if isinstance(part.slice, ast.Constant) and isinstance(part.slice.value, int):
                    return Entries(at.statement, at.node.id) if part.slice.value else None
            if isinstance(part, ast.Call) and any(each is at.node for each in part.args):
                for each in part.args:
                    if self._numbers(at.part(each)):
                        return Entries(at.statement, at.node.id, self._length_drawn(part, each))
        return None

    def _goes_through(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the iterables of the loop whose index is a name."""
        for each in self._names.bindings(at) if isinstance(at.node, ast.Name) else ():
            if each.kind == "element" and each.value is not None:
                yield Occurrence(each.value, each.scope, each.statement)

    def _numbers(self, at: Occurrence) -> bool:
        """Return whether an expression is a range of numbers that neither ends at a length nor is a share."""
        if isinstance(at.node, ast.Name):
            step = self._names.steps_back(at)
            return step is not None and any(
                isinstance(each.node, ast.Call) and self._numbers(each) for each in step.sources
            )
        if not isinstance(at.node, ast.Call):
            return False
        if _NUMBERS.isdisjoint(self._names.full_names(at.node.func, at.scope, at.statement)):
            return False
        measured = any(
            isinstance(each, ast.Call) and last_name(each.func) == "len" for each in ast.walk(at.node)
        )
        return not measured and not self._pace.agrees(*at[:3])

    def _length_drawn(self, drawing: ast.Call, numbers: ast.expr) -> ast.expr | None:
        """The end of a range of numbers over which a plot draws entries, so that both must have the same
        length.
        """
        if not isinstance(numbers, ast.Call) or last_name(drawing.func) not in _DRAWING:
            return None
        is_counted = len(numbers.args) == 1 and not numbers.keywords and len(drawing.args) in (2, 3)
        return numbers.args[0] if is_counted and drawing.args[0] is numbers else None

    def _shown_by(self, bar: Site) -> Iterator[Statement]:
        """Yield the loops whose iterations a progress bar shows."""
        if isinstance(bar.statement.node, ast.For | ast.AsyncFor):
            yield bar.statement
        for site in self._script.sites_named("update"):
            function = site.node.func
            if isinstance(function, ast.Attribute):
                held = Occurrence(function.value, site.scope, site.statement)
                step = self._names.steps_back(held)
                if step is not None and any(each.node is bar.node for each in (*step.sources, *step.within)):
                    loops = (each for each in site.statement.ancestors() if isinstance(each.node, LOOPS))
                    yield from itertools.islice(loops, 1)

    def _tested(self, statement: Statement) -> Iterator[Limit]:
        node = statement.node
        assert isinstance(node, ast.If | ast.While)
        for part in ast.walk(node.test):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
                if self.counts(part.left, statement) and is_count(part.right) and _is_zero(node.test, part):
                    # If two networks train alternately, each keeps its share of the iterations.
                    trains = self._program.fact(WhatTrains).statement_trains(statement)
                    if not trains and (self._saves(statement) or self._sets_rate(statement)):
                        yield Limit(statement, part.right, every=True)
            elif isinstance(part, ast.Compare) and isinstance(part.ops[0], _COMPARED) and len(part.ops) == 1:
                for counter, limit in (sides := [part.left, *part.comparators], sides[::-1]):
                    if self.counts(counter, statement) and is_count(limit) and self._decides(statement):
                        yield Limit(statement, limit, every=False)

    def _decides(self, statement: Statement) -> bool:
        """Return whether a statement ends a training, or sets a rate, from some step on."""
        return self._ends(statement) or (isinstance(statement.node, ast.If) and self._sets_rate(statement))

    def _ends(self, statement: Statement) -> bool:
        """Return whether a statement is a training loop, or leaves one if its test holds."""
        if isinstance(statement.node, ast.While):
            return statement in self._pace.loops
        found = self._program.fact(ControlFlow).completions(statement.branches.get("body", []))
        return not found.isdisjoint(_LEAVING)

    def _saves(self, statement: Statement) -> bool:
        """Return whether a statement writes a file, itself or through a function, if its test holds."""
        within = {part for each in statement.branches.get("body", ()) for part in each.walk()}
        functions = {
            each for site in self._script.code.sites_in(within) for each in self._names.called_functions(site)
        }
        written = self._program.fact(RootOnly).written
        return any(site.statement in within or site.scope.function() in functions for site in written)

    def _sets_rate(self, statement: Statement) -> bool:
        """Return whether a statement sets an optimizer's rate, in one of its branches."""
        within = {part for block in statement.branches.values() for each in block for part in each.walk()}
        return any(each.value.statement in within for each in self.settings)

    @cached_property
    def settings(self) -> list[RateSetting]:
        """The places where the script sets the rate of an optimizer."""
        return list(RateSettings(self._program, self._program.fact(RateCases)).all())

    @property
    def any(self) -> bool:
        """Return whether there is any counter."""
        return bool(self._counting) or bool(self._batch_numbers)

    def counting(self, counter: str) -> list[Statement]:
        """The statements that count a step each in the counter with this text."""
        return self._counting.get(counter, [])

    @cached_property
    def _counting(self) -> dict[str, list[Statement]]:
        """The statements that count a step each, by the counter."""
        found: dict[str, list[Statement]] = {}
        for statement in self._script.statements:
            target = counted_in(statement) or self._numbered_by(statement) or self._rows_in(statement)
            if target and self.is_once_a_step(statement):
                found.setdefault(target, []).append(statement)
        return found

    def _numbered_by(self, statement: Statement) -> str:
        """The name of a loop's counter if each rank takes a share of the iterations."""
        node = statement.node
        if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name):
            return ""
        data = self._data.of(statement)
        counts = data is not None and any(place.form is Form.COUNT for place in data.places)
        # Shares of numbers are not numbers of iterations: ``numbers[rank::size]``, ``range(rank, n,
        # size)``.
        is_whole = isinstance(node.iter, ast.Call) and len(node.iter.args) < 3
        fewer = is_whole and self._horovod.divided(node.iter, statement.scope, statement)
        return node.target.id if counts or fewer else ""

    def _rows_in(self, statement: Statement) -> str:
        """The name of a counter that counts the rows of each batch: ``seen += len(batch)``."""
        node = statement.node
        if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Add):
            return ""
        given = node.value
        while isinstance(given, ast.Call) and last_name(given.func) in _READING and given.args:
            given = given.args[0]
        if (
            isinstance(given, ast.Subscript)
            and isinstance(given.slice, ast.Constant)
            and not given.slice.value
        ):
            given = given.value
        at = Occurrence(given, statement.scope, statement)
        counts = self._program.fact(OwnBatches).counts_rows(at) or self._is_batch_size(at, statement)
        return dotted(node.target) if counts else ""

    def _is_batch_size(self, at: Occurrence, statement: Statement) -> bool:
        """Return whether a number is that of the rows in each batch of the loop around."""
        is_plain_number = isinstance(at.node, ast.Constant | ast.Name | ast.Attribute)
        if not is_plain_number or not any(self._script.sites_named(*_BATCHING)):
            return False
        loop = next((each for each in statement.ancestors() if each in self._pace.loops), None)
        if loop is None or not isinstance(loop.node, ast.For):
            return False
        values = self._names.values(*at[:3])
        behind = self._program.fact(Trails).behind(Occurrence(loop.node.iter, loop.scope, loop))
        sizes = (
            (each.part(given), given)
            for each in behind
            if isinstance(each.node, ast.Call) and last_name(each.node.func) in _BATCHING
            if (given := argument(each.node, 0, "batch_size")) is not None
        )
        return any(
            ast.dump(given) == ast.dump(at.node) or bool(values & self._names.values(*size[:3]) - {UNKNOWN})
            for size, given in sizes
        )

    def is_once_a_step(self, statement: Statement) -> bool:
        """Return whether a statement runs once in each step of a training of which each rank takes a
        share.
        """
        if isinstance(statement.node, ast.For):
            return statement in self._pace.loops and self._pace.is_shared(statement)
        for above in statement.ancestors():
            if isinstance(above.node, LOOPS):
                return above in self._pace.loops and self._pace.is_shared(above)
            if isinstance(above.node, ast.If) and last_name(above.node.test) != _TRAINING:
                return False
            if above.scope is not statement.scope:
                break
        if statement.scope.kind != "function":
            return False
        is_run = self._pace.is_shared(statement) or self._is_run_by_fit(statement.scope)
        return is_run or (self._pace.taken is Taken.SHARE and self.is_of_layer(statement.scope))

    def is_of_layer(self, scope: Scope) -> bool:
        """Return whether code computes the outputs of a layer or a model of the script, once in each step."""
        function = scope.function()
        owner = function.owner() if function is not None and function.name in _CALLED else None
        return owner is not None and self._names.descends(owner, *api.LAYER, *api.MODEL)

    def _is_run_by_fit(self, scope: Scope) -> bool:
        """Return whether `fit` runs a function in each step, of which each rank takes its share."""
        if self._pace.taken is not Taken.SHARE:
            return False
        if self._program.fact(Executions).custom_model(scope) is not None:
            return True
        function = scope.function()
        owner = function.owner() if function is not None and function.name in _BY_BATCH else None
        return owner is not None and self._names.descends(owner, *api.CALLBACK)

    def counts(self, node: ast.expr, statement: Statement) -> bool:
        """Return whether an expression is a counter, plus or minus one, or a multiple: ``step *
        batch_size``.
        """
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            return _is_literal(node.right) and self.counts(node.left, statement)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = [node.left, node.right]
            others = [each for each in sides if not self.counts(each, statement)]
            if len(others) != 1 or self._horovod.divided(others[0], statement.scope, statement):
                return False
            return _is_literal(others[0]) or is_plain(others[0])
        if isinstance(node, ast.Call) and last_name(node.func) in _READING:
            inner = node.args[0] if node.args else getattr(node.func, "value", None)
            return inner is not None and self.counts(inner, statement)
        counting = self._counting.get(dotted(node), ())
        if not isinstance(node, ast.Name):
            return bool(counting)
        if node.id == self._batch_numbers.get(statement.scope.function()):
            return True
        return any(self._holder(node.id, each) == self._holder(node.id, statement) for each in counting)

    @cached_property
    def _batch_numbers(self) -> dict[Scope | None, str]:
        """The methods that Keras calls in each step of a share, with the parameter for the batch's number."""
        found: dict[Scope | None, str] = {}
        for scope in dict.fromkeys(each.scope.function() for each in self._script.statements):
            if scope is not None and scope.name in _BY_BATCH and self._is_run_by_fit(scope):
                given = [name for name, one in scope.bindings.items() if one[0].kind == "parameter"]
                found[scope] = given[1] if len(given) > 1 else ""
        return found

    def _holder(self, name: str, statement: Statement) -> tuple[Scope | None, Script]:
        """The scope that binds a name, and its file."""
        scope, _ = self._names.lookup(name, statement.scope, statement)
        return scope, self._script.home(scope or statement.scope)


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def is_count(node: ast.expr) -> bool:
    """Return whether an expression may be a number of steps, and is neither the first nor the second."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and node.value > 1
    return not isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp)


def _is_zero(test: ast.expr, remainder: ast.expr) -> bool:
    """Return whether a test compares a remainder with 0, in any form."""
    for part in ast.walk(test):
        if isinstance(part, ast.Compare) and remainder in (part.left, *part.comparators):
            others = [each for each in (part.left, *part.comparators) if each is not remainder]
            return all(isinstance(each, ast.Constant) and each.value == 0 for each in others)
    return True
