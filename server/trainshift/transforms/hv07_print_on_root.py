"""Prints on rank 0 only.

    print(loss)                             if hvd.rank() == 0:
                                                print(loss)

## Why it matters

On two GPUs you would see every line twice.

## How it is done

The same for `tf.print`, logging calls and the progress bars of tqdm. A print inside an expression becomes a
conditional expression. If an argument does something that every rank must do (a training step, `next`, an
`assign`), it runs on every rank:

    print(train_step(x))                    printed = train_step(x)
                                            if hvd.rank() == 0:
                                                print(printed)

Several of these in a row stay apart, so that each value is printed before the next one is computed.

TensorFlow 1 logs its progress (`tf.logging.set_verbosity(tf.logging.INFO)`) on rank 0 only.

A `print` of your own, or one that shows the rank, is left alone. So are `input()`, `plt.show()` and
`exit()` in a training loop, which are reported: every rank runs them.
"""

from __future__ import annotations

import ast
from functools import partial

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.source.edit import Edit, Side
from trainshift.python.syntax.concrete import Argument
from trainshift.python.syntax.precedence import assigned
from trainshift.rewriting.edits.rank_guards import (
    PRINTED,
    conditional,
    guard,
    guard_changes,
    printed,
    stands_alone,
)
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.rank_regions.guard_forms import Form, RootCall, RootKind
from trainshift.training.rank_regions.root_only import RootOnly
from trainshift.transforms.rule import Proposals


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each statement that prints."""
    forms = {
        Form.GUARD: guard,
        Form.CONDITIONAL: _conditional,
        Form.BIND: _bind,
        Form.DISABLE: _disable,
    }
    kinds, title = (RootKind.PRINT,), "Print on rank 0 only"
    yield from guard_changes(report, kinds, forms, title, partial(stands_alone, program))
    for site, what in program.fact(RootOnly).shared:
        text = f"{program.script.text(site.node.func, site)}(...) stays in the loop: every rank {what}"
        yield report.remark(program.script.statement_span(site.statement), text)


def _conditional(program: Program, call: RootCall) -> tuple[Edit, ...]:
    names = program.names.full_names(call.site.node.func, call.site.scope, call.site.statement)
    # In a graph, `tf.print` returns an operation, which `control_dependencies` needs.
    otherwise = (
        f"{program.at(call.site).fact(Prerequisites).tf}.no_op()" if "tensorflow.print" in names else "None"
    )
    return conditional(program, call, otherwise)


def _disable(program: Program, call: RootCall) -> tuple[Edit, ...]:
    return program.fact(Layout).add_keyword(
        call.site, "disable", f"{program.at(call.site).fact(Prerequisites).hvd}.rank() != 0"
    )


def _bind(program: Program, call: RootCall) -> tuple[Edit, ...]:
    """Evaluate the arguments in a separate statement, and print them under the guard.

    Constants before and behind the others stay in the call.
    """
    script, layout, site = program.script, program.fact(Layout), call.site
    statement = script.statement_span(site.statement)
    given, first, last = _evaluated(program, call)
    lead = script.source.text[statement.start : first]
    newline = layout.newline_at(site.statement)
    name = _printed(program.at(site))
    alone = len(given) == 1 and not given[0].star
    code = script.source.text[first:last]
    if alone and assigned(code) == code:
        opening, closing = "", ""
    else:
        opening, closing = "(", ")" if alone or len(given) > 1 else ",)"
    header = f"if {program.at(site).fact(Prerequisites).root}:"
    guarded = f"{closing}{newline}{header}{newline}{layout.unit_at(site.statement)}{lead}"
    return (
        Edit(statement.start, first, f"{name} = {opening}"),
        Edit(last, last, f"{guarded}{'' if alone else '*'}{name}", Side.WITHIN, 1),
    )


def _evaluated(program: Program, call: RootCall) -> tuple[list[Argument], int, int]:
    """The positional arguments that every rank evaluates, with the offsets of their start and end."""
    start, syntax = program.fact(Layout).call_syntax(call.site)
    positional = [each for each in syntax.arguments if each.keyword is None and each.star != "**"]
    kept = [isinstance(each, ast.Constant) for each in call.site.node.args]
    first = next((index for index, is_constant in enumerate(kept) if not is_constant), 0)
    last = len(kept) - next((index for index, is_constant in enumerate(reversed(kept)) if not is_constant), 0)
    text = program.script.source.text
    ends = start + positional[0].start, start + positional[-1].end
    if "\n" in text[ends[0] : start + positional[first].start]:
        first = 0
    if "\n" in text[start + positional[last - 1].end : ends[1]]:
        last = len(kept)
    return positional[first:last], start + positional[first].start, start + positional[last - 1].end


def _printed(program: Program) -> str:
    """The name for printed values: one for all, because each is read at once."""
    found = (printed(program.script, each) for each in program.script.statements)
    return program.script.fresh(PRINTED, {name for name, _ in found if name})
