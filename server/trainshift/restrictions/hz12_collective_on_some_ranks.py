"""Collective calls must run on all ranks.

    if hvd.rank() == 0:                     loss = hvd.allreduce(loss)
        loss = hvd.allreduce(loss)          if hvd.rank() == 0:
        print(loss)                             print(loss)

## Why it matters

Rank 0 waits here for ranks that never come, so the job hangs.

## What to do

Move the call out of the branch, and keep only the print or the write in it.

## What is reported

A collective under a test of the rank whose other branch has none: `allreduce`, a broadcast, `fit` of a
distributed model, a gradient of a distributed tape, a callback that averages. Also a `fit` whose metrics are
averaged, with validation data on some ranks only: the others have no `val_loss` to average. Not reported:
`evaluate` and `save` on rank 0.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.finding import Finding
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Instance, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, dotted
from trainshift.python.values.backward_slice import sliced
from trainshift.restrictions.fixes.moves import hoisted
from trainshift.restrictions.fixes.places import beside
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.horovod_api import RANK
from trainshift.training.horovod.own_horovod import OwnHorovod
from trainshift.training.loops.loop_kinds import Pattern
from trainshift.training.loops.loops import Loops
from trainshift.training.ranks.branches import Branch, Branches
from trainshift.training.ranks.collectives import Collectives
from trainshift.training.ranks.shared_loops import Together
from trainshift.training.uniformity.list_members import callbacks

_SHARED = ("MetricAverageCallback", "BroadcastGlobalVariablesCallback", "BestModelCheckpoint")

_AVERAGING = "MetricAverageCallback"
# The validation arguments of `fit`, with their positions.
_VALIDATING = {"validation_data": 7, "validation_split": 6}
_ON_SOME = (
    "Only some ranks validate here, and the average of their metrics waits for those of the others. "
    "Give all ranks validation data."
)

_READ = (ast.Name, ast.Attribute)


def check(program: Program, report: Report) -> Findings:
    """Yield one finding for each collective that only some ranks reach."""
    branches, collectives = program.fact(Branches), program.fact(Collectives)
    told = set[Scope | None]()
    for site in collectives.sites:
        branch = branches.of_call(site)
        if branch is not None and not _has_twin(program, branch) and not _is_uncalled(program, branch):
            told.add(site.scope.function())
            yield _finding(program, report, of_call(site), branch)
    for site, inner in collectives.calling.items():
        branch = branches.of_call(site)
        if branch is None or _has_twin(program, branch) or inner.scope.function() in told:
            continue
        if _is_uncalled(program, branch):
            continue
        yield _finding(program, report, of_call(site), branch)
    for element, branch in _callbacks(program):
        added = of_call(element.site) if element.site is not None else None
        yield _finding(program, report, element, branch, added)
    for at, branch in _validations(program):
        related = (beside(program, branch.test, "the test of the rank"),)
        yield report.violated(at, _ON_SOME, related)


def _finding(
    program: Program, report: Report, at: Occurrence, branch: Branch, added: Occurrence | None = None
) -> Finding:
    message = "Some ranks wait here for ranks that never come. Make this call on every rank."
    related = (beside(program, branch.test, "the test of the rank"),)
    fix = hoisted(report, "Make this call on every rank", added or at, branch)
    return report.violated(at, message, related, fix, asks=True)


def _is_uncalled(program: Program, branch: Branch) -> bool:
    """Return whether a test reads the function instead of the rank, which HZ25 reports: it is true on no
    rank.
    """
    parts = (branch.test.part(each) for each in ast.walk(branch.test.node) if isinstance(each, _READ))
    calls = {each.func for each in ast.walk(branch.test.node) if isinstance(each, ast.Call)}
    return any(at.node not in calls and program.fact(Horovod).is_function(at, *RANK) for at in parts)


def _has_twin(program: Program, branch: Branch) -> bool:
    """Return whether the ranks outside a branch make such a call too."""
    collectives = program.fact(Collectives)
    sites = (*collectives.sites, *collectives.calling)
    if branch.statement is None:
        assert branch.test.statement is not None
        arms = [
            {part for part in ast.walk(arm) if isinstance(part, ast.Call)}
            for each in ast.walk(branch.test.statement.node)
            if isinstance(each, ast.IfExp) and each.test is branch.test.node
            for arm in (each.body, each.orelse)
        ]
        return bool(arms) and all(any(site.node in arm for site in sites) for arm in arms)
    others: list[Statement] = []
    for name, block in branch.statement.branches.items():
        if name != branch.arm:
            others += block
        elif program.fact(ControlFlow).leaves(block):
            siblings, index = program.script.siblings(branch.statement)
            others += siblings[index + 1 :]
    inside = {each for statement in others for each in statement.walk()}
    return any(site.statement in inside for site in sites)


def _callbacks(program: Program) -> Iterator[tuple[Occurrence, Branch]]:
    """Yield the callbacks that all ranks need and only some add to the list."""
    branches = program.fact(Branches)
    for loop in program.fact(Together).loops:
        for element in callbacks(program.script, loop.sites[0]):
            values = program.names.values(*element[:3])
            if not values or not all(_waits(program, each) for each in values):
                continue
            branch = branches.of(element)
            if branch is None and element.site is not None:
                branch = branches.of_call(element.site)
            if branch is not None and not _lists_twin(program, branch, values):
                yield element, branch


def _waits(program: Program, value: Value) -> bool:
    """Return whether a callback waits for all ranks: one of Horovod's, or one of the script whose methods
    do.
    """
    if isinstance(value, UserInstance):
        return any(each.owner() is value.scope for each in program.fact(Collectives).functions)
    return isinstance(value, Instance) and value.cls.startswith("horovod.") and value.cls.endswith(_SHARED)


def _lists_twin(program: Program, branch: Branch, values: object) -> bool:
    """Return whether the other ranks get a callback of the kind too."""
    if branch.statement is None:
        return False
    for name, block in branch.statement.branches.items():
        if name == branch.arm:
            continue
        inside = {each for statement in block for each in statement.walk()}
        names = {each.cls.rpartition(".")[2] for each in values if isinstance(each, Instance)}  # type: ignore[attr-defined]
        if any(site.statement in inside for site in program.script.sites_named(*names)):
            return True
    return False


def _validations(program: Program) -> Iterator[tuple[Occurrence, Branch]]:
    """Yield the validation data that only some ranks pass to a `fit` whose metrics all ranks average."""
    fits = [
        loop.sites[0]
        for loop in program.fact(Loops).own
        if loop.is_call and loop.pattern is Pattern.OPTIMIZER and _averages(program, loop.sites[0])
    ]
    for site in fits:
        for name in _VALIDATING:
            leaves = [leaf for each in _given(program, site, name) for leaf in _leaves(program, each)]
            found = _on_some_ranks(program, leaves)
            if found is not None and program.fact(Branches).of_call(site) is None:
                yield found
    validating = [site for site in fits if any(_given(program, site, name) for name in _VALIDATING)]
    for site in validating if len(validating) < len(fits) else ():
        branch = program.fact(Branches).of_call(site)
        if branch is not None and branch.statement is not None:
            twins = {each.statement for each in fits if each not in validating}
            if any(each in twins for each in branch.statement.walk()):
                yield of_call(site), branch


def _given(program: Program, fit: Site, name: str) -> list[Occurrence]:
    """The argument of a `fit` with a name, also in a dictionary after ``**``."""
    hidden = [each.value for each in fit.node.keywords if each.arg is None]
    seen = program.names.given(fit, _VALIDATING[name] if fit.name == "fit" else None, name)
    found = [each for each in seen if each.node not in hidden]
    handed = {*map(dotted, hidden)} - {""}
    for site in program.script.sites_named("update") if handed else ():
        given = argument(site.node, None, name)
        if given is None or not isinstance(site.node.func, ast.Attribute):
            continue
        if dotted(site.node.func.value) in handed:
            found.append(of_call(site).part(given))
    return found


def _averages(program: Program, fit: Site) -> bool:
    """Return whether all ranks average the metrics of a `fit`."""
    role_of = program.fact(OwnHorovod).role_of
    return any(
        (isinstance(value, Instance) and value.cls.endswith(_AVERAGING)) or role_of(value) == _AVERAGING
        for element in callbacks(program.script, fit)
        for value in program.names.values(*element[:3])
    )


def _leaves(program: Program, at: Occurrence) -> list[Occurrence]:
    """The possible values of an expression, through names and choices."""

    def parts(each: Occurrence) -> Iterable[Occurrence]:
        if isinstance(each.node, ast.IfExp):
            return [each.part(each.node.body), each.part(each.node.orelse)]
        if isinstance(each.node, ast.BoolOp):
            is_all = isinstance(each.node.op, ast.And)
            return map(each.part, each.node.values[-1:] if is_all else each.node.values)
        if isinstance(each.node, ast.Call):
            functions = program.names.called_functions(program.script.site_of(each.node))
            return [Occurrence(node, of, where) for of in functions for node, where in of.returns]
        step = program.names.steps_back(each) if isinstance(each.node, _READ) else None
        return step.sources if step is not None else ()

    return [each for each in sliced(at, parts) if not [*parts(each)]]


def _on_some_ranks(program: Program, leaves: list[Occurrence]) -> tuple[Occurrence, Branch] | None:
    """The value that only some ranks pass, among the possible ones; None if all ranks pass one."""
    branches = program.fact(Branches)
    found = [(each, branches.of(each)) for each in leaves]
    given = [(each, branch) for each, branch in found if not _is_nothing(each.node)]
    apart = [(each, branch) for each, branch in given if branch is not None]
    if given and any(branch is not None for each, branch in found if _is_nothing(each.node)):
        return next(((each, branch) for each, branch in found if branch is not None), None)
    arms = {(branch.test.node, branch.arm) for _, branch in apart}
    is_of_all = len(apart) < len(given) or len(arms) > len({test for test, _ in arms})
    return apart[0] if apart and not is_of_all and not _is_choice(apart) else None


def _is_choice(given: list[tuple[Occurrence, Branch]]) -> bool:
    """Return whether one expression chooses for all ranks: ``some if hvd.rank() == 0 else all``."""
    tests = [branch.test.node for _, branch in given if branch.statement is None]
    return len(tests) > len(set(tests))


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value
