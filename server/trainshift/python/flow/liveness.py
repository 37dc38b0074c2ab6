"""Liveness: the names that may be read from a point on, before they are bound again.

An inner function reads names of the code when it runs.  If it is only called by its own name, its reads
happen wherever that name is read.  If it escapes (it is passed on, returned, stored, decorated), it may run
at any time: the names that it reads are live everywhere from its definition on, also at the exits.  Names
declared `global` or `nonlocal` are live everywhere, because other code may read them. `locals()` and similar
calls read all names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from trainshift.python.flow.cfg import Cfg, Point, reached
from trainshift.python.flow.def_use import (
    NONE,
    Names,
    closures,
    point_uses,
    surely_bound_at,
)
from trainshift.python.flow.solver import Analysis, Solution, solve


class Liveness:
    """The names that are live in one graph.

    `at_exit` are the names read after a normal exit, `at_raise` those read after an exceptional one. Without
    `escapes`, escaping functions count as run only where they are created.
    """

    def __init__(
        self, cfg: Cfg, at_exit: Iterable[str] = (), at_raise: Iterable[str] = (), *, escapes: bool = True
    ) -> None:
        self._solution: Solution[Names] = solve(
            cfg, _Live(cfg, frozenset(at_exit), frozenset(at_raise), escapes)
        )

    def before(self, at: Point | ast.AST) -> Names:
        """Return the names that are live at the start of a statement; none if it is unreachable."""
        return self._solution.before(at) or NONE

    def after(self, at: Point | ast.AST) -> Names:
        """Return the names that are live after a statement; for a compound one, after all of it."""
        return self._solution.after(at) or NONE


class _Live(Analysis[Names]):
    forward = False

    def __init__(self, cfg: Cfg, at_exit: Names, at_raise: Names, escapes: bool) -> None:
        self._at = {cfg.exit: at_exit, cfg.raised: at_raise}
        self._read: dict[Point, Names] = {}
        self._bound: dict[Point, Names] = {}
        self._captured: dict[Point, Names] = {}
        own = {point: point_uses(point) for point in cfg.all}
        inside = closures(cfg, own)
        every = frozenset().union(*(each.bound for each in own.values()), at_exit)
        always = frozenset(name for each in own.values() for name in each.declared)
        for point, used in own.items():
            read = set(used.read)
            if point in inside.escaping:
                read |= inside.escaping[point].captured
            for name in (used.read | used.captured) & inside.by_name.keys():
                called = inside.by_name[name]
                if name in used.read or point in inside.escaping:
                    read |= called.captured
                    if called.reads_all:
                        read |= every
            if used.reads_all:
                read |= every
            self._read[point] = frozenset(read)
            self._bound[point] = surely_bound_at(point, used)
        if escapes:
            for point, used in inside.escaping.items():
                captured = every if used.reads_all else frozenset(used.captured)
                for later in reached([point]) if captured else ():
                    self._captured[later] = self._captured.get(later, NONE) | captured
        if always:
            for point in cfg.all:
                self._captured[point] = self._captured.get(point, NONE) | always

    def boundary(self, point: Point) -> Names:
        return self._at[point]

    def join(self, left: Names, right: Names) -> Names:
        return left | right

    def transfer(self, point: Point, state: Names) -> Names:
        found = (state - self._bound[point]) | self._read[point]
        return found | self._captured.get(point, NONE)
