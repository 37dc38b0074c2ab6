"""A broadcast must reach the variables that are trained.

    pairs = zip(grads, weights)             pairs = list(zip(grads, weights))
    opt.apply_gradients(pairs)              opt.apply_gradients(pairs)
    hvd.broadcast_variables(                hvd.broadcast_variables(
        [v for _, v in pairs], 0)               [v for _, v in pairs], 0)

## Why it matters

Silently, nothing is broadcast. The ranks start with different weights and keep the difference.

## What to do

Broadcast after the first step, when the variables exist, in a place that each run reaches.

## What is reported

A broadcast of a model that was never called, of an exhausted iterator of pairs, under a flag that a
`tf.function` sets itself, before the variables or their initializer in TensorFlow 1, and `on_train_begin()`
of Horovod's callback by hand.
"""

from __future__ import annotations

import ast

from msgspec.structs import replace

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.source.edit import Change
from trainshift.python.syntax.chunk_syntax import Site, Statement, argument, dotted
from trainshift.restrictions.fixes.moves import abreast, inserted, moved
from trainshift.restrictions.fixes.places import beside
from trainshift.training.initial_state.broadcasts import Broadcasts
from trainshift.training.ranks.shared_loops import Together


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each broadcast that does nothing or is undone."""
    together = program.fact(Together)
    if together.loops and not together.averaged:
        return
    for spoiled in program.fact(Broadcasts).spoiled:
        related = () if spoiled.other is None else (beside(program, spoiled.other, "the other place"),)
        fix = _called_first(program, report, spoiled.site) if spoiled.is_empty else None
        yield report.violated(spoiled.site, spoiled.reason, related, fix, asks=True)


def _called_first(program: Program, report: Report, broadcast: Site) -> Change | None:
    """Call the model on the first element of a later loop's data, above its broadcast."""
    script, given = program.script, argument(broadcast.node, 0, "variables")
    model = dotted(given.value) if isinstance(given, ast.Attribute) else ""
    for site in script.sites:
        fed = argument(site.node, 0)
        if dotted(site.node.func) != model or not model or not isinstance(fed, ast.Name):
            continue
        for above in site.statement.ancestors():
            if (
                not isinstance(above.node, ast.For)
                or above.scope.function() is not broadcast.scope.function()
            ):
                continue
            beside, taken = abreast(program, broadcast.statement, above), _first_of(program, above, fed.id)
            if beside is None or not taken:
                return None
            for place in beside:
                if _are_bound_above(program, above, place):
                    return _called_above(program, report, f"{model}({taken})", broadcast.statement, place)
    return None


def _called_above(
    program: Program, report: Report, call: str, broadcast: Statement, place: Statement
) -> Change | None:
    """Insert a call above a statement, and move an earlier broadcast behind it."""
    change = inserted(report, "Call the model first", call, place)
    if change is None or program.script.span(broadcast.node, broadcast).start > change.edits[0].start:
        return change
    behind = moved(report, change.title, [broadcast], place)
    if behind is None or not isinstance(broadcast.node, ast.Expr):
        return None
    (removed, added) = behind.edits
    return replace(change, edits=(removed, replace(added, text=change.edits[0].text + added.text)))


def _first_of(program: Program, loop: Statement, name: str) -> str:
    """The text of the first value that a loop binds a name to; empty if it does not bind it."""
    assert isinstance(loop.node, ast.For)
    target, through = loop.node.target, loop.node.iter
    if (
        isinstance(through, ast.Call)
        and dotted(through.func) == "enumerate"
        and isinstance(target, ast.Tuple)
    ):
        target, through = target.elts[1], through.args[0]
    text = f"next(iter({program.script.text(through, loop)}))"
    if isinstance(target, ast.Name):
        return text if target.id == name else ""
    names = [getattr(each, "id", "") for each in getattr(target, "elts", ())]
    return f"{text}[{names.index(name)}]" if name in names else ""


def _are_bound_above(program: Program, loop: Statement, place: Statement) -> bool:
    """Return whether all names in a loop's iterable are bound above a statement."""
    assert isinstance(loop.node, ast.For)
    at, script = Occurrence(loop.node.iter, loop.scope, loop), program.script
    start = script.statement_span(place).start
    return all(
        binding.statement is None or script.statement_span(binding.statement).end <= start
        for each in ast.walk(loop.node.iter)
        if isinstance(each, ast.Name)
        for binding in program.names.bindings(at.part(each))
    )
