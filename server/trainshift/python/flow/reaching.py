"""Reaching definitions: the bindings of a name that may still hold at a point.

An inner function may bind names of the code by `nonlocal` or `global` when it runs.  Such a binding reaches
every point from the function's definition on, and nothing replaces it there.  `from module import *` may bind
any name: it is a definition of the name `*`, which `of` counts for every name.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from msgspec import Struct

from trainshift.python.flow.cfg import Cfg, Point, Role, reached
from trainshift.python.flow.cfg_builder import Code
from trainshift.python.flow.def_use import all_parameters, point_uses, surely_bound_at
from trainshift.python.flow.solver import Analysis, Solution, solve

ANY = "*"


class Definition(Struct, frozen=True):
    """A binding of a name: by a point of the graph, by a parameter (`node` is the `ast.arg`), or from
    elsewhere.

    `node` is the statement, handler, case or parameter that binds; it is None for a name from outside the
    code.  With `inside`, an inner function binds it when it runs.
    """

    name: str
    node: ast.AST | None
    inside: bool = False

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Definition)
            and self.name == other.name
            and self.node is other.node
            and self.inside == other.inside
        )

    def __hash__(self) -> int:
        return hash((self.name, id(self.node), self.inside))


Definitions = frozenset[Definition]
_NONE: Definitions = frozenset()


class Reaching:
    """The definitions that reach the points of one graph.

    `code` is the source of the graph: the parameters of a function are definitions at the entry. `outside`
    are names with values from elsewhere at the entry.  With `only`, just these names are analysed, without
    the exceptional exit.
    """

    def __init__(
        self,
        cfg: Cfg,
        code: Code | None = None,
        outside: Iterable[str] = (),
        only: Collection[str] | None = None,
    ) -> None:
        at_entry = {Definition(name, None) for name in outside}
        if isinstance(code, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            at_entry |= {Definition(each.arg, each) for each in all_parameters(code.args)}
        self._analysis = _Reach(cfg, frozenset(at_entry), only)
        self._solution: Solution[Definitions] = solve(cfg, self._analysis)

    def before(self, at: Point | ast.AST) -> Definitions:
        """Return the definitions that reach a statement; none if it is unreachable."""
        return self._solution.before(at) or _NONE

    def after(self, at: Point | ast.AST) -> Definitions:
        """Return the definitions that hold after a statement."""
        return self._solution.after(at) or _NONE

    def of(self, name: str, at: Point | ast.AST) -> Definitions:
        """Return the definitions of a name that a statement, or a part of one, may read.

        They include bindings by the statement itself during its evaluation, such as `(y := f()) + y`.
        """
        cfg = self._solution.cfg
        found = self.before(at)
        for point in [at] if isinstance(at, Point) else cfg.starts(at):
            found |= self._analysis.while_evaluated(point)
        return frozenset(each for each in found if each.name in (name, ANY))


class _Reach(Analysis[Definitions]):
    def __init__(self, cfg: Cfg, at_entry: Definitions, only: Collection[str] | None) -> None:
        self._at_entry = at_entry
        self.at_raised = only is None
        self._made: dict[Point, Definitions] = {}
        self._kept: dict[Point, Definitions] = {}
        self._bound: dict[Point, frozenset[str]] = {}
        for point in cfg.all:
            used = point_uses(point)
            bound = {*used.bound, *({ANY} if used.binds_any else ())}
            bound = bound if only is None else bound.intersection(only)
            if bound:
                self._made[point] = frozenset(Definition(name, point.node) for name in bound)
                self._bound[point] = surely_bound_at(point, used)
            rebound = used.rebound if only is None else used.rebound.intersection(only)
            inside = frozenset(Definition(name, point.node, inside=True) for name in rebound)
            for later in reached([point]) if inside else ():
                self._kept[later] = self._kept.get(later, _NONE) | inside

    def while_evaluated(self, point: Point) -> Definitions:
        """The definitions that a point makes and may read itself."""
        made = self._made.get(point, _NONE)
        if not made or point.role is Role.CASE:
            return _NONE
        read = point_uses(point).read
        return frozenset(each for each in made if each.name in read or _is_compound(point))

    def boundary(self, point: Point) -> Definitions:
        return self._at_entry

    def join(self, left: Definitions, right: Definitions) -> Definitions:
        return left | right

    def transfer(self, point: Point, state: Definitions) -> Definitions:
        made = self._made.get(point)
        kept = self._kept.get(point, _NONE)
        if made is None:
            return state | kept if kept else state
        bound = self._bound[point]
        return frozenset(each for each in state if each.name not in bound) | made | kept


def _is_compound(point: Point) -> bool:
    return isinstance(point.node, ast.ClassDef)
