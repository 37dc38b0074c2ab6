"""No rank must leave or steer training by values of its own.

    callbacks = [                           callbacks = [
        EarlyStopping("loss")]                  hvd.callbacks.MetricAverageCallback(),
                                                EarlyStopping("loss")]

## Why it matters

Each rank has metrics of its own. One stops and the others wait for it until they fail, or their rates
silently differ.

## What to do

Put `hvd.callbacks.MetricAverageCallback()` before the callback, or average the value before a rank decides by
it.

## What is reported

- `EarlyStopping`, `ReduceLROnPlateau`, `TerminateOnNaN`, and callbacks of the script's own that stop training
  or set the rate: by a metric without `MetricAverageCallback` before them, by the clock, or on some ranks
  only
- a loop with collectives that a rank leaves, or a rate that it sets, by the clock or by a result of its own
  data that nothing averages
- rates, widths and trained variables that each rank draws
- weights that a rank sets by its own data, and averaged gradients that it changes by them

Unknown: metrics of validation data that all ranks share.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from trainshift.core.finding import Finding, Verdict
from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.libraries.divergence import CauseKind
from trainshift.libraries.entries import Role
from trainshift.python.flow import exits
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.occurrence import Occurrence, Step, of_call
from trainshift.python.names.values import Function, Instance, Literal, UserInstance
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import Span, one_line
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    Statement,
    argument,
    arguments,
    expression_path,
)
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.call_chains import called_from, functions_leading_to
from trainshift.restrictions.fixes.moves import hoisted, inserted
from trainshift.restrictions.fixes.places import horovod_name, replaced, text_of
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.execution.executions import Executions, innermost_loop
from trainshift.training.horovod.existing_use import KERAS, TENSORFLOW, Horovod
from trainshift.training.horovod.own_horovod import OwnHorovod
from trainshift.training.keras_version.for_keras2 import ForKeras2
from trainshift.training.loops.loop_kinds import SESSION_PATTERNS, Loop, Pattern
from trainshift.training.loops.stops import Stops
from trainshift.training.ranks.branches import Branch, Branches
from trainshift.training.ranks.collectives import Collectives
from trainshift.training.ranks.decisions import Decides, Decisions
from trainshift.training.ranks.shared_loops import Together
from trainshift.training.ranks.sinks import Sink, Sinks
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.list_members import callbacks
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.value_flow import ValueFlow, tests_around

_STEERING = {"EarlyStopping": "val_loss", "ReduceLROnPlateau": "val_loss", "TerminateOnNaN": "loss"}
_UNSURE = (CauseKind.PERHAPS, CauseKind.UNSURE)
_AVERAGING = "MetricAverageCallback"
_BY_CLOCK = "A rank stops by its own clock, and the others wait for it. Broadcast rank 0's decision."
_BY_VALUE = "Each rank leaves by a value of its own, and the others wait for it. Average it first."
_BY_METRICS = f"A rank stops by its own metrics, and the others wait for it. Add {_AVERAGING} before."
_BY_OWN = "A rank stops by its own metrics, and the others wait for it. Average them first."
_SENT = "Have rank 0 find it, and broadcast it."
_DRAWN = "Have rank 0 draw it, and broadcast it."
_OWN = "Average what the rank computed first."
_RATE = "This rank sets its rate by its own values, so the rates silently differ. Average them first."
_PASSED = "Each rank decides by its own values whether to make this collective call. Average them first."
_SKIPPED = "Each rank skips steps by its own batch, and the others wait for it. Decide together."
_ENDED = "Each rank decides alone when this loop ends, and the others wait for it. Decide together."


def check(program: Program, report: Report) -> Findings:
    """Yield one finding for each callback, each jump, and each rate by which ranks diverge."""
    told = set[Statement]()
    found: list[Finding] = []
    for loop in program.fact(Together).averaged:
        if loop.pattern is Pattern.OPTIMIZER and loop.is_call:
            found += _of_callbacks(program, report, loop, told)
            if _is_averaged(program, loop.sites[0]):
                continue
        found += _of_jumps(program, report, loop)
        found += _of_rates(program, report, loop, told)
    yield from found
    if program.fact(Together).averaged:
        yield from _of_draws(program, report)
        yield from _of_skips(program, report, [each.span for each in found])


def _of_skips(program: Program, report: Report, told: list[Span]) -> Iterator[Finding]:
    """Yield the steps that each rank skips because of its own batch, and the loops that it ends by its
    own draw.
    """
    uniformity = program.fact(Uniformity)
    for each in program.fact(Decisions).all:
        around = program.script.statement_span(each.statement)
        is_told = any(around.start <= span.start < around.end for span in told)
        if is_told:
            continue
        test = Occurrence(each.test, each.statement.scope, each.statement)
        if each.decides in (Decides.SKIPS, Decides.STEPS):
            yield report.violated(test, _SKIPPED)
        elif any(
            one.kind is not CauseKind.DATA and not uniformity.is_meant(one) for one in uniformity.causes(test)
        ):
            yield report.violated(test, _ENDED)


def _of_draws(program: Program, report: Report) -> Iterator[Finding]:
    """Yield the random draws and machine properties that must be the same on all ranks: a rate, a width.

    So must the weights that a rank sets by its own data, and what it makes of averaged gradients.
    """
    reported = set[ast.AST]()
    for each in program.fact(Sinks).divergences:
        at = each.cause.at if each.cause.kind is not CauseKind.DATA else each.at
        is_data = each.cause.kind is CauseKind.DATA
        if at.node in reported or each.cause.kind is CauseKind.RANK:
            continue
        if is_data and each.sink not in (
            Sink.UPDATE,
            Sink.WEIGHTS,
            Sink.STATE,
            Sink.LOSS,
        ):  # Others here report the rest.
            continue
        if each.sink in (Sink.EPOCH, Sink.STOP):  # HZ22 reports an epoch, and others here report a stop.
            continue
        reported.add(at.node)
        text = one_line(program.script.text(each.cause.at.node, each.cause.at.scope))
        advice = {CauseKind.DRAW: _DRAWN, CauseKind.DATA: _OWN}.get(each.cause.kind, _SENT)
        message = f"{text} {each.cause.kind.value}: {each.sink.value}. {advice}"
        is_sure = each.cause.kind not in _UNSURE and each.sink not in (Sink.STATE, Sink.LOSS)
        yield (report.violated if is_sure else report.unknown)(at, message)
    if not program.fact(Horovod).calls("broadcast_object"):
        for site, known in program.fact(Libraries).sites(Role.TRAINS):
            if known.flag("draws") and program.fact(Together).is_of_all(site):
                message = f"{site.name} draws parameters on each rank: {Sink.MODEL.value}. {_DRAWN}"
                yield report.violated(of_call(site), message)


def _asks(program: Program, kind: CauseKind, test: Occurrence) -> bool:
    """Return whether a test reads the time, or a rank's own result that no collective call has made equal."""
    return any(each.kind is kind for each in program.fact(Uniformity).causes(test))


def _is_averaged(program: Program, fit: Site) -> bool:
    """Return whether the metrics of a `fit` are averaged."""
    return any(_averages(program, element) for element in callbacks(program.script, fit))


def _averages(program: Program, element: Occurrence) -> bool:
    """Return whether a callback averages metrics on every rank."""
    return _AVERAGING in _kinds(program, element) and _branch_of(program, element) is None


def _kinds(program: Program, element: Occurrence) -> set[str]:
    """The classes of a callback: their names, or the Horovod class that a class of the script replaces."""
    values = program.names.values(*element[:3])
    role_of = program.fact(OwnHorovod).role_of
    return {each.cls.rpartition(".")[2] for each in values if isinstance(each, Instance)} | set(
        map(role_of, values)
    )


def _branch_of(program: Program, element: Occurrence) -> Branch | None:
    branches = program.fact(Branches)
    branch = branches.of(element)
    if branch is None and element.site is not None:
        branch = branches.of_call(element.site)
    return branch


def _of_callbacks(program: Program, report: Report, loop: Loop, told: set[Statement]) -> Iterator[Finding]:
    site = loop.sites[0]
    averaged = False
    for element in callbacks(program.script, site):
        branch = _branch_of(program, element)
        averaged = averaged or _averages(program, element)
        for value in program.names.values(*element[:3]):
            if not isinstance(value, Instance | UserInstance):
                continue
            yield from _of_own(program, report, site, value, averaged, branch, element, told)
            if _stops_by_clock(program, value):
                yield report.violated(element, _BY_CLOCK)
            kind = _steers(program, value)
            if not kind:
                continue
            if branch is not None:
                message = (
                    f"{kind} steers some ranks only, and the others go on without it. Add it on every rank."
                )
                added = of_call(element.site) if element.site is not None and averaged else element
                fix = hoisted(report, "Add it on every rank", added, branch)
                yield report.violated(element, message, fix=fix, asks=True)
            elif not averaged:
                yield from _by_own_metrics(program, report, site, element, value, kind)


def _steers(program: Program, value: Instance | UserInstance) -> str:
    """The TensorFlow callback class of an object, among those that decide by a metric; or empty."""
    if isinstance(value, Instance):
        classes = {value.cls}
    elif program.names.function_named(value.scope, "on_epoch_end") is not None:
        return ""
    else:
        classes = program.names.library_bases(value.scope)
    kinds = (each.rpartition(".")[2] for each in sorted(classes) if each.startswith("tensorflow."))
    return next((each for each in kinds if each in _STEERING), "")


def _stops_by_clock(program: Program, value: Instance | UserInstance) -> bool:
    """Return whether a library's callback ends the training without a metric."""
    known = program.fact(Libraries).of(value)
    return known is not None and known.flag("decides") and known.flag("blind")


def _of_own(
    program: Program,
    report: Report,
    fit: Site,
    callback: Instance | UserInstance,
    averaged: bool,
    branch: Branch | None,
    element: Occurrence,
    told: set[Statement],
) -> Iterator[Finding]:
    """Yield the places where a callback of the script steers a `fit`: ``self.model.stop_training = True``."""
    is_part = _parts(program, callback)
    for statement, is_rate in _steering(program):
        method = statement.scope.function()
        if method is None or statement in told or not is_part(method):
            continue
        on_some = branch is not None or program.fact(Branches).of_statement(statement) is not None
        if on_some and not is_rate:
            told.add(statement)
            message = (
                "This ends training on some ranks only, and the others wait. Decide alike on every rank."
            )
            yield report.violated(statement, message)
            continue
        tests = list(tests_around(statement, None))
        if any(_asks(program, CauseKind.CLOCK, each) for each in tests):
            told.add(statement)
            yield report.violated(statement, _RATE if is_rate else _BY_CLOCK)
            continue
        at_end = _ends_epoch(program, method)
        metrics = [each for test in tests for each in _logged(program, test)]
        judged = any(_asks(program, CauseKind.DATA, each) for each in tests)
        if (averaged and at_end and not judged) or not (metrics or judged):
            continue
        told.add(statement)
        shared = all(each.startswith("val_") for each in metrics) and _shares_validation(program, fit)
        verdict = Verdict.UNKNOWN if shared and not judged else Verdict.VIOLATED
        fixed = verdict is Verdict.VIOLATED and at_end and not judged
        by_metrics = _BY_OWN if program.fact(ForKeras2).is_keras3 else _BY_METRICS
        fix = _averaged(program, report, element) if fixed else None
        yield report.finding(verdict, statement, _RATE if is_rate else by_metrics, fix=fix)


def _logged(program: Program, test: Occurrence, seen: frozenset[ast.expr] = frozenset()) -> Iterator[str]:
    """Yield the metrics that a test in a callback reads, except results of collectives."""
    trail = program.fact(Trails).behind(test)
    if test.node in seen or any(map(program.fact(ValueFlow).is_collected, trail)):
        return
    for each in trail:
        name = each.node
        if isinstance(name, ast.Name) and each.statement is not None and _is_logs(program, each):
            path = expression_path(each.statement.node, name)
            keys = [node for node in path[-4:] if isinstance(node, ast.Subscript | ast.Call)]
            texts = [part.value for node in keys for part in ast.walk(node) if isinstance(part, ast.Constant)]
            yield next((text for text in texts if isinstance(text, str)), "")
    for each in trail:
        for source in (program.names.steps_back(each) or Step()).sources:
            for other in tests_around(source.statement, test.statement):
                yield from _logged(program, other, seen | {test.node})


def _is_logs(program: Program, at: Occurrence) -> bool:
    """Return whether a name is the last parameter of a callback's hook, which gets the metrics."""
    assert isinstance(at.node, ast.Name)
    function = at.scope.function()
    if function is None or not any(each.kind == "parameter" for each in program.names.bindings(at)):
        return False
    if at.node.id.startswith("logs"):
        return True
    is_hook = function.name.startswith("on_") or function.owner() is None
    assert isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    is_last = [each.arg for each in function.node.args.args][-1:] == [at.node.id]
    return is_hook and is_last and not program.names.callers(function)[0]


def _parts(program: Program, callback: Instance | UserInstance) -> Callable[[Scope], bool]:
    """Return a test for the methods of a callback, and for functions that Keras runs in their place."""
    if isinstance(callback, UserInstance):
        classes = program.names.ancestry(callback.scope)
        return lambda function: function.owner() in classes
    handed = set[Scope]()
    if isinstance(callback, Instance) and callback.cls.endswith(".LambdaCallback"):
        site = program.script.site_of(callback.node)
        for given in arguments(site.node):
            values = program.names.site_values(given, site)
            handed |= {each.scope for each in values if isinstance(each, Function)}
    return lambda function: function in handed


def _ends_epoch(program: Program, method: Scope) -> bool:
    """Return whether a function runs only at the end of an epoch, after metrics have been averaged."""
    hooks: set[str] = set()
    for each in functions_leading_to([method], called_from(program.names)):
        if each.name.startswith("on_") or not program.names.callers(each)[0]:
            hooks.add(each.name if each.owner() is not None else "on_epoch_end")
    return hooks == {"on_epoch_end"}


def _steering(program: Program) -> Iterator[tuple[Statement, bool]]:
    """The statements that end a training or set its rate, each with whether it sets the rate."""
    for stop in program.fact(Stops).bindings:
        if stop.statement is not None:
            yield stop.statement, False
    for rate in program.fact(Sinks).rates_set:
        if rate.statement is not None:
            yield rate.statement, True


def _by_own_metrics(
    program: Program,
    report: Report,
    site: Site,
    element: Occurrence,
    value: Instance | UserInstance,
    kind: str,
) -> Iterator[Finding]:
    on_keras3 = program.fact(ForKeras2).is_keras3
    average = "average them" if on_keras3 else f"put {_AVERAGING} before it"
    message = (
        f"{kind} decides by this rank's own metrics, so the ranks diverge. {average[0].upper()}{average[1:]}."
    )
    watched = _watched(program, value, kind)
    if watched.startswith("val_") and _shares_validation(program, site):
        message = (
            f"{kind} decides by this rank's own metrics. They are equal only if all ranks validate on "
            "the same "
            f"data; else {average}."
        )
        yield report.unknown(element, message)
    else:
        yield report.violated(element, message, fix=_averaged(program, report, element))


def _averaged(program: Program, report: Report, element: Occurrence) -> Change | None:
    """Insert the averaging callback before one in a literal list, or added to one.

    None for Keras 3, with which Horovod's callback does not work.
    """
    statement, name = element.statement, horovod_name(program, element, KERAS)
    path = expression_path(statement.node, element.node) if statement is not None else []
    if not name or len(path) < 2 or statement is None or program.fact(ForKeras2).is_keras3:
        return None
    title, average = "Average the metrics first", f"{name}.callbacks.{_AVERAGING}()"
    span = program.script.span(element.node, element.scope)
    if isinstance(path[-2], ast.List):
        return report.change(title, span, (Edit(span.start, span.start, f"{average}, "),))
    match statement.node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=callbacks), attr="append"))):
            return inserted(report, title, f"{callbacks}.append({average})", statement)
    return None


def _watched(program: Program, value: Instance | UserInstance, kind: str) -> str:
    """The metric that a callback looks at."""
    if isinstance(value, UserInstance) and "__init__" in value.scope.bindings:
        return _of_heir(program, value.scope)
    given = argument(value.node, 0, "monitor") if isinstance(value.node, ast.Call) else None
    if given is None or kind == "TerminateOnNaN":
        return _STEERING[kind]
    assert isinstance(value.node, ast.Call)
    site = program.script.site_of(value.node)
    known = [each.value for each in program.names.site_values(given, site) if isinstance(each, Literal)]
    return str(known[0]) if known else ""


def _of_heir(program: Program, cls: Scope) -> str:
    """The metric that a subclass's constructor names: ``super().__init__(monitor="loss")``."""
    for site in program.script.sites_named("__init__"):
        function = site.scope.function()
        if function is not None and function.owner() is cls:
            given = argument(site.node, None, "monitor") or next(iter(site.node.args[:1]), None)
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                return given.value
    return ""


def _of_jumps(program: Program, report: Report, loop: Loop) -> Iterator[Finding]:
    """Yield the jumps out of a loop of the script that depend on a rank's own value."""
    around = _around(program, loop)
    loops = {each for nest in around for each in nest}
    for statement in dict.fromkeys(nest[-1] for nest in around):
        for inner in statement.walk():
            if not isinstance(inner.node, ast.If | ast.While) or inner.scope is not statement.scope:
                continue
            if program.fact(Branches).of_statement(inner) is not None:
                continue
            body = inner.branches["body"]
            leaf = inner if isinstance(inner.node, ast.While) else body[-1]
            leaves = inner in loops if leaf is inner else _leaves(program, body, loops)
            if not leaves and not _comes_alone(program, inner):
                continue
            # A `while` also tests names that its iterations bind.
            where = inner.branches["body"][-1] if leaf is inner else inner
            test = Occurrence(inner.node.test, inner.scope, where)
            place = test if leaf is inner or not leaves else leaf
            if _asks(program, CauseKind.CLOCK, test):
                fix = _decided_by_root(program, report, test, loop)
                message = _BY_CLOCK if leaves else _PASSED
                yield report.violated(place, message, fix=fix, asks=True)
                continue
            tests = (test, *_tests_within(inner, statement)) if leaves else (test,)
            found = [each for each in tests if _asks(program, CauseKind.DATA, each)]
            if found:
                fix = _average_of_loss(program, report, test, loop) or _decided_by_root(
                    program, report, test, loop
                )
                fix = fix if found == [test] else None
                message = _BY_VALUE if leaves else _PASSED
                yield report.violated(place, message, fix=fix, asks=True)


def _around(program: Program, loop: Loop) -> list[list[Statement]]:
    """The loop statements of a training loop, those of each function innermost first."""
    found: list[list[Statement]] = []
    for site in reachable(loop.sites, lambda each: _callers(program, each)):
        outer = [each for each in site.statement.path() if isinstance(each.node, LOOPS)]
        own = [each for each in outer if each.scope.function() is site.scope.function()]
        if own:
            found.append(own)
    return found


def _callers(program: Program, site: Site) -> Sequence[Site]:
    function = site.scope.function()
    return program.names.callers(function)[0] if function is not None else ()


def _shares_validation(program: Program, fit: Site) -> bool:
    """Return whether all ranks validate on the same rows in a `fit`."""
    given = argument(fit.node, None, "validation_data")
    return given is not None and not _asks(program, CauseKind.RANK, of_call(fit).part(given))


def _comes_alone(program: Program, statement: Statement) -> bool:
    """Return whether an `if` reaches a collective in one branch only."""
    if not isinstance(statement.node, ast.If) or _looks_up(statement.node.test):
        return False
    collectives = program.fact(Collectives)
    waiting = {site.statement for site in (*collectives.sites, *collectives.calling)}
    ways = (statement.branches.get(name, ()) for name in ("body", "orelse"))
    found = [any(not waiting.isdisjoint(each.walk()) for each in way) for way in ways]
    return found.count(True) == 1


def _looks_up(test: ast.expr) -> bool:
    """Return whether a test checks for existence, which does not depend on the result of a step."""
    kinds = ast.In | ast.NotIn | ast.Is | ast.IsNot
    return isinstance(test, ast.Compare) and all(isinstance(each, kinds) for each in test.ops)


def _of_rates(program: Program, report: Report, loop: Loop, told: set[Statement]) -> Iterator[Finding]:
    """Yield the rates that a rank sets by its own values."""
    runs = program.fact(Together).runs
    for rate in program.fact(Sinks).rates_set:
        statement = rate.statement
        if statement is None or statement in told or not runs(statement.scope):
            continue
        asked = [*tests_around(statement, None), rate]
        if any(_asks(program, CauseKind.DATA, each) for each in asked):
            told.add(statement)
            yield report.violated(statement, _RATE)


def _decided_by_root(program: Program, report: Report, test: Occurrence, loop: Loop) -> Change | None:
    """Replace the test of each rank by that of rank 0; sessions have no such call."""
    horovod, text = horovod_name(program, test, TENSORFLOW), program.script.text(test.node, test.scope)
    traced = program.fact(Executions).is_traced(test.scope)
    if loop.pattern in SESSION_PATTERNS or traced or not horovod or "\n" in text:
        return None
    decided = f"{horovod}.broadcast_object({text}, root_rank=0)"
    return replaced(report, "Have rank 0 decide", test, decided)


def _tests_within(statement: Statement, loop: Statement) -> Iterator[Occurrence]:
    """The enclosing `if` tests of a statement, inside its loop."""
    outside = set(loop.path())
    for above in statement.ancestors():
        if isinstance(above.node, ast.If) and above not in outside and above.scope is statement.scope:
            yield Occurrence(above.node.test, above.scope, above)


def _is_caught(leaf: Statement, loops: set[Statement]) -> bool:
    """Return whether a `try` around one of some loops continues after an exception raised in the loop."""
    inside = leaf
    left = False
    for above in leaf.ancestors():
        left = left or above in loops
        if left and isinstance(above.node, ast.Try) and above.node.handlers and inside.branch == "body":
            return True
        inside = above
    return False


def _leaves(program: Program, block: list[Statement], loops: set[Statement]) -> bool:
    """Return whether a block ends an iteration of one of some loops, or the loop, on this rank only."""
    flow = program.fact(ControlFlow)
    found = flow.completions(block)
    if exits.FALL in found:
        return False
    # A failing run ends all ranks, as intended; a finished one leaves the others waiting.
    return (
        exits.RETURN in found
        or (exits.RAISE in found and _is_caught(block[-1], loops))
        or (exits.END in found and flow.succeeds(block))
        or (not found.isdisjoint({exits.BREAK, exits.CONTINUE}) and innermost_loop(block[-1]) in loops)
    )


def _average_of_loss(program: Program, report: Report, test: Occurrence, loop: Loop) -> Change | None:
    """Replace the only name through which a test reads a step's loss by its average."""
    losses = program.fact(Uniformity).losses.keys() | {each.node for each in loop.sites}

    def gives_loss(at: Occurrence) -> bool:
        if at.node in losses:
            return True
        if not isinstance(at.node, ast.Call):
            return False
        functions = program.names.called_functions(program.script.site_of(at.node))
        returned = [Occurrence(value, each, where) for each in functions for value, where in each.returns]
        return bool(returned) and all(isinstance(each.node, ast.Name) and is_loss(each) for each in returned)

    def is_loss(at: Occurrence) -> bool:
        step = program.names.steps_back(at)
        return step is not None and bool(step.sources) and all(map(gives_loss, step.sources))

    function = test.scope.function()
    names = [
        each
        for each in program.fact(Trails).behind(test)
        if isinstance(each.node, ast.Name) and each.scope.function() is function and is_loss(each)
    ]
    horovod = horovod_name(program, test)
    if loop.pattern in SESSION_PATTERNS or loop.is_call or len(names) != 1 or not horovod:
        return None
    (name,) = names
    text = f"{horovod}.allreduce({text_of(program, name.node, name.scope)})"
    return replaced(report, "Average the loss first", name, text)
