"""Uniformity: which values are the same on all ranks, which may diverge, and why.

A value diverges if a cause of divergence reaches it through its inputs, or through a test that chooses it.
The result of a collective is always uniform, and so is a length or a shape. The causes of a value are those
in its backward slice. The slice is finite, so it needs no bound.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import TypeAlias

from trainshift.core.libraries import Libraries, asks_disk, full_name
from trainshift.core.program import Program
from trainshift.libraries import api, divergence
from trainshift.libraries.divergence import METHODS, CauseKind
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.expressions import ExpressionsByKind
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Function, Instance, Library
from trainshift.python.syntax.call_binding import defaults, parameters
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    Statement,
    argument,
    arguments,
    last_name,
)
from trainshift.python.syntax.node_classes import FUNCTIONS
from trainshift.python.values.made_objects import MadeObjects
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.horovod_api import RANK, SIZE
from trainshift.training.loops.fits import Fit, Fits
from trainshift.training.loops.loop_kinds import FITTING
from trainshift.training.loops.steps import Steps
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.certainty import Certainty
from trainshift.training.uniformity.draws import Draws
from trainshift.training.uniformity.shapes import Shapes, asks_none
from trainshift.training.uniformity.value_flow import ValueFlow, tests_around
from trainshift.training.uniformity.verdict import Cause, Divergent, Uniform, Unknown, Verdict, cause_of

_COUNTING = frozenset(f"builtins.{name}" for name in ("callable", "isinstance", "type"))
# Things of which a rank may have more than another.
_COUNTED = (CauseKind.DISK, CauseKind.HOST, CauseKind.NET)
# What a method that may look for a file gives.
_PRESENT = {True: CauseKind.DISK, None: CauseKind.UNSURE, False: None}
_AFTER_BATCH = ("on_batch_end", "on_train_batch_end")
_KEEPING = (*api.VARIABLE, *api.SESSION, *api.MONITORED_SESSION)
_OF_SESSIONS = api.last_names(*api.SESSION, *api.MONITORED_SESSION) | {
    "MonitoredTrainingSession",
    "get_session",
}
# Results that a model computes from data, besides those of a call.
_JUDGING = frozenset({"evaluate", "predict", "test_on_batch", "predict_on_batch"})
# Functions with which graphs select rows of a batch.
_INPUTS = frozenset(
    {
        "placeholder", "get_next", "batch", "shuffle_batch", "batch_join", "dequeue", "dequeue_many",
        "random_normal", "random_uniform", "normal", "uniform", "truncated_normal", "py_func",
    }
)  # fmt: skip
# Functions that choose rows of an array by their values.
_MASKS = (ast.Compare, ast.BoolOp, ast.UnaryOp)


# Variables by which launchers number processes, and calls that return the number without Horovod.
_NUMBERS = ("RANK", "PROCID", "TASK_INDEX")
_GIVING = ("Get_rank",)


class Of(Enum):
    """The relevant aspect of an expression: its value, its length or, for a mask, the number of selected
    rows.

    COUNT is a length that the script reads, such as a number of files, which may differ between the ranks'
    disks.
    """

    VALUE = "value"
    LENGTH = "length"
    COUNT = "count"
    CHOICE = "choice"


Place: TypeAlias = tuple[ast.expr, Scope]
"""An expression in its scope."""
Reached: TypeAlias = tuple[Occurrence, Of]
"""An expression in a slice, and what of it matters."""
Key: TypeAlias = tuple[ast.expr, Scope, int]
"""A key for an occurrence, valid while its script lives."""


class Uniformity:
    """The values that all ranks of one program share."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._flow = program.fact(ValueFlow)
        self._shapes = program.fact(Shapes)
        self.draws = Draws(program, self.verdict)
        self._certainty = Certainty(program)
        self._numbered: dict[tuple[str, ...], dict[Place, bool]] = {RANK: {}, SIZE: {}}
        self._trains = program.fact(WhatTrains)
        self._known: dict[Place, Cause | None] = {}
        self._own_causes: dict[Place, Cause | None] = {}
        self._slices: dict[Key, tuple[Reached, ...]] = {}
        # Calls that hide every cause; and the number of open questions on whose answers this may depend.
        self._clean: set[Key] = set()
        self._open = 0

    def verdict(self, at: Occurrence) -> Verdict:
        """Return whether a value is the same on all ranks, as far as the text shows."""
        causes = self.causes(at)
        if causes:
            return Divergent(tuple(causes))
        return Uniform() if self._certainty.is_shown(at) else Unknown()

    def is_uniform(self, at: Occurrence) -> bool:
        """Return whether all ranks certainly have one value, so that a decision by it is the same on all."""
        return self._certainty.is_shown(at) and not self.causes(at)

    def causes(
        self,
        at: Occurrence,
        of: Of = Of.VALUE,
        is_uniform: Callable[[ast.AST], bool] | None = None,
        own: Callable[[Occurrence], Cause | None] | None = None,
    ) -> list[Cause]:
        """The causes for which a value may differ between ranks, in the order of its slice; none if it is
        uniform.

        `is_uniform` returns whether the caller knows an expression to be uniform, or leaves it to others,
        and `own` the cause for which one differs where it asks.
        """
        return self._causes([(at, of)], is_uniform, own)

    def causes_of_any(self, values: Iterable[Occurrence]) -> list[Cause]:
        """The causes for which one of some values may differ between ranks; shared sources are read once."""
        return self._causes([(each, Of.VALUE) for each in values], None)

    def _causes(
        self,
        starts: list[Reached],
        is_uniform: Callable[[ast.AST], bool] | None,
        own: Callable[[Occurrence], Cause | None] | None = None,
    ) -> list[Cause]:
        if is_uniform is None and own is None and self._clean.issuperset(map(_key, starts)):
            return []
        found: dict[ast.AST, Cause] = {}
        seen: set[Key] = set()
        behind = self._behind_unless(is_uniform, is_whole=own is not None)
        for each, matters in reachable(starts, behind, _key, seen):
            is_known = is_uniform and is_uniform(each.node)
            cause = None if is_known else self.cause(each) or (own(each) if own else None)
            # The order of what is drawn changes no length.
            if cause is not None and (
                matters is Of.VALUE or (matters is Of.COUNT and cause.kind in _COUNTED)
            ):
                found.setdefault(cause.at.node, cause)
        if is_uniform is None and own is None and not found and not self._open:
            self._clean |= seen
        return list(found.values())

    def behind(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the expressions from which a value is computed, itself first; stop at causes and at shared
        values.
        """
        return (each for each, _ in reachable([(at, Of.VALUE)], self._steps, _key))

    def computed_from(
        self, *values: Occurrence, stops: Callable[[Occurrence], bool] | None = None
    ) -> Iterator[Occurrence]:
        """Yield the expressions whose values decide some values, and not only their lengths, each once;
        nothing behind those at which it `stops`.
        """

        def behind(reached: Reached) -> Iterable[Reached]:
            return () if stops is not None and stops(reached[0]) else self._steps(reached)

        found = reachable([(each, Of.VALUE) for each in values], behind, _key)
        return (each for each, of in found if of is Of.VALUE)

    def _behind_unless(
        self, is_uniform: Callable[[ast.AST], bool] | None, is_whole: bool
    ) -> Callable[[Reached], Iterable[Reached]]:
        """Return a function for one step back that stops at values known to be uniform, unless it `is_whole`
        by those of which only other callers asked.
        """

        def behind(reached: Reached) -> Iterable[Reached]:
            is_clean = not is_whole and _key(reached) in self._clean
            if is_clean or (is_uniform and is_uniform(reached[0].node)):
                return ()
            return self._steps(reached)

        return behind

    def _steps(self, reached: Reached) -> tuple[Reached, ...]:
        key = _key(reached)
        if key not in self._slices:
            self._slices[key] = tuple(self._behind(reached))
        return self._slices[key]

    def on_rank(self, at: Occurrence) -> bool:
        """Return whether an expression may differ between ranks because it depends on the rank's number."""
        return self._comes_of(at, RANK)

    def on_size(self, at: Occurrence) -> bool:
        """Return whether an expression depends on the number of ranks."""
        return self._comes_of(at, SIZE)

    def _comes_of(self, at: Occurrence, functions: tuple[str, ...]) -> bool:
        known = self._numbered[functions]
        if not self._has_numbers and (functions is SIZE or not self._is_told_numbers):
            return False

        def parts(each: Occurrence) -> Iterable[Occurrence]:
            if _place(each) in known or (functions is RANK and self._hides_rank(each)):
                return ()
            return (*self._flow.parts(each), *self._flow.added(each))

        if _place(at) not in known:
            seen = set[Place]()
            for each in reachable([at], parts, _place, seen):
                if known.get(_place(each)) or self._is_number(each, functions):
                    known[_place(at)] = True
                    break
            else:
                known.update(dict.fromkeys(seen, False))
        return known[_place(at)]

    @cached_property
    def _has_numbers(self) -> bool:
        """Return whether the program may read the rank or the number of ranks from Horovod."""
        return self._program.fact(Horovod).is_used

    @cached_property
    def _is_told_numbers(self) -> bool:
        """Return whether the text names another source of a process's number, such as an environment
        variable.
        """
        text = self._script.source.text
        return any(each in text for each in (*_NUMBERS, *_GIVING))

    def _hides_rank(self, at: Occurrence) -> bool:
        """Return whether an expression has the same value on all ranks although it is computed from
        the rank.
        """
        node = at.node
        if isinstance(node, ast.Compare) and asks_none(node):
            # A launcher numbers all processes or none.
            step = self._names.steps_back(at.part(node.left))
            asked = step.sources if step is not None else (at.part(node.left),)
            return bool(asked) and all(reads_number(each.node) for each in asked)
        if not isinstance(node, ast.Call):
            return False
        site = self._script.site_of(node)
        callee = self._names.callee(site)
        makes = any(isinstance(each, Library) and api.is_class(each.name) for each in callee)
        return makes and not self._names.called_functions(site)

    def _is_number(self, at: Occurrence, functions: tuple[str, ...]) -> bool:
        """Return whether an expression is itself the number of the rank, or that of all."""
        node = at.node
        if isinstance(node, ast.Name | ast.Attribute):
            horovod = self._program.fact(Horovod)
            return last_name(node) in functions and horovod.is_function(at, *functions)
        if isinstance(node, ast.Call) and node in (self._ranks if functions is RANK else self._sizes):
            return True
        if functions is not RANK:
            return False
        return reads_number(node) or (isinstance(node, ast.Call) and last_name(node.func) in _GIVING)

    def cause(self, at: Occurrence) -> Cause | None:
        """Return the reason why an expression itself differs between ranks; called often."""
        key = at.node, at.scope
        if key not in self._known:
            self._open += 1
            found = self._find_cause(at)
            # A method of a class without instances still matches by name, and may be the callee.
            runs = found is not None and self._script.code.may_run(at.scope, at.statement)
            self._known[key] = found if runs else None
            self._open -= 1
        return self._known[key]

    def _find_cause(self, at: Occurrence) -> Cause | None:
        found = self._own_cause(at)
        if (
            found is None
            and isinstance(at.node, ast.Call)
            and self.judges(site := self._script.site_of(at.node))
        ):
            self._known[at.node, at.scope] = None  # A model may get its own earlier result as an argument.
            return cause_of(CauseKind.DATA, site) if self._is_of_own_rows(site) else None
        return found

    def _own_cause(self, at: Occurrence) -> Cause | None:
        """Return the reason why an expression differs, other than that a model gets a rank's own rows."""
        key = at.node, at.scope
        if key not in self._own_causes:
            self._own_causes[key] = self._find_own_cause(at)
        return self._own_causes[key]

    def _find_own_cause(self, at: Occurrence) -> Cause | None:
        if at.node in self.losses:
            return Cause(CauseKind.DATA, at, self.losses[at.node])
        if isinstance(at.node, ast.Name) and at.node.id == self._batch_logs.get(at.scope.function(), ""):
            return cause_of(CauseKind.DATA, self._fits[0].site)
        if isinstance(at.node, ast.Name) and (searched := self._searching(at.scope.function())):
            if any(each.kind == "parameter" for each in self._names.bindings(at)):
                return cause_of(CauseKind.PERHAPS, searched)
        if self._handlers and isinstance(at.node, ast.Name | ast.Attribute):
            if any(each.scope.function() in self._handlers for each in self._names.bindings(at)):
                return Cause(CauseKind.SIGNAL, at, None)
        if self._is_number(at, RANK):
            called = self._script.site_of(at.node) if isinstance(at.node, ast.Call) else None
            return Cause(CauseKind.RANK, at, called)
        if isinstance(at.node, ast.Attribute):
            kind = self._kind_of_read(at, at.node)
            return Cause(kind, at, None) if kind is not None else None
        if not isinstance(at.node, ast.Call):
            return None
        site = self._script.site_of(at.node)
        kind = CauseKind.DATA if at.node in self._inputs else self.kind(site)
        return cause_of(kind, site) if kind is not None else None

    def _kind_of_read(self, at: Occurrence, node: ast.Attribute) -> CauseKind | None:
        """The reason why an attribute of a library's object differs, such as what a search has found."""
        if node.attr not in self._differing:
            return None
        found = map(full_name, self._names.values(*at[:3]))
        return next((kind for name in found if name and (kind := divergence.cause_of(name))), None)

    def _behind(self, reached: Reached) -> Iterator[Reached]:
        """Yield the sources of an expression's value, one step back; nothing behind a cause or a count."""
        at, of = reached
        node = at.node
        if self._shapes.is_alike(at) or (isinstance(node, ast.Attribute) and self._is_alike(node, at)):
            return
        measured = self._shapes.measured(at)
        if measured is not None:
            yield measured, Of.COUNT
            return
        cause = self.cause(at)
        if cause is not None and (of is Of.VALUE or cause.kind in _COUNTED):
            return
        fetched = list(self._flow.fetched(at))
        if fetched:
            yield from ((each, Of.VALUE) for each in fetched)
            return
        if isinstance(node, ast.Call):
            yield from self._behind_call(node, at, of)
            return
        if isinstance(node, ast.Name | ast.Attribute):
            for item in (*self._names.additions(at), *self._flow.nested(at)):
                yield from ((each, Of.VALUE) for each in self._flow.tests_of(item, at.statement))
        if of is Of.VALUE or (of is Of.CHOICE and is_mask(node)):
            yield from ((each, Of.VALUE) for each in self._flow.computed_of(at))
        else:
            yield from self._measured(at, of)

    def _behind_call(self, node: ast.Call, at: Occurrence, of: Of) -> Iterator[Reached]:
        """Yield the expressions that the result of a call depends on, one step back."""
        site = self._script.site_of(node)
        functions = self._names.called_functions(site)
        is_value = of is Of.VALUE or (of is Of.CHOICE and is_mask(node))
        if self._flow.is_collected(at) or self._names.calls(site, *_COUNTING):
            return
        if node in self._models:
            return
        # The initial value of a variable is broadcast; the arguments of a session are not part of its
        # result.
        if self._names.may_be(self._names.site_values(node, site), *_KEEPING):
            return
        elif is_value:
            yield from ((each, Of.VALUE) for each in self._flow.computed_of(at))
        elif functions:
            yield from (each for function in functions for each in self._turns_of(function))
            yield from self._measured(at, of)
        else:
            yield from self._length_of(site, of)

    def _is_alike(self, node: ast.Attribute, at: Occurrence) -> bool:
        """Return whether an attribute is the same on all ranks, even if its object differs.

        Examples are the epochs of a history, and properties of data that do not depend on their order.
        """
        step = self._names.steps_back(at.part(node.value))
        calls = [each.node for each in step.sources if isinstance(each.node, ast.Call)] if step else []
        if node.attr == "epoch" and any(last_name(each.func) in FITTING for each in calls):
            return True
        return bool(calls) and all(self.draws.shuffles(self._script.site_of(each)) for each in calls)

    @staticmethod
    def _turns_of(function: Scope) -> Iterator[Reached]:
        """Yield the loops and tests that decide how often a generator yields."""
        for _, where in function.yields:
            yield from ((each, Of.VALUE) for each in tests_around(where, None))
            for above in where.ancestors() if where is not None else ():
                if isinstance(above.node, ast.While) and above.scope is function:
                    yield Occurrence(above.node.test, above.scope, above), Of.VALUE
                elif isinstance(above.node, ast.For) and above.scope is function:
                    yield Occurrence(above.node.iter, above.scope, above), Of.LENGTH

    def _measured(self, at: Occurrence, of: Of) -> Iterator[Reached]:
        """Yield the expressions that decide the length of an expression that is not a call."""
        node = at.node
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            bounds = (each for each in (node.slice.lower, node.slice.upper, node.slice.step) if each)
            yield at.part(node.value), of
            yield from ((at.part(each), Of.VALUE) for each in bounds)
        elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
            yield from ((at.part(node.value), of), (at.part(node.slice), Of.CHOICE))
        else:
            tests = {test for each in getattr(node, "generators", ()) for test in each.ifs}
            yield from ((each, Of.VALUE if each.node in tests else of) for each in self._flow.computed_of(at))

    def _length_of(self, site: Site, of: Of) -> Iterator[Reached]:
        """Yield the expressions that decide the length of a call's result."""
        at, function = of_call(site), site.node.func
        given = list(map(at.part, arguments(site.node)))
        if isinstance(function, ast.Attribute) and not self._names.full_names(function, *at[1:3]):
            given.insert(0, at.part(function.value))
        name = self._script.called_name(site)
        if name in divergence.SIZED or (name in divergence.CHOOSING and len(given) < 3):
            yield from ((each, Of.VALUE) for each in given)
        elif name in divergence.TESTING:
            yield from ((each, Of.VALUE) for one in given for each in self._flow.returned(one))
            yield from ((each, of) for each in given)
        elif name in divergence.DROPPING and not _keeps_all(site):
            yield at, Of.VALUE
            yield from ((each, of) for each in given)
        elif name in divergence.DRAWING_AS_MANY and argument(site.node, None, "frac") is None:
            yield from ((each, Of.VALUE) for each in given[1:])
        elif name in divergence.CUTTING | divergence.DRAWING_AS_MANY:
            yield from ((each, Of.VALUE if number else of) for number, each in enumerate(given))
        else:
            yield from ((each, of) for each in given)

    def kind(self, site: Site) -> CauseKind | None:
        """The reason why a call returns a different value on each rank; None if its arguments decide."""
        if (self.draws.is_draw(site) or self.draws.shuffles(site)) and self.draws.of(site).diverges:
            return CauseKind.DRAW
        names = self._names.full_names(site.node.func, site.scope, site.statement)
        methods = map(full_name, self._names.callee(site)) if site.name in self._differing else ()
        for name in names or filter(None, methods):
            kind = divergence.cause_of(name)
            given = argument(site.node, None, "generator") if kind is CauseKind.PERHAPS else None
            if kind is not None and given is None and not self._is_seeded(site):
                return kind
        if site.name in METHODS and not names and isinstance(site.node.func, ast.Attribute):
            of_method: CauseKind | None = METHODS[site.name]
            if of_method is CauseKind.DISK:
                of_method = _PRESENT[asks_disk(self._names.callee(site))]
            if of_method is not None and not self._is_seeded(site):
                return of_method
        if self._trains.site_trains(site) or self._is_result(site):
            return CauseKind.DATA
        return CauseKind.PERHAPS if self.draws.may_draw(site) else None

    @cached_property
    def _models(self) -> frozenset[ast.AST]:
        """The calls that assemble layers; the inputs of layers are a sink of their own."""
        return frozenset(
            site.node
            for site, values in self._program.fact(MadeObjects).all
            if any(
                isinstance(each, Instance) and each.node is site.node and self._names.is_a(each, *api.MODEL)
                for each in values
            )
        )

    @cached_property
    def handed_out(self) -> dict[Scope, Site]:
        """The training functions that a library gets which no entry describes, each with the call."""
        trained = {each.name for each in self._trains.functions}
        found: dict[Scope, Site] = {}
        for site in self._script.sites if trained else ():
            for given in arguments(site.node):
                if isinstance(given, ast.Name | ast.Attribute) and last_name(given) in trained:
                    if self.draws.is_of_unknown(site):
                        values = self._names.site_values(given, site)
                        found.update((each.scope, site) for each in values if isinstance(each, Function))
        return found

    def _searching(self, function: Scope | None) -> Site | None:
        """Return the call of a library that may choose the parameters of a training function.

        One that gets nothing else, or names, reads the command line.  Constants in the places of the
        function's parameters are handed on to it.
        """
        site = self.handed_out.get(function) if function is not None else None
        if function is None or site is None or not isinstance(function.node, FUNCTIONS):
            return None
        others = [each for each in arguments(site.node) if last_name(each) != function.name]
        if isinstance(site.node.func, ast.Attribute):
            # An optimizer of a library knows the space that it searches.
            owners = self._names.site_values(site.node.func.value, site)
            made = (each.node for each in owners if isinstance(each, Instance))
            others += (given for each in made for given in arguments(each))
        passed_on = [each for each in others if each in site.node.args]
        needed = len(parameters(function.node.args)) - len(defaults(function.node.args))
        is_called = len(passed_on) >= needed > 0
        if is_called and all(isinstance(each, ast.Constant) for each in passed_on):
            others = [each for each in others if each not in passed_on]
        names = [each for each in others if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        return site if len(others) > len(names) else None

    @cached_property
    def _handlers(self) -> frozenset[Scope | None]:
        """The functions that run when a signal comes, which each rank gets at a time of its own."""
        handed = (
            (site, given)
            for site in self._script.sites_named("signal", "add_signal_handler")
            if (given := argument(site.node, 1, "handler", "callback")) is not None
        )
        values = (each for site, given in handed for each in self._names.site_values(given, site))
        return frozenset(each.scope for each in values if isinstance(each, Function))

    @cached_property
    def _differing(self) -> frozenset[str]:
        return self._program.fact(Libraries).names_stating("differs")

    def _is_seeded(self, site: Site) -> bool:
        """Return whether a call gets a seed that all ranks share."""
        seed = self.draws.given(site)
        return seed is not None and self.draws.of_seed(seed, site).is_uniform

    def judges(self, site: Site) -> bool:
        """Return whether a call evaluates a model on data."""
        if site.name in _JUDGING:
            return True
        return isinstance(site.node.func, ast.Name | ast.Attribute) and self._names.may_be(
            self._names.callee(site), *api.MODEL
        )

    def _is_of_own_rows(self, site: Site) -> bool:
        """Return whether a model gets the batch that a loss comes from, or other rows of the rank itself."""
        return self.is_under_tape(site) or any(
            self.causes(of_call(site).part(each)) for each in site.node.args[:2]
        )

    def is_under_tape(self, site: Site) -> bool:
        """Return whether a tape records a call."""
        return any(each in self._tapes for each in site.statement.path())

    @cached_property
    def _tapes(self) -> set[Statement | None]:
        return {each.with_statement for each in self._program.fact(Steps).tapes}

    def _is_result(self, site: Site) -> bool:
        """Return whether a call asks a metric for its result."""
        return (
            site.name == "result"
            and isinstance(site.node.func, ast.Attribute)
            and self._names.may_be(self._names.site_values(site.node.func.value, site), *api.METRIC)
        )

    @cached_property
    def asks_any(self) -> bool:
        """Return whether the program has any divergent value besides its data and rank numbers, even a
        harmless one.
        """
        causes = (self._own_cause(of_call(each)) for each in self._script.sites)
        asked = (each for each in causes if each is not None and not self.is_meant(each))
        expressions = self._program.fact(ExpressionsByKind)
        return (
            any(each.kind is not CauseKind.DATA for each in asked)
            or any(reads_number(each.node) for each in expressions.of(ast.Subscript))
            or any(self.cause(each) is not None for each in expressions.of(ast.Attribute))
        )

    @cached_property
    def losses(self) -> dict[ast.AST, Site]:
        """The expressions whose gradients are taken, each with the gradient call."""
        found: dict[ast.AST, Site] = {}
        for gradient in self._program.fact(Steps).gradients:
            site = gradient.site
            given = argument(site.node, 0, "target")
            if given is not None:
                at = Occurrence(given, site.scope, site.statement)
                step = self._names.steps_back(at)
                found.update((each.node, site) for each in (step.sources if step is not None else (at,)))
        return found

    @cached_property
    def _fits(self) -> list[Fit]:
        return self._program.fact(Fits).fits

    @cached_property
    def _batch_logs(self) -> dict[Scope | None, str]:
        """The methods that Keras calls after a batch, each with its parameter for this rank's metrics."""
        found: dict[Scope | None, str] = {}
        for statement in self._script.statements if self._fits else ():
            function = statement.scope.function()
            if function is None or function in found or function.name not in _AFTER_BATCH:
                continue
            owner = function.owner()
            if owner is not None and self._names.descends(owner, *api.CALLBACK):
                names = [name for name, given in function.bindings.items() if given[0].kind == "parameter"]
                found[function] = names[2] if len(names) > 2 else ""
        return found

    # Sessions

    @cached_property
    def _inputs(self) -> set[ast.AST]:
        """The inputs of graphs that get batches of rows, and from which minimized losses are computed."""
        behind, found = self._program.fact(Trails).behind, set[ast.AST]()
        for site in (
            self._script.sites_named("minimize", "compute_gradients") if self._flow.has_session else ()
        ):
            loss = argument(site.node, 0, "loss")
            parts = behind(of_call(site).part(loss), of_data=True) if loss is not None else ()
            found.update(each.node for each in parts if isinstance(each.node, ast.Call))
        return {each for each in found if isinstance(each, ast.Call) and last_name(each.func) in _INPUTS}

    def is_fed(self, cause: Cause) -> bool:
        """Return whether a cause is an input of a graph, whose value is fed when the graph runs."""
        return cause.at.node in self._inputs

    def is_meant(self, cause: Cause) -> bool:
        """Return whether a cause is a rank number, which is meant to differ."""
        return cause.kind is CauseKind.RANK and (
            cause.at.node in self._ranks or isinstance(cause.at.node, ast.Name | ast.Attribute)
        )

    @cached_property
    def _ranks(self) -> set[ast.AST]:
        """The calls that read the rank from Horovod."""
        return {site.node for site in self._program.fact(Horovod).calls(*RANK)}

    @cached_property
    def _sizes(self) -> set[ast.AST]:
        """The calls that read the number of ranks from Horovod."""
        return {site.node for site in self._program.fact(Horovod).calls(*SIZE)}


def _keeps_all(site: Site) -> bool:
    """Return whether a call mixes datasets and goes on until all of them are empty."""
    ends = argument(site.node, 3, "stop_on_empty_dataset")
    return site.name == "sample_from_datasets" and (ends is None or not getattr(ends, "value", True))


def is_mask(node: ast.AST) -> bool:
    """Return whether an expression selects elements by a condition on them."""
    if isinstance(node, ast.Call):
        return any(last_name(each).rstrip("_") == "bool" for each in arguments(node))
    return isinstance(node, _MASKS) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr)
    )


def _place(at: Occurrence) -> Place:
    return at.node, at.scope


def _key(reached: Reached) -> Key:
    at, of = reached
    return at.node, at.scope, id(of)


def reads_number(node: ast.expr) -> bool:
    """Return whether an expression reads the number of a process from its environment."""
    if isinstance(node, ast.Call):
        return any(map(_numbers, node.args))
    return isinstance(node, ast.Subscript) and _numbers(node.slice)


def _numbers(node: ast.expr) -> bool:
    """Return whether an expression names the variable by which a launcher numbers processes."""
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, str) and value.isupper() and value.endswith(_NUMBERS)
