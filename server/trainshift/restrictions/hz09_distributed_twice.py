"""Gradients must be averaged once.

    opt = hvd.DistributedOptimizer(opt)     opt = hvd.DistributedOptimizer(opt)
    opt = hvd.DistributedOptimizer(opt)     model.compile(opt, "mse")

## Why it matters

A wrapped optimizer in a wrapped optimizer ends in a RecursionError. A sum over averaged gradients is too
large a step.

## What to do

Remove the outer call.

## What is reported

`DistributedOptimizer` of one that is wrapped already, also by a loop, and a sum of gradients that are
averaged. Harmless: a tape and an optimizer that are both wrapped, and an average of an average.
"""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.source.edit import Change, Edit
from trainshift.python.syntax.chunk_syntax import Site, argument
from trainshift.python.values.backward_slice import backward_slice
from trainshift.restrictions.fixes.places import beside, replaced
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.learning_rates.rates import TAPE_WRAPS, WRAPS
from trainshift.training.loops.execution_order import Course
from trainshift.training.loops.steps import Steps
from trainshift.training.optimizers.averaging import Averaging
from trainshift.training.ranks.shared_loops import Together


def check(program: Program, report: Report) -> Findings:
    """Yield one finding for each call that averages something already averaged."""
    horovod, together = program.fact(Horovod), program.fact(Together)
    for wraps in (WRAPS, TAPE_WRAPS):
        sites = {site.node: site for site in horovod.calls(*wraps)}
        for site in sites.values():
            given = argument(site.node, 0, "optimizer", "gradtape")
            inner = _inner(program, given, site, sites) if given is not None else None
            if inner is not None and given is not None and not _is_before(program, inner, site, given):
                continue
            if inner is not None and together.runs(site.scope):
                message = "This is already wrapped: RecursionError. Remove this call."
                if inner is site:
                    message = "Each iteration wraps this again: RecursionError. Wrap it before the loop."
                related = (beside(program, inner, "the inner one"),) if inner is not site else ()
                fix = (
                    _removed(program, report, site, given)
                    if inner is not site and given is not None
                    else None
                )
                yield report.violated(site, message, related, fix)
    yield from _reduced(program, report)
    yield from _both(program, report)


def _inner(program: Program, given: ast.expr, site: Site, wraps: dict[ast.Call, Site]) -> Site | None:
    """The wrap that an expression refers to, through names."""
    for at in backward_slice(program.names, Occurrence(given, site.scope, site.statement)):
        if isinstance(at.node, ast.Call) and at.node in wraps:
            return wraps[at.node]
    return None


def _removed(program: Program, report: Report, site: Site, given: ast.expr) -> Change:
    """Remove a wrapper: the whole statement, if it only rebinds the name of the inner one."""
    node, text = site.statement.node, program.script.text(given, site)
    again = isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == [
        ast.unparse(given)
    ]
    block, _ = program.script.siblings(site.statement)
    if not again or node.value is not site.node or len(block) == 1:  # type: ignore[attr-defined]
        return replaced(report, "Remove this call", of_call(site), text)
    span, source = program.script.statement_span(site.statement), program.script.source
    start, end = source.line_start(span.start), source.line_end(span.end)
    if source.text[start : span.start].strip() or source.text[span.end : end].strip():
        return replaced(report, "Remove this call", of_call(site), text)
    after = source.text[end : end + 2]
    edit = Edit(start, end + (2 if after == "\r\n" else min(len(after), 1)), "")
    return report.change("Remove this call", span, (edit,))


def _is_before(program: Program, inner: Site, outer: Site, given: ast.expr) -> bool:
    """Return whether a wrapper certainly exists when another one is created; other calls may set an
    attribute.
    """
    if inner is outer:
        return program.fact(ControlFlow).repeats(outer.statement)
    if isinstance(given, ast.Name | ast.Call):
        return True
    made, used = inner.scope.function(), outer.scope.function()
    if made is not None and used is not None and made.name == "__init__" and made is not used:
        return made.owner() is used.owner() and not inner.statement.is_nested
    block, index = program.script.siblings(outer.statement)
    if inner.statement in block[:index]:
        return True
    order = program.fact(Course).index
    runs_first = inner in order and outer in order and order[inner] < order[outer]
    return runs_first and made is not used and not inner.statement.is_nested


def _reduced(program: Program, report: Report) -> Findings:
    """Yield gradients that are reduced by hand, although they were averaged before."""
    averaging = program.fact(Averaging)
    distributed = {each.site.node: each.site for each in program.fact(Steps).gradients if each.wraps}
    for site in program.script.sites_named("compute_gradients"):
        receiver = site.node.func.value if isinstance(site.node.func, ast.Attribute) else None
        if receiver is not None and averaging.averages(Occurrence(receiver, site.scope, site.statement)):
            distributed[site.node] = site
    if not distributed:
        return
    for site in program.fact(Horovod).calls("allreduce", "grouped_allreduce"):
        given = argument(site.node, 0, "tensor", "tensors", "value")
        if given is None:
            continue
        at = Occurrence(given, site.scope, site.statement)
        before = averaging.reached(distributed, at)
        if not before:
            continue
        related = (beside(program, before[0], "they are averaged here"),)
        if _sums(program, site):
            message = (
                "These gradients are already averaged, and are summed here: the step is N times as long."
            )
            yield report.violated(site, message, related)
        else:
            message = "These gradients are already averaged. This call only costs time."
            yield report.harmless(site, message, related)


def _sums(program: Program, site: Site) -> bool:
    operation = argument(site.node, None, "op")
    average = argument(site.node, None, "average")
    if isinstance(average, ast.Constant):
        return not average.value
    if operation is None:
        return False
    names = program.names.full_names(operation, site.scope, site.statement)
    return any(name.endswith(".Sum") for name in names)


def _both(program: Program, report: Report) -> Findings:
    """Yield tapes and optimizers that are both wrapped: only the tape averages."""
    averaging = program.fact(Averaging)
    seen = set[Site]()
    for step in program.fact(Steps).steps:
        at = Occurrence(step.receiver, step.site.scope, step.statement)
        wraps = [wrap for gradient in step.gradients for wrap in gradient.wraps]
        if wraps and averaging.averages(at) and wraps[0] not in seen:
            seen.add(wraps[0])
            message = (
                "The tape and the optimizer are both wrapped. Only the tape averages; leave the optimizer "
                "as it is."
            )
            yield report.harmless(wraps[0], message)
