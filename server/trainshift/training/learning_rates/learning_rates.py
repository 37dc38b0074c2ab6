"""Learning rates: every place of a script with the value of an optimizer's rate.

A rate is followed from the optimizer's constructor to its number: in place, in the schedule that computes it
(spec.md 5.7), in the variable or function that holds it.  If it differs between cases, each case is scaled at
its own place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from trainshift.core.program import Program
from trainshift.core.reasons import in_stars
from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import (
    Function,
    Instance,
    Literal,
    Unknown,
    UserInstance,
    Value,
)
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    Statement,
    argument,
    arguments,
    dotted,
    hides_arguments,
    last_name,
)
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.learning_rates.given_rates import GivenRate, GivenRates
from trainshift.training.learning_rates.plain_numbers import PlainNumbers
from trainshift.training.learning_rates.rate_cases import RateCases
from trainshift.training.learning_rates.rate_kinds import SETTLED, RateKind, computes
from trainshift.training.learning_rates.rate_places import HiddenRate, Rate, is_replaced
from trainshift.training.learning_rates.rate_settings import ASSIGNING, RateSetting, RateSettings
from trainshift.training.learning_rates.schedulers import PLATEAU, Schedulers
from trainshift.training.loops.call_effects import Effects
from trainshift.training.loops.fits import Fits
from trainshift.training.optimizers.graphs import Graphs

# The optimizers that read the rate from a function or a variable at each step; others read it when they are
# made.
_ASKING = ("tensorflow.keras.optimizers.legacy.Optimizer",)
# After this many rounds, rates are refused.
_MOST_ROUNDS = 100


class _Found(Struct):
    rates: dict[object, Rate] = field(default_factory=dict)
    hidden: dict[tuple[ast.expr, str], HiddenRate] = field(default_factory=dict)
    sources: dict[Value, None] = field(default_factory=dict)


class LearningRates:
    """The learning rates of one script that are not scaled yet."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._found = _Found()
        self._cases = program.fact(RateCases)
        self._settings = RateSettings(program, self._cases)
        self._given = GivenRates(program, self._cases)
        self._schedulers = program.fact(Schedulers)
        self._numbers = program.fact(PlainNumbers)

    @cached_property
    def all(self) -> tuple[list[Rate], list[HiddenRate]]:
        """Every rate to scale, in the order of the script, and the unknown rates."""
        settings = [each for each in self._settings.all() if not self._settings.is_within_optimizer(each)]
        multiplied = list(self._settings.multiplied())
        for site in self._given.makers:
            if not any(self._is_rate_of(each, site) for each in multiplied):
                self._made(site, settings)
        for site in self._schedulers.callbacks:
            self._scheduled(site)
        for setting in settings:
            self._follow(setting.value)
        wrapped = self._wrapped_sources()
        if wrapped is not None:
            reason = (
                "a schedule is used by itself and inside another, so Trainshift cannot tell which to scale"
            )
            self._hide(wrapped.node, wrapped, reason)
            self._found.rates = {key: rate for key, rate in self._found.rates.items() if not rate.computed}
        self._separate()
        rates = sorted(self._found.rates.values(), key=self._start)
        hidden = sorted(
            self._found.hidden.values(), key=lambda each: self._script.span(each.node, each.within)
        )
        return rates, hidden

    def _is_rate_of(self, setting: RateSetting, site: Site) -> bool:
        """Return whether the optimizer of a rate setting may come from a call."""
        values = self._names.values(*setting.optimizer[:3])
        known = [each for each in values if isinstance(each, Instance) and each.cls.startswith("tensorflow.")]
        return not known or any(each.node is site.node for each in known)

    def _start(self, rate: Rate) -> int:
        return self._script.statement_span(rate.statement).start

    def _in_order(self, values: Iterable[Value]) -> list[Value]:
        """Sort values that compute a rate in the order of the script."""

        def start(value: Value) -> int:
            if isinstance(value, Instance | UserInstance) and value.node is not None:
                return self._script.span(value.node, self._script.site_of(value.node)).start
            assert isinstance(value, Function | UserInstance)
            assert value.scope.node is not None
            return self._script.span(value.scope.node, value.scope).start

        return sorted(filter(computes, values), key=start)

    def _hide(self, node: ast.expr, within: Site | Statement, reason: str) -> None:
        self._found.hidden.setdefault((node, reason), HiddenRate(node, within, reason))

    def _wrapped_sources(self) -> Site | None:
        """A place at which one scaled schedule gets another scaled one."""
        for source in self._found.sources:
            if isinstance(source, UserInstance) and source.node is not None:
                site = self._script.site_of(source.node)
                for given in arguments(source.node):
                    if not self._found.sources.keys().isdisjoint(self._names.site_values(given, site)):
                        return site
        return None

    def _separate(self) -> None:
        """Scale once a rate that would be scaled both at its definition and at its use."""
        for _ in range(_MOST_ROUNDS):
            for key, rate in list(self._found.rates.items()):
                settled = self._settled_below(rate)
                if settled:
                    del self._found.rates[key]
                    assert rate.node is not None
                    place = Occurrence(rate.node, rate.scope, rate.statement, rate.site)
                    before = set(self._found.rates)
                    self._follow(place, settled)
                    self._mark(before, rate.computed)
                    break
            else:
                return
        for rate in self._found.rates.values():
            if rate.node is not None:
                self._hide(
                    rate.node, rate.statement, "this rate is scaled in more places than Trainshift follows"
                )
        self._found.rates.clear()

    def _settled_below(self, rate: Rate) -> frozenset[ast.expr]:
        """The parts of a rate that are scaled elsewhere: another rate, or a scaled schedule's result."""
        if rate.node is None:
            return frozenset()
        place = Occurrence(rate.node, rate.scope, rate.statement)
        reached = list(self._cases.reached(place))
        found = {each.node for each in reached if each.node in self._found.rates}
        return frozenset(found.union(each.node for each in (*reached, place) if self._is_of_source(each)))

    def _is_of_source(self, place: Occurrence) -> bool:
        """Return whether an expression creates, or comes from, a scaled schedule, variable or function."""
        node, sources = place.node, self._found.sources
        return isinstance(node, ast.Call) and (
            any(isinstance(value, Instance) and value.node is node for value in sources)
            or any(value in sources for value in self._names.values(node.func, place.scope, place.statement))
        )

    # Constructors

    def _made(self, site: Site, settings: list[RateSetting]) -> None:
        """Add the rate of a call that creates an optimizer, for each possible class."""
        given = self._given.of(site, settings)
        if given and not argument(site.node, None, "learning_rate"):
            old = argument(site.node, None, "lr")
            is_replacing = all(each.doubt for each in given)
            if old is not None and not (is_replacing and is_replaced(old, self._program.fact(Effects))):
                self._follow_argument(old, site)
        found = sorted(set(given), key=lambda each: (each.keyword, each.default, each.reason, each.doubt))
        if len(found) > 1:
            text = self._script.text(site.node.func, site)
            reason = f"{text} may be one of several optimizers, which do not take the same rate here"
            self._hide(site.node, site, reason)
        for each in found[:1] if len(found) == 1 else ():
            self._take(site, each)

    def _take(self, site: Site, given: GivenRate) -> None:
        """Scale the rate argument of an optimizer, or its default."""
        if given.node is not None and not given.doubt:
            self._follow_argument(given.node, site)
        elif given.mapping is not None:
            rate = Rate(site.statement, site.scope, given.mapping, site, given.keyword, given.default)
            self._add(replace(rate, in_mapping=True, doubt=given.doubt))
        elif given.places:
            for place in given.places:
                self._follow_place(place, site)
        elif given.reason:
            self._hide(site.node, site, given.reason)
        elif given.default:
            self._add(
                Rate(site.statement, site.scope, None, site, given.keyword, given.default, doubt=given.doubt)
            )

    def _follow_argument(self, node: ast.expr, site: Site) -> None:
        """Follow the rate of an optimizer, unless Horovod's wrap stops it."""
        self._follow_place(Occurrence(node, site.scope, site.statement, site), site)

    def _follow_place(self, place: Occurrence, site: Site) -> None:
        """Follow the rate of a call's optimizer to its source."""
        stopped = self._stopped(place, site)
        if stopped:
            self._hide(site.node, site, stopped)
        else:
            self._follow(place)

    def _stopped(self, place: Occurrence, site: Site) -> str:
        """The reason why a changing rate would stop changing in Horovod's copy of an optimizer; else
        empty.
        """
        if site.node not in self._rebuilt:
            return ""
        values = self._names.values(place.node, place.scope, place.statement)
        if not any(self._changes(value, place.node) for value in values):
            return ""
        text = self._script.text(place.node, place.scope)
        return f"Horovod recreates the optimizer with the current value of {text}, so the rate stays constant"

    def _changes(self, value: Value, node: ast.expr) -> bool:
        """Return whether an object's rate may change; a variable created in place has no other user."""
        if isinstance(value, Instance):
            return api.is_subclass(value.cls, *api.VARIABLE) and value.node is not node
        schedule = isinstance(value, UserInstance) and self._names.is_a(value, *api.SCHEDULE)
        return isinstance(value, Function | UserInstance) and not schedule

    @cached_property
    def _rebuilt(self) -> set[ast.Call]:
        """The calls that create optimizers which Horovod copies from their configuration, for Keras."""
        return {
            value.node
            for compile in self._program.fact(Fits).compiles
            if compile.optimizer is not None and compile.own_tape is None
            for value in self._names.site_values(compile.optimizer, compile.site)
            if isinstance(value, Instance) and api.is_subclass(value.cls, *_ASKING)
        }

    # From an expression to the source of its number

    def _follow(self, place: Occurrence, settled: frozenset[ast.expr] = frozenset()) -> None:
        """Scale a rate in place, or each of its possible cases at its own place."""

        def cases(each: Occurrence) -> Iterator[Occurrence]:
            return reversed(self._follow_once(each, settled))

        for _ in reachable([place], cases, lambda each: each.node):
            pass

    def _follow_once(self, place: Occurrence, settled: frozenset[ast.expr]) -> list[Occurrence]:
        """Scale a rate if one place suffices; otherwise return the cases to follow."""
        kinds = self._cases.kinds(place, settled) or RateKind.NUMBER
        values = self._names.values(place.node, place.scope, place.statement)
        sources = [value for value in self._in_order(values) if not self._is_read(value, place.site)]
        if kinds & RateKind.SOURCE and not sources:
            kinds = kinds & ~RateKind.SOURCE | RateKind.NUMBER
        if not kinds & (RateKind.NUMBER | RateKind.SOURCE | RateKind.UNSEEN):
            return []
        if not kinds & (SETTLED | RateKind.NUMBER | RateKind.UNSEEN):
            for value in sources:
                self._scale_source(value, place.site)
            return []
        whole = not kinds & (SETTLED | RateKind.SOURCE | RateKind.UNSEEN) and not self._cases.is_target(place)
        if whole and not (place.tested and self._may_be_nothing(values)):
            self._add_number(place, values)
            return []
        cases = self._cases.cases(place, settled)
        if not cases:
            self._cannot_follow(place, kinds)
        return cases

    def _may_be_nothing(self, values: frozenset[Value]) -> bool:
        """Return whether a value may not be a number, which could be multiplied."""
        return not all(isinstance(value, Literal) and value.value is not None for value in values)

    def _add_number(self, place: Occurrence, values: frozenset[Value]) -> None:
        statement = place.statement or place.scope.statement
        assert statement is not None
        doubt = self._doubt(place.node, place.scope, statement, values)
        self._add(Rate(statement, place.scope, place.node, place.site, doubt=doubt))

    def _cannot_follow(self, place: Occurrence, kinds: RateKind) -> None:
        """Report why the cases of a rate cannot be scaled one by one."""
        within = place.statement or place.scope.statement
        assert within is not None
        text = self._script.text(place.node, within)
        if kinds & RateKind.SOURCE:
            reason = f"{text} may be a number or a schedule"
        elif kinds & RateKind.UNSEEN:
            reason = f"{text} may be a rate of its own, or derived from the current one"
        elif place.tested:
            reason = f"{text} may be a number or nothing"
        else:
            reason = f"{text} is scaled in one case and not in another"
        self._hide(place.node, within, reason)

    def _is_read(self, value: Value, site: Site | None) -> bool:
        """Return whether the rate is a variable that a graph reads: it is scaled there, whatever assigns it.

        One that the script scales itself is scaled at its assignments, case by case.
        """
        if not isinstance(value, Instance) or not api.is_subclass(value.cls, *api.VARIABLE):
            return False
        made = self._script.site_of(value.node)
        return (
            not self._horovod.scaled(made.node, made.scope, made.statement)
            and site is not None
            and self._program.fact(Graphs).is_used
            and any(
                api.is_subclass(name, *api.TF1_OPTIMIZER)
                for name in self._names.full_names(site.node.func, site.scope, site.statement)
            )
        )

    def _scale_source(self, value: Value, site: Site | None) -> None:
        if value in self._found.sources:
            return
        self._found.sources[value] = None
        before = set(self._found.rates)
        self._scale_inside(value, site)
        self._mark(before, True)

    def _mark(self, before: set[object], computed: bool) -> None:
        """Record the sources of the rates just added."""
        for key in [key for key in self._found.rates if key not in before]:
            rate = self._found.rates[key]
            self._found.rates[key] = replace(rate, computed=rate.computed or computed)

    def _scale_inside(self, value: Value, site: Site | None) -> None:
        if isinstance(value, Function):
            self._scale_returns(value.scope)
        elif isinstance(value, UserInstance):
            self._scale_schedule_class(value, site)
        elif isinstance(value, Instance):
            made = self._script.site_of(value.node)
            if api.is_subclass(value.cls, *api.VARIABLE):
                self._scale_variable(value, made)
            else:
                self._scale_schedule(value.cls, made)

    def _scale_schedule(self, cls: str, site: Site) -> None:
        signature = api.constructor(cls) or api.function(cls)
        names = api.rate_parameters(cls)
        if signature is None or not names:
            self._hide(site.node, site, f"{last_name(site.node.func)} is not a known schedule")
            return
        for name in names:
            given = argument(site.node, signature.position(name), name)
            parameter = signature.parameter(name)
            if given is not None:
                self._scale_argument(given, site, name)
            elif hides_arguments(site.node):
                self._hide(site.node, site, in_stars(f"{name} is"))
            elif parameter is not None and parameter.default not in (None, "None"):
                self._add(Rate(site.statement, site.scope, None, site, name, parameter.default or ""))

    def _scale_argument(self, given: ast.expr, site: Site, name: str) -> None:
        if name != "values":
            self._follow(Occurrence(given, site.scope, site.statement, site))
        elif isinstance(given, ast.List | ast.Tuple) and not any(
            isinstance(part, ast.Starred) for part in given.elts
        ):
            for part in given.elts:
                place = Occurrence(part, site.scope, site.statement)
                if self._cases.kinds(place) is RateKind.NUMBER:
                    self._add(Rate(site.statement, site.scope, part))
                else:
                    self._follow(place)
        elif not self._horovod.scaled(given, site.scope, site.statement):
            self._add(Rate(site.statement, site.scope, given, site, each=True))

    def _scale_schedule_class(self, value: UserInstance, site: Site | None) -> None:
        call = self._names.function_named(value.scope, "__call__")
        if call is not None and call.returns:
            self._scale_returns(call)
            return
        bases = [each for each in sorted(self._names.library_bases(value.scope)) if api.rate_parameters(each)]
        own_init = self._names.function_named(value.scope, "__init__")
        if bases and own_init is None and value.node is not None:
            self._scale_schedule(bases[0], self._script.site_of(value.node))
        elif site is not None:
            self._hide(site.node, site, f"{value.scope.name} has no __call__ to be scaled")

    def _scale_returns(self, function: Scope) -> None:
        before = set(self._found.rates)
        for node, statement in function.returns:
            self._follow(Occurrence(node, function, statement or function.statement))
        for key in [key for key in self._found.rates if key not in before]:
            self._found.rates[key] = replace(self._found.rates[key], doubt="")

    def _scale_variable(self, value: Instance, made: Site) -> None:
        initial = argument(made.node, 0, "initial_value")
        if initial is None:
            self._hide(made.node, made, "the variable of the rate has no initial value")
        else:
            self._follow(Occurrence(initial, made.scope, made.statement, made))
        for site in self._script.sites_named(*ASSIGNING):
            target, node = self._settings.assigned(site)
            if target is not None and node is not None and value in self._names.site_values(target, site):
                if not self._mentions(node, target):
                    self._follow(Occurrence(node, site.scope, site.statement, site))

    def _mentions(self, node: ast.expr, other: ast.expr) -> bool:
        return any(
            isinstance(part, ast.expr) and dotted(part) == dotted(other) != "" for part in ast.walk(node)
        )

    # Callbacks that set the rate

    def _scheduled(self, site: Site) -> None:
        """Add the rates of a `LearningRateScheduler`'s function, and the floor of a `ReduceLROnPlateau`."""
        if self._names.calls(site, PLATEAU):
            signature = api.constructor(PLATEAU)
            given = argument(site.node, signature.position("min_lr") if signature else None, "min_lr")
            if given is not None:
                self._follow(Occurrence(given, site.scope, site.statement, site))
        schedule = self._schedulers.schedule(site)
        if schedule is None:
            return
        values = self._names.site_values(schedule, site)
        if not values or any(isinstance(each, Unknown) for each in values):
            self._hide(site.node, site, "Trainshift cannot find the function of the schedule")
        for each in self._in_order(values):
            self._scale_source(each, site)

    def _doubt(self, node: ast.expr, scope: Scope, statement: Statement, values: frozenset[Value]) -> str:
        if not isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            return ""
        unseen = any(isinstance(value, Unknown) or _is_strange(value) for value in values)
        if not unseen or self._numbers.is_number(Occurrence(node, scope, statement)):
            return ""
        return f"{self._script.text(node, statement)} is assumed to be a number, not a schedule"

    def _add(self, rate: Rate) -> None:
        key = rate.node if rate.node is not None else (rate.site, rate.keyword)
        self._found.rates.setdefault(key, rate)


def _is_strange(value: Value) -> bool:
    """Return whether the value comes from an unknown library, or from Keras under an unknown name."""
    if not isinstance(value, Instance) or api.canonical(value.cls):
        return False
    root = value.cls.partition(".")[0]
    return value.cls.startswith("tensorflow.keras.") or root not in (
        "tensorflow",
        "numpy",
        "math",
        "builtins",
    )
