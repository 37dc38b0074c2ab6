"""Same data: loops that use all of the data in each iteration, so that all ranks do the same work.

for epoch in range(1000):
    session.run(train, {x: train_x, y: train_y})
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import Statement, arguments, last_name
from trainshift.training.data.batches import run_in
from trainshift.training.data.rows import ASKING
from trainshift.training.datasets.draw_remedies import Remedies
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.uniformity.uniformity import Uniformity

# Packages, and TensorFlow functions, that make data.
_MAKING = (
    "numpy.", "pandas.", "sklearn.", "tensorflow.constant", "tensorflow.convert_to_tensor",
    "tensorflow.keras.datasets.", "tensorflow.linspace", "tensorflow.random.",
)  # fmt: skip
# Functions that make single numbers.
_SINGLE = frozenset(
    {"float32", "float64", "int32", "int64", "log", "max", "mean", "min", "prod", "sqrt", "std", "sum"}
)
# Functions that return data in a different form, whenever they are called.
_CONVERTING = frozenset({"array", "asarray", "astype", "cast", "constant", "convert_to_tensor", "reshape"})
# Functions that take gradients or the loss, not data.
_GRADIENTS = ("apply_gradients", "compute_gradients", "get_gradients", "gradient", "minimize")
_FEWEST = 3
# An expression behind more steps than this is not recognized as data.
_DEEPEST = 20


def same_data(program: Program, loop: Statement) -> ast.expr | None:
    """The data that every iteration of a loop trains on as a whole; None if that is unknown."""
    inside, here = set(loop.walk()), set(run_in(program, loop))
    draws = program.fact(Uniformity).draws
    for site in program.script.code.sites_in(here):
        asks = site.name in ASKING and isinstance(site.node.func, ast.Attribute)
        if asks or draws.is_draw(site) or draws.shuffles(site):
            return None
    found = None
    for at in _trained_on(program, inside, here):
        bindings = program.names.bindings(at)
        if any(each.statement in inside for each in bindings):
            return None  # Each iteration makes it anew, from any arguments.
        if found is None and _is_data(program, at, 0) and not _is_own(program, at):
            found = at.node
    return found


def _trained_on(program: Program, inside: set[Statement], here: set[Statement]) -> Iterator[Occurrence]:
    """Yield the names of a loop's training data: arguments of training calls, and outer reads under its
    tape.
    """
    trains = program.fact(WhatTrains)
    for site in program.script.sites:
        if site.statement in inside and trains.site_trains(site) and site.name not in _GRADIENTS:
            for given in arguments(site.node):
                yield from _names(Occurrence(given, site.scope, site.statement))
    for statement in sorted(here, key=lambda each: program.script.statement_span(each).start):
        tape = next((each for each in statement.ancestors() if each in here and _is_tape(each)), None)
        own = _bound(tape) if tape is not None else set()
        for part in statement.own_parts() if tape is not None else ():
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id not in own:
                yield Occurrence(part, statement.scope, statement)


def _bound(tape: Statement) -> set[str]:
    return {
        part.id
        for each in tape.walk()
        for part in each.own_parts()
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }


def _is_tape(statement: Statement) -> bool:
    node = statement.node
    return isinstance(node, ast.With) and any(
        isinstance(each.context_expr, ast.Call) and last_name(each.context_expr.func) == "GradientTape"
        for each in node.items
    )


def _names(at: Occurrence) -> Iterator[Occurrence]:
    """The names that an argument consists of."""
    if isinstance(at.node, ast.Dict):
        for each in at.node.values:
            yield from _names(at.part(each))
    elif isinstance(at.node, ast.List | ast.Tuple):
        for each in at.node.elts:
            yield from _names(at.part(each))
    elif isinstance(at.node, ast.Name | ast.Attribute):
        yield at


def _is_own(program: Program, at: Occurrence) -> bool:
    """Return whether each rank draws or collects data of its own."""
    draws = program.fact(Remedies)
    if any(draw.remedy is None for draw in draws.behind(at)):
        return True
    return any(not draws.is_free(site) for site in draws.choosing(at))


def _is_data(program: Program, at: Occurrence, depth: int) -> bool:
    """Return whether an expression is certainly an array created once, and neither a variable nor a model."""
    if depth > _DEEPEST:
        return False
    node, step = at.node, program.names.steps_back(at)
    if step is not None:
        sources = [*step.sources, *step.within]
        return bool(sources) and all(_is_data(program, each, depth + 1) for each in sources)
    if isinstance(node, ast.Call):
        is_made_again = program.fact(Remedies).is_repeated(program.script.site_of(node))
        if is_made_again and last_name(node.func) not in _CONVERTING:
            return False
        names = program.names.full_names(node.func, at.scope, at.statement)
        if is_made_again and names:
            return any(_is_data(program, at.part(each), depth + 1) for each in node.args)
        if names:
            return all(name.startswith(_MAKING) and name.rpartition(".")[2] not in _SINGLE for name in names)
        receiver = getattr(node.func, "value", None)
        single = last_name(node.func) in _SINGLE
        return receiver is not None and not single and _is_data(program, at.part(receiver), depth + 1)
    if isinstance(node, ast.BinOp):
        return any(_is_data(program, at.part(each), depth + 1) for each in (node.left, node.right))
    return isinstance(node, ast.List) and len(node.elts) >= _FEWEST
