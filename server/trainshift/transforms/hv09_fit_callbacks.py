"""Shows Keras' progress bars on rank 0 only.

    model.evaluate(test_ds)                 model.evaluate(test_ds, verbose=1 if hvd.rank() == 0 else 0)

So for `predict` and `Progbar`. Keras draws them on every rank. A `verbose` of the script's own stays
what it is on rank 0. The part of this rule that concerns `fit` comes with the Keras loops, which are
refused until then.

Seeds: S2 `trans_S[[fit]]`; correction C9.
"""

from __future__ import annotations

import ast

from trainshift.core.edit import Edit
from trainshift.core.program import Program
from trainshift.core.root_only import Form, Kind, RootCall, verbosity
from trainshift.core.source import Span
from trainshift.transforms.root import guard_changes
from trainshift.transforms.rule import Guard, Proposals, Transform


def propose(program: Program) -> Proposals:
    """One change for each statement that evaluates or predicts with a progress bar."""
    yield from guard_changes(
        program, "HV09", (Kind.PRINT,), {Form.VERBOSE: _verbose}, "Show the progress bar on rank 0 only"
    )


def _verbose(program: Program, call: RootCall) -> tuple[Edit, ...]:
    site = call.site
    given = verbosity(site)
    if given is None:
        return program.layout.add_keyword(site, "verbose", f"1 if {program.setup.root} else 0")
    span = program.script.span(given, site)
    test = f" if {program.setup.root} else 0"
    bounds = Span(
        program.script.span(site.node.func, site).end + 1, program.script.span(site.node, site).end - 1
    )
    outer = program.layout.parenthesized(span, bounds)
    if isinstance(given, ast.IfExp | ast.Lambda | ast.NamedExpr) and outer == span:
        return (Edit(span.start, span.start, "("), Edit(span.end, span.end, f"){test}"))
    return (Edit(outer.end, outer.end, test),)


RULE = Transform(
    "HV09",
    "fit-callbacks",
    propose,
    guards=(Guard("TF03"), Guard("TL02")),
)
