"""Loops of a script end as if there were no more iterations, once their training is over."""

from __future__ import annotations

import ast
import builtins
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from trainshift.proving.observed import loops
from trainshift.proving.observed.loops import Asking, Loops

SCRIPT = """
def train(log):
    for epoch in range(9):
        at = 0
        while at < 9:
            at += 1
            for _ in range(2):
                log.append("prepared")
            step()
            log.append("stepped")
        log.append("epoch")
    else:
        log.append("over")
    while True:
        if not log:
            break
        log.pop()
        step()
    for each in (1, 2):
        log.append(each)
"""


class Unhooked(Loops):
    """Handles no compiled scripts."""

    hook_compiling = lambda _: None  # noqa: E731


def test_loops_end_after_the_turn_in_which_it_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping: Any = SimpleNamespace(told=False, trained=0, turns=[], thread=threading.get_ident())
    for name in (loops.TURNS, loops.GOES_ON, loops.TURN):
        monkeypatch.setattr(builtins, name, None, raising=False)
    Unhooked(stopping, ())

    def step() -> None:
        stopping.trained += 1
        stopping.told = stopping.trained >= 3

    log: list[Any] = []
    names: dict[str, Any] = {"step": step}
    exec(compile(ast.fix_missing_locations(Asking().visit(ast.parse(SCRIPT))), "s", "exec"), names)
    names["train"](log)
    turn = ["prepared", "prepared", "stepped"]
    assert log == [*turn * 3, "epoch", 1, 2]
    assert stopping.trained == 4
    assert stopping.turns == [9]


def test_lines_stay_where_they_are() -> None:
    code = compile(ast.fix_missing_locations(Asking().visit(ast.parse(SCRIPT))), "s", "exec")
    plain = compile(SCRIPT, "s", "exec")

    def lines(of: Any) -> set[int]:
        return {line for *_, line in of.co_lines() if line}

    own, theirs = (next(each for each in of.co_consts if hasattr(each, "co_code")) for of in (code, plain))
    assert lines(own) == lines(theirs)
