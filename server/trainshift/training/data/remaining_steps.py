"""Remaining steps: what is left of a number of steps after those that a restored counter has counted.

A rank's counter, also one restored from a checkpoint or from a file that the script itself writes, counts its
own steps: of ``STEPS - done`` only the first number is divided.
"""

from __future__ import annotations

import ast
from collections.abc import Set
from functools import partial
from typing import TypeGuard

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.methods import named
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Instance
from trainshift.training.rank_regions.read_back import ReadBack

_VARIABLE = "tensorflow.Variable"


def whole_of_rest(program: Program, at: Occurrence) -> Occurrence | None:
    """Return the number of all steps in a rest of them, ``STEPS`` in ``STEPS - done``; None if it is none."""
    if not is_rest(at.node):
        return None
    taken, whole = (is_restored_count(program, at.part(each)) for each in (at.node.right, at.node.left))
    return at.part(at.node.left) if taken and not whole else None


def divided_of(program: Program, turns: Occurrence) -> Occurrence:
    """Return the number to divide where a loop takes some turns: of a rest, which may have a name, all."""
    step = program.names.steps_back(turns) if isinstance(turns.node, ast.Name) else None
    is_named = step is not None and not step.unseen and len(step.sources) == 1
    rest = step.sources[0] if step is not None and is_named else turns
    return whole_of_rest(program, rest) or turns


def is_rest(node: ast.expr) -> TypeGuard[ast.BinOp]:
    """Return whether a number is the rest of another: ``STEPS - done``."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)


def is_restored_count(program: Program, at: Occurrence) -> bool:
    """Return whether a number comes from a counter: a checkpoint's, an optimizer's, or one kept in a file."""
    restores = any(True for _ in program.script.sites_named(*named("restoring")))
    reads = program.fact(Libraries).names_stating("reads")
    if not restores and not any(True for _ in program.script.sites_named(*sorted(reads))):
        return False
    kept = _kept_numbers(program) if restores else set()
    behind = reachable([at], partial(_parts, program), lambda each: id(each.node))
    return any(
        (restores and _is_counter(program, each, kept)) or _is_of_file(program, each) for each in behind
    )


def _parts(program: Program, at: Occurrence) -> list[Occurrence]:
    """The parts of an expression, or of the value it was bound to."""
    step = program.names.steps_back(at) if isinstance(at.node, ast.Name | ast.Call) else None
    found = [at.part(each) for each in ast.iter_child_nodes(at.node) if isinstance(each, ast.expr)]
    return [*found, *((*step.sources, *step.within) if step is not None else ())]


def _is_of_file(program: Program, at: Occurrence) -> bool:
    """Return whether an expression reads a file that the script itself writes."""
    site = program.script.code.sites_by_node.get(at.node) if isinstance(at.node, ast.Call) else None
    return site is not None and program.fact(ReadBack).is_kept(site)


def _kept_numbers(program: Program) -> set[ast.expr]:
    """The variables that a checkpoint contains, ``step`` in ``Checkpoint(step=step)``."""
    return {
        value.node
        for site in program.script.sites_named("Checkpoint")
        if program.names.calls(site, *api.CHECKPOINT)
        for word in site.node.keywords
        for value in program.names.site_values(word.value, site)
        if isinstance(value, Instance) and value.cls == _VARIABLE
    }


def _is_counter(program: Program, at: Occurrence, kept: Set[ast.expr]) -> bool:
    names = program.names
    if not isinstance(at.node, ast.Name | ast.Attribute):
        return False
    values = names.values(at.node, at.scope, at.statement)
    if any(isinstance(each, Instance) and each.node in kept for each in values):
        return True
    if not isinstance(at.node, ast.Attribute):
        return False
    for owner in names.values(at.node.value, at.scope, at.statement):
        if names.is_a(owner, *api.CHECKPOINT) and isinstance(owner, Instance):
            return any(word.arg == at.node.attr for word in owner.node.keywords)
        if at.node.attr == "iterations" and names.is_a(owner, *api.OPTIMIZERS):
            return True
    return False
