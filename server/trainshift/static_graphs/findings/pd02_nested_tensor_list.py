"""A list that grows in tensor control flow must hold tensors, and no lists.

## Why it matters

Such a list becomes a TensorArray, which holds tensors only. The conversion fails.

## What to do

Keep one list for each part, or stack the parts to one tensor.
"""

from __future__ import annotations

import ast

from trainshift.core.rule import Findings
from trainshift.static_graphs.reporting import Judge, may_be_unrolled


def check(judge: Judge) -> Findings:
    for function, statement, call in judge.calls():
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in (
            "append",
            "pop",
            "insert",
        ):
            continue
        base = function.kind(call.func.value)
        element = base.whole_element
        given = [function.kind(each) for each in call.args]
        holds = [each for each in (element, *given) if each is not None]
        if "list" in base.python and any(each.python & {"list", "tuple"} for each in holds):
            around = function.graph_around(statement)
            if around:
                name = judge.code_of(call.func.value, statement)
                yield from judge.say(
                    statement,
                    f"`{name}` becomes a TensorArray here, which holds tensors and not lists",
                    "Keep one list for each part.",
                    at=call,
                    sure=not all(may_be_unrolled(function, each) for each in around),
                )
