"""A rate that follows the number of ranks must last, and be multiplied once.

    callbacks = [                           callbacks = [
        LearningRateScheduler(                  LearningRateScheduler(
            lambda epoch: 0.01)]                    lambda epoch: 0.01 * hvd.size())]

## Why it matters

The optimizer does not use the scaled rate, or the rate is multiplied twice.

## What to do

Multiply a rate once, where it is created, and multiply the rates that callbacks return as well.

## What is reported

- two factors `hvd.size()`, or one and `op=Sum`
- a schedule object times a number
- a scheduler, an `initial_lr`, or a rate that is set later (`optimizer.lr = 0.001`, `assign`, `K.set_value`),
  without the factor that the optimizer has
- a constant `multiplier` below 1, which is compounded each epoch
- rate callbacks beside a schedule object
- `lr=`, which new optimizers of Keras ignore
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.finding import Finding, Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.libraries import api
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Instance, Literal
from trainshift.python.source.edit import Change, Edit
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Site, argument, arguments, children
from trainshift.restrictions.fixes.factors import multiplied, without_factor
from trainshift.restrictions.fixes.places import appended, beside, horovod_name, replaced, text_of
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.own_horovod import RATE_CALLBACKS
from trainshift.training.keras_version.for_keras2 import ForKeras2
from trainshift.training.learning_rates.double_scaling import DoubleScaling
from trainshift.training.learning_rates.rate_cases import RateCases
from trainshift.training.learning_rates.rate_kinds import RateKind
from trainshift.training.learning_rates.rate_settings import RateSettings
from trainshift.training.learning_rates.rates import Rates
from trainshift.training.ranks.shared_loops import Together
from trainshift.training.ranks.unsupported_api import Strangers
from trainshift.training.uniformity.backward_slice import Trails


def check(program: Program, report: Report) -> Findings:
    """One finding for each place where the factor is doubled or lost."""
    rates = program.fact(Rates)
    runs = program.fact(Together).runs
    for site, wraps in rates.shared.items():
        rate = rates.rate(site)
        if rate is not None and runs(site.scope):
            yield from _twice(program, report, rate, [wrap for wrap in wraps if rates.sums([wrap])])
    yield from _times_schedules(program, report)
    if any(_is_scaled(program, site) for site in rates.shared):
        yield from _schedulers(program, report)
        yield from _set(program, report)
        yield from _warm_ups(program, report)
    yield from _multipliers(program, report)
    yield from _beside_schedules(program, report)
    yield from _ignored(program, report)


def _is_scaled(program: Program, site: Site) -> bool:
    rates = program.fact(Rates)
    rate = rates.rate(site)
    return rate is not None and rates.is_scaled(rate)


def _twice(program: Program, report: Report, rate: Occurrence, summing: list[Site]) -> Iterator[Finding]:
    """Yield (a) two factors, or one factor with summed gradients."""
    count = program.fact(DoubleScaling).count(rate)
    if count > 1:
        message = "This rate is multiplied by the number of ranks twice. Drop one factor."
        fix = _without(program, report, rate)
        yield report.violated(rate, message, fix=fix, asks=True)
    elif count and summing:
        message = "op=Sum already makes the gradients that large, so this rate is too large. Drop the factor."
        related = tuple(beside(program, wrap, "gradients are summed here") for wrap in summing)
        fix = _without(program, report, rate)
        yield report.violated(rate, message, related, fix, asks=True)


def _without(program: Program, report: Report, rate: Occurrence) -> Change | None:
    """The rate without a literal factor."""
    edit = without_factor(program, rate)
    span = program.script.span(rate.node, rate.scope)
    return report.change("Drop the factor", span, (edit,)) if edit is not None else None


def _times_schedules(program: Program, report: Report) -> Iterator[Finding]:
    """(b) a schedule object times a number."""
    seen = set[int]()
    for site in program.fact(Rates).made:
        rate = program.fact(Rates).rate(site)
        for at in program.fact(Trails).behind(rate) if rate is not None else ():
            node = at.node
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult) or id(node) in seen:
                continue
            sides = [program.names.values(each, at.scope, at.statement) for each in (node.left, node.right)]
            if any(
                values and all(program.names.is_a(each, *api.SCHEDULE) for each in values) for values in sides
            ):
                seen.add(id(node))
                message = "A schedule is not a number: TypeError. Multiply the rates inside it."
                yield report.violated(at, message, fix=_scaled_inside(program, report, at))


def _scaled_inside(program: Program, report: Report, product: Occurrence) -> Change | None:
    """Move the factor into the only schedule that it multiplies, if that has a single rate."""
    node, outside = product.node, without_factor(program, product)
    assert isinstance(node, ast.BinOp)
    values = [
        each
        for side in (node.left, node.right)
        for each in program.names.values(side, product.scope, product.statement)
        if isinstance(each, Instance) and program.names.is_a(each, *api.SCHEDULE)
    ]
    name = horovod_name(program, product)
    rates = api.rate_parameters(values[0].cls) if len(values) == 1 else ()
    if outside is None or len(rates) != 1 or not name:
        return None
    made = program.script.site_of(values[0].node)
    rate = argument(made.node, 0, *rates)
    if not isinstance(rate, ast.Constant | ast.Name):
        return None
    inside = multiplied(program, Occurrence(rate, made.scope, made.statement), f"{name}.size()")
    span = program.script.span(node, product.scope)
    return report.change("Multiply the rate inside it", span, (*inside, outside))


def _schedulers(program: Program, report: Report) -> Iterator[Finding]:
    """Yield (c) Keras schedulers whose function uses neither the number of ranks nor the previous rate."""
    for site in program.script.sites_named("LearningRateScheduler"):
        if not program.names.calls(site, "tensorflow.keras.callbacks.LearningRateScheduler"):
            continue
        given = argument(site.node, 0, "schedule")
        if given is None or not program.fact(Together).is_of_all(site):
            continue
        at = Occurrence(given, site.scope, site.statement)
        functions = [
            function
            for each in program.names.values(*at[:3])
            if (function := program.names.function_of(each)) is not None
        ]
        if not functions or program.fact(Trails).function_mentions_size(at):
            continue
        if program.fact(Rates).is_scaled(at) or any(_reads_rate(each) for each in functions):
            continue
        message = "This sets the rate of one rank, and the factor hvd.size() is lost. Multiply it here too."
        fix = _scaled_returns(program, report, site, functions)
        yield report.violated(site, message, fix=fix)


def _set(program: Program, report: Report) -> Iterator[Finding]:
    """Yield (c) rates set during training to a number of the script, not derived from the previous rate."""
    rates, cases = program.fact(Rates), program.fact(RateCases)
    settings = RateSettings(program, cases)
    if rates.is_set_later:
        return
    for setting in settings.all():
        value = setting.value
        if settings.is_within_optimizer(setting) or not program.fact(Together).runs(value.scope):
            continue
        makers = rates.makers(setting.optimizer)
        if makers and not any(each in rates.shared and _is_scaled(program, each) for each in makers):
            continue
        if cases.kinds(value) == RateKind.NUMBER and _is_own(program, value, set()):
            message = (
                "This sets the rate of one rank, and the factor hvd.size() is lost. Multiply it here too."
            )
            name = horovod_name(program, value)
            edits = multiplied(program, value, f"{name}.size()") if name else ()
            span = program.script.span(value.node, value.scope)
            fix = report.change("Multiply it by the number of ranks", span, edits) if edits else None
            yield report.violated(value, message, fix=fix)


def _is_own(program: Program, at: Occurrence, seen: set[int]) -> bool:
    """Return whether a rate consists only of the script's own numbers: literals and loop counters."""
    if id(at.node) in seen or program.fact(Rates).is_known(at) or _counts(program, at):
        return True
    seen.add(id(at.node))
    step = program.names.steps_back(at)
    if step is not None:
        parts: list[Occurrence] = [] if step.unseen else [*step.sources]
    elif isinstance(at.node, ast.Call):
        calculates = program.names.full_names(at.node.func, at.scope, at.statement)
        parts = [at.part(each) for each in arguments(at.node)] if calculates else []
    else:
        parts = [at.part(each) for each in children(at.node) if isinstance(each, ast.expr)]
    return bool(parts) and all(_is_own(program, each, seen) for each in parts)


def _counts(program: Program, at: Occurrence) -> bool:
    """Return whether a name is a loop index, or the number that Keras passes to a callback."""
    bindings = program.names.bindings(at) if isinstance(at.node, ast.Name) else []
    return bool(bindings) and all(_is_of_turn(program, each) for each in bindings)


def _is_of_turn(program: Program, binding: Binding) -> bool:
    if binding.kind == "element" and isinstance(binding.value, ast.Call):
        names = program.names.full_names(binding.value.func, binding.scope, binding.statement)
        return bool(names & {"builtins.range", "builtins.enumerate", "tensorflow.range"})
    function = binding.inner if binding.kind == "parameter" else None
    hook = function is not None and function.name.startswith("on_")
    owner = function.owner() if function is not None and hook else None
    return owner is not None and program.names.descends(owner, *api.CALLBACK)


def _scaled_returns(program: Program, report: Report, site: Site, functions: list[Scope]) -> Change | None:
    """The factor on all results of a function of an epoch."""
    name = horovod_name(program, site)
    if len(functions) != 1 or not name or not functions[0].returns:
        return None
    (function,) = functions
    if program.script.home(function) is not program.script.home(site.scope):
        return None
    edits = [
        edit
        for value, where in function.returns
        for edit in multiplied(program, Occurrence(value, function, where), f"{name}.size()")
    ]
    span = program.script.span(site.node, site)
    return report.change("Multiply it by the number of ranks", span, tuple(edits))


def _reads_rate(function: Scope) -> bool:
    """Return whether a function of an epoch also takes the previous rate, and reads it."""
    node = function.node
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    names = [
        each.arg for each in (*node.args.posonlyargs, *node.args.args) if each.arg not in ("self", "cls")
    ]
    body = node.body if isinstance(node.body, list) else [node.body]
    read = {
        each.id
        for statement in body
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
    return len(names) > 1 and names[1] in read


def _warm_ups(program: Program, report: Report) -> Iterator[Finding]:
    """Yield (d) warm-ups to a rate that is not multiplied."""
    rates = program.fact(Rates)
    for site in program.fact(Horovod).calls("LearningRateWarmupCallback"):
        given = argument(site.node, 0, "initial_lr")
        if given is None or site.node in program.fact(Strangers).calls:
            continue
        at = Occurrence(given, site.scope, site.statement)
        if rates.is_known(at) and not rates.is_scaled(at):
            message = "The warm-up ends at the rate of one rank. Pass the rate times hvd.size()."
            name = horovod_name(program, site)
            plain = isinstance(given, ast.Constant | ast.Name) and bool(name)
            text = f" * {name}.size()"
            fix = appended(report, "Multiply it by the number of ranks", at, text) if plain else None
            yield report.violated(site, message, fix=fix)


def _multipliers(program: Program, report: Report) -> Iterator[Finding]:
    """Yield (e) constants below 1 that are applied again each epoch."""
    for site in program.fact(Horovod).calls("LearningRateScheduleCallback"):
        given = argument(site.node, 1, "multiplier")
        if given is None or site.node in program.fact(Strangers).calls:
            continue
        values = [each.value for each in program.names.site_values(given, site) if isinstance(each, Literal)]
        numbers = [each for each in values if isinstance(each, int | float) and not isinstance(each, bool)]
        if numbers and all(each < 1 for each in numbers):
            text = text_of(program, given, site)
            message = f"This multiplies the rate by {text} again each epoch. Pass lambda epoch: {text}."
            at = Occurrence(given, site.scope, site.statement)
            fix = replaced(report, "Pass a function", at, f"lambda epoch: {text}")
            yield report.violated(site, message, fix=fix)


def _beside_schedules(program: Program, report: Report) -> Iterator[Finding]:
    """Yield (f) callbacks that set the rate of an optimizer whose rate is a schedule object."""
    rates = program.fact(Rates)
    given = [rate for site in rates.shared for rate in (rates.rate(site),) if rate is not None]
    if not given or not all(map(rates.is_schedule, given)):
        return
    for site in program.fact(Horovod).calls(*RATE_CALLBACKS):
        if site.node not in program.fact(Strangers).calls:
            message = f"{site.name} has no effect: the rate of the optimizer is a schedule."
            yield report.violated(site, message)


def _ignored(program: Program, report: Report) -> Iterator[Finding]:
    """(g) ``lr=`` of an optimizer that only knows ``learning_rate=``."""
    for site in program.fact(Rates).made:
        word = next((each for each in site.node.keywords if each.arg == "lr"), None)
        if any(each.arg == "learning_rate" for each in site.node.keywords):
            continue
        if word is None or not program.fact(Together).runs(site.scope):
            continue
        classes = {
            each.cls for each in program.names.site_values(site.node, site) if isinstance(each, Instance)
        }
        if not classes or not all(_is_new(each) for each in classes):
            continue
        old = program.fact(Strangers).uses_graphs
        verdict = Verdict.HARMLESS if old else Verdict.VIOLATED
        message = (
            "lr= has been ignored since TensorFlow 2.11, so the default rate is used. Write learning_rate=."
        )
        if program.fact(ForKeras2).is_keras3:
            message = "Keras 3's optimizers have no argument lr=: ValueError. Write learning_rate=."
        span, value = program.script.span(word, site), program.script.span(word.value, site)
        edit = Edit(span.start, value.start, "learning_rate=")
        fix = report.change("Write learning_rate=", span, (edit,))
        yield report.finding(verdict, site, message, fix=fix, asks=True)


def _is_new(cls: str) -> bool:
    return (
        cls.startswith("tensorflow.keras.optimizers.")
        and ".legacy." not in cls
        and not api.is_subclass(cls, "tensorflow.keras.optimizers.legacy.Optimizer")
    )
