"""Each model must be trained by one type of loop.

    model.fit(data, epochs=1)                   model.fit(data, epochs=3)
    for x, y in data:
        train_step(x, y)  # a tape

## Why it matters

A model that is trained both ways is wrapped both ways. On two GPUs its gradients are averaged twice or not
at all.

A tape's gradients are averaged by wrapping the tape, those of `fit` by wrapping the optimizer, and each loop
has a broadcast of its own.

## What to do

Train each model by `fit` alone, with a custom `train_step` if need be, or by a tape alone.

## What is reported

One model in two types of loop.

Not reported: two models with one loop each, and a custom `train_step` with `fit`.

Harmless: a model with two loops of which only one runs, in two branches of an `if` or a `match`, or in
functions that are called there.

Unknown: two types of loop that may train one model.
"""

from __future__ import annotations

import ast
from itertools import product

from trainshift.core.finding import Finding, Related, Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.source.source import Span
from trainshift.training.execution.origins import Origins
from trainshift.training.loops.exclusive_modes import Modes
from trainshift.training.loops.loop_kinds import KNOWN_PATTERNS, Loop
from trainshift.training.loops.loops import Loops


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each loop that trains a model which an earlier loop of another type also trains."""
    loops = [loop for loop in program.fact(Loops).all if loop.pattern in KNOWN_PATTERNS]
    worst: dict[Loop, Finding] = {}
    for index, later in enumerate(loops):
        for earlier in loops[:index]:
            here, other = (later, earlier) if later.script is program.script else (earlier, later)
            known = worst.get(here)
            if here.pattern is other.pattern or (known is not None and known.verdict is not Verdict.HARMLESS):
                continue
            span: Span | None = here.span
            if here.script is not program.script:
                span = _made_here(program, here, other)
            elif program.fact(Loops).same_model(here, other) is False:
                span = None
            found = _finding(program, report, here, other, span) if span is not None else None
            if found is not None and (known is None or found.verdict is not Verdict.HARMLESS):
                worst[here] = found
    yield from worst.values()


def _made_here(program: Program, one: Loop, other: Loop) -> Span | None:
    """The place where the script creates a model that two loops in other files train."""
    place = program.fact(Loops).shared_model(one, other)
    for made in program.fact(Origins).creations(place) if place is not None else ():
        site = program.script.code.sites_by_node.get(made) if isinstance(made, ast.Call) else None
        if site is not None:
            return program.script.span(site.node, site)
    return None


def _exclude(program: Program, one: Loop, other: Loop) -> bool:
    """Return whether only one of two loops trains a model in a run."""
    place = program.fact(Loops).shared_model(one, other)
    made = program.fact(Origins).creations(place) if place is not None else ()
    makers = [program.script.site_of(each) for each in made if isinstance(each, ast.Call)]
    places = [
        [Occurrence(site.node, site.scope, site.statement) for site in loop.sites] for loop in (one, other)
    ]
    return all(program.fact(Modes).exclude(first, second, makers) for first, second in product(*places))


def _finding(program: Program, report: Report, here: Loop, other: Loop, span: Span) -> Finding | None:
    """The finding about two loops; None if unknown values make no difference."""
    related = [Related(other.span, f"the other loop: {other.call}", program.elsewhere(other.script))]
    if here.script is not program.script:
        related.insert(0, Related(here.span, f"one loop: {here.call}", here.script))
    model, exclusive = program.fact(Loops).shared_model(here, other), _exclude(program, here, other)
    if model is not None:
        elsewhere = here.script is not program.script
        name = "The model that is made here" if elsewhere else ast.unparse(model.node)
        loops = f"{other.call} and {here.call}"
        verdict, outcome = (
            Verdict.VIOLATED,
            ": its gradients may be averaged twice or not at all. Use one of them.",
        )
        if exclusive:
            verdict = Verdict.HARMLESS
            outcome = ", of which only one runs; each is converted by its own rules."
        message = f"{name} is trained by two types of loop, {loops}{outcome}"
        return report.finding(verdict, span, message, tuple(related))
    if exclusive:
        return None
    message = (
        f"{here.call} and {other.call}, two types of loop, may train one model. "
        "If they do, its gradients would be averaged twice: use one of them."
    )
    return report.unknown(span, message, tuple(related))
