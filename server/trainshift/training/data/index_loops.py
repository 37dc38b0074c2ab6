"""Index loops: loops over numbers that slice batches out of arrays, and over lists of batches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from trainshift.core.program import Program
from trainshift.libraries.entries import is_bar
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.uses import NameUse, NameUses
from trainshift.python.syntax.chunk_syntax import Statement, expression_path
from trainshift.python.syntax.precedence import does_more
from trainshift.python.values.effects import Effect
from trainshift.training.data.batches import draws_batches
from trainshift.training.data.loop_iterables import Iteration
from trainshift.training.data.turns import is_arithmetic, made_of, reads
from trainshift.training.datasets.draw_remedies import Draw, Remedies
from trainshift.training.datasets.knowledge import unordered
from trainshift.training.execution.executions import Executions
from trainshift.training.loops.call_effects import Effects
from trainshift.training.uniformity.draws import NUMPY
from trainshift.training.uniformity.uniformity import Uniformity

LISTS = frozenset({"numpy.array_split", "numpy.split"})
"""The functions that cut an array into a list of batches."""
_RANGE = "builtins.range"
_SIDE_BY_SIDE = "builtins.zip"


class IndexLoop(Struct, frozen=True):
    """A loop whose indices are divided among the ranks.

    `at` is its iterable; if it only `counts` batches, which each rank draws itself, their number. With
    `is_own`, each rank already has its own arrays; with `in_pairs`, two ranges are iterated in parallel:
    ``for start, end in zip(range(0, n, 32), range(32, n + 1, 32))``.
    """

    at: Occurrence
    counts: bool = False
    in_pairs: bool = False
    draws: tuple[Draw, ...] = ()
    reason: str = ""
    is_own: bool = False


class Numbered(Struct, frozen=True):
    """A `for` loop over numbers, its body, and the names of its index and of values computed from it.

    There are no names if it does not iterate over numbers one by one.
    """

    loop: Statement
    inside: list[Statement]
    names: set[str]


def read_index_loop(program: Program, iteration: Iteration) -> IndexLoop | None:
    """Read a loop that indexes arrays by number; None if it does not.

    In a `train_step`, it iterates over a batch from `fit`, whose data are already divided.
    """
    node, scope = iteration.statement.node, iteration.statement.scope
    if iteration.fit is not None or not isinstance(node, ast.For):
        return None
    if program.fact(Executions).custom_model(scope) is not None:
        return None
    numbers = unwrapped(program, iteration.at)
    names = called(program, numbers)
    if names & LISTS:
        return shared(program, numbers, [numbers])
    if not isinstance(numbers.node, ast.Call):
        return None
    numbered = _numbered(iteration.statement)
    if side_by_side(program, numbers):
        ends = [end for each in numbers.node.args if isinstance(each, ast.Call) for end in each.args]
        cut = list(cut_out(numbered, ends))
        loop = told_apart(program, numbers, numbered) or shared(program, numbers, cut)
        return replace(loop, in_pairs=True) if cut else None
    if _RANGE not in names:
        return None
    cut = list(cut_out(numbered, numbers.node.args))
    if cut:
        return told_apart(program, numbers, numbered) or shared(program, numbers, cut)
    turns = turns_of(numbers.node)
    if turns is not None and draws_batches(program, iteration.statement):
        seeded = program.fact(Uniformity).draws.is_seeded(NUMPY)
        reason = "one seed draws its batches, the same on all ranks" if seeded else ""
        return IndexLoop(numbers.part(turns), counts=True, reason=reason)
    return None


def turns_of(numbers: ast.Call) -> ast.expr | None:
    """The number of iterations of a loop over `range(n)` or `range(1, n + 1)`; None for others."""
    match numbers.args:
        case [turns]:
            return turns
        case [ast.Constant(value=1), ast.BinOp(left=turns, op=ast.Add(), right=ast.Constant(value=1))]:
            return turns
    return None


def side_by_side(program: Program, at: Occurrence) -> bool:
    """Return whether two ranges are iterated in parallel: ``zip(range(0, n, 32), range(32, n, 32))``."""
    if not isinstance(at.node, ast.Call) or _SIDE_BY_SIDE not in called(program, at):
        return False
    rows = [at.part(each) for each in at.node.args]
    return len(rows) > 1 and not at.node.keywords and all(_RANGE in called(program, each) for each in rows)


def shared(program: Program, numbers: Occurrence, data: list[Occurrence]) -> IndexLoop:
    """The sharding of the numbers that select some data."""
    if any(program.fact(Uniformity).on_rank(each) for each in data):
        return IndexLoop(numbers, is_own=True)
    if does_more(numbers.node):
        return IndexLoop(numbers, reason="its iterable does more than count; assign it to a variable first")
    draws = [draw for each in data for draw in program.fact(Remedies).behind(each)]
    return IndexLoop(numbers, draws=tuple(dict.fromkeys(draws)), reason=unordered(draws))


def unwrapped(program: Program, at: Occurrence, *wrappers: str) -> Occurrence:
    """Return the iterable of a loop without a progress bar or a call of one of `wrappers` around it."""
    while isinstance(at.node, ast.Call) and at.node.args and _is_around(program, at, wrappers):
        at = at.part(at.node.args[0])
    return at


def _is_around(program: Program, at: Occurrence, wrappers: tuple[str, ...]) -> bool:
    names = called(program, at)
    return not names.isdisjoint(wrappers) or any(map(is_bar, names))


def called(program: Program, at: Occurrence) -> frozenset[str]:
    """The full names that an expression may call; none if it is not a call."""
    if not isinstance(at.node, ast.Call):
        return frozenset()
    return program.names.full_names(at.node.func, at.scope, at.statement)


def _numbered(loop: Statement) -> Numbered:
    assert isinstance(loop.node, ast.For)
    inside = [each for each in loop.walk() if each is not loop and each.scope is loop.scope]
    target = loop.node.target
    numbers = target.elts if isinstance(target, ast.Tuple) else [target]
    names = {each.id for each in numbers if isinstance(each, ast.Name)}
    return Numbered(loop, inside, made_of(names, inside) if len(names) == len(numbers) else set())


def cut_out(numbered: Numbered, ends: list[ast.expr]) -> Iterator[Occurrence]:
    """The arrays that a loop's index selects from: by a slice, or one by one if their length is its end."""
    measured = {ast.dump(part) for each in ends for part in ast.walk(each)}
    for statement in numbered.inside:
        for part in statement.own_parts():
            if not isinstance(part, ast.Subscript) or not isinstance(part.ctx, ast.Load):
                continue
            rows = part.slice.elts[:1] if isinstance(part.slice, ast.Tuple) else [part.slice]
            if not any(reads(each, numbered.names) for each in rows):
                continue
            slices = any(isinstance(each, ast.Slice) for each in ast.walk(part.slice))
            if slices or ast.dump(part.value) in measured:
                yield Occurrence(part.value, statement.scope, statement)


def told_apart(
    program: Program, numbers: Occurrence, numbered: Numbered, counting: frozenset[Statement] = frozenset()
) -> IndexLoop | None:
    """The loop, not sharded, if its index is used for more than data and the output of rank 0.

    Each rank has its own indices, so decisions and results that depend on them would differ by rank.  The
    statements of `counting` use it for nothing else.
    """
    other = _other_use(program, numbered, counting)
    reason = f"its index, which would differ by rank, also {other}"
    return IndexLoop(numbers, reason=reason) if other is not None else None


def _other_use(program: Program, numbered: Numbered, counting: frozenset[Statement]) -> str | None:
    binding = {numbered.loop, *numbered.inside}
    for name in sorted(numbered.names):
        for read in program.fact(NameUses).of(name):
            at = Occurrence(read.node, read.scope, read.statement)
            bound = {each.statement for each in program.names.bindings(at)}
            if read.statement in counting or bound.isdisjoint(binding | counting):
                continue
            line = program.script.line_at(program.script.statement_span(read.statement).start)
            if read.statement not in binding or read.scope is not numbered.loop.scope:
                return f"is read in line {line}"
            if not _is_of_data(read) and not _only_tells(program, read.statement):
                return f"decides what line {line} does"
    return None


def _is_of_data(read: NameUse) -> bool:
    """Return whether a read of an index selects data, or computes another index."""
    node = read.statement.node
    if isinstance(node, ast.Assign) and is_arithmetic(node.value):
        return all(isinstance(target, ast.Name | ast.Tuple) for target in node.targets)
    path = expression_path(node, read.node)
    return any(
        isinstance(above, ast.Subscript) and below is above.slice and isinstance(above.ctx, ast.Load)
        for above, below in pairwise(path)
    )


def _only_tells(program: Program, statement: Statement) -> bool:
    """Return whether a statement only prints and writes, in its blocks too."""
    kept = [each for each in statement.walk() if each is not statement]
    if kept and not isinstance(statement.node, ast.If):
        return False
    effects = program.fact(Effects)
    for each in kept or [statement]:
        if isinstance(each.node, ast.If | ast.Pass):
            continue
        if not isinstance(each.node, ast.Expr):
            return False
        deed = effects.of_expression(each.node.value)
        if deed is not None and deed.effect is not Effect.FILES:
            return False
    return True
