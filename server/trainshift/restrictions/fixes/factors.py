"""Factors: literal products and quotients of numbers with the number of ranks."""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.source.edit import Edit
from trainshift.training.horovod.existing_use import Horovod

# Expressions that can be multiplied or divided without parentheses.
_ATOMS = (ast.Constant, ast.Name, ast.Attribute, ast.Call, ast.Subscript)
# A factor behind more names than this is not found, and no fix is offered.
_DEEPEST = 10


def without_factor(program: Program, at: Occurrence, depth: int = 0) -> Edit | None:
    """The edit that removes the factor `size()` from a number; None if the factor is not literal."""
    node = at.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        whole, left = program.script.span(node, at.scope), program.script.span(node.left, at.scope)
        star = program.script.source.text.index("*", left.end)
        if _is_size(program, at.part(node.right)):
            before = program.script.source.text[:star].rstrip()
            return Edit(len(before), whole.end, "")
        if _is_size(program, at.part(node.left)):
            after = program.script.source.text[star + 1 : whole.end].lstrip()
            return Edit(whole.start, whole.end - len(after), "")
        found = (without_factor(program, at.part(side), depth) for side in (node.left, node.right))
        return next((each for each in found if each is not None), None)
    step = program.names.steps_back(at) if depth < _DEEPEST else None
    if step is None or step.unseen or len(step.sources) != 1:
        return None
    return without_factor(program, step.sources[0], depth + 1)


def _is_size(program: Program, at: Occurrence, depth: int = 0) -> bool:
    """Return whether an expression is `size()` itself, or a name of that."""
    if isinstance(at.node, ast.Call):
        return program.fact(Horovod).is_call(program.script.site_of(at.node), "size", "local_size")
    step = program.names.steps_back(at) if depth < _DEEPEST else None
    if step is None or step.unseen or not step.sources:
        return False
    return all(_is_size(program, each, depth + 1) for each in step.sources)


def multiplied(program: Program, at: Occurrence, factor: str) -> tuple[Edit, ...]:
    """The edits that multiply an expression."""
    return _around(program, at, "", f" * {factor}")


def divided(program: Program, at: Occurrence, divisor: str) -> tuple[Edit, ...]:
    """The edits that divide a count by a number, with a result of at least 1."""
    return _around(program, at, "max(1, ", f" // {divisor})")


def _around(program: Program, at: Occurrence, before: str, after: str) -> tuple[Edit, ...]:
    span = program.script.span(at.node, at.scope)
    powers = not before and isinstance(at.node, ast.BinOp) and isinstance(at.node.op, ast.Mult | ast.Pow)
    if not isinstance(at.node, _ATOMS) and not powers:
        before, after = f"{before}(", f"){after}"
    start = (Edit(span.start, span.start, before),) if before else ()
    return (*start, Edit(span.end, span.end, after))
