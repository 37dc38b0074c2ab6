"""The builder of control-flow graphs: `build` makes the graph of code."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from trainshift.python.flow.cfg import Cfg, Edge, EdgeKind, Point, Role
from trainshift.python.flow.must_run_may_raise import (
    Ends,
    Swallows,
    catches_all,
    heads,
    is_irrefutable,
    may_fail,
    may_swallow,
    never_ends,
    outcome,
    surely_ends,
)
from trainshift.python.syntax.node_classes import COMPOUND

Code = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | Sequence[ast.stmt]

_DEEPEST = 4
"""The depth of nested `finally` blocks up to which each path has its own copy; deeper ones have one copy for
all paths.
"""


def build(code: Code, ends: Ends = never_ends, swallows: Swallows = may_swallow) -> Cfg:
    """Build the graph of code: a node with a body, or a list of statements.

    `ends` returns whether a call never returns (like `sys.exit`, it leads where an exception leads), and
    `swallows` whether a manager of a `with` may suppress exceptions.
    """
    return _Builder(ends, swallows).build(code)


class _Frame(Struct, eq=False):
    """A frame that a jump passes on its way out of nested blocks; jumps that stop here wait in `pending`, by
    kind.
    """

    stops: frozenset[EdgeKind]
    pending: dict[EdgeKind, list[Edge]] = field(default_factory=dict)


_JUMPS = frozenset({EdgeKind.BREAK, EdgeKind.CONTINUE, EdgeKind.RETURN, EdgeKind.RAISE})
_Loose = list[Edge]
"""Edges that lead to whatever comes next."""


class _Builder:
    def __init__(self, ends: Ends, swallows: Swallows) -> None:
        self._cfg = Cfg()
        self._ends = ends
        self._swallows = swallows
        self._frames: list[_Frame] = []
        self._copying = 0

    def build(self, code: Code) -> Cfg:
        cfg = self._cfg
        loose = [self._edge(cfg.entry, EdgeKind.FALL)]
        if isinstance(code, ast.Lambda):
            point = self._point(Role.STATEMENT, code.body, (code.body,), loose)
            loose = [] if surely_ends(self._ends, code.body) else [self._edge(point, EdgeKind.RETURN)]
            self._fails(point, code.body)
        else:
            loose = self._block(code if isinstance(code, Sequence) else code.body, loose)
        self._link(loose, cfg.exit)
        return cfg

    # An edge is created when its source is known, and gets its target later.

    def _edge(self, source: Point, kind: EdgeKind, implicit: bool = False) -> Edge:
        edge = Edge(source, kind, source, implicit)
        source.out.append(edge)
        return edge

    def _link(self, loose: _Loose, target: Point) -> None:
        for edge in loose:
            edge.target = target
            target.into.append(edge)

    def _point(self, role: Role, node: ast.AST, parts: Iterable[ast.AST], loose: _Loose) -> Point:
        point = self._cfg.add(role, node, parts)
        self._link(loose, point)
        return point

    def _jump(self, edge: Edge) -> None:
        """Connect an edge of kind break, continue, return or raise to its target through all frames."""
        for frame in reversed(self._frames):
            if edge.kind in frame.stops:
                frame.pending.setdefault(edge.kind, []).append(edge)
                return
        self._link([edge], self._cfg.raised if edge.kind is EdgeKind.RAISE else self._cfg.exit)

    def _fails(self, point: Point, *parts: ast.AST) -> None:
        """Add the edge of an operation that may fail at a point, or never returns."""
        if surely_ends(self._ends, *parts):
            self._jump(self._edge(point, EdgeKind.RAISE))
        else:
            self._may_fail(point, *parts)

    def _may_fail(self, point: Point, *parts: ast.AST) -> None:
        """Add the edge of an operation that may fail at a point, and otherwise returns."""
        if may_fail(*parts):
            self._jump(self._edge(point, EdgeKind.RAISE, implicit=True))

    def _block(self, block: Sequence[ast.stmt], loose: _Loose) -> _Loose:
        for statement in block:
            loose = self._statement(statement, loose)
        return loose

    def _statement(self, node: ast.stmt, loose: _Loose) -> _Loose:
        start = len(self._cfg.all)
        if not isinstance(node, COMPOUND):
            loose = self._simple(node, loose)
            self._cfg.place(node, self._cfg.all[start], loose)
            return loose
        match node:
            case ast.If():
                loose = self._if(node, loose)
            case ast.While():
                loose = self._while(node, loose)
            case ast.For() | ast.AsyncFor():
                loose = self._for(node, loose)
            case ast.With() | ast.AsyncWith():
                loose = self._with(node, node.items, loose)
            case ast.Match():
                loose = self._match(node, loose)
            case _:
                loose = self._try(node, loose)
        self._cfg.place(node, self._cfg.all[start], loose)
        return loose

    def _simple(self, node: ast.stmt, loose: _Loose) -> _Loose:
        point = self._point(Role.STATEMENT, node, (node,), loose)
        parts = heads(node)
        if surely_ends(self._ends, *parts):
            self._jump(self._edge(point, EdgeKind.RAISE))
            return []
        match node:
            case ast.Raise():
                self._jump(self._edge(point, EdgeKind.RAISE))
                return []
            case ast.Return():
                self._may_fail(point, node)
                self._jump(self._edge(point, EdgeKind.RETURN))
                return []
            case ast.Break():
                self._jump(self._edge(point, EdgeKind.BREAK))
                return []
            case ast.Continue():
                self._jump(self._edge(point, EdgeKind.CONTINUE))
                return []
            case ast.Assert():
                self._jump(self._edge(point, EdgeKind.RAISE))
            case _:
                self._may_fail(point, *parts)
        return [self._edge(point, EdgeKind.FALL)]

    def _tested(self, point: Point, test: ast.expr) -> tuple[_Loose, _Loose]:
        """Return the edges of a test that is true, and of one that is false."""
        self._fails(point, test)
        if surely_ends(self._ends, test):
            return [], []
        known = outcome(test)
        holds = [] if known is False else [self._edge(point, EdgeKind.TRUE)]
        return holds, [] if known is True else [self._edge(point, EdgeKind.FALSE)]

    def _if(self, node: ast.If, loose: _Loose) -> _Loose:
        point = self._point(Role.TEST, node, (node.test,), loose)
        holds, fails = self._tested(point, node.test)
        return self._block(node.body, holds) + self._block(node.orelse, fails)

    def _while(self, node: ast.While, loose: _Loose) -> _Loose:
        head = self._point(Role.TEST, node, (node.test,), loose)
        holds, fails = self._tested(head, node.test)
        return self._turns(node, head, holds, fails)

    def _for(self, node: ast.For | ast.AsyncFor, loose: _Loose) -> _Loose:
        iterable = self._point(Role.ITERABLE, node, (node.iter,), loose)
        self._jump(self._edge(iterable, EdgeKind.RAISE, not surely_ends(self._ends, node.iter)))
        again = [] if surely_ends(self._ends, node.iter) else [self._edge(iterable, EdgeKind.FALL)]
        head = self._point(Role.NEXT, node, (), again)
        self._jump(self._edge(head, EdgeKind.RAISE, implicit=True))
        fails = [self._edge(head, EdgeKind.FALSE)]
        target = self._point(Role.TARGET, node, (node.target,), [self._edge(head, EdgeKind.TRUE)])
        self._fails(target, node.target)
        return self._turns(node, head, [self._edge(target, EdgeKind.FALL)], fails)

    def _turns(
        self, node: ast.While | ast.For | ast.AsyncFor, head: Point, inside: _Loose, done: _Loose
    ) -> _Loose:
        frame = _Frame(frozenset({EdgeKind.BREAK, EdgeKind.CONTINUE}))
        self._frames.append(frame)
        turns = self._block(node.body, inside)
        self._frames.pop()
        for edge in (*turns, *frame.pending.get(EdgeKind.CONTINUE, ())):
            if edge.kind is EdgeKind.FALL:
                edge.kind = EdgeKind.LOOP
            edge.back = True
            self._link([edge], head)
        return self._block(node.orelse, done) + frame.pending.get(EdgeKind.BREAK, [])

    def _with(self, node: ast.With | ast.AsyncWith, items: list[ast.withitem], loose: _Loose) -> _Loose:
        if not items:
            return self._block(node.body, loose)
        first, *rest = items
        point = self._point(Role.CONTEXT, node, (first,), loose)
        if surely_ends(self._ends, first.context_expr):
            self._jump(self._edge(point, EdgeKind.RAISE))
            inside: _Loose = []
        else:
            self._jump(self._edge(point, EdgeKind.RAISE, implicit=True))
            inside = [self._edge(point, EdgeKind.FALL)]
        frame = _Frame(_JUMPS)
        self._frames.append(frame)
        if first.optional_vars is not None and may_fail(first.optional_vars):
            # Unpacking happens after the manager has been entered.
            self._jump(self._edge(point, EdgeKind.RAISE, implicit=True))
        body = self._with(node, rest, inside)
        self._frames.pop()
        after = self._left(node, first, body, EdgeKind.FALL)
        for kind, edges in frame.pending.items():
            after += self._left(node, first, edges, kind)
        return after

    def _left(
        self, node: ast.With | ast.AsyncWith, item: ast.withitem, loose: _Loose, kind: EdgeKind
    ) -> _Loose:
        """Leave a context manager by one kind of edge; return the edges after it."""
        point = self._cfg.add(Role.LEAVE, node)
        self._link(loose, point)
        implicit = kind is EdgeKind.RAISE and all(edge.implicit for edge in loose)
        falls: _Loose = []
        if kind is EdgeKind.FALL or (kind is EdgeKind.RAISE and self._swallows(item)):
            falls = [self._edge(point, EdgeKind.FALL, implicit)]
        elif kind is not EdgeKind.RAISE:
            self._jump(self._edge(point, kind))
        self._jump(self._edge(point, EdgeKind.RAISE, implicit or kind is not EdgeKind.RAISE))
        return falls

    def _match(self, node: ast.Match, loose: _Loose) -> _Loose:
        subject = self._point(Role.SUBJECT, node, (node.subject,), loose)
        self._fails(subject, node.subject)
        following = [] if surely_ends(self._ends, node.subject) else [self._edge(subject, EdgeKind.FALL)]
        after: _Loose = []
        for case in node.cases:
            point = self._point(Role.CASE, case, (case.pattern,), following)
            takes_all = is_irrefutable(case)
            if not takes_all:
                self._jump(self._edge(point, EdgeKind.RAISE, implicit=True))
            following = [] if takes_all else [self._edge(point, EdgeKind.FALSE)]
            capture = self._point(Role.CAPTURE, case, (case.pattern,), [self._edge(point, EdgeKind.TRUE)])
            inside = [self._edge(capture, EdgeKind.FALL)]
            if case.guard is not None:
                guard = self._point(Role.GUARD, case, (case.guard,), inside)
                inside, fails = self._tested(guard, case.guard)
                following = following + fails
            done = self._block(case.body, inside)
            self._cfg.place(case, point, done)
            after += done
        return after + following

    def _try(self, node: ast.stmt, loose: _Loose) -> _Loose:
        body, handlers, orelse, final = _parts_of_try(node)
        start = self._point(Role.TRY, node, (), loose)
        outer = _Frame(_JUMPS)
        if final:
            self._frames.append(outer)
        inner = _Frame(frozenset({EdgeKind.RAISE}))
        if handlers:
            self._frames.append(inner)
        falls = self._block(body, [self._edge(start, EdgeKind.FALL)])
        if handlers:
            self._frames.pop()
        falls = self._block(orelse, falls)
        if handlers:
            falls = falls + self._handlers(node, handlers, inner.pending.get(EdgeKind.RAISE, []))
        if not final:
            return falls
        self._frames.pop()
        return self._finally(node, final, falls, outer.pending)

    def _handlers(self, node: ast.stmt, handlers: list[ast.ExceptHandler], thrown: _Loose) -> _Loose:
        several = not isinstance(node, ast.Try)  # `except*` may run several of its handlers
        dispatch = self._point(Role.DISPATCH, node, (), thrown)
        implicit = all(edge.implicit for edge in thrown)
        following: _Loose = [self._edge(dispatch, EdgeKind.FALL)]
        after: _Loose = []
        catches = False
        for handler in handlers:
            parts = () if handler.type is None else (handler.type,)
            point = self._point(Role.HANDLER, handler, parts, following)
            self._fails(point, *parts)
            catches = not several and catches_all(handler)
            following = [] if catches else [self._edge(point, EdgeKind.FALSE)]
            caught = self._point(Role.CAUGHT, handler, (), [self._edge(point, EdgeKind.TRUE)])
            handled = self._block(handler.body, [self._edge(caught, EdgeKind.FALL)])
            self._cfg.place(handler, point, handled)
            if several:
                following = following + handled
            else:
                after += handled
        if several:
            end = self._point(Role.RESUME, node, (), following)
            following = [self._edge(end, EdgeKind.FALSE)]
            after = [self._edge(end, EdgeKind.FALL)]
        for edge in following:
            edge.kind, edge.implicit = EdgeKind.RAISE, implicit
            self._jump(edge)
        return after

    def _finally(
        self, node: ast.stmt, final: list[ast.stmt], falls: _Loose, pending: dict[EdgeKind, _Loose]
    ) -> _Loose:
        ways = {EdgeKind.FALL: falls, **pending}
        groups = [list(ways)] if self._copying >= _DEEPEST else [[kind] for kind in ways]
        after: _Loose = []
        for kinds in groups:
            coming = [edge for kind in kinds for edge in ways[kind]]
            if not coming and len(groups) > 1:
                continue
            self._copying += 1
            done = self._block(final, coming)
            self._copying -= 1
            end = self._point(Role.RESUME, node, (), done)
            for kind in filter(ways.get, kinds):
                implicit = kind is EdgeKind.RAISE and all(edge.implicit for edge in ways[kind])
                edge = self._edge(end, kind, implicit)
                if kind is EdgeKind.FALL:
                    after.append(edge)
                else:
                    self._jump(edge)
        return after


def _parts_of_try(
    node: ast.stmt,
) -> tuple[list[ast.stmt], list[ast.ExceptHandler], list[ast.stmt], list[ast.stmt]]:
    fields = dict(ast.iter_fields(node))
    return fields["body"], fields["handlers"], fields["orelse"], fields["finalbody"]
