"""Each model is trained by one type of loop.

A tape's gradients are averaged by wrapping the tape, those of `fit` by wrapping the optimizer. A model
that is trained both ways gets both: its optimizer is wrapped for `fit` and then also applies gradients that
the tape has averaged already, or the broadcast of one loop undoes what the other has learnt.

Two models with one loop each are fine, however different the loops (see TL02). A custom `train_step` with
`fit` is one loop. Unknown: two types of loop in a program, and it cannot be seen which model each trains.

By hand: train each model by `fit` alone (with a custom `train_step` if need be), or by a tape alone.

Seeds: S2 §3.1 restriction 3, S3 §3.1 restriction 3.
"""

from __future__ import annotations

import ast

from trainshift.core.finding import Finding, Related, Verdict
from trainshift.core.program import Program
from trainshift.core.text.source import Span
from trainshift.core.training.loop_kinds import KNOWN_PATTERNS, Loop
from trainshift.core.training.loops import Loops
from trainshift.core.training.origins import Origins
from trainshift.restrictions.restriction import Findings, Restriction


def check(program: Program) -> Findings:
    """One finding for each loop that trains what a loop of another type before it trains too."""
    loops = [loop for loop in program.fact(Loops).all if loop.pattern in KNOWN_PATTERNS]
    reported: set[Loop] = set()
    for index, later in enumerate(loops):
        for earlier in loops[:index]:
            here, other = (later, earlier) if later.script is program.script else (earlier, later)
            if here in reported or here.pattern is other.pattern:
                continue
            if here.script is not program.script:
                made = _made_here(program, here, other)
                if made is not None:
                    reported.add(here)
                    yield _finding(program, here, other, made)
            elif program.fact(Loops).same_model(here, other) is not False:
                reported.add(here)
                yield _finding(program, here, other, here.span)


def _made_here(program: Program, one: Loop, other: Loop) -> Span | None:
    """Where the script makes the model that two loops of other files train."""
    place = program.fact(Loops).shared_model(one, other)
    for made in program.fact(Origins).creations(place) if place is not None else ():
        site = program.script.code.sites_by_node.get(made) if isinstance(made, ast.Call) else None
        if site is not None:
            return program.script.span(site.node, site)
    return None


def _finding(program: Program, here: Loop, other: Loop, span: Span) -> Finding:
    related = [Related(other.span, f"the other loop: {other.call}", program.elsewhere(other.script))]
    if here.script is not program.script:
        related.insert(0, Related(here.span, f"one loop: {here.call}", here.script))
    model = program.fact(Loops).shared_model(here, other)
    if model is not None:
        elsewhere = here.script is not program.script
        name = "The model that is made here" if elsewhere else ast.unparse(model.node)
        message = (
            f"{name} is trained by two types of loop, {other.call} "
            f"({other.pattern.value}) and {here.call} ({here.pattern.value}); its gradients would be "
            "averaged twice or not at all."
        )
        return Finding("TL03", Verdict.VIOLATED, span, message, tuple(related))
    message = (
        f"It cannot be seen whether {here.call} ({here.pattern.value}) and {other.call} "
        f"({other.pattern.value}) train one model; if they do, its gradients would be averaged twice."
    )
    return Finding("TL03", Verdict.UNKNOWN, span, message, tuple(related))


RULE = Restriction("TL03", "model-with-two-loops", check)
