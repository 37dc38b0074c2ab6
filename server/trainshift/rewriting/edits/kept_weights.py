"""Kept weights: the broadcast above the place where a script saves weights for later use."""

from __future__ import annotations

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.python.source.edit import Edit
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.keras_version.target import Target

_KEPT = "{} is broadcast above line {} as well, where the script keeps weights for later"


def broadcast_above(program: Program, place: Statement, model: str) -> tuple[Edit, ...]:
    """Return the edits that broadcast a model above a statement."""
    layout, prerequisites = program.fact(Layout), program.at(place).fact(Prerequisites)
    variables = program.fact(Target).of_model(model, prerequisites.tf)
    line = f"{prerequisites.hvd}.broadcast_variables({variables}, root_rank=0)"
    return (*layout.isolate(place), layout.before(place, [line], -1))


def kept_above(program: Program, place: Statement, model: str) -> str:
    """Return the decision about such a place."""
    return _KEPT.format(model, program.script.line_at(program.script.statement_span(place).start))
