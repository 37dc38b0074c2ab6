"""Summarize in one line how a program that already uses Horovod is distributed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.training.data.loop_inputs import Feeds
from trainshift.training.initial_state.initial_weights import Beginning
from trainshift.training.loops.loop_kinds import Loop
from trainshift.training.ranks.shared_loops import Together


class ByHand:
    """A summary of how one program was distributed by hand."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._together = program.fact(Together)

    @cached_property
    def text(self) -> str:
        """The loops and their distribution: ``1 GradientTape loop, averaged, broadcast, work divided``."""
        loops = self._together.loops
        return ", ".join((*self._counted(loops), *self._done(loops))) if loops else ""

    def _counted(self, loops: list[Loop]) -> Iterator[str]:
        for words, number in Counter(loop.pattern.words for loop in loops).items():
            yield f"{number} {words} loop{'s' if number > 1 else ''}"

    def _done(self, loops: list[Loop]) -> Iterator[str]:
        averaged = self._together.averaged
        yield (
            "averaged"
            if len(averaged) == len(loops)
            else "not averaged"
            if not averaged
            else "partly averaged"
        )
        unbegun = {flaw.site for flaw in self._program.fact(Beginning).flaws()}
        apart = [loop for loop in loops if not unbegun.isdisjoint(loop.sites)]
        yield "broadcast" if not apart else "not broadcast"
        feeds = self._program.fact(Feeds)
        given = [feeds.of(loop) for loop in loops]
        if all(map(feeds.is_own, given)):
            yield "separate data for each rank"
        elif all(feeds.is_own(each) or feeds.is_divided(each) for each in given):
            yield "work divided"
        else:
            yield "work not divided"
