"""Every training loop must be of a type that can be converted.

    with tf.distribute.MirroredStrategy().scope():      model = make_model()
        model = make_model()                            model.fit(data)
    model.fit(data)

## Why it matters

The gradients of any other loop cannot be averaged. On two GPUs each process trains a model of its own; under
`tf.distribute` they are averaged twice.

Trainshift converts loops with a `tf.GradientTape` and `apply_gradients`, Keras' `fit`, Estimators, and
TensorFlow 1's sessions.

## What to do

Remove the strategy; replace `minimize` by a tape and `apply_gradients`; let an optimizer apply the
gradients.

## What is reported

A loop under `tf.distribute`, `optimizer.minimize(...)` of TensorFlow 2, weights that are updated by hand,
and a library that hides its `fit`. A strategy is reported where it is made, if that is in the loop's file.
Most strategies are taken out when the script is converted (HV17). A step by `minimize` is written out
where it stands alone in its statement (HV04).

Harmless: two types of loop for different models: each is converted by its own rules. One model that is
trained by both is TL03.

Unknown: gradients that come from somewhere else, and a `fit` of something that may not be a Keras model.
"""

from __future__ import annotations

from trainshift.core.finding import Related, Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.source.source import Span
from trainshift.training.loops.loop_kinds import KNOWN_PATTERNS, Loop, Pattern
from trainshift.training.loops.loops import Loops

_WHY = {
    Pattern.STRATEGY: "{call} runs under a tf.distribute strategy, which averages the gradients itself. "
    "Remove the strategy, or Horovod averages them twice.",
    Pattern.MINIMIZE: "{call} computes its gradients itself, so each rank would train on its own. Use a "
    "tf.GradientTape and apply_gradients.",
    Pattern.BY_HAND: "{call} updates the weights by hand, so each rank would train on its own. Use an "
    "optimizer's apply_gradients.",
    Pattern.LIBRARY: "{call} trains through a library that hides the fit, so each rank would train on its "
    "own. Call the model's own fit.",
    Pattern.UNKNOWN: "Trainshift cannot tell where the gradients of {call} come from. Check that they are "
    "averaged over the ranks.",
}


_PERHAPS = {
    Pattern.STRATEGY: "{call} may run under a tf.distribute strategy. If it does, remove the strategy, or "
    "Horovod averages the gradients a second time.",
    Pattern.MINIMIZE: "{call} may train with a TensorFlow optimizer. If it does, use a tf.GradientTape and "
    "apply_gradients, or each rank trains on its own.",
}


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each loop of another type, and for each further type in the program."""
    distributed: set[Span] = set()
    for loop in (*program.fact(Loops).own, *program.fact(Loops).possible):
        if loop.pattern not in KNOWN_PATTERNS:
            unknown = loop.pattern is Pattern.UNKNOWN or not loop.certain
            verdict = Verdict.UNKNOWN if unknown else Verdict.VIOLATED
            span, related = _places(program, loop)
            if loop.origin is not None and span in distributed:
                continue  # One strategy has to go, however many loops it distributes.
            distributed.add(span)
            message = (_WHY if loop.certain else _PERHAPS).get(loop.pattern, _WHY[loop.pattern])
            message = message.format(call=loop.call)
            yield report.finding(verdict, span, message, related)
        elif not loop.certain:
            message = (
                f"Trainshift cannot tell whether {loop.call} trains a Keras model. Anything else is left as "
                "it is."
            )
            yield report.unknown(loop.span, message)
    yield from _second_types(program, report)


def _places(program: Program, loop: Loop) -> tuple[Span, tuple[Related, ...]]:
    """The place of a loop, or of the strategy that distributes it, which has to go; and the other place."""
    span = loop.script.span(loop.sites[0].node, loop.sites[0])
    if loop.origin is None:
        return span, ()
    home = program.script.home(loop.origin.scope)
    strategy = home.span(loop.origin.node, loop.origin)
    if home is program.script and loop.script is home:
        return strategy, (Related(span, "the loop"),)
    return span, (Related(strategy, "the strategy", program.elsewhere(home)),)


def _second_types(program: Program, report: Report) -> Findings:
    loops = [loop for loop in program.fact(Loops).all if loop.pattern in KNOWN_PATTERNS]
    known: dict[Pattern, Loop] = {}
    for loop in loops:
        first = next(iter(known.values()), loop)
        if loop.pattern not in known and first is not loop and _is_about(program, loop, first):
            here, other = (loop, first) if loop.script is program.script else (first, loop)
            if program.fact(Loops).same_model(here, other) is False:
                message = (
                    f"{here.call} and {other.call} are two types of training loop, for different models; "
                    "each is converted by its own rules."
                )
                where = program.elsewhere(other.script)
                related = Related(other.span, f"the other type: {other.call}", where)
                yield report.harmless(here.span, message, (related,))
        known.setdefault(loop.pattern, loop)


def _is_about(program: Program, *loops: Loop) -> bool:
    return any(loop.script is program.script for loop in loops)
