"""Counted rates: rates that a script computes from its step counter (spec.md 8).

Each rank takes its share of the steps, so its counter must be multiplied by the number of ranks to match the
step of one process.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.uses import parts_of
from trainshift.python.names.values import Instance, UserInstance
from trainshift.python.syntax.chunk_syntax import Scope, dotted, expression_path
from trainshift.training.execution.graph_slice import occurrences_behind
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.steps_taken.counters import Counters
from trainshift.training.steps_taken.step_division import Pace


class CountedRate(Struct, frozen=True, eq=False):
    """A rate that depends on a counter, the reads of the counter, and the reason if they must stay.

    `counter` is its text; `reason` is empty if the reads can be multiplied.
    """

    value: Occurrence
    counter: str
    reads: tuple[Occurrence, ...]
    reason: str = ""


class CountedRates:
    """The rates of one program that are set by a counter of a rank's own steps."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._counters = program.fact(Counters)

    @cached_property
    def all(self) -> list[CountedRate]:
        """The rates whose counter is not multiplied yet."""
        found = (
            replace(each, reads=tuple(read for read in each.reads if not self._agrees(read)))
            for each in self._every
        )
        return [each for each in found if each.reads]

    @cached_property
    def asked(self) -> set[ast.Call]:
        """The calls that create schedules which the script itself calls with a counter to be multiplied.

        Then they count the steps of one process: ``optimizer.lr = schedule(step)``.
        """
        calls = [
            (above, read)
            for rate in self._every
            for read in rate.reads
            if not rate.reason and read.statement is not None
            for above in expression_path(read.statement.node, read.node)
            if isinstance(above, ast.Call)
        ]
        values_of = self._program.names.values
        values = [each for call, read in calls for each in values_of(call.func, read.scope, read.statement)]
        return {each.node for each in values if isinstance(each, Instance | UserInstance) and each.node}

    @cached_property
    def _every(self) -> list[CountedRate]:
        """All such rates, with all reads of their counters."""
        settings = self._counters.settings if self._counters.any else ()
        return [found for each in settings for found in self._of(each.value)]

    def _of(self, value: Occurrence) -> Iterator[CountedRate]:
        behind = occurrences_behind(self._script, *value[:3], {})
        reads = [each for each in behind if self._is_counter(each)]
        for counter in dict.fromkeys(dotted(each.node) for each in reads):
            own = [each for each in reads if dotted(each.node) == counter]
            reason = self._decided_by(counter, own)
            found = {
                id(each.node): each for read in own for each in (read, *self._beside(counter, read.scope))
            }
            yield CountedRate(value, counter, tuple(found.values()), reason)

    def _is_counter(self, at: Occurrence) -> bool:
        node, statement = at.node, at.statement
        if statement is None or not isinstance(node, ast.Name | ast.Attribute):
            return False
        return isinstance(node.ctx, ast.Load) and self._counters.counts(node, statement)

    def _agrees(self, read: Occurrence) -> bool:
        """Return whether a counter is multiplied by the number of ranks where it is read, or only counts."""
        assert read.statement is not None
        if read.statement in self._counters.counting(dotted(read.node)):
            return True
        horovod = self._program.fact(Horovod)
        return any(
            isinstance(above, ast.BinOp)
            and isinstance(above.op, ast.Mult)
            and above.left is read.node
            and horovod.divided(above.right, read.scope, read.statement)
            for above in expression_path(read.statement.node, read.node)
        ) or any(
            # If it is a part of the rank's own steps, it is compared with them.
            isinstance(above, ast.BinOp)
            and isinstance(above.op, ast.Div | ast.FloorDiv | ast.Mod)
            and above.right is not read.node
            and self._program.fact(Pace).agrees(above.right, read.scope, read.statement)
            for above in expression_path(read.statement.node, read.node)
        )

    def _beside(self, counter: str, scope: Scope) -> Iterator[Occurrence]:
        """The other reads in a function that only computes the rate, including its tests."""
        function = scope.function()
        if function is None or self._is_counted_in(counter, function):
            return
        for statement in self._script.statements:
            if statement.scope.function() is function and statement not in self._counters.tests:
                for node, inner, _ in parts_of(statement):
                    at = Occurrence(node, inner, statement) if isinstance(node, ast.expr) else None
                    if at is not None and dotted(at.node) == counter and self._is_counter(at):
                        yield at

    def _is_counted_in(self, counter: str, function: Scope | None) -> bool:
        return any(each.scope.function() is function for each in self._counters.counting(counter))

    def _decided_by(self, counter: str, reads: list[Occurrence]) -> str:
        """The reason why reads outside the loop's own tests cannot be multiplied alone; empty if they can."""
        for read in reads:
            if not self._is_counted_in(counter, read.scope.function()):
                continue
            assert read.statement is not None
            for above in read.statement.path():
                if not isinstance(above.node, ast.If) or above in self._counters.tests:
                    continue
                tested = ast.walk(above.node.test)
                if any(isinstance(part, ast.expr) and dotted(part) == counter for part in tested):
                    return f"`{counter}` also decides how it is computed"
        return ""
