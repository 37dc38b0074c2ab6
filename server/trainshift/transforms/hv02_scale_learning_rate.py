"""Multiplies the learning rate by the number of ranks.

    optimizer = Adam(1e-3)                  optimizer = Adam(1e-3 * hvd.size())
    optimizer = Adam()                      optimizer = Adam(learning_rate=0.001 * hvd.size())

## Why it matters

On two GPUs a step covers two batches, so there are half as many steps. With the old rate the model learns
half as much in an epoch.

## How it is done

The rate is found by its position, `learning_rate=` or `lr=`, for any optimizer. If none is given, the
optimizer's default is scaled. A schedule is scaled inside, because it cannot be multiplied:

    rate = ExponentialDecay(0.1, 100, 0.9)  rate = ExponentialDecay(0.1 * hvd.size(), 100, 0.9)
    optimizer = SGD(rate)                   optimizer = SGD(rate)

A schedule class of your own is scaled in what its `__call__` returns, the function of a
`LearningRateScheduler` in what it returns. Rates that are set while training (`optimizer.learning_rate = x`,
`optimizer.lr.assign(x)`) are scaled too, unless they derive from the rate itself. Each case is scaled by
itself:

    def schedule(epoch, lr):                def schedule(epoch, lr):
        if epoch == 5:                          if epoch == 5:
            lr = 0.01                               lr = 0.01 * hvd.size()
        return lr                               return lr

A rate is left alone if Trainshift cannot tell its cases apart. So is a function or variable that a legacy
optimizer asks for its rate, since Horovod remakes that optimizer.
"""

from __future__ import annotations

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.reasons import in_f_string
from trainshift.core.report import Report
from trainshift.python.source.edit import Edit
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.python.syntax.precedence import ELEMENT, Frame, of_each, product
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.learning_rates.learning_rates import LearningRates
from trainshift.training.learning_rates.rate_places import Rate, is_replaced
from trainshift.training.loops.call_effects import Effects
from trainshift.training.optimizers.reductions import Reductions
from trainshift.transforms.rule import Proposals

_INSIDE = (
    "the rate is scaled where it comes from (a schedule, function or variable), not in the "
    "optimizer's argument"
)


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each statement with a literal rate; none if Adasum keeps the rates."""
    if not program.fact(Reductions).scales_rates:
        return
    rates, hidden = program.fact(LearningRates).all
    by_statement: dict[Statement, list[Rate]] = {}
    for rate in rates:
        by_statement.setdefault(rate.statement, []).append(rate)
    for statement, own in by_statement.items():
        if any(rate.site is not None and rate.site.in_fstring for rate in own):
            target = program.script.statement_span(statement)
            yield report.withheld(target, in_f_string("the learning rate is"))
            continue
        edits = [edit for rate in own for edit in _scale(program, rate)]
        doubts = tuple(dict.fromkeys(rate.doubt for rate in own if rate.doubt))
        target = program.script.statement_span(statement)
        title = "Scale the learning rate by the number of ranks"
        decisions: tuple[str, ...] = (_INSIDE,) if any(rate.computed for rate in own) else ()
        yield report.change(title, target, tuple(edits), doubts=doubts, decisions=decisions)
    for each in hidden:
        target = program.script.span(each.node, each.within)
        yield report.withheld(target, f"the learning rate is not scaled: {each.reason}")


def _scale(program: Program, rate: Rate) -> tuple[Edit, ...]:
    factor = f"* {program.at(rate.statement).fact(Prerequisites).hvd}.size()"
    if rate.node is None:
        assert rate.site is not None
        old = next((each for each in rate.site.node.keywords if each.arg == "lr"), None)
        if old is not None and rate.doubt and is_replaced(old.value, program.fact(Effects)):
            span = program.script.span(old, rate.site)
            return (Edit(span.start, span.end, f"{rate.keyword}={rate.default} {factor}"),)
        return program.fact(Layout).add_keyword(rate.site, rate.keyword, f"{rate.default} {factor}")
    frame = of_each(rate.node, "value", f"value {factor}") if rate.each else product(factor)
    if rate.in_mapping:
        text = program.script.text(rate.node, rate.statement)
        held = (
            f'{text}.get("{rate.keyword}", {rate.default})' if rate.default else f'{text}["{rate.keyword}"]'
        )
        frame = Frame("{**", f', "{rate.keyword}": {held} {factor}}}', ELEMENT)
    return program.fact(Layout).put(rate.node, rate.statement, frame)
