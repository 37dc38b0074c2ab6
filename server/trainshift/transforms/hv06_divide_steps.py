"""Divides the number of batches that a training loop takes by the number of ranks.

    for x, y in dataset.take(1000):         for x, y in dataset.take(1000 // hvd.size()):
        train_step(x, y)                        train_step(x, y)

Each rank takes a step with its own batch, so that a step covers `hvd.size()` batches. Only a `take`
that feeds a training loop is divided: a preview such as `next(iter(ds.take(1)))` must not become
empty, and an evaluation is the same on every rank. A `take` beside a `skip` of as many elements splits
the data and counts no steps.

Seeds: S1 `trans_E[[take]]`; corrections C5, C9, C20.
"""

from __future__ import annotations

import ast

from trainshift.core import api
from trainshift.core.edit import Change, Withheld
from trainshift.core.facts import Site, argument
from trainshift.core.flow import reaching_calls
from trainshift.core.names import Unknown
from trainshift.core.program import Program
from trainshift.core.source import Span
from trainshift.transforms.rule import Guard, Proposals, Transform


def propose(program: Program) -> Proposals:
    """One change for each `take` that feeds a training loop."""
    feeding = _feeding(program)
    for site in program.script.sites_named("take"):
        if site not in feeding or not isinstance(site.node.func, ast.Attribute) or _splits(program, site):
            continue
        receiver = program.names.site_values(site.node.func.value, site)
        known = program.names.may_be(receiver, *api.DATASET)
        if not known and not any(isinstance(value, Unknown) for value in receiver):
            continue
        count = argument(site.node, 0, "count")
        target = program.script.statement_span(site.statement)
        if site.in_fstring:
            yield Withheld("HV06", target, "the call stands inside an f-string")
        elif count is None:
            yield Withheld("HV06", target, "the call hides the number of batches that are taken")
        elif not _is_settled(program, count, site):
            span = program.script.span(site.node, site)
            bounds = Span(program.script.span(site.node.func, site).end + 1, span.end - 1)
            edits = program.layout.factor(count, site, f"// {program.setup.hvd}.size()", bounds)
            name = program.script.text(site.node.func.value, site)
            doubts = () if known else (f"{name} is taken to be a dataset",)
            taken = program.script.text(count, site)
            title = f"Divide the batches taken ({taken}) among the ranks"
            decisions = (f"each rank takes its share of the batches ({taken}), not all of them",)
            yield Change("HV06", title, target, edits, program.requires, doubts, decisions)


def _is_settled(program: Program, count: ast.expr, site: Site) -> bool:
    """Whether the count is divided already, or is 1 (which would become none) or "all" (-1)."""
    if program.horovod.scaled(count, site.scope, site.statement):
        return True
    try:
        return ast.literal_eval(count) in (1, -1)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False


def _splits(program: Program, site: Site) -> bool:
    """Whether the rest of the dataset is used too: ``ds.take(n)`` beside ``ds.skip(n)``."""

    def parts(each: Site) -> list[str]:
        receiver = each.node.func.value if isinstance(each.node.func, ast.Attribute) else each.node.func
        return [ast.dump(receiver), *(ast.dump(given) for given in each.node.args)]

    return any(parts(other) == parts(site) for other in program.script.sites_named("skip"))


def _feeding(program: Program) -> set[Site]:
    """The `take` calls whose result some training loop iterates."""
    takes = {site.node: site for site in program.script.sites_named("take")}
    if not takes:
        return set()
    return {
        site
        for statement in program.script.statements
        if isinstance(statement.node, ast.For | ast.AsyncFor) and program.training.statement_trains(statement)
        for site in reaching_calls(program.script, takes, statement.node.iter, statement.scope, statement)
    }


RULE = Transform(
    "HV06",
    "divide-steps",
    propose,
    guards=(Guard("TF03"), Guard("TF05"), Guard("TF06"), Guard("TF07")),
)
