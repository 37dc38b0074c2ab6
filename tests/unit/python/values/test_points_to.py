"""Points-to analysis: its results for small programs, and that it covers the aliases in runs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest

from support.random_heaps import Author
from trainshift.python.values import heap, points_to, points_transfer
from trainshift.python.values.heap import UNKNOWN, union
from trainshift.python.values.points_to import FunctionPoints, PointsTo
from trainshift.python.values.points_transfer import FunctionNode, Gives, Operation, body_of


class PlainPolicy:
    """The functions of a file by name, and nothing of libraries."""

    def __init__(self, functions: Mapping[str, FunctionNode]) -> None:
        self._functions = functions

    def function(self, name: str) -> FunctionNode | None:
        """The function that a name of the module stands for."""
        return self._functions.get(name)

    def is_object(self, node: ast.expr, function: FunctionNode) -> bool:
        """Return whether the value of an expression in a function may be something that can be changed."""
        return True

    def is_view(self, node: ast.Subscript | ast.Attribute, function: FunctionNode) -> bool:
        """Return whether a subscript or attribute may share memory with its base."""
        return False

    def is_copy(self, node: ast.Subscript, function: FunctionNode) -> bool:
        """Return whether a subscript creates a new object that shares nothing with its base."""
        return False

    def has_views(self, node: ast.expr, function: FunctionNode) -> bool:
        """Return whether the elements of an expression's value may share its memory."""
        return False

    def operation(self, node: ast.BinOp | ast.AugAssign, function: FunctionNode) -> Operation:
        """The possible effects of an operator on objects in a function."""
        return Operation()

    def body(self, function: FunctionNode) -> Sequence[ast.stmt]:
        """The statements of a function."""
        return body_of(function)

    def callees(self, node: ast.Call, function: FunctionNode) -> Sequence[FunctionNode]:
        """The functions that the called value may be, where that is known; none where it is not."""
        return []

    def call(self, node: ast.Call, function: FunctionNode) -> Gives | None:
        """The result of calling a function whose code is not available; None if it is unknown."""
        return None


def analysed(text: str, name: str = "f") -> FunctionPoints:
    """The objects of one function of a file."""
    tree = ast.parse(text)
    functions: dict[str, FunctionNode] = {
        each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)
    }
    return PointsTo(functions.values(), PlainPolicy(functions)).of(functions[name])


CASES = [
    # The text of `f`, the question at its return, and the answer.
    ("def f(x):\n    p = [0]\n    q = [0]\n    return p", "p is q", False),
    ("def f(x):\n    p = [0]\n    q = p\n    return p", "p is q", True),
    ("def f(x):\n    p = [0]\n    q = p\n    p = [1]\n    return p", "p is q", False),
    (
        "def f(x):\n    p = [0]\n    if x:\n        q = p\n    else:\n        q = []\n    return p",
        "p is q",
        True,
    ),
    (
        "def f(x):\n    p = [0]\n    q = [0]\n    r = [0]\n    b = [x]\n    for i in range(6):\n"
        "        p = q\n        q = r\n        r = b\n    return p",
        "p is b",
        True,
    ),
    ("def f(x):\n    p = [x]\n    q = p[:]\n    return p", "p is q", False),
    ("def f(x):\n    p = [[x]]\n    q = p[:]\n    return p", "p[0] is q[0]", True),
    ("def f(x):\n    p = [[x], [x]]\n    return p", "p[0] is p[1]", False),
    ("def f(x):\n    a = [x]\n    p = [a, [x]]\n    p[0] = [x]\n    return p", "p[0] is a", False),
    ("def f(x):\n    a = [x]\n    p = [a, [x]]\n    p[x] = []\n    return p", "p[0] is a", True),
    ("def f(x):\n    a = [x]\n    p = [a, [x]]\n    p.reverse()\n    return p", "p[1] is a", True),
    ("def f(x):\n    a = [x]\n    p = {'k': a, 'm': []}\n    return p", "p['m'] is a", False),
    ("def f(x):\n    p = x * 2\n    q = x + 1\n    return p", "p is q", False),
    ("def f(x, y):\n    return x", "x is y", False),
    ("def f(x, y):\n    y = x['a']\n    return x", "y is x['b']", False),
    ("def f(x, y):\n    y = x['a']\n    return x", "y is x['a']", True),
    ("def same(v):\n    return v\ndef f(x):\n    p = []\n    q = same(p)\n    return p", "p is q", True),
    ("def make():\n    return []\ndef f(x):\n    p = make()\n    q = make()\n    return p", "p is q", False),
    (
        "def put(v, w):\n    v[0] = w\ndef f(x):\n    p = [0]\n    q = []\n    put(p, q)\n    return p",
        "p[0] is q",
        True,
    ),
    ("def f(x):\n    p = []\n    q = unknown()\n    return p", "p is q", False),
    ("def f(x):\n    p = []\n    unknown(p)\n    q = unknown()\n    return p", "p is q", True),
    (
        "def f(x):\n    s = []\n    def g():\n        nonlocal s\n        s = x\n    g()\n    return s",
        "s is x",
        True,
    ),
    (
        "def f(x):\n    p = []\n    def g(v):\n        return other(p)\n"
        "    unknown(g)\n    q = unknown()\n    return p",
        "p is q",
        True,
    ),
    ("def f(x):\n    p = []\n    q = (lambda: p)()\n    return p", "p is q", True),
    (
        "def f(x):\n    rows = []\n    for i in x:\n        last = []\n"
        "        rows.append(last)\n    return rows",
        "rows twice",
        False,
    ),
    (
        "def f(x):\n    last = []\n    rows = []\n    for i in x:\n"
        "        rows.append(last)\n    return rows",
        "rows twice",
        True,
    ),
    ("def f(x):\n    rows = [[0] for i in x]\n    return rows", "rows twice", False),
    ("def f(x):\n    rows = [[0]] * 2\n    return rows", "rows twice", True),
    ("def f(x):\n    a = [0]\n    rows = [a, [1]]\n    rows[1] = a\n    return rows", "rows twice", True),
    (
        "def f(x):\n    rows = [[0], [1]]\n    rows[0], rows[1] = rows[1], rows[0]\n    return rows",
        "rows twice",
        False,
    ),
    (
        "def two(v, w):\n    return [v, w]\ndef f(x):\n    p = []\n    q = two(p, p)\n    return q",
        "q twice",
        True,
    ),
    (
        "def two(v, w):\n    return [v, w]\ndef f(x):\n    p = []\n    q = two(p, [])\n    return q",
        "q twice",
        False,
    ),
    (
        "def grow(v, n):\n    v.append(n)\n    grow(v, n - 1)\n"
        "def f(x):\n    p = []\n    grow(x, 3)\n    return x",
        "x changed",
        True,
    ),
    (
        "def read(v, w):\n    w.append(v[0])\ndef f(x):\n    p = []\n    read(x, p)\n    return x",
        "x changed",
        False,
    ),
    ("def f(x):\n    y = x[0]\n    y[0] = 1.0\n    return x", "x changed", False),
    ("def f(x):\n    y = x[0]\n    y[0] = 1.0\n    return x", "y changed", True),
    ("def f(x):\n    y = x[:]\n    y[0] = 1.0\n    return x", "x changed", False),
    ("def f(x):\n    g = unknown\n    g(x)\n    return x", "x changed", True),
    (  # A function made by one that has ended returns what it has kept, and nothing else.
        "def keep(v):\n    def get():\n        return v\n    return get\n"
        "def f(x):\n    p = []\n    q = []\n    g = keep(p)\n    h = g()\n    return h",
        "h is p",
        True,
    ),
    (
        "def keep(v):\n    def get():\n        return v\n    return get\n"
        "def f(x):\n    p = []\n    q = []\n    g = keep(p)\n    h = g()\n    return h",
        "h is q",
        False,
    ),
    (
        "def cell(v):\n    def swap(w):\n        nonlocal v\n        old = v\n        v = w\n"
        "        return old\n    return swap\n"
        "def f(x):\n    p = []\n    q = []\n    c = cell(p)\n    c(q)\n    r = c(p)\n    return r",
        "r is q",
        True,
    ),
    (
        "def keep(v):\n    def grow():\n        v.append(1)\n    return grow\n"
        "def f(x):\n    g = keep(x)\n    g()\n    return x",
        "x changed",
        True,
    ),
    (
        "def f(x):\n    rows = []\n    for i in x:\n        rows.append([0] if i else 0)\n    return rows",
        "rows twice",
        False,
    ),
    (
        "def f(x):\n    a = []\n    rows = []\n    for i in 'a':\n        rows.append(a)\n    return rows",
        "rows twice",
        False,
    ),
    (
        "def f(x):\n    a = []\n    rows = []\n    for i in 'ab':\n        rows.append(a)\n    return rows",
        "rows twice",
        True,
    ),
    ("def f(x):\n    a = []\n    rows = {k: a for k in 'a'}\n    return rows", "rows twice", False),
    ("def f(x):\n    a = []\n    rows = {k: a for k in 'ab'}\n    return rows", "rows twice", True),
    (  # An uncaught exception ends everything; a caught one leaves the earlier effects.
        "def g(v, w):\n    if v:\n        v[0] = w\n        raise E(w)\n"
        "def f(x):\n    p = [[0]]\n    q = []\n    g(p, q)\n    return p",
        "p[0] is q",
        False,
    ),
    (
        "def g(v, w):\n    if v:\n        v[0] = w\n        raise E(w)\n"
        "def f(x):\n    p = [[0]]\n    q = []\n    try:\n        g(p, q)\n    except E:\n        pass\n"
        "    return p",
        "p[0] is q",
        True,
    ),
]


@pytest.mark.parametrize(("text", "question", "answer"), CASES)
def test_objects_where_a_function_returns(text: str, question: str, answer: bool) -> None:
    points = analysed(text)
    body = points.scope.node.body
    assert isinstance(body, list)
    end = body[-1]
    state = points.before(end)
    assert state is not None
    left, _, right = question.partition(" ")
    one = points.of(state, ast.parse(left, mode="eval").body)
    if right == "twice":
        assert bool(points.held_twice(state, one)) is answer
    elif right == "changed":
        assert points.may_be_one(state, union(points.changed.values()), one) is answer
    else:
        other = points.of(state, ast.parse(right.removeprefix("is "), mode="eval").body)
        assert one
        assert other
        assert points.may_be_one(state, one, other) is answer


def test_what_is_made_a_number_of_times_is_told_from_what_is_made_now() -> None:
    points = analysed(
        "def f(x):\n    old = []\n    for i in x:\n"
        "        new = []\n        kept, old = old, new\n    return x"
    )
    (loop,) = (node for node in ast.walk(points.scope.node) if isinstance(node, ast.For))
    state = points.after(loop.body[0])
    assert state is not None
    names = [points.of_name(state, name) for name in ("new", "old", "kept")]
    assert not points.may_be_one(state, names[0], names[1])
    assert points.may_be_one(state, names[1], names[2])


def test_a_bound_that_is_reached_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points_to, "_MOST", 0)
    points = analysed("def g(v):\n    return []\ndef f(x):\n    y = g(x)\n    return y")
    assert points.returned & UNKNOWN


# Runs.

_CHANGEABLE = (list, dict)
SEEDS = 200
_STEPS = 3000


class _Over(Exception):
    pass


class _Watch:
    """A record of the values of `main`'s names at each statement, compared with the analysis."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self.points = analysed(text, "main")
        self.statements: dict[int, ast.stmt] = {}
        main = self.points.scope.node
        for node in ast.walk(main):
            if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.For | ast.While):
                self.statements.setdefault(node.lineno, node)
        for node in ast.walk(main):
            if isinstance(node, ast.FunctionDef) and node is not main:
                for each in ast.walk(node):
                    self.statements.pop(getattr(each, "lineno", 0), None)
        self.asked = 0
        self.steps = 0

    def run(self) -> None:
        space: dict[str, Any] = {}
        exec(compile(self.text, "<heap>", "exec"), space)
        sys.settrace(self._called)
        try:
            space["main"]()
        except Exception:
            if isinstance(sys.exc_info()[1], AssertionError):
                raise
        finally:
            sys.settrace(None)

    def _called(self, frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename != "<heap>":
            return None
        self.steps += 1
        if self.steps > _STEPS:
            raise _Over
        return self._line if frame.f_code.co_name == "main" else None

    def _line(self, frame: FrameType, event: str, arg: object) -> Any:
        self.steps += 1
        if self.steps > _STEPS:
            raise _Over
        node = self.statements.get(frame.f_lineno)
        if event == "line" and node is not None:
            self._ask(node, {name: frame.f_locals[name] for name in sorted(frame.f_locals)})
        return self._line

    def _ask(self, node: ast.stmt, names: dict[str, object]) -> None:
        points = self.points
        state = points.before(node)
        assert state is not None, self._said(node, "is never come to")
        names = {name: value for name, value in names.items() if isinstance(value, _CHANGEABLE)}
        known = {name: points.of_name(state, name) for name in names}
        for name, value in names.items():
            assert known[name], self._said(node, f"{name} is no object")
            for other, its in names.items():
                if value is its:
                    self.asked += 1
                    one = points.may_be_one(state, known[name], known[other])
                    assert one, self._said(node, f"{name} is {other}")
                for key, element in _elements(value):
                    if element is its:
                        self.asked += 1
                        held = points.held(state, known[name], key)
                        assert points.may_be_one(state, held, known[other]), self._said(
                            node, f"{name}[{key!r}] is {other}"
                        )
            elements = sorted(id(each) for _, each in _elements(value) if isinstance(each, _CHANGEABLE))
            if any(one == other for one, other in pairwise(elements)):
                self.asked += 1
                assert points.held_twice(state, known[name]), self._said(node, f"{name} has one thing twice")

    def _said(self, node: ast.stmt, what: str) -> str:
        return f"line {node.lineno} {ast.unparse(node)!r}: {what}, in\n{self.text}"


def _elements(value: object) -> list[tuple[Any, object]]:
    if isinstance(value, list):
        return list(enumerate(value))
    return list(value.items()) if isinstance(value, dict) else []


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_what_was_one_object_may_be_one(first: int, quick: bool) -> None:
    asked, each = 0, 10 if quick else 20
    for seed in range(first, first + each):
        watch = _Watch(Author(seed).text())
        watch.run()
        asked += watch.asked
    assert asked > each * 50


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(0, SEEDS, 20))
@pytest.mark.parametrize("bound", ["_MOST", "_MOST_KEYS", "DEEPEST"])
def test_bounds_that_are_reached_hold_for_runs(
    bound: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (points_to, heap, points_transfer):
        if hasattr(module, bound):
            monkeypatch.setattr(module, bound, 1 if bound == "DEEPEST" else 0)
    for seed in range(first, first + 5):
        _Watch(Author(seed).text()).run()
