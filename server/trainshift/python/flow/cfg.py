"""The control-flow graph of a function, a lambda, a module, or any list of statements.

Its nodes are `Point`s: one for a simple statement, and one for each part of the head of a compound statement.
Its edges have kinds.  The graph has one `entry`, one normal `exit`, and one exceptional exit, `raised`.

- An operation that may fail has an edge of kind `RAISE` to the handlers around it, or to `raised`.
- The block of a `finally` has one copy for each way in which control comes to it (falling off the end, an
  exception, `return`, `break`, `continue`), so one statement may have several points: `points`, `starts` and
  `ends` give all of them.  A manager of a `with` is left by such copies too.
- A test with one outcome has one edge: control leaves `while True` only by `break`.
- Functions and classes inside of the code are simple statements: each body of a function has a graph of its
  own.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator, Sequence
from enum import Enum

from msgspec import Struct, field

from trainshift.python.flow.traversal import postorder, reachable


class EdgeKind(Enum):
    """The kind of a control-flow edge."""

    FALL = "fall"
    TRUE = "true"
    FALSE = "false"
    LOOP = "loop"
    BREAK = "break"
    CONTINUE = "continue"
    RETURN = "return"
    RAISE = "raise"


class Role(Enum):
    """The role of a point in its statement."""

    ENTRY = "entry"
    EXIT = "normal exit"
    RAISED = "exceptional exit"
    STATEMENT = "a simple statement"
    TEST = "the test of an `if` or a `while`"
    ITERABLE = "what a `for` iterates is evaluated, once"
    NEXT = "a `for` asks for its next element"
    TARGET = "a `for` binds its target"
    CONTEXT = "a manager of a `with` is entered, and bound"
    LEAVE = "a manager of a `with` is left"
    SUBJECT = "the subject of a `match` is evaluated"
    CASE = "a pattern of a `match` is tried"
    CAPTURE = "a pattern binds its names"
    GUARD = "the guard of a case is tested"
    TRY = "a `try` begins"
    DISPATCH = "an exception looks for its handler"
    HANDLER = "a handler compares the exception with its type"
    CAUGHT = "a handler binds its name"
    RESUME = "a `finally` goes on the way that led to it"


class Point(Struct, eq=False):
    """A place of the graph.

    `node` is its statement, handler (`HANDLER`, `CAUGHT`) or case (`CASE`, `CAPTURE`, `GUARD`), and `parts`
    is the syntax that is evaluated or bound here.  `index` numbers the points of one graph.
    """

    index: int
    role: Role
    node: ast.AST | None = None
    parts: tuple[ast.AST, ...] = ()
    into: list[Edge] = field(default_factory=list)
    out: list[Edge] = field(default_factory=list)

    def __repr__(self) -> str:
        line = getattr(self.node, "lineno", "")
        return f"<{self.index} {self.role.name}{line and f' line {line}'}>"


class Edge(Struct, eq=False):
    """A passage from one point to another.

    It is `implicit` if an operation fails without a `raise` or `assert`, and a `back` edge if it leads to the
    head of a loop after an iteration.
    """

    source: Point
    kind: EdgeKind
    target: Point
    implicit: bool = False
    back: bool = False

    def __repr__(self) -> str:
        return f"{self.source!r} -{self.kind.value}-> {self.target!r}"


class Cfg:
    """A control-flow graph, looked up by the identity of the syntax that it was built from."""

    def __init__(self) -> None:
        self.all: list[Point] = []
        self._points: dict[int, list[Point]] = {}
        self._starts: dict[int, list[Point]] = {}
        self._ends: dict[int, list[Edge]] = {}
        self._kept: list[ast.AST] = []  # The `id` of a node is valid as long as the node lives.
        self._reachable: frozenset[Point] | None = None
        self.entry = self.add(Role.ENTRY)
        self.exit = self.add(Role.EXIT)
        self.raised = self.add(Role.RAISED)

    def add(self, role: Role, node: ast.AST | None = None, parts: Iterable[ast.AST] = ()) -> Point:
        """Add a point, for the builder of the graph."""
        point = Point(len(self.all), role, node, tuple(parts))
        self.all.append(point)
        for each in () if node is None else (node, *point.parts):
            known = self._points.setdefault(id(each), [])
            if point not in known[-1:]:
                known.append(point)
            self._kept.append(each)
        return point

    def place(self, node: ast.AST, start: Point, ends: Iterable[Edge]) -> None:
        """Record the start of a copy of a statement, and the edges by which control falls off its end."""
        self._starts.setdefault(id(node), []).append(start)
        self._ends.setdefault(id(node), []).extend(ends)
        self._kept.append(node)

    def dissolve(self) -> None:
        """Free the graph at once, because its points and edges refer to each other; it must not be used
        afterwards.
        """
        for point in self.all:
            point.into.clear()
            point.out.clear()

    @property
    def edges(self) -> Iterator[Edge]:
        """All edges, by their sources."""
        for point in self.all:
            yield from point.out

    def points(self, node: ast.AST) -> Sequence[Point]:
        """Return the points of a statement's own head, or of a part of it (a test, a target, a handler)."""
        return self._points.get(id(node), ())

    def starts(self, node: ast.AST) -> Sequence[Point]:
        """Return the start of a statement, or of a part of one, in each copy of it."""
        return self._starts.get(id(node)) or self.points(node)

    def ends(self, node: ast.AST) -> Sequence[Edge]:
        """Return the edges by which control falls off the end of a statement, including its blocks."""
        if id(node) in self._ends:
            return self._ends[id(node)]
        return [edge for point in self.points(node) for edge in point.out if edge.kind is not EdgeKind.RAISE]

    @property
    def reachable(self) -> frozenset[Point]:
        """The points that are reachable from the entry."""
        if self._reachable is None:
            self._reachable = frozenset(reached([self.entry]))
        return self._reachable

    def is_reachable(self, node: ast.AST) -> bool:
        """Return whether a statement or a part of one is reachable."""
        return any(point in self.reachable for point in self.starts(node))

    def reverse_postorder(self) -> list[Point]:
        """Return the reachable points, each before its successors, except along back edges."""
        return postorder(self.entry, lambda point: [edge.target for edge in point.out])[::-1]


def reached(
    starts: Iterable[Point],
    without: Iterable[Point] = (),
    *,
    cut: Container[Edge] = (),
    implicit: bool = True,
    backward: bool = False,
) -> set[Point]:
    """Return the points reachable from some, including these, without passing a point of `without` or an edge
    of `cut`.

    Without `implicit`, edges of failing operations are not taken.  With `backward`, edges are followed in
    reverse.
    """
    barred = set(without)

    def following(point: Point) -> list[Point]:
        edges = point.into if backward else point.out
        return [
            beyond
            for edge in edges
            if (implicit or not edge.implicit)
            and edge not in cut
            and (beyond := edge.source if backward else edge.target) not in barred
        ]

    return set(reachable([point for point in starts if point not in barred], following))
