"""Batches: the data that a loop takes in each iteration without iterating over them.

If each iteration draws its batch at random, or takes the next of an endless sequence, each rank draws batches
of its own, so only the number of iterations is divided.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from itertools import pairwise

from trainshift.core.program import Program
from trainshift.libraries.containers import ADDING
from trainshift.libraries.divergence import CauseKind
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, dotted, last_name
from trainshift.training.data.turns import Gives, Turns, subscripts
from trainshift.training.datasets.draw_remedies import Remedies
from trainshift.training.datasets.knowledge import Knowledge
from trainshift.training.datasets.pipelines import Pipelines
from trainshift.training.execution.executions import Executions, counted_in
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.verdict import Verdict, divergent, joined

# Methods of data that return batches in a random order.
_HANDING_OUT = ("next_batch",)
_NEXT = ("get_next", "next")
# The comparison by which a test asks whether a counter has grown.
_GROWN = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)
# Methods that extend a container, or a buffer of past steps.
_GROWING = ADDING | {"push", "put", "remember", "store"}


def draws_batches(program: Program, loop: Statement) -> bool:
    """Return whether each rank draws all batches of a loop itself, differently from the others."""
    inside = set(loop.walk())
    handed = [site for site in program.script.sites_named(*_HANDING_OUT) if site.statement in inside]
    if handed:
        return all(_hands_out(program, site) for site in handed)
    asked = [site for site in program.script.sites_named(*_NEXT) if site.statement in inside]
    pipelines = [each for site in asked for each in _iterated(program, site)]
    if pipelines:
        return all(_is_endless_draw(program, each) for each in pipelines)
    return any(True for _ in _chosen(program, loop))


def drawn_in(program: Program, loop: Statement) -> Verdict | None:
    """Return whether a loop draws the same random values on all ranks; None if it draws nothing."""
    draws = program.fact(Uniformity).draws
    found = [*filter(draws.is_draw, program.script.code.sites_in(run_in(program, loop)))]
    if not found:
        return None
    if program.choices.seed_by_rank:
        return divergent(CauseKind.RANK, found[0])
    return joined(map(draws.of, found))


def run_in(program: Program, loop: Statement) -> list[Statement]:
    """The statements of a loop, and of the script's functions that it calls, in text order."""
    code, called = program.script.code, program.fact(Executions).functions_reached(loop)
    inside = (each for function in called for each in code.statements_by_function.get(function, ()))
    return sorted({*loop.walk(), *inside}, key=code.place_of.__getitem__)


def asked_of(program: Program, loop: Statement, idle: set[Statement]) -> list[Occurrence]:
    """The dataset on which each iteration of a loop calls `next` in one place, or one of several.

    The loops of `idle` are part of an iteration: those of a critic, or of gradient accumulation.
    """
    inside = set(loop.walk())
    asked = [site for site in program.script.sites_named(*_NEXT) if site.statement in inside]
    if len(asked) != 1 or asked[0].statement.scope is not loop.scope:
        return []
    above = itertools.takewhile(lambda each: each is not loop, asked[0].statement.ancestors())
    if not all(each in idle for each in above):
        return []
    return _iterated(program, asked[0])


def takes_batches(program: Program, loop: Statement) -> bool:
    """Return whether each iteration of a loop takes different data from the previous one, as far as known."""
    turns = program.fact(Turns)
    if isinstance(loop.node, ast.For | ast.AsyncFor):
        at = Occurrence(loop.node.iter, loop.scope, loop)
        if turns.gives(at) is Gives.DATA and not turns.is_of_batch(at, loop):
            return True
    if asks_next(program, loop):
        return True
    if isinstance(loop.node, ast.While) and any(True for _ in _chosen(program, loop)):
        return True
    return turns.cuts(loop)


def asks_next(program: Program, loop: Statement) -> bool:
    """Return whether a statement in a loop calls `next` for a batch."""
    inside = set(loop.walk())
    return any(site.statement in inside for site in program.script.sites_named(*_HANDING_OUT, *_NEXT))


def counts_turns(loop: Statement) -> bool:
    """Return whether a `while` counts its iterations up to a limit: ``while i < n: ... i += 1``."""
    test = loop.node.test if isinstance(loop.node, ast.While) else None
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Lt | ast.LtE | ast.NotEq):
        return False
    body = loop.branches.get("body", ())
    return len(test.ops) == 1 and any(counted_in(each) == dotted(test.left) != "" for each in body)


def _hands_out(program: Program, site: Site) -> bool:
    functions = program.names.called_functions(site)
    owners = {each.owner() or each for each in functions}
    drawing = (each for each in program.script.sites if program.fact(Remedies).is_free(each))
    first = (each for each in drawing if _lies_in(each.scope, owners) and not _comes_later(program, each))
    return not functions or any(True for _ in first)


def _comes_later(program: Program, draw: Site) -> bool:
    """Return whether an order is drawn only if a counter that begins with 0 has grown, at the end of an
    epoch.
    """
    for below, above in pairwise(draw.statement.path()):
        if isinstance(above.node, ast.If) and below.branch == "body" and _has_grown(program, above):
            return True
    function = draw.scope.function()
    if function is None or function.name in _HANDING_OUT:
        return False
    sites, elsewhere = program.names.callers(function)
    return (
        bool(sites)
        and not elsewhere
        and all(site.scope.function() is not function and _comes_later(program, site) for site in sites)
    )


def _has_grown(program: Program, statement: Statement) -> bool:
    """Return whether a test holds only once an object's counter, which starts at 0, has grown."""
    test = statement.node.test if isinstance(statement.node, ast.If) else None
    if not isinstance(test, ast.Compare) or len(test.ops) > 1 or not isinstance(test.ops[0], _GROWN):
        return False
    more = test.left if isinstance(test.ops[0], ast.Gt | ast.GtE) else test.comparators[0]
    parts = [part for part in ast.walk(more) if isinstance(part, ast.Attribute | ast.Name)]
    steps = (program.names.steps_back(Occurrence(each, statement.scope, statement)) for each in parts)
    held = [*parts, *(each.node for step in steps if step is not None for each in step.sources)]
    counters = {each.attr for each in held if isinstance(each, ast.Attribute)}
    begun = [each.binding.value for name in counters for each in program.script.attribute_bindings(name)]
    return any(isinstance(each, ast.Constant) and each.value == 0 for each in begun)


def _lies_in(scope: Scope | None, owners: set[Scope]) -> bool:
    while scope is not None and scope not in owners:
        scope = scope.parent
    return scope is not None


def _iterated(program: Program, site: Site) -> list[Occurrence]:
    """The iterables of the iterators from which a call takes the next element: ``next(iter(ds))``."""
    function = site.node.func
    node = function.value if isinstance(function, ast.Attribute) else argument(site.node, 0)
    if node is None:
        return []
    step = program.names.steps_back(Occurrence(node, site.scope, site.statement))
    sources = step.sources if step is not None else [Occurrence(node, site.scope, site.statement)]
    calls = [(each, each.node) for each in sources if isinstance(each.node, ast.Call) and each.node.args]
    return [
        each.part(call.args[0])
        for each, call in calls
        if "builtins.iter" in program.names.full_names(call.func, each.scope, each.statement)
    ]


def _is_endless_draw(program: Program, at: Occurrence) -> bool:
    """Return whether a dataset never ends, and each rank reads it in its own order."""
    pipelines, known = program.fact(Pipelines), program.fact(Knowledge)
    root = pipelines.read(at)
    nodes = list(pipelines.upstream(root))
    return (
        root.is_dataset
        and not any(node.unseen for node in nodes)
        and not known.ends(root)
        and any(known.likeness(node).diverges for node in nodes)
    )


def _chosen(program: Program, loop: Statement) -> Iterator[Site]:
    """Yield the draws in a loop, or in functions that it calls, which select elements from data."""
    here = run_in(program, loop)
    for statement in here:
        for part in subscripts(statement):
            index = Occurrence(part.slice, statement.scope, statement)
            drawn = [site for site in program.fact(Remedies).choosing(index) if site.statement in here]
            if drawn and not _is_made(program, part.value, here):
                yield from drawn


def _is_made(program: Program, data: ast.expr, here: list[Statement]) -> bool:
    """Return whether the training itself may create the objects among which it chooses, such as a replay
    memory.
    """
    name = last_name(data)
    for statement in here:
        for part in statement.own_parts():
            if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Store):
                if last_name(part) == name:
                    return True
    stored = (
        part.value
        for statement in program.script.statements
        for part in statement.own_parts()
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store)
    )
    grown = (
        site.node.func.value
        for site in program.script.sites_named(*_GROWING)
        if isinstance(site.node.func, ast.Attribute)
    )
    return not name or any(last_name(each) == name for each in (*stored, *grown))
