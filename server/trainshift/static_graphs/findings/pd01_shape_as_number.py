"""An unknown dimension must not stand where Python needs a number.

## Why it matters

A dimension that the `InputSpec` leaves open, or that depends on values, is a tensor in the graph. Where
Python needs a number the conversion fails, or never ends.

## What to do

Use Paddle's function (`paddle.maximum`, `paddle.sqrt`), or give the dimension in the `InputSpec`.

## More of it

Numbers are needed by `math.*`, `max`, `min`, `round` and NumPy, by `[0] * n`, indices, keys and f-strings,
by a comparison of shapes, a `range` in a comprehension, `list(range(n))` and `*x`. The dimensions of a tensor
that was reshaped by a tensor are tensors in both modes of conversion.
"""

from __future__ import annotations

from trainshift.core.rule import Findings
from trainshift.static_graphs.concretization import needs
from trainshift.static_graphs.domain.abstract_values import Dim
from trainshift.static_graphs.reporting import Judge

_BECAUSE = {
    Dim.SPEC: "because of None in `input_spec`",
    Dim.CHOSEN: "since it depends on the values of tensors",
    Dim.DATA: "since it depends on the values of tensors",
    Dim.ANY: "since it may depend on the values of tensors",
}


def check(judge: Judge) -> Findings:
    for function, statement in judge.reached():
        for need in needs(function, statement):
            if need.counts is not None:
                yield from judge.say(
                    statement,
                    f"`{judge.code_of(need.value, statement)}` is a tensor {_BECAUSE[need.counts]}, "
                    f"and {need.what} needs a number",
                    "Use a function of Paddle's, or give the dimension.",
                    at=need.node if hasattr(need.node, "lineno") else need.value,
                    sure=need.is_sure,
                    always=need.counts is Dim.DATA,
                )
