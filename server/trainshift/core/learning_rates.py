"""Learning rates: every place of a script where the size of an optimizer's rate is written.

A rate is followed from the optimizer's constructor to where its number stands: in place, in the
schedule that computes it (correction C7), in the variable or function that holds it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from trainshift.core import api
from trainshift.core.facts import (
    Binding,
    Scope,
    Site,
    Statement,
    argument,
    arguments,
    dotted,
    hides_arguments,
    last_name,
)
from trainshift.core.names import (
    Class,
    Function,
    Instance,
    Library,
    Unknown,
    UserInstance,
    Value,
)

if TYPE_CHECKING:
    from trainshift.core.program import Program

NAMES = ("learning_rate", "lr")
# The optimizers of Keras 2.11 to 2.15 drop ``lr=`` with a warning; the legacy ones take it.
_IGNORING_LR = ("tensorflow.keras.optimizers.Optimizer",)
_SCHEDULER = "tensorflow.keras.callbacks.LearningRateScheduler"
_PLATEAU = "tensorflow.keras.callbacks.ReduceLROnPlateau"
_MAKERS = ("tensorflow.keras.optimizers.get", "tensorflow.keras.optimizers.deserialize")


@dataclass(frozen=True, eq=False, slots=True)
class Rate:
    """One place that a factor belongs to.

    `node` is the expression to multiply; None if the rate is a default, which then is the text
    `default` of the argument `keyword` of the call `site`.  With `each`, `node` is a list whose
    elements are the rates.
    """

    statement: Statement
    scope: Scope
    node: ast.expr | None
    site: Site | None = None
    keyword: str = ""
    default: str = ""
    each: bool = False
    doubt: str = ""
    computed: bool = False  # inside a schedule or a function


@dataclass(frozen=True, eq=False, slots=True)
class HiddenRate:
    """An optimizer whose rate cannot be seen, and why."""

    site: Site
    reason: str


@dataclass(slots=True)
class _Found:
    rates: dict[object, Rate] = field(default_factory=dict)
    hidden: list[HiddenRate] = field(default_factory=list)
    sources: set[object] = field(default_factory=set)


class LearningRates:
    """The learning rates of one script that are not scaled yet."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.horovod
        self._training = program.training
        self._found = _Found()

    @cached_property
    def all(self) -> tuple[list[Rate], list[HiddenRate]]:
        """Every rate to scale, in the order found, and the rates that cannot be seen."""
        for site in self._script.sites:
            for value in self._names.callee(site):
                if isinstance(value, Library) and self._made_by_library(site, value.name):
                    break
                if isinstance(value, Class) and self._made_by_class(site, value.scope):
                    break
        for site in self._script.sites:
            self._scheduled(site)
        for node, statement, scope, where in self._assigned():
            if not self._is_relative(node, scope, statement, set()):
                self._follow(node, scope, statement, where)
        wrapped = self._wrapped_sources()
        if wrapped is not None:
            reason = (
                "a schedule is used both by itself and inside another, so it cannot be told what to scale"
            )
            self._found.hidden.append(HiddenRate(wrapped, reason))
            self._found.rates = {key: rate for key, rate in self._found.rates.items() if not rate.computed}
        rates = [rate for rate in self._found.rates.values() if not self._calls_source(rate)]
        return rates, self._found.hidden

    def _wrapped_sources(self) -> Site | None:
        """Where a schedule that is scaled is handed to another that is scaled too."""
        for source in self._found.sources:
            if isinstance(source, UserInstance) and source.node is not None:
                site = self._script.site_of(source.node)
                for given in arguments(source.node):
                    if not self._found.sources.isdisjoint(self._names.site_values(given, site)):
                        return site
        return None

    def _calls_source(self, rate: Rate) -> bool:
        """Whether the rate is what a schedule or function gives that is itself scaled."""
        return rate.node is not None and any(
            value in self._found.sources
            for part in ast.walk(rate.node)
            if isinstance(part, ast.Call)
            for value in self._names.values(part.func, rate.scope, rate.statement)
        )

    # Constructors

    def _made_by_library(self, site: Site, name: str) -> bool:
        known = api.canonical(name)
        if name == "functools.partial":
            return self._made_later(site)
        if known in _MAKERS:
            self._found.hidden.append(
                HiddenRate(site, "the optimizer is made from a name or a configuration")
            )
            return True
        if known is None:
            return self._made_by_stranger(site, name)
        if not api.is_subclass(known, *api.OPTIMIZERS):
            return False
        signature = api.constructor(known)
        if signature is None or signature.parameter("learning_rate") is None:
            return False  # A wrapper such as LossScaleOptimizer (C22): the inner one is seen by itself.
        parameter = signature.parameter("learning_rate")
        assert parameter is not None
        ignored = api.is_subclass(known, *_IGNORING_LR)
        self._constructor(site, signature.position("learning_rate"), parameter.default, ignored)
        return True

    def _made_later(self, site: Site) -> bool:
        """``partial(Adam, learning_rate=0.1)``: scaled here if the rate is given here."""
        if not site.node.args:
            return False
        for name in self._names.full_names(site.node.args[0], site.scope, site.statement):
            signature = api.constructor(name) if api.is_subclass(name, *api.OPTIMIZERS) else None
            position = signature.position("learning_rate") if signature else None
            if position is not None:
                given = argument(site.node, position + 1, *NAMES)
                if given is not None:
                    self._follow(given, site.scope, site.statement, site)
                return True
        return False

    def _made_by_stranger(self, site: Site, name: str) -> bool:
        """An optimizer of a library that is not known, if an optimizer step uses what the call makes."""
        if name.partition(".")[0] in ("builtins", "horovod", "functools"):
            return False
        made = Instance(name, site.node)
        if not any(made in self._names.site_values(s.receiver, s.site) for s in self._training.steps):
            return False
        word = next((word for word in site.node.keywords if word.arg in NAMES), None)
        if word is None:
            self._found.hidden.append(
                HiddenRate(site, f"{name} is not known, so its learning rate cannot be told")
            )
        else:
            self._follow(word.value, site.scope, site.statement, site)
        return True

    def _made_by_class(self, site: Site, cls: Scope) -> bool:
        """An optimizer of a class of the script."""
        bases = self._names.library_bases(cls)
        base = next((each for each in sorted(bases) if api.is_subclass(each, *api.OPTIMIZERS)), None)
        if base is None:
            return False
        init = self._names.function_named(cls, "__init__")
        if init is None:
            return self._made_by_library(site, base)
        for name in NAMES:
            if name not in init.bindings:
                continue
            given = self._names.argument(site, init, name)
            default = init.bindings[name][0].value
            if given is not None:
                self._follow(given, site.scope, site.statement, site)
                return True
            if default is not None and not hides_arguments(site.node):
                text = self._script.text(default, init)
                self._add(Rate(site.statement, site.scope, None, site, name, text))
                return True
        self._found.hidden.append(
            HiddenRate(site, f"the learning rate of {cls.name} is not among its arguments")
        )
        return True

    def _constructor(self, site: Site, position: int | None, default: str | None, ignored: bool) -> None:
        """Scale the rate that is given, or else the default; `ignored` tells that ``lr=`` has no effect."""
        given = argument(site.node, position, "learning_rate")
        old = argument(site.node, None, "lr")
        if old is not None:
            self._follow(old, site.scope, site.statement, site)
        if old is not None and not ignored:
            return
        doubt = "this optimizer ignores lr= since TensorFlow 2.11; its default rate is scaled with it"
        if given is not None:
            self._follow(given, site.scope, site.statement, site)
        elif hides_arguments(site.node):
            self._found.hidden.append(HiddenRate(site, "the learning rate is hidden in * or ** arguments"))
        elif default is None or default == "...":
            self._found.hidden.append(HiddenRate(site, "no learning rate is given"))
        else:
            word = "learning_rate"
            self._add(Rate(site.statement, site.scope, None, site, word, default, doubt=doubt if old else ""))

    # From an expression to where its number stands

    def _follow(
        self, node: ast.expr, scope: Scope, statement: Statement, site: Site | None, depth: int = 0
    ) -> None:
        if _is_nothing(node) or depth > 20:
            return
        values = self._names.values(node, scope, statement)
        sources = [value for value in values if self._computes(value) and not self._is_read(value, site)]
        cases = self._cases(node, scope, statement)
        scaled = [self._horovod.scaled(case, where, at) for case, where, at, _ in cases]
        if sources and len(sources) == len(values):
            for value in sources:
                self._scale_source(value, site)
        elif cases and (0 < len(sources) < len(values) or 0 < sum(scaled) < len(scaled)):
            for case, where, at, call in cases:
                self._follow(case, where, at, call, depth + 1)
        elif self._horovod.scaled(node, scope, statement):
            return
        elif not sources:
            self._add(Rate(statement, scope, node, site, doubt=self._doubt(node, scope, statement, values)))
        elif site is not None:
            text = self._script.text(node, statement)
            self._found.hidden.append(HiddenRate(site, f"{text} may be a number or a schedule"))

    def _cases(
        self, node: ast.expr, scope: Scope, statement: Statement
    ) -> list[tuple[ast.expr, Scope, Statement, Site | None]]:
        """What a rate is in one case and in another, each to be scaled where it is made, if need be."""
        if isinstance(node, ast.IfExp):
            return [(part, scope, statement, None) for part in (node.body, node.orelse)]
        if not isinstance(node, ast.Name):
            return []
        _, bindings = self._names.lookup(node.id, scope, statement)
        cases: list[tuple[ast.expr, Scope, Statement, Site | None]] = []
        for binding in bindings:
            if binding.kind == "parameter" and binding.inner is not None:
                for caller in self._names.callers(binding.inner)[0]:
                    given = self._names.argument(caller, binding.inner, node.id)
                    if given is not None:
                        cases.append((given, caller.scope, caller.statement, caller))
            elif (
                binding.kind != "value" or binding.value is None or binding.path or binding.statement is None
            ):
                return []
            else:
                cases.append((binding.value, binding.scope, binding.statement, None))
        return cases

    def _computes(self, value: Value) -> bool:
        """Whether the rate is computed by an object, so that a factor cannot stand beside it."""
        if isinstance(value, Instance):
            schedule = api.is_subclass(value.cls, *api.SCHEDULE) or bool(api.rate_parameters(value.cls))
            return schedule or api.is_subclass(value.cls, *api.VARIABLE)
        return isinstance(value, Function | UserInstance)

    def _is_read(self, value: Value, site: Site | None) -> bool:
        """Whether the rate is a variable that a graph reads: it is scaled there, whatever assigns it."""
        variable = isinstance(value, Instance) and api.is_subclass(value.cls, *api.VARIABLE)
        return (
            variable
            and site is not None
            and self._program.graphs.is_used
            and any(
                api.is_subclass(name, "tensorflow.compat.v1.train.Optimizer")
                for name in self._names.full_names(site.node.func, site.scope, site.statement)
            )
        )

    def _scale_source(self, value: Value, site: Site | None) -> None:
        if value in self._found.sources:
            return
        self._found.sources.add(value)
        before = set(self._found.rates)
        self._scale_inside(value, site)
        for key in set(self._found.rates) - before:
            self._found.rates[key] = replace(self._found.rates[key], computed=True)

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
            self._found.hidden.append(
                HiddenRate(site, f"{last_name(site.node.func)} is not a known schedule")
            )
            return
        for name in names:
            given = argument(site.node, signature.position(name), name)
            parameter = signature.parameter(name)
            if given is not None:
                self._scale_argument(given, site, name)
            elif hides_arguments(site.node):
                self._found.hidden.append(HiddenRate(site, f"{name} is hidden in * or ** arguments"))
            elif parameter is not None and parameter.default not in (None, "None"):
                self._add(Rate(site.statement, site.scope, None, site, name, parameter.default or ""))

    def _scale_argument(self, given: ast.expr, site: Site, name: str) -> None:
        if self._horovod.scaled(given, site.scope, site.statement) or _is_nothing(given):
            return
        if name != "values":
            self._follow(given, site.scope, site.statement, site)
        elif isinstance(given, ast.List | ast.Tuple) and not any(
            isinstance(part, ast.Starred) for part in given.elts
        ):
            for part in given.elts:
                if not self._horovod.scaled(part, site.scope, site.statement):
                    self._add(Rate(site.statement, site.scope, part))
        else:
            self._add(Rate(site.statement, site.scope, given, site, each=True))

    def _scale_schedule_class(self, value: UserInstance, site: Site | None) -> None:
        call = self._names.function_named(value.scope, "__call__")
        if call is not None and call.returns:
            self._scale_returns(call)
            return
        bases = [each for each in self._names.library_bases(value.scope) if api.rate_parameters(each)]
        own_init = self._names.function_named(value.scope, "__init__")
        if bases and own_init is None and value.node is not None:
            self._scale_schedule(bases[0], self._script.site_of(value.node))
        elif site is not None:
            self._found.hidden.append(HiddenRate(site, f"{value.scope.name} has no __call__ to be scaled"))

    def _scale_returns(self, function: Scope) -> None:
        for node, statement in function.returns:
            where = statement or function.statement
            assert where is not None
            values = self._names.values(node, function, statement)
            nested = [value for value in values if self._computes(value)]
            if nested:
                for value in nested:
                    self._scale_source(value, None)
            elif not (
                self._horovod.scaled(node, function, statement)
                or _is_nothing(node)
                or self._is_relative(node, function, where, set())
            ):
                self._add(Rate(where, function, node))

    def _scale_variable(self, value: Instance, made: Site) -> None:
        initial = argument(made.node, 0, "initial_value")
        if initial is None:
            self._found.hidden.append(HiddenRate(made, "the variable of the rate has no initial value"))
        elif not self._horovod.scaled(initial, made.scope, made.statement):
            self._add(Rate(made.statement, made.scope, initial, made))
        for site in self._script.sites_named("assign"):
            if isinstance(site.node.func, ast.Attribute) and site.node.args:
                if value in self._names.site_values(site.node.func.value, site):
                    node = site.node.args[0]
                    if not self._mentions(node, site.node.func.value):
                        self._follow(node, site.scope, site.statement, site)

    def _mentions(self, node: ast.expr, other: ast.expr) -> bool:
        return any(
            isinstance(part, ast.expr) and dotted(part) == dotted(other) != "" for part in ast.walk(node)
        )

    # Callbacks that set the rate

    def _scheduled(self, site: Site) -> None:
        """The rates that a `LearningRateScheduler` is given by, and the floor of a `ReduceLROnPlateau`."""
        for value in self._names.callee(site):
            known = api.canonical(value.name) if isinstance(value, Library) else None
            if known == _PLATEAU:
                signature = api.constructor(known)
                given = argument(site.node, signature.position("min_lr") if signature else None, "min_lr")
                if given is not None:
                    self._follow(given, site.scope, site.statement, site)
            elif known == _SCHEDULER:
                given = argument(site.node, 0, "schedule")
                values = self._names.site_values(given, site) if given is not None else frozenset()
                if not values or any(isinstance(each, Unknown) for each in values):
                    self._found.hidden.append(HiddenRate(site, "the function of the schedule cannot be seen"))
                for each in values:
                    if self._computes(each):
                        self._scale_source(each, site)

    # Rates that are set while training

    def _assigned(self) -> Iterator[tuple[ast.expr, Statement, Scope, Site | None]]:
        """What is assigned to an optimizer's rate after its creation."""
        for name in NAMES:
            for attribute in self._script.attribute_bindings(name):
                binding = attribute.binding
                plain = binding.kind == "value" and binding.value is not None and not binding.path
                if (
                    plain
                    and binding.statement is not None
                    and not isinstance(binding.statement.node, ast.AugAssign)
                ):
                    if self._is_optimizer(attribute.base, binding.scope, binding.statement):
                        assert binding.value is not None
                        yield binding.value, binding.statement, binding.scope, None
        for site in self._script.sites_named("assign", "set_value"):
            target: ast.expr | None = None
            value: ast.expr | None = None
            if site.name == "assign" and isinstance(site.node.func, ast.Attribute):
                target, value = site.node.func.value, argument(site.node, 0, "value")
            elif self._names.calls(site, "tensorflow.keras.backend.set_value"):
                target, value = argument(site.node, 0, "x"), argument(site.node, 1, "value")
            if isinstance(target, ast.Attribute) and target.attr in NAMES and value is not None:
                if self._is_optimizer(target.value, site.scope, site.statement):
                    yield value, site.statement, site.scope, site

    def _is_optimizer(self, node: ast.expr, scope: Scope, statement: Statement) -> bool:
        values = self._names.values(node, scope, statement)
        if self._names.may_be(values, *api.OPTIMIZERS) or self._is_models_optimizer(node, scope, statement):
            return True
        used = {dotted(step.receiver) for step in self._training.steps}
        return any(isinstance(value, Unknown) for value in values) and dotted(node) in used

    def _is_models_optimizer(self, node: ast.expr, scope: Scope, statement: Statement) -> bool:
        """Whether the expression is ``model.optimizer``, in a callback ``self.model.optimizer`` too."""
        if not isinstance(node, ast.Attribute) or node.attr != "optimizer":
            return False
        model = self._names.values(node.value, scope, statement)
        if self._names.may_be(model, *api.MODEL):
            return True
        if isinstance(node.value, ast.Attribute) and node.value.attr == "model":
            owner = self._names.values(node.value.value, scope, statement)
            return self._names.may_be(owner, *api.CALLBACK)
        return False

    def _is_relative(
        self, node: ast.expr, scope: Scope, statement: Statement | None, seen: set[ast.AST]
    ) -> bool:
        """Whether the value comes from a rate that is scaled already: the optimizer's, or a schedule's.

        So does the second parameter of the function that a `LearningRateScheduler` calls.
        """
        if node in seen:
            return False
        seen.add(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and part.attr in NAMES and statement is not None:
                if self._is_optimizer(part.value, scope, statement):
                    return True
            elif isinstance(part, ast.Call):
                called = self._names.values(part.func, scope, statement)
                if any(value in self._found.sources for value in called):
                    return True
            elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                _, bindings = self._names.lookup(part.id, scope, statement)
                for binding in bindings:
                    if binding.kind == "parameter" and self._is_current_rate(binding):
                        return True
                    if binding.value is not None and binding.kind != "parameter":
                        if self._is_relative(binding.value, binding.scope, binding.statement, seen):
                            return True
        return False

    def _is_current_rate(self, binding: Binding) -> bool:
        """Whether a parameter is the rate that a schedule function is to change: ``def f(epoch, lr)``."""
        function = binding.inner
        if function is None or not any(
            isinstance(source, Function) and source.scope is function for source in self._found.sources
        ):
            return False
        assert isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        names = [each.arg for each in (*function.node.args.posonlyargs, *function.node.args.args)]
        place = 2 if function.owner() is not None else 1
        return isinstance(binding.target, ast.arg) and binding.target.arg in names[place : place + 1]

    def _doubt(self, node: ast.expr, scope: Scope, statement: Statement, values: frozenset[Value]) -> str:
        if not isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            return ""
        if isinstance(node, ast.Call) and last_name(node.func) in ("numpy", "item"):
            return ""
        unseen = any(isinstance(value, Unknown) or _is_strange(value) for value in values)
        if not unseen or self._is_option(node, scope, statement):
            return ""
        return f"{self._script.text(node, statement)} is taken to be a number, not a schedule"

    def _is_option(self, node: ast.expr, scope: Scope, statement: Statement) -> bool:
        """Whether the value is an attribute of parsed command-line options."""
        if not isinstance(node, ast.Attribute):
            return False
        if self._names.full_names(node.value, scope, statement) & {"absl.flags.FLAGS"}:
            return True
        if not isinstance(node.value, ast.Name):
            return False
        _, bindings = self._names.lookup(node.value.id, scope, statement)
        return any(
            isinstance(binding.value, ast.Call) and last_name(binding.value.func).startswith("parse")
            for binding in bindings
        )

    def _add(self, rate: Rate) -> None:
        key = rate.node if rate.node is not None else (rate.site, rate.keyword)
        self._found.rates.setdefault(key, rate)


def _is_strange(value: Value) -> bool:
    """Whether a library that is not known made the value, or Keras by a name that is not known."""
    if not isinstance(value, Instance) or api.canonical(value.cls):
        return False
    root = value.cls.partition(".")[0]
    return value.cls.startswith("tensorflow.keras.") or root not in (
        "tensorflow",
        "numpy",
        "math",
        "builtins",
    )


def _is_nothing(node: ast.expr) -> bool:
    """Whether a factor would change nothing: None or zero."""
    return isinstance(node, ast.Constant) and not node.value
