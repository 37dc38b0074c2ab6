"""Training loops must run unconditionally.

    if loss_is_high:                            if not os.path.exists("data"):
        model.fit(data)                             raise SystemExit("no data")
                                                model.fit(data)

## Why it matters

Each step waits for the gradients of all processes. If the condition differs on one of two GPUs (a file that
only one machine has, a local loss, the rank itself), the other one waits forever.

## What to do

Train at the top level, or in a function that is called unconditionally. Leave the script before (`raise
SystemExit`) if there is nothing to train.

## What is reported

A loop, the definition of its function, or a call that reaches it, under `if`, `match`, `except`, in a
conditional expression, or after `and` or `or`. A `fit` is a loop in itself, so an `if` around it counts even
inside another loop.

A condition that all ranks agree on (a literal, an argument of the command line, the environment, a file that
configures the run) changes nothing about the conversion, and the finding says so.

Not reported: `if __name__ == "__main__":`, the body of a `try`, another loop around it, and an `if` inside
the loop that skips a step.

Unknown: a `fit` under a condition, of something that may not be a Keras model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from trainshift.core.finding import Finding, Related
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import Script
from trainshift.python.source.source import Span, one_line
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, expression_path, is_main_guard
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.training.loops.loop_kinds import Loop, header
from trainshift.training.loops.loops import Loops
from trainshift.training.uniformity.uniformity import Uniformity


class _Condition(Struct, frozen=True):
    """A condition around a loop: the span to point at, its wording, and its place.

    With `alike`, its outcome is certainly the same on every rank.
    """

    loop: Loop
    site: Site
    span: Span
    what: str
    at: Span
    alike: bool


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each loop, or call that reaches one, under a condition in this script."""
    reported: set[Span] = set()
    for loop in (*program.fact(Loops).all, *program.fact(Loops).possible):
        for site in loop.sites:
            whole = loop.is_call or (
                not isinstance(loop.statement.node, LOOPS) and not _is_step_of_others(program, site)
            )
            for found in _conditions(program, loop, site, whole):
                if found.span not in reported:
                    reported.add(found.span)
                    yield _finding(program, report, found)


def _is_step_of_others(program: Program, site: Site) -> bool:
    """Return whether the call is in a function without known callers: its loop is in another file."""
    function = site.scope.function()
    return function is not None and not program.fact(Loops).callers(function)


def _finding(program: Program, report: Report, found: _Condition) -> Finding:
    site = found.site
    name = f"{one_line(found.loop.script.home(site.scope).text(site.node.func, site))}(...)"
    reached = "trains" if site in found.loop.sites else "reaches a training loop and runs"
    related = (Related(found.at, "the condition"),)
    if not found.loop.likely:
        message = f"{name}, which runs {found.what}, may train a Keras model. If so, run it on every rank."
        return report.unknown(found.span, message, related)
    if found.alike:
        message = f"{name} {reached} {found.what}, which is the same on every rank. None waits for another."
        return report.violated(found.span, message, related, settled=True)
    message = (
        f"{name} {reached} {found.what}: a rank that decides differently leaves the others waiting. Run it "
        "on every rank."
    )
    steps = program.fact(Loops).steps(found.loop)
    return report.violated(found.span, message, related, concerns=steps)


def _conditions(program: Program, loop: Loop, site: Site, whole: bool) -> Iterator[_Condition]:
    """The first conditions outwards from a call, through the callers of its function.

    With `whole`, the call is, or represents, a whole loop, rather than a step inside one. Outer conditions
    count too: the first one in this file that may differ between ranks is reported at the place of the
    innermost one.
    """
    ways: dict[_Condition | None, list[_Condition]] = {None: []}
    seen: set[tuple[_Condition | None, Scope]] = set()
    waiting: list[tuple[Site, bool, _Condition | None]] = [(site, whole, None)]
    while waiting:
        site, whole, first = waiting.pop(0)
        found, whole = _around(program, loop, site, whole)
        first = first or next(iter(found), None)
        ways.setdefault(first, []).extend(found)
        function = site.scope.function()
        if function is not None and (first, function) not in seen:
            seen.add((first, function))
            waiting += [(caller, whole, first) for caller in program.fact(Loops).callers(function)]
    for first, every in ways.items():
        if first is None or program.script.text_of(first.site.scope) is not program.script:
            continue
        differ = [each for each in every if not each.alike]
        here = [each for each in differ if program.script.text_of(each.site.scope) is program.script]
        told = next(iter(here), first)
        yield replace(first, what=told.what, at=told.at, alike=not differ)


def _around(program: Program, loop: Loop, site: Site, whole: bool) -> tuple[list[_Condition], bool]:
    """The conditions around a call in its function, outwards, and whether it then represents a whole loop."""
    script = program.script.text_of(site.scope)
    place = script.span(site.node, site)
    found: list[_Condition] = []

    def add(test: ast.expr | None, at: Statement, what: str, where: Span) -> None:
        tested = Occurrence(test, at.scope, at) if test is not None else None
        alike = tested is not None and program.fact(Uniformity).is_uniform(tested)
        found.append(_Condition(loop, site, place, what, where, alike))

    for inline in _inline_conditions(site) if whole else ():
        text = one_line(script.text(inline, site))
        add(inline, site.statement, f"depending on `{text}`", script.span(inline, site))
    for below, above in pairwise(site.statement.path()):
        if above.scope is not site.statement.scope:
            break
        if isinstance(above.node, LOOPS) and below.branch == "body":
            if not found and (not whole or not loop.is_call):
                place = header(script, above)
            whole = True
        elif whole and _is_condition(above, below):
            add(_tested(above), above, *_described(script, above, below))
    function = site.scope.function()
    for below, above in pairwise(_definition(function)) if whole and function is not None else ():
        if _is_condition(above, below):
            add(_tested(above), above, *_described(script, above, below))
    return found, whole


def _definition(function: Scope) -> Iterator[Statement]:
    """Yield the definition of a function and the statements around it, up to the next function."""
    for statement in function.statement.path() if function.statement is not None and function.name else ():
        if statement.scope.function() is not (function.parent.function() if function.parent else None):
            return
        yield statement


def _inline_conditions(site: Site) -> Iterator[ast.expr]:
    """Yield the tests of conditional expressions around a call, and the operands before it in
    ``and``/``or``.
    """
    for above, below in reversed(list(pairwise(expression_path(site.statement.node, site.node)))):
        if isinstance(above, ast.IfExp) and below is not above.test:
            yield above.test
        if isinstance(above, ast.BoolOp):
            yield from above.values[: above.values.index(below)]  # type: ignore[arg-type]


def _is_condition(above: Statement, below: Statement) -> bool:
    if isinstance(above.node, ast.If):
        return not is_main_guard(above)
    return isinstance(above.node, ast.Match) or below.branch.startswith("except")


def _tested(above: Statement) -> ast.expr | None:
    """The test that decides whether a block runs; None for an exception."""
    if isinstance(above.node, ast.If):
        return above.node.test
    return above.node.subject if isinstance(above.node, ast.Match) else None


def _described(script: Script, above: Statement, below: Statement) -> tuple[str, Span]:
    """The wording of a condition, and its span."""
    node = above.node
    if isinstance(node, ast.If):
        text = one_line(script.text(node.test, above))
        what = f"only if `{text}`" if below.branch == "body" else f"only if `{text}` does not hold"
        return what, script.span(node.test, above)
    if isinstance(node, ast.Match):
        text = one_line(script.text(node.subject, above))
        return f"only for one case of `{text}`", script.span(node.subject, above)
    return "only after an exception", Span(
        script.statement_span(above).start, script.statement_span(above).start + 3
    )
