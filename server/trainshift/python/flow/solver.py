"""The solver of data-flow problems on a control-flow graph: one work list, run until nothing changes.

An `Analysis` defines the states, their change at a point, and the join of two states.  States are values that
compare by `==` and are never mutated.  No state is None: None is the state of unreachable points.

An exception leaves a point with part of its work done.  So along an edge of kind `RAISE`, a forward analysis
passes on the join of the states before and after the point; a backward analysis joins the state at the
handler to the state before the point.
"""

from __future__ import annotations

import ast
import heapq
from collections.abc import Iterable
from typing import Generic, TypeVar

from trainshift.python.flow.cfg import Cfg, Edge, EdgeKind, Point, Role, reached

S = TypeVar("S")

_MOST = 10_000
"""The most changes of a point; then the solver reports that an unbounded lattice is not widened."""


class Diverges(RuntimeError):
    """An analysis whose states never become stable: it lacks a `widen` that leads to an unknown state."""


class Analysis(Generic[S]):
    """A data-flow problem. Subclasses define `boundary`, `join` and `transfer`, and override the rest as
    needed.
    """

    forward = True
    """True if states follow control, False if they go against it."""

    at_raised = True
    """True if the state at the exceptional exit is needed; a forward analysis without it has less to join."""

    rounds = 3
    """The number of times that the head of a loop joins states before it widens them."""

    def boundary(self, point: Point) -> S:
        """Return the state at the entry of a forward analysis, or at an exit of a backward one."""
        raise NotImplementedError

    def join(self, left: S, right: S) -> S:
        """Return the join of two states."""
        raise NotImplementedError

    def transfer(self, point: Point, state: S) -> S:
        """Return the state on the far side of a point."""
        raise NotImplementedError

    def refine(self, edge: Edge, state: S) -> S | None:
        """Refine the state on an edge, for example by the test that holds there; None if the edge is
        never taken.
        """
        return state

    def widen(self, old: S, new: S) -> S:
        """Return a state above both, such that chains of such states are short: by default, the join.

        A lattice with infinite chains needs one that returns "unknown" if `old` and `new` differ.
        """
        return self.join(old, new)


class Solution(Generic[S]):
    """The states of a solved problem.  "Before" and "after" refer to the order of the program."""

    def __init__(
        self, cfg: Cfg, analysis: Analysis[S], before: dict[Point, S], after: dict[Point, S]
    ) -> None:
        self.cfg = cfg
        self._analysis = analysis
        self._before = before
        self._after = after

    def before(self, at: Point | ast.AST) -> S | None:
        """Return the state before a point or a statement; None if it is unreachable."""
        points = [at] if isinstance(at, Point) else self.cfg.starts(at)
        return self._joined(self._before.get(point) for point in points)

    def after(self, at: Point | ast.AST) -> S | None:
        """Return the state after a point or a statement; None if control never falls off its end."""
        if isinstance(at, Point):
            return self._after.get(at)
        return self._joined(self.along(edge) for edge in self.cfg.ends(at))

    def along(self, edge: Edge) -> S | None:
        """Return the state on an edge; None if it is never taken."""
        if self._analysis.forward:
            return _sent(self._analysis, edge, self._before, self._after)
        state = self._before.get(edge.target)
        return None if state is None else self._analysis.refine(edge, state)

    def _joined(self, states: Iterable[S | None]) -> S | None:
        found: S | None = None
        for state in states:
            if state is not None:
                found = state if found is None else self._analysis.join(found, state)
        return found


def solve(cfg: Cfg, analysis: Analysis[S]) -> Solution[S]:
    """Run an analysis on a graph until its states are stable."""
    before: dict[Point, S] = {}
    after: dict[Point, S] = {}
    order = cfg.reverse_postorder()
    if analysis.forward:
        _forward(cfg, analysis, order, before, after)
    else:
        _backward(cfg, analysis, order[::-1], before, after)
    return Solution(cfg, analysis, before, after)


def _forward(
    cfg: Cfg, analysis: Analysis[S], order: list[Point], before: dict[Point, S], after: dict[Point, S]
) -> None:
    place = {point: index for index, point in enumerate(order)}
    changes = [0] * len(order)
    heads = {edge.target for point in order for edge in point.out if place[edge.target] <= place[point]}
    waiting = _Waiting(range(1))
    before[cfg.entry] = analysis.boundary(cfg.entry)
    while waiting:
        index = waiting.pop()
        point = order[index]
        after[point] = analysis.transfer(point, before[point])
        for edge in point.out:
            state = _sent(analysis, edge, before, after)
            if state is None:
                continue
            target = place[edge.target]
            old = before.get(edge.target)
            new = state if old is None else analysis.join(old, state)
            if old is None or new != old:
                changes[target] += 1
                if old is not None and edge.target in heads and changes[target] > analysis.rounds:
                    new = analysis.widen(old, new)
                _check(changes[target], analysis)
                before[edge.target] = new
                waiting.add(target)


def _sent(analysis: Analysis[S], edge: Edge, before: dict[Point, S], after: dict[Point, S]) -> S | None:
    """The state that a forward analysis sends along an edge."""
    state = after.get(edge.source)
    if state is None or (edge.target.role is Role.RAISED and not analysis.at_raised):
        return None
    if edge.kind is EdgeKind.RAISE:
        state = analysis.join(before[edge.source], state)
    return analysis.refine(edge, state)


def _backward(
    cfg: Cfg, analysis: Analysis[S], order: list[Point], before: dict[Point, S], after: dict[Point, S]
) -> None:
    # An infinite loop leads to no exit: it counts as one that may fail.
    ending = reached([cfg.exit, cfg.raised], backward=True)
    place = {point: index for index, point in enumerate(order)}
    changes = [0] * len(order)
    heads = {edge.target for point in order for edge in point.out if place[edge.target] >= place[point]}
    waiting = _Waiting(range(len(order)))
    while waiting:
        index = waiting.pop()
        point = order[index]
        ahead: S | None = None
        thrown: S | None = None
        for edge in point.out:
            state = before.get(edge.target)
            state = None if state is None else analysis.refine(edge, state)
            if state is not None:
                ahead = state if ahead is None else analysis.join(ahead, state)
                if edge.kind is EdgeKind.RAISE:
                    thrown = state if thrown is None else analysis.join(thrown, state)
        if not point.out:
            ahead = analysis.boundary(point)
        elif ahead is None and point not in ending:
            ahead = analysis.boundary(cfg.raised)
        elif ahead is None:
            continue
        after[point] = ahead
        new = analysis.transfer(point, ahead)
        if thrown is not None:
            new = analysis.join(new, thrown)
        old = before.get(point)
        if old is not None:
            new = analysis.join(old, new)
        if old is None or new != old:
            changes[index] += 1
            if old is not None and point in heads and changes[index] > analysis.rounds:
                new = analysis.widen(old, new)
            _check(changes[index], analysis)
            before[point] = new
            for edge in point.into:
                if edge.source in place:
                    waiting.add(place[edge.source])


def _check(changes: int, analysis: Analysis[S]) -> None:
    if changes > _MOST:
        raise Diverges(type(analysis).__name__)


class _Waiting:
    """The work list: the points still to process, in order."""

    def __init__(self, indices: Iterable[int]) -> None:
        self._heap = list(indices)
        self._inside = set(self._heap)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, index: int) -> None:
        if index not in self._inside:
            self._inside.add(index)
            heapq.heappush(self._heap, index)

    def pop(self) -> int:
        index = heapq.heappop(self._heap)
        self._inside.discard(index)
        return index
