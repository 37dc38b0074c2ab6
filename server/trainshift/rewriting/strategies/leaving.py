"""Leaving: a program without its `tf.distribute` strategy: the script of one replica.

Each rank of Horovod is then one replica.  The text computes the same as the program with its strategy on one
device, so all rules for scripts without a strategy apply.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.source.edit import Edit
from trainshift.python.source.source import Span
from trainshift.rewriting.strategies.removal import UNSUPPORTED, Left, Removal
from trainshift.rewriting.strategies.uses import Strategies


class Leaving:
    """The removal of one program's strategies."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._strategies = program.fact(Strategies)

    @cached_property
    def problem(self) -> tuple[Span, str] | None:
        """The place at which a strategy is used in an unknown way, and the reason; None if there is none."""
        for scope in self._strategies.own_classes:
            if scope.statement is not None:
                return self._program.script.header_span(scope.statement), UNSUPPORTED.format(name=scope.name)
        return self._removal.problem

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that remove the strategies, in text order; none if there are none."""
        return () if self.problem else self._removal.edits

    @property
    def left(self) -> Sequence[Left]:
        """The rewrite of each statement that changes, in text order."""
        return self._removal.left

    @cached_property
    def _removal(self) -> Removal:
        """Remove all strategies; if that is impossible, those in only one branch may stay."""
        every = Removal(self._program, self._strategies.makers)
        needed = self._strategies.needed
        if every.problem is None or len(needed) == len(self._strategies.makers):
            return every
        return Removal(self._program, needed)
