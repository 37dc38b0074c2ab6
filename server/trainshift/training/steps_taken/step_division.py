"""Step division: whether each rank takes its share of the steps, and what depends on it (spec.md 8)."""

from __future__ import annotations

import ast
import posixpath
from enum import Enum

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import of_call
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.training.data.batches import counts_turns, drawn_in, draws_batches, takes_batches
from trainshift.training.data.divided_data import DividedData
from trainshift.training.data.loop_division import How
from trainshift.training.data.loop_iterables import Iterated, Iteration
from trainshift.training.data.same_data import same_data
from trainshift.training.data.step_counts import StepCount, StepCounts
from trainshift.training.execution.executions import Executions
from trainshift.training.execution.graph_slice import is_reached
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.loop_kinds import Pattern
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.uniformity.draws import NUMPY
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.verdict import Verdict

# Functions and methods that return the length of a dataset.
_LENGTHS = ("len", "cardinality")
# Counters of loops that take no data from Python.
_ENDS = {
    Pattern.ESTIMATOR: {"steps", "max_steps"},
    Pattern.MONITORED_SESSION: {"num_steps", "last_step"},
}
# The text for a loop that is not divided, and whose data are unknown.
ALL_TURNS = (
    "every rank runs all iterations of {}: its share of the data is unknown; iterate over "
    "a dataset of known length, or divide the iterations by `hvd.size()` if each draws its "
    "own batch"
)

SAME_DATA = (
    "every rank runs all iterations of {0}, each on the same data, so more ranks save no "
    "time; give each rank its own rows, such as `{1}[hvd.rank()::hvd.size()]`"
)
_ALL_WORK = "every rank runs all iterations of {}, so more ranks save no time: {}"
# The second part of the text, by the kind of random draws in the iterations.
_NO_DRAWS = (
    "a rank's share of it is unknown; give each rank its own data, and `1/hvd.size()` of the iterations"
)
_OWN_DRAWS = "each rank draws its own at random; divide the iterations by `hvd.size()` if these are batches"
_SAME_DRAWS = (
    "all draw the same, by a fixed seed; choose `seed-by-rank`, and divide the iterations by `hvd.size()`"
)
_SEEDED_DRAWS = (
    "all may draw the same, by a seed; let it differ by rank, and divide the iterations by `hvd.size()`"
)


def said_of_work(loop: str, drawn: Verdict | None) -> str:
    """Return the decision about a loop of which all ranks run all iterations, by the draws in it."""
    if drawn is None:
        return _ALL_WORK.format(loop, _NO_DRAWS)
    if drawn.diverges:
        return _ALL_WORK.format(loop, _OWN_DRAWS)
    return _ALL_WORK.format(loop, _SAME_DRAWS if drawn.is_uniform else _SEEDED_DRAWS)


class Taken(Enum):
    """The part of all steps that each rank takes."""

    ALL = "all"
    SHARE = "its share"
    MIXED = "its share in some training runs only"


class Pace:
    """The number of a program's steps that each rank takes."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._horovod = program.fact(Horovod)
        self._data = program.fact(DividedData)

    @cached_property
    def taken(self) -> Taken:
        """The part of each rank: a share, if a training's innermost loop or one around it is divided."""
        loops = self.loops
        above = {statement: self._program.fact(Iterated).above(statement) for statement in loops}
        outer = {each for statement in loops for each in above[statement]}
        found = {
            shares or any(loops.get(each, False) for each in above[statement])
            for statement, shares in loops.items()
            if statement not in outer
        }
        return Taken.MIXED if len(found) > 1 else Taken.SHARE if True in found else Taken.ALL

    def is_shared(self, statement: Statement) -> bool:
        """Return whether a statement is, or runs in, a loop of which each rank takes a share."""
        return any(
            self.loops.get(each, False)
            for each in (statement, *self._program.fact(Iterated).above(statement))
        )

    def agrees(self, node: ast.expr, scope: Scope, statement: Statement | None) -> bool:
        """Return whether a number of steps is that of a share: it depends on the ranks, or on a share's
        length.
        """
        return self._horovod.divided(node, scope, statement) or self._is_of_share(node, scope, statement)

    def counts_share(self, node: ast.expr, scope: Scope, statement: Statement | None) -> bool:
        """Return whether an expression, even a rate, is certainly a number of steps of a share."""
        divides = any(
            isinstance(part, ast.BinOp)
            and isinstance(part.op, ast.Div | ast.FloorDiv)
            and self._horovod.divided(part.right, scope, statement)
            for part in ast.walk(node)
        )
        return divides or self._is_of_share(node, scope, statement)

    def _is_of_share(self, node: ast.expr, scope: Scope, statement: Statement | None) -> bool:
        return is_reached(self._script, self._lengths, node, scope, statement)

    @cached_property
    def _lengths(self) -> dict[ast.Call, Site]:
        """The calls that compute the length of a share."""
        sites = self._script.sites_named(*_LENGTHS)
        return {site.node: site for site in sites if self._data.divides(of_call(site))}

    @cached_property
    def loops(self) -> dict[Statement, bool]:
        """The loops around training calls, and the calls that are loops, each with whether it is divided
        itself.
        """
        found: dict[Statement, bool] = {}
        for each in self._program.fact(Iterated).all:
            found[each.statement] = found.get(each.statement, True) and self._shares(each)
        for statement in self._script.statements:
            if isinstance(statement.node, ast.While):
                if self._program.fact(WhatTrains).statement_trains(statement):
                    test = statement.node.test
                    divided = self._horovod.divided(test, statement.scope, statement)
                    data = self._data.of(statement)
                    shares = data is not None and data.how is not How.WHOLE
                    found[statement] = divided or shares or self._draws_turns(statement)
        counted = {count.what for count in self._counts}
        # Estimators train on their input function, not on an iteration of the script.
        given = any(each.how is not How.WHOLE for each in self._data.loops if each.statement not in found)
        for loop in self._program.fact(Loops).own:
            if loop.pattern in _ENDS:
                ends = not counted.isdisjoint(_ENDS[loop.pattern])
                ends = ends or (given and loop.pattern is Pattern.ESTIMATOR)
                sites = [each.statement for each in loop.sites if ends or not self._is_turn(each.statement)]
                found.update(dict.fromkeys(sites, ends))
        return found

    def _is_turn(self, run: Statement) -> bool:
        """Return whether a session's run is in a `for` of the script, and does not end with the session."""
        return any(isinstance(each.node, ast.For) for each in self._program.fact(Iterated).above(run))

    def _draws_turns(self, loop: Statement) -> bool:
        """Return whether a `while` counts its iterations, and a rank draws its own batch in each."""
        if not self._program.whole.choices.divide_data or not counts_turns(loop):
            return False
        seeded = self._program.fact(Uniformity).draws.is_seeded(NUMPY)
        return not seeded and draws_batches(self._program, loop)

    @cached_property
    def _counts(self) -> list[StepCount]:
        """The numbers of steps in arguments other than None."""
        given = self._program.fact(StepCounts).given
        return [each for each in given if getattr(each.node, "value", ...) is not None]

    def _shares(self, each: Iteration) -> bool:
        """Return whether each rank takes its share of a loop's iterable."""
        if any(data.iteration is each and data.how is not How.WHOLE for data in self._data.loops):
            return True
        if each.fit is not None:
            return any(count.site is each.fit.site for count in self._counts)
        taken = {count.site.node: count for count in self._program.fact(StepCounts).taken}
        at = each.at[:3]
        return is_reached(self._script, taken, *at) or self._horovod.divided(*at)

    @cached_property
    def undivided(self) -> list[Statement]:
        """The innermost loops that each rank runs in full, with no sign of a share of their data.

        They are in text order; there are none if the division of data is turned off.
        """
        if not self._program.whole.choices.divide_data:
            return []
        return [each for each in self._whole if takes_batches(self._program, each)]

    @cached_property
    def repeated(self) -> list[tuple[Statement, ast.expr]]:
        """The innermost loops whose iterations all train on all data, the same on all ranks, with the
        data.
        """
        if not self._program.whole.choices.divide_data:
            return []
        found = [(each, same_data(self._program, each)) for each in self._whole if each not in self.undivided]
        return [(each, data) for each, data in found if data is not None]

    @cached_property
    def worked(self) -> list[tuple[Statement, Verdict | None]]:
        """The other innermost loops that each rank runs in full, with the verdict on their draws."""
        if not self._program.whole.choices.divide_data:
            return []
        told = {*self.undivided, *(each for each, _ in self.repeated)}
        return [(each, drawn_in(self._program, each)) for each in self._whole if each not in told]

    def _is_of_one_batch(self, loop: Statement) -> bool:
        """Return whether a loop is in a `train_step`, which Keras runs for each batch, or goes through
        names that are no paths.
        """
        node = loop.node
        over = node.iter if isinstance(node, ast.For | ast.AsyncFor) else None
        parts = over.elts if isinstance(over, ast.Tuple | ast.List) else ()
        names_only = bool(parts) and all(
            isinstance(each, ast.Constant) and isinstance(each.value, str) and not _is_path(each.value)
            for each in parts
        )
        return names_only or self._program.fact(Executions).custom_model(loop.scope) is not None

    @cached_property
    def _whole(self) -> list[Statement]:
        """The innermost loops that each rank runs in full, and whose data are unknown."""
        iterated = self._program.fact(Iterated)
        loops = [each for each in self.loops if each not in iterated.idle and not self._is_of_one_batch(each)]
        outer = {above for each in loops for above in iterated.above(each)}
        found = [each for each in loops if isinstance(each.node, LOOPS) and each not in outer]
        return [each for each in found if not self.is_shared(each) and self._data.of(each) is None]


def _is_path(text: str) -> bool:
    """Return whether a text looks like the path of a file."""
    return bool(posixpath.splitext(text)[1]) or "/" in text
