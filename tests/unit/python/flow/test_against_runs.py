"""The events in runs of random programs must be among those that the analyses predict."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from support.random_programs import NAMES, Event, Trace, random_program, run
from trainshift.python.flow import cfg_builder
from trainshift.python.flow.cfg import Cfg, Edge, Point, reached
from trainshift.python.flow.cfg_builder import build
from trainshift.python.flow.dominance import Dominators, on_every_path
from trainshift.python.flow.exits import leaves
from trainshift.python.flow.liveness import Liveness
from trainshift.python.flow.reaching import ANY, Reaching
from trainshift.python.flow.solver import Analysis, solve

PROGRAMS = 4
"""The number of programs in one test."""
RUNS = 5
SEEDS = range(0, 96, PROGRAMS)


def ends(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "stop"


def programs(first: int) -> Iterator[tuple[ast.FunctionDef, Cfg, list[Trace]]]:
    for seed in range(first, first + PROGRAMS):
        program = random_program(seed)
        yield program, build(program, ends), [run(program, each) for each in range(RUNS)]


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of statements in code, without those of functions and classes inside."""
    for _, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else ():
            if isinstance(each, ast.stmt):
                yield value
                break
        for each in value if isinstance(value, list) else ():
            if isinstance(each, ast.AST) and not isinstance(each, (ast.FunctionDef, ast.ClassDef)):
                yield from blocks(each)


class _Walk:
    """All the points where a run may be, by the graph: edges lead on to the next statement that begins."""

    def __init__(self, program: ast.FunctionDef, cfg: Cfg) -> None:
        self.cfg = cfg
        self.beginnings = {
            point for block in blocks(program) for each in block for point in cfg.starts(each)
        } - {
            point
            for block in blocks(program)
            for each in block
            if isinstance(each, ast.Global | ast.Nonlocal)
            for point in cfg.starts(each)
        }

    def following(self, points: set[Point]) -> set[Point]:
        found: set[Point] = set()
        seen: set[Edge] = set()
        waiting = [edge for point in points for edge in point.out]
        while waiting:
            edge = waiting.pop()
            if edge in seen:
                continue
            seen.add(edge)
            if (edge.target in self.beginnings and not edge.back) or not edge.target.out:
                found.add(edge.target)
            else:
                waiting += edge.target.out
        return found


@pytest.mark.sampled
@pytest.mark.in_turns(2)
@pytest.mark.parametrize("first", SEEDS)
def test_runs_take_edges_of_the_graph(first: int) -> None:
    for program, cfg, traces in programs(first):
        walk = _Walk(program, cfg)
        for trace in traces:
            points = {cfg.entry}
            for event in trace.events:
                if event.kind == "start":
                    assert event.node is not None
                    came = walk.following(points).intersection(cfg.starts(event.node))
                    assert came, _said(program, event)
                    points = came
            end = {"returned": cfg.exit, "raised": cfg.raised}.get(trace.outcome)
            assert end is None or end in walk.following(points), ast.unparse(program)


@pytest.mark.sampled
@pytest.mark.in_turns(2)
@pytest.mark.parametrize("first", SEEDS)
def test_what_leaves_is_never_followed(first: int) -> None:
    for program, cfg, traces in programs(first):
        leaving = {
            id(each)
            for block in blocks(program)
            for index, each in enumerate(block)
            if leaves(each, ends) or leaves(block[: index + 1], ends)
        }
        for block in blocks(program):
            for each in block:  # The graph knows at least as much.
                if cfg.is_reachable(each) and leaves(each, ends):
                    assert not any(edge.source in cfg.reachable for edge in cfg.ends(each)), ast.unparse(each)
        for trace in traces:
            for event in trace.events:
                if event.kind == "behind":
                    assert id(event.node) not in leaving, _said(program, event)


@pytest.mark.sampled
@pytest.mark.in_turns(2)
@pytest.mark.parametrize("first", SEEDS)
def test_names_that_are_read_later_are_live(first: int) -> None:
    for program, cfg, traces in programs(first):
        live = Liveness(cfg)
        for trace in traces:
            read: set[str] = set()
            for event in reversed(trace.events):
                if event.kind == "read":
                    read.add(event.name)
                elif event.kind == "write":
                    read.discard(event.name)
                elif event.node is not None:
                    known = live.before(event.node) if event.kind == "start" else live.after(event.node)
                    assert read <= known, (read - known, event.kind, _said(program, event))


@pytest.mark.sampled
@pytest.mark.in_turns(2)
@pytest.mark.parametrize("first", SEEDS)
def test_bindings_that_are_read_reach(first: int) -> None:
    for program, cfg, traces in programs(first):
        reaching = Reaching(cfg, program)
        for trace in traces:
            for event in trace.events:
                if event.kind == "read" and event.node is not None and event.by is not None:
                    known = {each.node for each in reaching.of(event.name, event.node)}
                    assert event.by in known, (event.name, ast.unparse(event.by), _said(program, event))


@pytest.mark.sampled
@pytest.mark.in_turns(2)
@pytest.mark.parametrize("first", SEEDS)
def test_dominators_are_passed(first: int) -> None:
    for program, cfg, traces in programs(first):
        tree = Dominators(cfg, implicit=True)
        post = Dominators(cfg, post=True, implicit=True)
        every = [each for block in blocks(program) for each in block if cfg.is_reachable(each)]
        some = every[:: len(every) // 10 + 1]
        before = {each: [other for other in some if tree.dominates(other, each)] for each in some}
        after = {
            # The header of an outer loop is passed again, which is not the beginning of a statement.
            each: [other for other in some if post.dominates(other, each) and each not in ast.walk(other)]
            for each in some
        }
        for each in some:
            for other in some:
                passes = on_every_path(cfg, other, end=each, implicit=True)
                assert passes == (other in before[each]), (ast.unparse(each), ast.unparse(other))
        for trace in traces:
            started = [event.node for event in trace.events if event.kind == "start"]
            for index, node in enumerate(started):
                assert isinstance(node, ast.stmt)
                for other in before.get(node, ()):
                    assert other in started[: index + 1] or isinstance(other, ast.Global), ast.unparse(
                        program
                    )
                if trace.outcome != "over":
                    for other in after.get(node, ()):
                        assert other in started[index:], ast.unparse(program)


class _Counted(Analysis[int]):
    """The most statements that a way passes: a lattice without bound, which only `widen` makes stable."""

    UNKNOWN = 10**9

    def boundary(self, point: Point) -> int:
        return 0

    def join(self, left: int, right: int) -> int:
        return max(left, right)

    def transfer(self, point: Point, state: int) -> int:
        return state if state == self.UNKNOWN else state + 1

    def widen(self, old: int, new: int) -> int:
        return self.UNKNOWN


@pytest.mark.sampled
@pytest.mark.parametrize("first", SEEDS[:5])
def test_a_count_of_steps_is_right_or_unknown(first: int) -> None:
    for program, cfg, traces in programs(first):
        solution = solve(cfg, _Counted())
        for trace in traces:
            started = [event.node for event in trace.events if event.kind == "start"]
            for index, node in enumerate(started):
                assert node is not None
                most = solution.before(node)
                assert (most or 0) >= index, ast.unparse(program)


@pytest.mark.sampled
@pytest.mark.parametrize("first", SEEDS[:4])
@pytest.mark.parametrize("bound", [0, 1])
def test_a_finally_that_is_copied_no_further_holds_for_runs(
    bound: int, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cfg_builder, "_DEEPEST", bound)
    test_runs_take_edges_of_the_graph(first)
    test_names_that_are_read_later_are_live(first)
    test_bindings_that_are_read_reach(first)
    test_dominators_are_passed(first)


def _said(program: ast.FunctionDef, event: Event) -> str:
    line = getattr(event.node, "lineno", "?")
    return f"line {line} of:\n{ast.unparse(program)}"


def test_the_programs_have_all_that_is_asked_about() -> None:
    kinds: set[str] = set()
    reads = 0
    for _program, cfg, traces in programs(0):
        kinds |= {edge.kind.value for edge in cfg.edges}
        reads += sum(
            event.kind == "read" and event.name in NAMES for trace in traces for event in trace.events
        )
        assert reached([cfg.entry]) == cfg.reachable
    assert kinds == {"fall", "true", "false", "loop", "break", "continue", "return", "raise"}
    assert reads > 50
    assert ANY not in NAMES
