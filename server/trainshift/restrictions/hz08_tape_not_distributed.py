"""Gradients that are applied must come from a distributed tape.

    with tf.GradientTape() as tape:         with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))             loss = loss_fn(y, model(x))
    grads = tape.gradient(loss, weights)    tape = hvd.DistributedGradientTape(tape)
                                            grads = tape.gradient(loss, weights)

## Why it matters

Each rank applies its own gradients, so the ranks diverge. A wrapped optimizer does not help: its
`apply_gradients` reduces nothing.

## What to do

Wrap the tape with `hvd.DistributedGradientTape` before its first `gradient`, and use the wrapped one.

## What is reported

`gradient` of a plain tape, or `tf.gradients`, that reaches `apply_gradients`; also where the tape is wrapped
after it, or under a name that is not used. Not reported: gradients that go through an `allreduce`, and a loop
of one rank alone."""

from __future__ import annotations

import ast

from trainshift.core.finding import Related
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.restrictions.fixes.places import beside, text_of
from trainshift.training.keras_version.for_keras2 import ForKeras2
from trainshift.training.ranks.shared_loops import Together


def _what_to_write(program: Program, site: Site) -> str:
    tape = site.node.func.value if isinstance(site.node.func, ast.Attribute) else None
    if site.name != "gradient" or not isinstance(tape, ast.Name) or program.fact(ForKeras2).is_keras3:
        return "Average them by hvd.allreduce before they are applied."
    return f"Wrap the tape before its first gradient: {tape.id} = hvd.DistributedGradientTape({tape.id})."


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each call whose gradients are not averaged."""
    for plain in program.fact(Together).plain_tapes:
        text = text_of(program, plain.site.node.func, plain.site)
        message = f"The gradients of {text}(...) are not averaged, so the ranks diverge."
        related: tuple[Related, ...] = ()
        if plain.unused is not None:
            message += " Another tape is distributed: use that one, and wrap it before its first gradient."
            related = (beside(program, plain.unused, "the distributed tape"),)
        else:
            message += f" {_what_to_write(program, plain.site)}"
        yield report.violated(plain.site, message, related)
