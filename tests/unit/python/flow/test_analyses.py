"""Liveness, reaching definitions, dominance and the solver, by tables of small programs.

`#` marks the line that is asked about.
"""

from __future__ import annotations

import ast

import pytest

from trainshift.python.flow.cfg import Cfg, Edge, EdgeKind, Point
from trainshift.python.flow.cfg_builder import build
from trainshift.python.flow.dominance import ControlDependence, Dominators, may_reach, on_every_path
from trainshift.python.flow.liveness import Liveness
from trainshift.python.flow.reaching import Reaching
from trainshift.python.flow.solver import Analysis, Diverges, solve


def parsed(text: str) -> tuple[ast.Module, Cfg, ast.stmt]:
    """The code, its graph, and the statement whose first line ends with `#`."""
    code = ast.parse(text)
    marked = [index for index, line in enumerate(text.split("\n"), 1) if line.endswith("#")]
    found = [each for each in ast.walk(code) if isinstance(each, ast.stmt) and [each.lineno] == marked]
    return code, build(code), found[0]


def at_line(code: ast.AST, line: int) -> ast.stmt:
    return next(each for each in ast.walk(code) if isinstance(each, ast.stmt) and each.lineno == line)


LIVE_AFTER = {
    "read": ("x = 1 #\nf(x)", "f x"),
    "bound anew": ("x = 1 #\nx = 2\nf(x)", "f"),
    "on one way": ("x = 1 #\nif c:\n  x = 2\nf(x)", "c f x"),
    "a loop comes back": ("while c:\n  f(x)\n  x = y #", "c f x y"),
    "a chain through turns": ("while c:\n  p = q\n  q = r\n  r = s\n  f(1) #\ng(p)", "c f g p q r s"),
    "a target of a loop": ("i = 1 #\nfor i in xs:\n  f(i)", "f xs"),
    "a target after an empty loop": ("i = 1 #\nfor i in xs:\n  pass\nf(i)", "f i xs"),
    "what an exception finds": ("x = 1 #\ntry:\n  x = f()\nexcept E:\n  g(x)", "E f g x"),
    "what a finally reads": ("x = 1 #\ntry:\n  f()\n  x = 2\nfinally:\n  g(x)", "f g x"),
    "a finally after a return": ("x = 1 #\ntry:\n  raise E\nfinally:\n  g(x)", "E g x"),
    "an augmented assignment": ("x = 1 #\nx += 1", "x"),
    "deleted": ("x = 1 #\ndel x", "x"),
    "a walrus on one way": ("x = 1 #\nc and (x := f())\ng(x)", "c f g x"),
    "a comprehension's own name": ("x = 1 #\n[x for x in xs]", "xs"),
    "a comprehension's first iterable": ("xs = 1 #\n[x for x in xs]", "xs"),
    "a function that is called": ("def g():\n  return x\nx = 1 #\ng()", "g x"),
    "a function that is called before": ("def g():\n  return x\ng()\nx = 1 #", ""),
    "a function that escapes": ("def g():\n  return x\nkeep(g)\nx = 1 #", "x"),
    "a function of a function": ("def g():\n  return x\ndef h():\n  return g()\nx = 1 #\nh()", "g h x"),
    "a lambda with a name": ("g = lambda: x\nx = 1 #\ng()", "g x"),
    "a lambda that is passed on": ("keep(lambda: x)\nx = 1 #", "x"),
    "a decorated function": ("@keep\ndef g():\n  return x\nx = 1 #", "x"),
    "a method": ("class A:\n  def m(self):\n    return x\nx = 1 #", "x"),
    "a class runs at once": ("class A:\n  y = x\nx = 1 #", ""),
    "a generator runs later": ("g = (x for _ in xs)\nx = 1 #\nnext(g)", "g next x"),
    "a generator that is used up": ("sum(x for _ in xs)\nx = 1 #", ""),
    "a generator function": ("def g():\n  yield x\nh = g()\nx = 1 #\nnext(h)", "h next x"),
    "a default is evaluated once": ("def g(a=x):\n  return a\nx = 1 #\ng()", "g"),
    "locals": ("x = 1 #\nlocals()", "locals x"),
    "global": ("global x\nx = 1 #", "x"),
    "a match binds": ("x = 1 #\nmatch y:\n  case [x]:\n    f(x)", "f y"),
    "a match that fails keeps": ("x = 1 #\nmatch y:\n  case [x]:\n    pass\nf(x)", "f x y"),
    "while True": ("x = 1 #\nwhile True:\n  f()\ng(x)", "f"),
    "a loop without end": ("while True:\n  x = y #", "y"),
}


@pytest.mark.parametrize("case", LIVE_AFTER)
def test_live_names(case: str) -> None:
    text, expected = LIVE_AFTER[case]
    _, cfg, marked = parsed(text)
    assert " ".join(sorted(Liveness(cfg).after(marked))) == expected


def test_what_is_read_after_an_exit_is_for_the_caller_to_say() -> None:
    _, cfg, marked = parsed("x = 1 #\ny = x")
    assert Liveness(cfg, at_exit={"y"}).before(marked) == set()
    assert Liveness(cfg, at_exit={"x"}).after(marked) == {"x"}
    _, cfg, marked = parsed("x = 1 #\nraise E")
    assert Liveness(cfg, at_exit={"x"}).after(marked) == {"E"}
    assert Liveness(cfg, at_raise={"x"}).after(marked) == {"E", "x"}


def test_functions_may_be_said_to_run_where_they_are_made() -> None:
    _, cfg, marked = parsed("keep(lambda: x)\nx = 1 #")
    assert Liveness(cfg, escapes=False).after(marked) == set()
    _, cfg, marked = parsed("x = 1 #\nkeep(lambda: x)")
    assert Liveness(cfg, escapes=False).after(marked) == {"keep", "x"}


REACHING = {
    "the last one": ("x = 1\nx = 2\nf(x) #", "2"),
    "two ways": ("x = 1\nif c:\n  x = 2\nf(x) #", "1 3"),
    "both ways": ("x = 1\nif c:\n  x = 2\nelse:\n  x = 3\nf(x) #", "3 5"),
    "a way that leaves": ("x = 1\nif c:\n  x = 2\n  raise E\nf(x) #", "1"),
    "round a loop": ("x = 1\nwhile c:\n  f(x) #\n  x = 2", "1 4"),
    "a break": ("x = 1\nwhile c:\n  x = 2\n  break\nelse:\n  x = 3\nf(x) #", "3 6"),
    "a continue": ("x = 1\nfor i in y:\n  if c:\n    continue\n  x = 2\nf(x) #", "1 5"),
    "while True": ("x = 1\nwhile True:\n  x = 2\n  if c:\n    break\nf(x) #", "3"),
    "what a handler finds": ("x = 1\ntry:\n  x = 2\n  x = f()\nexcept E:\n  g(x) #", "3 4"),
    "behind a handler that leaves": ("x = 1\ntry:\n  x = f()\nexcept E:\n  raise\ng(x) #", "3"),
    "a finally that is fallen into": ("x = 1\ntry:\n  x = f()\nfinally:\n  x = 2\ng(x) #", "5"),
    "a handler's name": ("try:\n  f()\nexcept E as x:\n  g(x) #", "3"),
    "a loop's target": ("x = 1\nfor x in y:\n  pass\nf(x) #", "1 2"),
    "an import": ("import x.y\nf(x) #", "1"),
    "a manager": ("with f() as x:\n  g(x) #", "1"),
    "a manager that may suppress": ("x = 1\nwith f():\n  x = g()\nh(x) #", "1 3"),
    "a walrus on one way": ("x = 1\nc and (x := f())\ng(x) #", "1 2"),
    "a walrus that the statement reads": ("x = 1\ng((x := f()), x) #", "1 2"),
    "a function by nonlocal": ("x = 1\ndef g():\n  global x\n  x = 2\nx = 3\ng()\nf(x) #", "2 5"),
    "deleted": ("x = 1\ndel x\nf(x) #", "2"),
    "a star import": ("x = 1\nfrom m import *\nf(x) #", "1 2"),
    "an annotation binds nothing": ("x = 1\nx: int\nf(x) #", "1"),
}


@pytest.mark.parametrize("case", REACHING)
def test_definitions_that_reach(case: str) -> None:
    text, expected = REACHING[case]
    code, cfg, marked = parsed(text)
    found = {getattr(each.node, "lineno", 0) for each in Reaching(cfg, code).of("x", marked)}
    assert " ".join(map(str, sorted(found))) == expected


def test_parameters_and_names_from_outside_reach() -> None:
    code = ast.parse("def f(x, *y):\n  if x:\n    y = 1\n  return y").body[0]
    assert isinstance(code, ast.FunctionDef)
    reaching = Reaching(build(code), code, outside={"z"})
    assert {type(each.node) for each in reaching.of("y", code.body[1])} == {ast.arg, ast.Assign}
    assert [each.node for each in reaching.of("z", code.body[1])] == [None]


SURE = {
    # Does each way from the entry to the marked line pass line 2?
    "in order": ("a()\nb()\nc() #", True),
    "one branch": ("if a:\n  b()\nc() #", False),
    "in the branch": ("if a:\n  b()\n  c() #", True),
    "a loop that may not turn": ("for i in a:\n  b()\nc() #", False),
    "another way leaves": ("if a:\n  b()\nelse:\n  raise e\nc() #", True),
    "while True": ("while True:\n  b()\n  if a:\n    break\nc() #", True),
}


@pytest.mark.parametrize("case", SURE)
def test_what_is_on_every_path(case: str) -> None:
    text, expected = SURE[case]
    code, cfg, marked = parsed(text)
    passed = at_line(code, 2)
    assert on_every_path(cfg, passed, end=marked) == expected
    assert Dominators(cfg).dominates(passed, marked) == expected


POST = {
    # Does each way from line 1 to an exit pass the marked line?
    "in order": ("a()\nb() #", True),
    "a branch": ("a()\nif b:\n  c() #", False),
    "behind a branch": ("a()\nif b:\n  c()\nd() #", True),
    "a way that raises": ("a()\nif b:\n  raise c\nd() #", False),
    "finally": ("a()\ntry:\n  if b:\n    raise c\nfinally:\n  d() #", True),
}


@pytest.mark.parametrize("case", POST)
def test_what_is_on_every_path_to_an_exit(case: str) -> None:
    text, expected = POST[case]
    code, cfg, marked = parsed(text)
    first = at_line(code, 1)
    assert on_every_path(cfg, marked, start=first) == expected
    assert Dominators(cfg, post=True).dominates(marked, first) == expected


def test_an_operation_that_fails_is_a_way_only_if_asked() -> None:
    code, cfg, marked = parsed("a()\nb() #")
    assert not on_every_path(cfg, marked, start=at_line(code, 1), implicit=True)
    assert not Dominators(cfg, post=True, implicit=True).dominates(marked, at_line(code, 1))


def test_what_may_come_after() -> None:
    code, cfg, marked = parsed("while a:\n  b()\n  c() #\nd()")
    assert may_reach(cfg, marked, marked)
    assert may_reach(cfg, marked, at_line(code, 2))
    assert not may_reach(cfg, marked, at_line(code, 4), without=code.body[0])
    assert not may_reach(cfg, at_line(code, 4), marked)


DEPENDENCE = {
    "none": ("a()\nb() #", ""),
    "a branch": ("if a:\n  b() #", "1 true"),
    "the other branch": ("if a:\n  pass\nelse:\n  b() #", "1 false"),
    "behind both": ("if a:\n  pass\nb() #", ""),
    "behind one that leaves": ("if a:\n  raise c\nb() #", "1 false"),
    "a loop": ("while a:\n  b() #", "1 true"),
    "behind a break": ("while a:\n  if b:\n    break\n  c() #", "2 false"),
    "nested": ("if a:\n  if b:\n    c() #", "2 true"),
    "handler": ("try:\n  assert a\nexcept E:\n  b() #", "3 true"),
}


@pytest.mark.parametrize("case", DEPENDENCE)
def test_control_dependence(case: str) -> None:
    text, expected = DEPENDENCE[case]
    _, cfg, marked = parsed(text)
    found = sorted(
        f"{getattr(edge.source.node, 'lineno', 0)} {edge.kind.value}"
        for edge in ControlDependence(cfg).of(marked)
    )
    assert " ".join(found) == expected


class _Constants(Analysis[frozenset[tuple[str, object]]]):
    """The values of names that are constants; a name that is missing may have any value."""

    def boundary(self, point: Point) -> frozenset[tuple[str, object]]:
        return frozenset()

    def join(
        self, left: frozenset[tuple[str, object]], right: frozenset[tuple[str, object]]
    ) -> frozenset[tuple[str, object]]:
        return left & right

    def transfer(self, point: Point, state: frozenset[tuple[str, object]]) -> frozenset[tuple[str, object]]:
        match point.node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                rest = frozenset(each for each in state if each[0] != name)
                return rest | {(name, value.value)} if isinstance(value, ast.Constant) else rest
        return state

    def refine(
        self, edge: Edge, state: frozenset[tuple[str, object]]
    ) -> frozenset[tuple[str, object]] | None:
        match edge.source.node:
            case ast.If(test=ast.Name(id=name)):
                known = dict(state)
                if name in known and bool(known[name]) != (edge.kind is EdgeKind.TRUE):
                    return None if edge.kind in (EdgeKind.TRUE, EdgeKind.FALSE) else state
        return state


def test_edges_refine_states_and_may_be_cut() -> None:
    code, cfg, marked = parsed("a = 0\nb = 1\nif a:\n  b = 2\nc() #")
    solution = solve(cfg, _Constants())
    assert dict(solution.before(marked) or ()) == {"a": 0, "b": 1}
    assert solution.before(at_line(code, 4)) is None
    assert solution.after(at_line(code, 3)) == solution.before(marked)


class _Steps(Analysis[int]):
    """The number of points passed: it never becomes stable in a loop."""

    def boundary(self, point: Point) -> int:
        return 0

    def join(self, left: int, right: int) -> int:
        return max(left, right)

    def transfer(self, point: Point, state: int) -> int:
        return state + 1


class _Widened(_Steps):
    def transfer(self, point: Point, state: int) -> int:
        return min(state + 1, 10**6)

    def widen(self, old: int, new: int) -> int:
        return 10**6


class _Back(_Steps):
    forward = False


class _WidenedBack(_Widened):
    forward = False


@pytest.mark.parametrize("analysis", [_Steps(), _Back()])
def test_what_does_not_become_stable_is_an_error(analysis: Analysis[int]) -> None:
    _, cfg, marked = parsed("while a:\n  b() #")
    with pytest.raises(Diverges):
        solve(cfg, analysis)
    assert solve(build(ast.parse("a()\nb()")), analysis).before(cfg.entry) is None
    del marked


@pytest.mark.parametrize("analysis", [_Widened(), _WidenedBack()])
def test_widening_goes_to_the_top(analysis: Analysis[int]) -> None:
    _, cfg, marked = parsed("while a:\n  b() #")
    assert solve(cfg, analysis).before(marked) == 10**6
