"""Parameters that are trained with `full_graph=True` must have a gradient in the graph.

## Why it matters

Paddle 3 loses gradients in some parts of a graph. Some raise "The variable middle_0 should exist", others
train with a gradient that is zero or too small.

## What to do

Train without `full_graph=True`. Exporting the trained layer with `paddle.jit.save` needs no gradient.

## More of it

This happens in a `while` on a tensor, a loop over a `range` of a tensor or over rows whose number the
`InputSpec` leaves open, a branch with two results of which one is computed from the
other, a nested branch that reads a result of the outer one, and a tensor that a branch reads twice and that
is read later.
"""

from __future__ import annotations

import ast
from collections import Counter

from trainshift.core.program import Program
from trainshift.core.rule import Findings
from trainshift.python.flow.def_use import names_read
from trainshift.python.syntax.chunk_syntax import Statement, own_parts
from trainshift.static_graphs.domain.abstract_values import AbstractValue
from trainshift.static_graphs.reading.entries import SAVING
from trainshift.static_graphs.reading.function import Mode, StaticFunction
from trainshift.static_graphs.reporting import Judge, bound_in, loops, may_be_unrolled, reached

_DO = "Train it without `full_graph=True`."


def check(judge: Judge) -> Findings:
    run_full = [
        each for each in judge.functions if each.mode is Mode.FULL and not _is_saved_only(judge, each)
    ]
    for function in run_full if run_full and _trains(judge.program) else ():
        for loop in loops(function):
            carried = _carried(function, loop) if function.may_be_graph(loop.node) else ""
            if carried:
                what = f"A graph has no gradient of `{carried}`, which this loop changes"
                yield from judge.say(loop, what, _DO, sure=not may_be_unrolled(function, loop))
        for statement in reached(function):
            if isinstance(statement.node, ast.If) and function.may_be_graph(statement.node):
                problem = _problem(function, statement)
                if problem:
                    yield from judge.say(statement, problem, _DO)


def _trains(program: Program) -> bool:
    """Return whether the program computes gradients somewhere."""
    return any(True for script in program.script.linked for _ in script.sites_named("backward", "fit"))


def _carried(function: StaticFunction, loop: Statement) -> str:
    """A name whose tensor, perhaps with a gradient, a loop changes for later code; empty if there is none."""
    before = function.before.get(loop, {})
    live = function.live_after(loop)
    for name in bound_in(loop.branches.get("body", [])):
        value = before.get(name)
        if name in live and value is not None and value.tensor is not None and _may_have_gradient(value):
            return name
    return ""


def _may_have_gradient(value: AbstractValue) -> bool:
    """Return whether a value, or its contents, may be of floats."""
    if value.is_python:
        held = (*(value.items or ()), *([value.element] if value.element is not None else ()))
        return any(map(_may_have_gradient, held))
    return value.tensor is None or not value.tensor.dtype.startswith(("int", "uint", "bool"))


def _is_saved_only(judge: Judge, function: StaticFunction) -> bool:
    """Return whether a function is made static only when a layer is saved, and never runs that way."""
    why = function.why
    while why.caller is not None:
        why = why.caller.why
    node = why.node.func if isinstance(why.node, ast.Call) else why.node
    if not isinstance(node, ast.expr):
        return False
    return bool(judge.script.home(why.scope).names.full_names(node, why.scope) & SAVING)


def _problem(function: StaticFunction, statement: Statement) -> str:
    """Return the reason why a branch has no gradient, or too small a one."""
    live = function.live_after(statement)
    before = function.before.get(statement, {})
    for block in statement.branches.values():
        bound = bound_in(block)
        tensors = {name for name in bound if name in live}
        computed = _computed_from(block, tensors)
        if computed:
            one, other = computed
            return f"A graph loses the gradient of `{one}`, since the branch computes `{other}` from it"
        for top in block:
            for each in top.walk():
                if isinstance(each.node, ast.If) and function.may_be_graph(each.node):
                    exposed = names_read(each.node) & set(bound_in(block[: block.index(top)]))
                    now = function.before.get(each, {})
                    read = {name for name in exposed if name not in now or _may_have_gradient(now[name])}
                    if read:
                        return f"A graph loses the gradient of `{min(read)}`, read by a branch in a branch"
        number = Counter(
            node.id
            for top in block
            for each in top.walk()
            for node in own_parts(each.node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        )
        for name in sorted(live - bound.keys()):
            value = before.get(name)
            if number[name] > 1 and value is not None and value.is_tensor and _may_have_gradient(value):
                return f"A graph loses a part of the gradient of `{name}`, which this branch reads twice"
    return ""


def _computed_from(block: list[Statement], tensors: set[str]) -> tuple[str, str] | None:
    """Two results of a block, the second computed from the first."""
    seen: set[str] = set()
    for statement in block:
        node = statement.node
        if isinstance(node, ast.Assign):
            names = [each.id for each in node.targets if isinstance(each, ast.Name)]
            used = names_read(node.value) & seen & tensors
            for name in names:
                if used - {name} and name in tensors:
                    return min(used - {name}), name
            seen.update(names)
    return None
