"""The graphs of small programs: who follows whom, by lines and kinds of edges."""

from __future__ import annotations

import ast

import pytest

from trainshift.python.flow.cfg import Cfg, EdgeKind, Point, Role
from trainshift.python.flow.cfg_builder import build
from trainshift.python.syntax.slotted_ast import lean

_SILENT = {Role.TRY, Role.RESUME, Role.CAPTURE, Role.CAUGHT, Role.DISPATCH}


def name(cfg: Cfg, point: Point) -> str:
    if point in (cfg.entry, cfg.exit, cfg.raised):
        return {cfg.entry: "in", cfg.exit: "out", cfg.raised: "err"}[point]
    match point.node:
        case ast.match_case(pattern=pattern):
            node: ast.AST = pattern
        case _:
            node = point.node or ast.Pass()
    return f"{getattr(node, 'lineno', 0)}{'' if point.role is not Role.LEAVE else 'e'}"


def edges(text: str, implicit: bool = False) -> list[str]:
    cfg = build(ast.parse(text))
    return sorted(
        f"{name(cfg, edge.source)} {edge.kind.value} {name(cfg, edge.target)}"
        for edge in cfg.edges
        if edge.source in cfg.reachable and (implicit or not edge.implicit)
    )


GRAPHS = {
    "if": ("if a:\n  b()\nelse:\n  c()", ["in fall 1", "1 true 2", "1 false 4", "2 fall out", "4 fall out"]),
    "if without else": (
        "if a:\n  b()\nc()",
        ["in fall 1", "1 true 2", "1 false 3", "2 fall 3", "3 fall out"],
    ),
    "while": ("while a:\n  b()\nc()", ["in fall 1", "1 true 2", "2 loop 1", "1 false 3", "3 fall out"]),
    "while True": ("while True:\n  b()\nc()", ["in fall 1", "1 true 2", "2 loop 1"]),
    "break": (
        "while a:\n  break\nelse:\n  b()\nc()",
        ["in fall 1", "1 true 2", "2 break 5", "1 false 4", "4 fall 5", "5 fall out"],
    ),
    "continue": ("while a:\n  continue", ["in fall 1", "1 true 2", "2 continue 1", "1 false out"]),
    "for": (
        "for i in a:\n  b()",
        ["in fall 1", "1 fall 1", "1 true 1", "1 fall 2", "2 loop 1", "1 false out"],
    ),
    "raise": ("raise a", ["in fall 1", "1 raise err"]),
    "assert": ("assert a", ["in fall 1", "1 fall out", "1 raise err"]),
    "a break through finally": (
        "while a:\n  try:\n    break\n  finally:\n    b()",
        ["in fall 1", "1 true 2", "2 fall 3", "3 break 5", "5 fall 2", "2 break out", "1 false out"],
    ),
    "match": (
        "match a:\n  case 1:\n    b()\n  case _:\n    c()",
        [
            "in fall 1",
            "1 fall 2",
            "2 true 2",
            "2 fall 3",
            "2 false 4",
            "4 true 4",
            "4 fall 5",
            "3 fall out",
            "5 fall out",
        ],
    ),
    "a raise that is caught": (
        "try:\n  raise a\nexcept:\n  b()",
        ["in fall 1", "1 fall 2", "2 raise 1", "1 fall 3", "3 true 3", "3 fall 4", "4 fall out"],
    ),
}


@pytest.mark.parametrize("case", GRAPHS)
def test_edges(case: str) -> None:
    text, expected = GRAPHS[case]
    assert edges(text) == sorted(expected)


def test_each_way_through_a_finally_has_a_copy() -> None:
    code = ast.parse("def f():\n  try:\n    if a:\n      return 1\n  finally:\n    b()\n  c()").body[0]
    assert isinstance(code, ast.FunctionDef)
    attempt, after = code.body
    assert isinstance(attempt, ast.Try)
    cfg = build(code)
    copies = cfg.starts(attempt.finalbody[0])
    assert len(copies) == 3  # it falls, it returns, `a` or `b()` fails
    led = [{edge.kind for edge in copy.out[-1].target.out} for copy in copies]
    assert sorted(str(kind.value) for kinds in led for kind in kinds) == ["fall", "raise", "return"]
    assert cfg.is_reachable(after)


def test_blocks_of_finally_deep_inside_of_each_other_are_copied_so_far_only() -> None:
    text = "pass"
    for _ in range(12):
        inner = "\n".join("  " + line for line in text.split("\n"))
        text = f"try:\n  f()\nfinally:\n{inner}"
    assert len(build(ast.parse(text)).all) < 1000


def test_a_manager_may_suppress_what_its_block_raises() -> None:
    code = ast.parse("with a:\n  raise b\nc()")
    assert build(code).is_reachable(code.body[1])
    assert not build(code, swallows=lambda _: False).is_reachable(code.body[1])


def test_calls_that_end_lead_where_exceptions_do() -> None:
    code = ast.parse("try:\n  stop()\n  a()\nfinally:\n  b()\nc()")
    attempt, after = code.body
    assert isinstance(attempt, ast.Try)
    cfg = build(code, lambda call: isinstance(call.func, ast.Name) and call.func.id == "stop")
    assert not cfg.is_reachable(attempt.body[1])
    assert cfg.is_reachable(attempt.finalbody[0])
    assert not cfg.is_reachable(after)


def test_slotted_nodes_and_nodes_without_places_are_found() -> None:
    code = lean(ast.parse("if f(a):\n  b = 1\nc = b"))
    assert build(code).is_reachable(code.body[1])
    made: list[ast.stmt] = [ast.Expr(ast.Name("a", ast.Load())), ast.Return(None), ast.Pass()]
    cfg = build(made)
    assert [cfg.is_reachable(each) for each in made] == [True, True, False]
    assert repr(cfg.starts(made[0])[0].out[-1]) == "<3 STATEMENT> -fall-> <4 STATEMENT>"


def test_a_lambda_is_one_point() -> None:
    code = ast.parse("lambda a: a + 1", mode="eval").body
    assert isinstance(code, ast.Lambda)
    cfg = build(code)
    assert [edge.kind for edge in cfg.starts(code.body)[0].out] == [EdgeKind.RETURN, EdgeKind.RAISE]
