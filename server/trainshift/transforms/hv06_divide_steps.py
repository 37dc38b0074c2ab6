"""Divides the number of batches that a training loop takes by the number of ranks.

    for x, y in dataset.take(1000):         for x, y in dataset.take(1000 // hvd.size()):
        train_step(x, y)                        train_step(x, y)

    model.fit(ds, steps_per_epoch=500)      model.fit(ds, steps_per_epoch=500 // hvd.size())

## Why it matters

A step on two GPUs covers two batches. Without the division both take all steps: twice the work, and no time
saved.

## How it is done

Also divided are `steps` and `max_steps` of an Estimator, and `last_step` and `num_steps` of a
`StopAtStepHook`.

If each rank takes its share of the steps, by this rule or by HV15, the counts of a schedule are divided too:

    CosineDecay(0.1, decay_steps=900)       CosineDecay(0.1, decay_steps=900 / hvd.size())

- A test that ends the training, saves, or sets a rate at a number of steps is divided, and so is the `total`
  of a progress bar.
- The `decay` of a legacy optimizer is multiplied, because each rank takes fewer steps.
- A schedule class of your own gets the step that one process would be at. A counter of steps is multiplied
  where the script computes a rate from it.
- A number that is computed from the length of a share (`epochs * len(train)`) stays.
- A schedule that is no learning rate stays as it is and is reported: a weight of a loss, or a chance of
  teacher forcing, that the script computes from its steps. So is a rate that it computes from the
  optimizer's own count of steps, or changes a bit in each step.
- A plot of one value per step over `range(1000)` uses the length of the list instead. Other code that relies
  on a list with an entry for each step is reported.

Only a `take` that feeds a training loop is divided. A preview (`next(iter(ds.take(1)))`), an evaluation,
`validation_steps`, and a `take` beside a `skip` of as many elements stay.

All ranks must take the same number of steps. HV19 handles loops that a rank may leave by its own values, such
as its loss.
"""

from __future__ import annotations

import ast

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.reasons import in_f_string, in_stars
from trainshift.core.report import Report
from trainshift.libraries.common import is_common
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Instance, Literal, Member, Value
from trainshift.python.source.edit import Edit
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import Site, Statement, argument
from trainshift.python.syntax.precedence import Frame, Level, of_each, product
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.data.loop_iterables import Iterated
from trainshift.training.data.remaining_steps import is_restored_count, whole_of_rest
from trainshift.training.data.step_counts import StepCounts, stays
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.learning_rates.rates import Rates
from trainshift.training.loops.steps import is_plain
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.optimizers.global_batch import GlobalBatch
from trainshift.training.steps_taken.counted_rates import CountedRate, CountedRates
from trainshift.training.steps_taken.counters import Counters, Limit
from trainshift.training.steps_taken.horizons import Horizon, Horizons
from trainshift.training.steps_taken.step_division import Pace, Taken
from trainshift.training.steps_taken.step_ratios import StepRatios
from trainshift.transforms.rule import Proposals

_FEW = 16
_LEFT = "it counts the steps that remain after a restore, and each rank has counted only its own"
_SHORTENED = "{} ({}) is divided by the number of ranks, as the steps are"
_MIXED = "{} is unchanged, because the ranks share the steps of only some training runs"
_OWN_STEPS = (
    "the rate set here depends on `{0}`, which now counts the steps of one rank: {1}; "
    "multiply it by `hvd.size()` in both"
)
_ENTRIES = (
    "`{0}` gets one entry per step, and each rank takes only its share of the steps; use "
    "`len({0})` instead of the number here"
)
_RESUMED = "{0} counts the steps of one rank, and {1} those of all; multiply {0} by `hvd.size()`"
_RATIO = (
    "the {0} depends on `{1}`, and `{2}` counts the steps of one rank, so this schedule runs only "
    "1/hvd.size() as far; multiply `{2}` by `hvd.size()`"
)
_CHANGED = (
    "the {0} depends on `{1}`, which changes once in each step of a rank, so this schedule runs only "
    "1/hvd.size() as far; change it by hvd.size() steps at once"
)
_COUNTED = "the step of {} stays as it is: {}"


def propose(program: Program, report: Report) -> Proposals:
    """One change for each number of steps that a training takes, and for each schedule that counts them.

    There are none if the script divides the batch instead.
    """
    if program.fact(GlobalBatch).is_kept:
        return
    counts = program.fact(StepCounts)
    for count in (*counts.taken, *counts.given):
        site, target = count.site, program.script.statement_span(count.site.statement)
        if site.in_fstring:
            yield report.withheld(target, in_f_string())
        elif not _is_settled(program, count.node, site):
            edits = _divided(program, count.node, site, count.optional)
            if edits is None:
                text = program.script.text(count.node, site)
                yield report.withheld(target, f"{text} may be None: give it a name first")
                continue
            doubts: tuple[str, ...] = (count.doubt,) if count.doubt else ()
            number_at = of_call(site).part(count.node)
            if whole_of_rest(program, number_at) is None and is_restored_count(program, number_at):
                doubts += (_LEFT,)
            number = program.script.text(count.node, site)
            title = f"Divide the {count.what} ({number}) among the ranks"
            decisions = (f"each rank takes its share of the {count.what} ({number}), not all of them",)
            yield report.change(title, target, edits, doubts=doubts, decisions=decisions)
    for site in sorted(program.fact(Iterated).takes, key=lambda each: program.script.span(each.node, each)):
        if argument(site.node, 0, "count") is None:
            target = program.script.statement_span(site.statement)
            yield report.withheld(target, in_stars("the number of batches is"))
    if program.fact(Pace).taken is not Taken.ALL:
        yield from _schedules(program, report)
        yield from _decays(program, report)
        yield from _limits(program, report)
        yield from _by_hand(program, report)
        yield from _totals(program, report)
        yield from _means(program, report)
        yield from _entries(program, report)
        yield from _ratios(program, report)
        yield from _resumed(program, report)


def _resumed(program: Program, report: Report) -> Proposals:
    """Propose a doubt for each epoch to resume at that a restored number of steps is divided into."""
    trains = program.fact(WhatTrains).statement_trains
    for site in program.script.sites_named("range"):
        loop = site.statement
        if len(site.node.args) < 2 or not isinstance(loop.node, ast.For) or not trains(loop):
            continue
        start = of_call(site).part(site.node.args[0])
        step = program.names.steps_back(start)
        for at in (start, *(step.sources if step is not None else ())):
            node = at.node
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div | ast.FloorDiv):
                continue
            is_count = is_restored_count(program, at.part(node.left))
            if is_count and not program.fact(Pace).agrees(node.right, at.scope, at.statement):
                count, steps = (program.script.text(each, at.scope) for each in (node.left, node.right))
                text = _RESUMED.format(one_line(count), one_line(steps))
                yield report.remark(program.script.statement_span(at.statement or loop), text, is_doubt=True)


def _schedules(program: Program, report: Report) -> Proposals:
    """Propose one change for each statement with the number of steps of a schedule."""
    found: dict[Statement, list[Horizon]] = {}
    mixed = program.fact(Pace).taken is Taken.MIXED
    asked = program.fact(CountedRates).asked
    for horizon in program.fact(Horizons).given:
        if horizon.site.node not in asked:
            found.setdefault(horizon.site.statement, []).append(horizon)
    for statement, own in found.items():
        target = program.script.statement_span(statement)
        said = ", ".join(dict.fromkeys(each.name for each in own))
        if mixed:
            yield report.remark(target, _MIXED.format(said))
        elif any(each.site.in_fstring for each in own):
            yield report.withheld(target, in_f_string("the schedule is"))
        else:
            edits = tuple(edit for each in own for edit in _shortened(program, each))
            numbers = [f"{each.name} ({program.script.text(each.node, each.site)})" for each in own]
            decisions = tuple(
                f"{each} is divided by the number of ranks, as the steps are" for each in numbers
            )
            title = f"Divide the {said} of the schedule among the ranks"
            yield report.change(title, target, edits, decisions=tuple(dict.fromkeys(decisions)))
    for site in program.fact(Horizons).hidden:
        target = program.script.statement_span(site.statement)
        yield report.withheld(target, in_stars("the steps of the schedule are"))
    layout = program.fact(Layout)
    for schedule in program.fact(Horizons).own:
        if schedule.made and schedule.made <= asked:
            continue
        target = program.script.statement_span(schedule.first)
        reason = schedule.reason or (_MIXED.format(f"the step of {schedule.name}") if mixed else "")
        if reason:
            yield report.remark(target, reason if mixed else _COUNTED.format(schedule.name, reason))
            continue
        size = f"{program.at(schedule.first).fact(Prerequisites).hvd}.size()"
        line = layout.before(schedule.first, [f"{schedule.step} = {schedule.step} * {size}"])
        title = f"Pass {schedule.name} the step that one process would be at"
        decision = (
            f"{schedule.name} gets the step that one process would be at, because each rank takes its share"
        )
        yield report.change(title, target, (line,), layout.isolate(schedule.first), decisions=(decision,))


def _limits(program: Program, report: Report) -> Proposals:
    """Propose one change for each test that counts the steps after which a training ends, or saves."""
    found: dict[Statement, list[Limit]] = {}
    for limit in program.fact(Counters).limits:
        found.setdefault(limit.statement, []).append(limit)
    for statement, own in found.items():
        target = program.script.header_span(statement)
        size = f"{program.at(statement).fact(Prerequisites).hvd}.size()"
        edits: list[Edit] = []
        for limit in own:
            frame = product(f"// {size}")
            if limit.every:
                frame = _at_least_one(size)
            edits += program.fact(Layout).put(limit.node, statement, frame)
        numbers = ", ".join(program.script.text(each.node, statement) for each in own)
        title = f"Divide the steps of this test ({numbers}) among the ranks"
        decision = f"the steps of this test ({numbers}) are divided by the number of ranks, as all steps are"
        yield report.change(title, target, tuple(edits), decisions=(decision,))


def _by_hand(program: Program, report: Report) -> Proposals:
    """Propose one change for each statement that computes a rate by hand from a counter of steps."""
    found: dict[Statement, dict[int, tuple[CountedRate, Occurrence]]] = {}
    for rate in program.fact(CountedRates).all:
        assert rate.value.statement is not None
        if rate.reason:
            target = program.script.statement_span(rate.value.statement)
            yield report.remark(target, _OWN_STEPS.format(rate.counter, rate.reason))
            continue
        for read in rate.reads:
            assert read.statement is not None
            found.setdefault(read.statement, {})[id(read.node)] = rate, read
    for statement, reads in found.items():
        factor = product(f"* {program.at(statement).fact(Prerequisites).hvd}.size()")
        edits = [
            edit
            for _, read in reads.values()
            for edit in program.fact(Layout).put(read.node, statement, factor)
        ]
        counter = next(iter(reads.values()))[0].counter
        yield report.change(
            f"Set the rate by the step that one process would be at ({counter})",
            program.script.header_span(statement),
            tuple(edits),
            decisions=(
                (
                    f"{counter} counts the steps of one rank, so it is multiplied by the number of ranks "
                    "where it sets the rate"
                ),
            ),
        )


def _decays(program: Program, report: Report) -> Proposals:
    """Propose one change for each decay of a legacy optimizer's rate, which counts the steps of one rank."""
    for site in program.fact(Rates).made:
        decay = argument(site.node, None, "decay")
        if decay is None or (isinstance(decay, ast.Constant) and not decay.value):
            continue
        if program.fact(Horovod).scaled(decay, site.scope, site.statement):
            continue
        target = program.script.statement_span(site.statement)
        if program.fact(Pace).taken is Taken.MIXED or site.in_fstring:
            yield report.remark(target, _MIXED.format("decay"))
            continue
        edits = program.fact(Layout).put(
            decay, site, product(f"* {program.at(site).fact(Prerequisites).hvd}.size()")
        )
        number = program.script.text(decay, site)
        title = f"Scale the decay ({number}) to the steps of one rank"
        decision = f"decay ({number}) is multiplied by the number of ranks, as each takes fewer steps"
        yield report.change(title, target, edits, decisions=(decision,))


def _shortened(program: Program, horizon: Horizon) -> tuple[Edit, ...]:
    """The edits that divide a schedule's step counts."""
    size = f"{program.at(horizon.site).fact(Prerequisites).hvd}.size()"
    operator = "//" if horizon.whole else "/"
    frame = product(f"{operator} {size}")
    if horizon.each:
        frame = of_each(horizon.node, "step", f"step {operator} {size}")
    return program.fact(Layout).put(horizon.node, horizon.site, frame)


def _totals(program: Program, report: Report) -> Proposals:
    """Propose one change for each progress bar whose total is the number of steps."""
    for site, total in program.fact(Counters).totals:
        target = program.script.statement_span(site.statement)
        size = f"{program.at(site).fact(Prerequisites).hvd}.size()"
        number = program.script.text(total, site)
        decision = (
            f"the total of this progress bar ({number}) is divided by the number of ranks, as the steps are"
        )
        edits = program.fact(Layout).put(total, site, product(f"// {size}"))
        yield report.change(
            f"Divide the total of this progress bar ({number})", target, edits, decisions=(decision,)
        )


def _means(program: Program, report: Report) -> Proposals:
    """Propose one change for each statement that computes a mean over a loop's iterations."""
    found: dict[Statement, list[tuple[Occurrence, bool]]] = {}
    for each in program.fact(Counters).means:
        assert each[0].statement is not None
        found.setdefault(each[0].statement, []).append(each)
    for statement, own in found.items():
        size = f"{program.at(statement).fact(Prerequisites).hvd}.size()"
        # After the loop, there may have been no iteration.
        frames = (_at_least_one(size) if is_behind else product(f"// {size}") for _, is_behind in own)
        edits = [
            edit
            for (at, _), frame in zip(own, frames, strict=True)
            for edit in program.fact(Layout).put(at.node, statement, frame)
        ]
        number = program.script.text(own[0][0].node, statement)
        title = f"Scale the divisor of this mean ({number}) to the steps of one rank"
        decision = (
            f"the divisor of this mean ({number}) is divided by the number of ranks, as the "
            "iterations of its loop are"
        )
        yield report.change(title, program.script.header_span(statement), tuple(edits), decisions=(decision,))


def _entries(program: Program, report: Report) -> Proposals:
    """Propose a change, or a remark, for each statement that relies on entries of steps."""
    for each in program.fact(Counters).entries:
        target = program.script.header_span(each.statement)
        if each.count is None:
            yield report.remark(target, _ENTRIES.format(each.name))
            continue
        number = program.script.text(each.count, each.statement)
        yield report.change(
            f"Use the length of {each.name} instead of {number}",
            target,
            program.fact(Layout).replace(each.count, each.statement, f"len({each.name})"),
            decisions=(
                (
                    f"the length of `{each.name}` replaces {number}, because it has an entry for each step "
                    "of one rank"
                ),
            ),
        )


def _ratios(program: Program, report: Report) -> Proposals:
    """Propose a doubt for each part of a schedule that depends on the steps of one rank and is no rate to
    adapt.
    """
    for at, counter, changed, of_rate in program.fact(StepRatios).all:
        assert at.statement is not None
        what = "learning rate" if of_rate else "loss"
        text = _CHANGED.format(what, changed)
        if counter is not None:
            said = (one_line(program.script.text(each, at.scope)) for each in (at.node, counter))
            text = _RATIO.format(what, *said)
        yield report.remark(program.script.header_span(at.statement), text, is_doubt=True)


def _divided(program: Program, node: ast.expr, site: Site, optional: bool) -> tuple[Edit, ...] | None:
    """The edits that divide a number of steps; None if it may be None, and there is no place to test that.

    A conditional is divided in its branches if one of them is not a number to divide.
    """
    size = f"{program.at(site).fact(Prerequisites).hvd}.size()"
    share = product(f"// {size}")
    if _is_few(program, node, site):
        share = _at_least_one(size)
    last = node.values[-1] if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) else node
    maybe = optional and Literal(None) in program.names.site_values(last, site)
    whole = whole_of_rest(program, Occurrence(node, site.scope, site.statement))
    if whole is not None:
        return program.fact(Layout).put(whole.node, site, share)
    if isinstance(node, ast.IfExp):
        branches = [each for each in (node.body, node.orelse) if not _is_settled(program, each, site)]
        if maybe or len(branches) < 2:
            found = [_divided(program, each, site, optional) for each in branches]
            return None if None in found else tuple(edit for edits in found for edit in edits or ())
    if maybe and not is_plain(node):
        return None
    if maybe:
        share = Frame(f"{program.script.text(node, site)} and ", share.after, share.asks, Level.AND)
    return program.fact(Layout).put(node, site, share)


def _at_least_one(size: str) -> Frame:
    """A frame that divides a number that may be smaller than the number of ranks."""
    return Frame("max(1, ", f" // {size})", product(f"// {size}").asks, Level.ATOM)


def _is_of_loader(value: Value) -> bool:
    """Return whether a number is the length of an epoch that a library object counts."""
    if not isinstance(value, Member) or not isinstance(value.owner, Instance):
        return False
    return value.name == "steps_per_epoch" and not is_common(value.owner.cls)


def _is_few(program: Program, node: ast.expr, site: Site) -> bool:
    """Return whether steps are, or may be, so few that more ranks are common: these would take none.

    The loader of a library may have a single batch with all of its data.
    """
    values = program.names.site_values(node, site)
    if any(_is_of_loader(value) for value in values):
        return True
    known = [value.value for value in values if isinstance(value, Literal)]
    return len(known) == len(values) > 0 and all(isinstance(each, int) and each < _FEW for each in known)


def _is_settled(program: Program, count: ast.expr, site: Site) -> bool:
    """Return whether the count is divided already, or is not a number to divide."""
    return program.fact(Pace).agrees(count, site.scope, site.statement) or stays(count)
