"""No rank must leave or steer training by values of its own.

    callbacks = [                           callbacks = [
        EarlyStopping("loss")]                  hvd.callbacks.MetricAverageCallback(),
                                                EarlyStopping("loss")]

## Why it matters

Each rank has metrics of its own. One stops and the others die waiting for it, or their rates differ in
silence.

## What to do

Put `hvd.callbacks.MetricAverageCallback()` before the callback, or average the value before a rank decides by
it.

## What is reported

`EarlyStopping`, `ReduceLROnPlateau`, `TerminateOnNaN`, and callbacks of the script's own that stop by a
metric, without `MetricAverageCallback` before them, or on some ranks only, or by the clock; and a loop with
collectives that a rank leaves by the clock, or by a loss or another result of its batch that nothing made
equal. Unknown are metrics of validation data that all ranks share.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from trainshift.core.finding import Finding, Verdict
from trainshift.core.names import api
from trainshift.core.names.occurrence import Occurrence, Step, leading_to, of_call
from trainshift.core.names.values import Instance, Literal, UserInstance
from trainshift.core.program import Program
from trainshift.core.ranks.averaging import Averaging
from trainshift.core.ranks.branches import Branch, Branches
from trainshift.core.ranks.collectives import Collectives
from trainshift.core.ranks.dependence import COLLECTIVE, tests_around
from trainshift.core.ranks.list_members import callbacks
from trainshift.core.ranks.together import Together
from trainshift.core.ranks.work.own_horovod import OwnHorovod
from trainshift.core.ranks.work.trails import Trails
from trainshift.core.text.edit import Change, Edit
from trainshift.core.text.facts import Site, Statement, argument, expression_path, last_name
from trainshift.core.training.executions import LOOPS, Executions
from trainshift.core.training.horovod import KERAS, TENSORFLOW, Horovod
from trainshift.core.training.loop_kinds import Loop, Pattern
from trainshift.restrictions.facts.moves import hoisted, inserted
from trainshift.restrictions.facts.places import hazard, horovod_name, replaced, text_of
from trainshift.restrictions.restriction import Findings

_STEERING = {"EarlyStopping": "val_loss", "ReduceLROnPlateau": "val_loss", "TerminateOnNaN": "loss"}
_AVERAGING = "MetricAverageCallback"
# Tests are not followed through more others than this.
_DEEPEST = 2
_CLOCKS = ("time.", "datetime.")
_NUMBERS = tuple(f"builtins.{name}" for name in ("int", "float", "round", "min", "max", "abs", "bool"))
_BY_CLOCK = "A rank stops by its own clock, and the others wait for it. Broadcast what rank 0 decides."
# What a graph gets the rows of a batch by.
_INPUTS = frozenset(
    {
        "placeholder", "get_next", "batch", "shuffle_batch", "batch_join", "dequeue", "dequeue_many",
        "random_normal", "random_uniform", "normal", "uniform", "truncated_normal", "py_func",
    }
)  # fmt: skip
_SESSIONS = (Pattern.SESSION, Pattern.MONITORED_SESSION)


def check(program: Program) -> Findings:
    """One finding for each callback, and each jump, by which ranks part."""
    for loop in program.fact(Together).averaged:
        if loop.pattern is Pattern.OPTIMIZER and loop.is_call:
            yield from _of_callbacks(program, loop)
        else:
            yield from _of_jumps(program, loop)


def _of_callbacks(program: Program, loop: Loop) -> Iterator[Finding]:
    site = loop.sites[0]
    branches = program.fact(Branches)
    averaged = False
    for element in callbacks(program.script, site):
        found = program.names.values(*element[:3])
        values = [each for each in found if isinstance(each, Instance)]
        kinds = {each.cls.rpartition(".")[2] for each in values}
        kinds.update(map(program.fact(OwnHorovod).role_of, found))
        branch = branches.of(element)
        if branch is None and element.site is not None:
            branch = branches.of_call(element.site)
        if _AVERAGING in kinds and branch is None:
            averaged = True
        for own in (each for each in found if isinstance(each, UserInstance)):
            yield from _of_own(program, site, own, averaged, branch, element)
        for value in values:
            kind = value.cls.rpartition(".")[2]
            if kind not in _STEERING or not value.cls.startswith("tensorflow."):
                continue
            if branch is not None:
                message = (
                    f"{kind} steers some ranks only, and the others go on without it. Add it on every rank."
                )
                added = of_call(element.site) if element.site is not None and averaged else element
                fix = hoisted(program, "HZ13", "Add it on every rank", added, branch)
                yield hazard(program, "HZ13", Verdict.VIOLATED, element, message, fix=fix, asks=True)
            elif not averaged or kind == "TerminateOnNaN":
                yield from _by_own_metrics(program, site, element, value, kind, averaged)


def _of_own(
    program: Program,
    fit: Site,
    callback: UserInstance,
    averaged: bool,
    branch: Branch | None,
    element: Occurrence,
) -> Iterator[Finding]:
    """Where a callback of the script's own ends a `fit`: ``self.model.stop_training = True``."""
    classes = program.names.ancestry(callback.scope)
    for attribute in program.script.attribute_bindings("stop_training"):
        statement, method = attribute.binding.statement, attribute.binding.scope.function()
        if statement is None or method is None or method.owner() not in classes:
            continue
        message = "This ends training on some ranks only, and the others wait. Decide alike on every rank."
        if branch is not None or program.fact(Branches).of_statement(statement) is not None:
            yield hazard(program, "HZ13", Verdict.VIOLATED, statement, message)
            continue
        tests = list(tests_around(statement, None))
        if any(_asks_clock(program, each) for each in tests):
            yield hazard(program, "HZ13", Verdict.VIOLATED, statement, _BY_CLOCK)
            continue
        metrics = [each for test in tests for each in _logged(program, test)]
        if (averaged and method.name == "on_epoch_end") or not metrics:
            continue
        shared = all(each.startswith("val_") for each in metrics) and _shares_validation(program, fit)
        verdict = Verdict.UNKNOWN if shared else Verdict.VIOLATED
        message = f"A rank stops by its own metrics, and the others wait for it. Add {_AVERAGING} before."
        fixed = verdict is Verdict.VIOLATED and method.name == "on_epoch_end"
        fix = _averaged(program, element) if fixed else None
        yield hazard(program, "HZ13", verdict, statement, message, fix=fix)


def _logged(program: Program, test: Occurrence, depth: int = 0) -> Iterator[str]:
    """The metrics that a test of a callback's method asks for; none of those that a collective gives."""
    trail = program.fact(Trails).behind(test)
    if _makes_equal(program, test):
        return
    for each in trail:
        name = each.node
        if not isinstance(name, ast.Name) or not name.id.startswith("logs") or each.statement is None:
            continue
        if any(binding.kind == "parameter" for binding in program.names.bindings(each)):
            path = expression_path(each.statement.node, name)
            keys = [node for node in path[-4:] if isinstance(node, ast.Subscript | ast.Call)]
            texts = [part.value for node in keys for part in ast.walk(node) if isinstance(part, ast.Constant)]
            yield next((text for text in texts if isinstance(text, str)), "")
    for each in trail if depth < _DEEPEST else ():
        for source in (program.names.steps_back(each) or Step()).sources:
            for other in tests_around(source.statement, test.statement):
                yield from _logged(program, other, depth + 1)


def _by_own_metrics(
    program: Program, site: Site, element: Occurrence, value: Instance, kind: str, averaged: bool
) -> Iterator[Finding]:
    if averaged:
        return
    message = f"{kind} decides by this rank's own metrics, so ranks part. Put {_AVERAGING} before it."
    watched = _watched(program, value, kind)
    if watched.startswith("val_") and _shares_validation(program, site):
        message = (
            f"{kind} decides by this rank's own metrics. They are equal only if all ranks validate on "
            "the same "
            f"data; else put {_AVERAGING} before it."
        )
        yield hazard(program, "HZ13", Verdict.UNKNOWN, element, message)
    else:
        yield hazard(program, "HZ13", Verdict.VIOLATED, element, message, fix=_averaged(program, element))


def _averaged(program: Program, element: Occurrence) -> Change | None:
    """The average in front of a callback that is written out in a list, or added to one."""
    statement, name = element.statement, horovod_name(program, element, KERAS)
    path = expression_path(statement.node, element.node) if statement is not None else []
    if not name or len(path) < 2 or statement is None:
        return None
    title, average = "Average the metrics first", f"{name}.callbacks.{_AVERAGING}()"
    span = program.script.span(element.node, element.scope)
    if isinstance(path[-2], ast.List):
        return Change("HZ13", title, span, (Edit(span.start, span.start, f"{average}, "),))
    match statement.node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=callbacks), attr="append"))):
            return inserted(program, "HZ13", title, f"{callbacks}.append({average})", statement)
    return None


def _watched(program: Program, value: Instance, kind: str) -> str:
    """The metric that a callback looks at."""
    given = argument(value.node, 0, "monitor")
    if given is None or kind == "TerminateOnNaN":
        return _STEERING[kind]
    site = program.script.site_of(value.node)
    known = [each.value for each in program.names.site_values(given, site) if isinstance(each, Literal)]
    return str(known[0]) if known else ""


def _shares_validation(program: Program, site: Site) -> bool:
    """Whether all ranks validate on the same rows."""
    given = argument(site.node, None, "validation_data")
    if given is None:
        return False
    at = Occurrence(given, site.scope, site.statement)
    trail = program.fact(Trails).behind(at, True)
    ranks = set(program.fact(Horovod).calls("rank", "local_rank"))
    return not any(call in ranks for call in program.fact(Trails).calls(trail))


def _of_jumps(program: Program, loop: Loop) -> Iterator[Finding]:
    """The jumps out of a loop of the script's own, on a value that each rank has computed for itself."""
    around = list(_around(program, loop))
    loops = {each for nest in around for each in nest}
    for statement in dict.fromkeys(nest[-1] for nest in around):
        for inner in statement.walk():
            if not isinstance(inner.node, ast.If | ast.While) or inner.scope is not statement.scope:
                continue
            leaf = inner if isinstance(inner.node, ast.While) else inner.branches["body"][-1]
            if not _leaves(leaf, loops) or program.fact(Branches).of_statement(inner) is not None:
                continue
            # A `while` also asks by what its turns have bound.
            where = inner.branches["body"][-1] if leaf is inner else inner
            test = Occurrence(inner.node.test, inner.scope, where)
            place = test if leaf is inner else leaf
            if _asks_clock(program, test):
                fix = _decided_by_root(program, test, loop)
                yield hazard(program, "HZ13", Verdict.VIOLATED, place, _BY_CLOCK, fix=fix, asks=True)
                continue
            tests = (test, *_tests_within(inner, statement))
            own = [each for each in tests if _is_own(program, each, loop)]
            if own:
                message = (
                    "This rank leaves by a value of its own, and the others wait for it. Average it first."
                )
                fix = _average_of_loss(program, test, loop) or _decided_by_root(program, test, loop)
                fix = fix if own == [test] else None
                yield hazard(program, "HZ13", Verdict.VIOLATED, place, message, fix=fix, asks=True)


def _decided_by_root(program: Program, test: Occurrence, loop: Loop) -> Change | None:
    """What rank 0 finds by a test, in place of what each rank finds; sessions have no such call."""
    horovod, text = horovod_name(program, test, TENSORFLOW), program.script.text(test.node, test.scope)
    traced = program.fact(Executions).is_traced(test.scope)
    if loop.pattern in _SESSIONS or traced or not horovod or "\n" in text:
        return None
    decided = f"{horovod}.broadcast_object({text}, root_rank=0)"
    return replaced(program, "HZ13", "Have rank 0 decide", test, decided)


def _tests_within(statement: Statement, loop: Statement) -> Iterator[Occurrence]:
    """The tests of the `if` around a statement of a loop, within that."""
    outside = set(loop.path())
    for above in statement.ancestors():
        if isinstance(above.node, ast.If) and above not in outside and above.scope is statement.scope:
            yield Occurrence(above.node.test, above.scope, above)


def _leaves(leaf: Statement, loops: set[Statement]) -> bool:
    """Whether a statement ends a turn of one of some loops, or all of them; a loop does by its test."""
    if isinstance(leaf.node, LOOPS):
        return leaf in loops
    if isinstance(leaf.node, ast.Return):
        return True
    left = next((each for each in leaf.ancestors() if isinstance(each.node, LOOPS)), None)
    return isinstance(leaf.node, ast.Break | ast.Continue) and left in loops


def _asks_clock(program: Program, test: Occurrence) -> bool:
    """Whether a test asks for the time, which no collective made the same on all ranks."""
    names = (
        name
        for each in leading_to(test, partial(_computed_of, program))
        if isinstance(each.node, ast.Call)
        for name in program.names.full_names(each.node.func, each.scope, each.statement)
    )
    return any(name.startswith(_CLOCKS) for name in names) and not _makes_equal(program, test)


def _computed_of(program: Program, at: Occurrence) -> Iterator[Occurrence]:
    """What a number is computed of, one step back; not what the objects are made of that are asked for it."""
    node = at.node
    if isinstance(node, ast.Call):
        site = program.script.site_of(node)
        functions = program.names.called_functions(site)
        for function in functions:
            yield from (Occurrence(value, function, where) for value, where in function.returns)
        if isinstance(node.func, ast.Attribute) and not functions:
            yield at.part(node.func.value)
        if program.names.calls(site, *_NUMBERS):
            yield from map(at.part, node.args)
        return
    step = program.names.steps_back(at)
    if step is not None:
        yield from step.sources
    elif not isinstance(node, ast.Lambda):
        yield from (at.part(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))


def _around(program: Program, loop: Loop) -> Iterator[list[Statement]]:
    """The loop statements of a training loop, those of each function innermost first."""
    sites, known = list(loop.sites), set[Site]()
    while sites:
        site = sites.pop()
        if site in known:
            continue
        known.add(site)
        outer = [each for each in site.statement.path() if isinstance(each.node, LOOPS)]
        own = [each for each in outer if each.scope.function() is site.scope.function()]
        if own:
            yield own
        function = site.scope.function()
        sites += program.names.callers(function)[0] if function is not None else []


def _is_own(program: Program, test: Occurrence, loop: Loop, depth: int = 0) -> bool:
    """Whether a test asks for what the rank's own step gave, or for what was set by such a test."""
    if isinstance(test.node, ast.Call) and test.node in {
        site.node for site in program.fact(Horovod).calls(*COLLECTIVE)
    }:
        return False
    if _asks_loss(program, test, loop):
        return True
    if depth > _DEEPEST:
        return False
    # What a function of the script is asked of a value, it may well decide by that: ``if stop(loss):``.
    asked = (
        test.part(given)
        for each in ast.walk(test.node)
        if isinstance(each, ast.Call)
        and program.names.called_functions(program.script.site_of(each))
        and not _makes_equal(program, test.part(each))
        for given in each.args
    )
    if any(_asks_loss(program, each, loop) for each in asked):
        return True
    names = (each for each in ast.walk(test.node) if isinstance(each, ast.Name))
    steps = (program.names.steps_back(test.part(each)) for each in names)
    setting = [source.statement for step in steps if step is not None for source in step.sources]
    tests = [each for statement in setting for each in tests_around(statement, test.statement)]
    return any(_is_own(program, each, loop, depth + 1) for each in tests if each.node is not test.node)


def _asks_loss(program: Program, test: Occurrence, loop: Loop) -> bool:
    """Whether a test asks for a loss that no collective made equal."""
    trails = program.fact(Trails)
    trail = trails.behind(test)
    calls = set(trails.calls(trail))
    if _makes_equal(program, test):
        return False
    steps = set(loop.sites)
    functions = {site.scope.function() for site in steps} - {None}
    runs = {site for site in calls if any(each in functions for each in program.names.called_functions(site))}
    targets = _losses(program, loop)
    nodes = {each.node for each in trail}
    if runs & calls and _reads_result(program, test):
        return True
    if any(each in nodes for each in _metrics(program, targets)):
        return True
    if not targets.isdisjoint(nodes) or _predicts(program, test, loop):
        return True
    return loop.pattern in _SESSIONS and _fetches_own(program, test)


def _predicts(program: Program, test: Occurrence, loop: Loop) -> bool:
    """Whether a test asks for what a model gave in a step, as the loss of that step does."""
    trails = program.fact(Trails)
    sites = [each for each in program.fact(Collectives).sites if each.name == "gradient"]
    targets = [each for site in sites for each in _of_argument(program, site, "target")]
    of_losses = {site for each in targets for site in trails.calls(trails.behind(each))}
    loops = {each for nest in _around(program, loop) for each in nest}
    return any(
        site in of_losses
        and not loops.isdisjoint(site.statement.ancestors())
        and program.names.may_be(program.names.site_values(site.node.func, site), *api.MODEL)
        for site in trails.calls(trails.behind(test))
    )


def _makes_equal(program: Program, at: Occurrence) -> bool:
    """Whether a collective leads to a value, and makes it the same on all ranks."""
    trails = program.fact(Trails)
    equal = set(program.fact(Horovod).calls(*COLLECTIVE))
    return any(site in equal for site in trails.calls(trails.behind(at)))


def _metrics(program: Program, losses: set[ast.AST]) -> Iterator[ast.AST]:
    """The calls that make metrics which are given a loss: ``mean.update_state(loss)``, ``mean(loss)``."""
    trails = program.fact(Trails)
    for site in program.script.sites:
        called, given = site.node.func, argument(site.node, 0, "values")
        if given is None or not isinstance(called, ast.Name | ast.Attribute):
            continue
        metric = called.value if isinstance(called, ast.Attribute) and site.name == "update_state" else called
        values = program.names.site_values(metric, site)
        made = [
            each.node
            for each in values
            if isinstance(each, Instance) and program.names.is_a(each, *api.METRIC)
        ]
        if made and not losses.isdisjoint(
            each.node for each in trails.behind(Occurrence(given, site.scope, site.statement))
        ):
            yield from made


def _average_of_loss(program: Program, test: Occurrence, loop: Loop) -> Change | None:
    """The average in place of the one name by which a test comes to have the loss of a step."""
    losses = _losses(program, loop)

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
    if loop.pattern in _SESSIONS or len(names) != 1 or not horovod:
        return None
    (name,) = names
    text = f"{horovod}.allreduce({text_of(program, name.node, name.scope)})"
    return replaced(program, "HZ13", "Average the loss first", name, text)


def _fetches_own(program: Program, test: Occurrence) -> bool:
    """Whether a test asks for what a session computed of the rows that a minimized loss is computed of."""
    made = (*program.fact(Averaging).minimizers, *program.script.sites_named("compute_gradients"))
    losses = [each for site in made for each in _of_argument(program, site, "loss")]
    trails = program.fact(Trails)
    # Weights, which draw their initial values, are equal on all ranks.
    inputs = {
        site for loss in losses for site in trails.calls(trails.behind(loss, True)) if site.name in _INPUTS
    }
    return any(
        each.node in {loss.node for loss in losses}
        or (isinstance(each.node, ast.Call) and program.script.site_of(each.node) in inputs)
        for name in trails.behind(test)
        if isinstance(name.node, ast.Name)
        for fetched in _fetched(program, name)
        for each in trails.behind(fetched, True)
    )


def _fetched(program: Program, at: Occurrence) -> Iterator[Occurrence]:
    """What a session was asked for where a name holds its answer: ``value, _ = session.run([loss, op])``."""
    for binding in program.names.bindings(at):
        called = binding.value
        if not isinstance(called, ast.Call) or last_name(called.func) != "run" or not called.args:
            continue
        asked = replace(binding, value=called.args[0]).taken
        if asked is not None and not isinstance(asked, ast.List | ast.Tuple | ast.Dict):
            yield Occurrence(asked, binding.scope, binding.statement)


def _of_argument(program: Program, site: Site, name: str) -> Iterator[Occurrence]:
    """What a call is given first, or by a name, and what that stands for."""
    given = argument(site.node, 0, name)
    if given is not None:
        at = Occurrence(given, site.scope, site.statement)
        step = program.names.steps_back(at)
        yield from step.sources if step is not None else (at,)


def _reads_result(program: Program, test: Occurrence) -> bool:
    return any(isinstance(each, ast.Compare | ast.Call) for each in ast.walk(test.node))


def _losses(program: Program, loop: Loop) -> set[ast.AST]:
    """What the gradients of a loop are taken of, and what `train_on_batch` gives."""
    found: set[ast.AST] = {site.node for site in loop.sites if site.name == "train_on_batch"}
    for site in program.fact(Collectives).sites:
        if site.name == "gradient":
            found |= {each.node for each in _of_argument(program, site, "target")}
    return found
