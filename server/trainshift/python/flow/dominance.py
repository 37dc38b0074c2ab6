"""Dominance: the points that every path passes, and the tests on which a point depends.

`Dominators` gives dominators from the entry, or with `post=True` post-dominators to the exits.  Failing
operations are ignored unless `implicit` is set: otherwise hardly any point would post-dominate another.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from trainshift.python.flow.cfg import Cfg, Edge, Point, Role, reached
from trainshift.python.flow.traversal import closure, postorder

At = Point | ast.AST


def on_every_path(
    cfg: Cfg, passed: At, start: At | None = None, end: At | None = None, *, implicit: bool = False
) -> bool:
    """Return whether each path from one place to another passes a third one.

    Paths lead from the beginning of `start` (by default the entry) to the beginning of `end` (by default any
    exit); a path that begins or ends at `passed` passes it.  Without any path, the answer is True.
    """
    starts = _points(cfg, start) if start is not None else [cfg.entry]
    ends = _points(cfg, end) if end is not None else [cfg.exit, cfg.raised]
    return reached(starts, _points(cfg, passed), implicit=implicit).isdisjoint(ends)


def may_reach(cfg: Cfg, start: At, end: At, *, without: At | None = None, implicit: bool = True) -> bool:
    """Return whether a path leads from the start of one place to another, without passing a third one."""
    beyond = [
        edge.target for point in _points(cfg, start) for edge in point.out if implicit or not edge.implicit
    ]
    barred = _points(cfg, without) if without is not None else []
    return not reached(beyond, barred, implicit=implicit).isdisjoint(_points(cfg, end))


def _points(cfg: Cfg, at: At) -> list[Point]:
    return [at] if isinstance(at, Point) else list(cfg.starts(at))


class Dominators:
    """The tree of dominators of one graph, or of post-dominators."""

    def __init__(self, cfg: Cfg, *, post: bool = False, implicit: bool = False) -> None:
        self._cfg = cfg
        self._post = post
        # Both exits have one root for post-dominators: a virtual point after them.
        self._root = Point(-1, Role.EXIT) if post else cfg.entry
        self._implicit = implicit
        alive = reached([cfg.entry], implicit=implicit)
        self._ahead: dict[Point, list[Point]] = {point: [] for point in alive}
        self._ahead[self._root] = []
        for point in alive:
            for edge in point.out:
                if (implicit or not edge.implicit) and edge.target in alive:
                    first, then = (edge.target, point) if post else (point, edge.target)
                    self._ahead[first].append(then)
        if post:
            exits = [each for each in (cfg.exit, cfg.raised) if each in alive]
            self._ahead[self._root] += exits
            # An infinite loop leads to no exit: its points count as directly before one.
            ending = closure(exits, self._ahead)
            self._ahead[self._root] += [point for point in alive if point not in ending]
        self.immediate: Mapping[Point, Point] = self._solve()

    def _solve(self) -> dict[Point, Point]:
        order = postorder(self._root, self._ahead.__getitem__)[::-1]
        place = {point: index for index, point in enumerate(order)}
        behind: dict[Point, list[Point]] = {point: [] for point in order}
        for point in order:
            for then in self._ahead[point]:
                behind[then].append(point)
        found = {self._root: self._root}
        changed = True
        while changed:
            changed = False
            for point in order[1:]:
                known = [each for each in behind[point] if each in found]
                new = known[0]
                for other in known[1:]:
                    while new is not other:
                        if place[new] > place[other]:
                            new = found[new]
                        else:
                            other = found[other]
                if found.get(point) is not new:
                    found[point] = new
                    changed = True
        return found

    def dominates(self, above: At, below: At) -> bool:
        """Return whether one place dominates another (with `post`, post-dominates it).

        A place dominates itself.  A place with several points, in copies of a `finally`, dominates another if
        any of them dominates each of the other's points.
        """
        over = set(_points(self._cfg, above))
        under = [point for point in _points(self._cfg, below) if point in self.immediate]
        return all(not over.isdisjoint(self._chain(point)) or self._is_cut(over, point) for point in under)

    def _is_cut(self, over: set[Point], point: Point) -> bool:
        """Return whether every path to a point passes one of several others, though none is on all paths."""
        if len(over) < 2:
            return False
        ahead = {each: [then for then in self._ahead[each] if then not in over] for each in self._ahead}
        return point not in closure({self._root} - over, ahead)

    def _chain(self, point: Point) -> Iterable[Point]:
        while True:
            yield point
            above = self.immediate[point]
            if above is point:
                return
            point = above


class ControlDependence:
    """The edges on which a point is control dependent (Ferrante, Ottenstein and Warren)."""

    def __init__(self, cfg: Cfg, *, implicit: bool = False) -> None:
        self._cfg = cfg
        post = Dominators(cfg, post=True, implicit=implicit)
        self._edges: dict[Point, list[Edge]] = {}
        for source in post.immediate:
            out = [each for each in source.out if each.target in post.immediate]
            out = [each for each in out if implicit or not each.implicit]
            if len(out) < 2:
                continue
            stop = post.immediate[source]
            for edge in out:
                point = edge.target
                while point is not stop:
                    self._edges.setdefault(point, []).append(edge)
                    if post.immediate[point] is point:
                        break
                    point = post.immediate[point]

    def of(self, at: At) -> list[Edge]:
        """Return the nearest edges of tests, one of which must be taken to reach a place."""
        found: list[Edge] = []
        for point in _points(self._cfg, at):
            found += [edge for edge in self._edges.get(point, ()) if edge not in found]
        return found
