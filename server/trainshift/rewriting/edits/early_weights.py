"""Early weights: the broadcast above a place where a script uses a model before it trains."""

from __future__ import annotations

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.python.source.edit import Edit
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.initial_state.set_weights import Early
from trainshift.training.keras_version.target import Target

_KEPT = "{} is broadcast above line {} as well, where the script keeps weights for later"
_PREDICTED = "{} is broadcast above line {} as well, where its predictions choose training data"
UNBUILT = (
    "{} chooses training data before the ranks have the same weights, so each chooses its own; "
    "call it on a batch first, and broadcast its variables"
)
"""The doubt about a model that has no variables before its first prediction."""


def broadcast_above(program: Program, early: Early) -> tuple[Edit, ...]:
    """Return the edits that broadcast a model above a statement."""
    place = early.place
    layout, prerequisites = program.fact(Layout), program.at(place).fact(Prerequisites)
    variables = program.fact(Target).of_model(early.name, prerequisites.tf)
    line = f"{prerequisites.hvd}.broadcast_variables({variables}, root_rank=0)"
    return (*layout.isolate(place), layout.before(place, [line], -1))


def told_of(program: Program, early: Early) -> str:
    """Return the decision about such a place."""
    line = program.script.line_at(program.script.statement_span(early.place).start)
    return (_PREDICTED if early.predicts else _KEPT).format(early.name, line)
