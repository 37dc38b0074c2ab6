"""Exits: the possible completions of a block of statements, by its syntax alone.

This module answers "does control leave here?".  `completions` is the set of *possible* completions: a missing
one never happens.  It needs no graph, only one walk through the block.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import Enum
from typing import Final

from trainshift.python.flow.must_run_may_raise import (
    Ends,
    Swallows,
    block_may_fail,
    catches_all,
    heads,
    is_irrefutable,
    may_swallow,
    never_ends,
    outcome,
    surely_ends,
)


class Completion(Enum):
    """A way in which statements complete."""

    FALL = "control goes on behind them"
    BREAK = "a `break` of a loop around them"
    CONTINUE = "a `continue` of a loop around them"
    RETURN = "a `return`"
    RAISE = "a `raise`; what an operation or an `assert` may raise is not counted"
    END = "a call that never returns, or `raise SystemExit`"


Completions = frozenset[Completion]
FALL: Final = Completion.FALL
BREAK: Final = Completion.BREAK
CONTINUE: Final = Completion.CONTINUE
RETURN: Final = Completion.RETURN
RAISE: Final = Completion.RAISE
END: Final = Completion.END

_NONE: Completions = frozenset()
_FALLS: Completions = frozenset({FALL})
_ENDS: Completions = frozenset({END})
_OF_LOOP: Completions = frozenset({FALL, BREAK, CONTINUE})


def completions(
    block: Sequence[ast.stmt], ends: Ends = never_ends, swallows: Swallows = may_swallow
) -> Completions:
    """Return the ways in which a block may complete.

    `ends` returns whether a call never returns, and `swallows` whether a context manager may suppress
    exceptions: then control may continue after the `with` whenever an operation in its block may fail.  A
    block that never completes (`while True: pass`) has none.
    """
    return _Exits(ends, swallows).of_block(block)


def leaves(
    code: ast.stmt | Sequence[ast.stmt], ends: Ends = never_ends, swallows: Swallows = may_swallow
) -> bool:
    """Return whether the code after a statement or a block never runs after it."""
    block = [code] if isinstance(code, ast.stmt) else code
    return FALL not in completions(block, ends, swallows)


class _Exits:
    def __init__(self, ends: Ends, swallows: Swallows) -> None:
        self._ends = ends
        self._swallows = swallows

    def of_block(self, block: Sequence[ast.stmt]) -> Completions:
        found = _NONE
        for statement in block:
            own = self._of(statement)
            found |= own
            if FALL not in own:
                return found - _FALLS
        return found | _FALLS

    def _of(self, statement: ast.stmt) -> Completions:
        if surely_ends(self._ends, *_first_evaluated(statement)):
            return _ENDS
        match statement:
            case ast.Return():
                return frozenset({RETURN})
            case ast.Raise(exc=ast.Name(id="SystemExit") | ast.Call(func=ast.Name(id="SystemExit"))):
                return _ENDS
            case ast.Raise():
                return frozenset({RAISE})
            case ast.Break():
                return frozenset({BREAK})
            case ast.Continue():
                return frozenset({CONTINUE})
            case ast.If():
                return self._of_if(statement)
            case ast.While() | ast.For() | ast.AsyncFor():
                return self._of_loop(statement)
            case ast.With() | ast.AsyncWith():
                return self._of_with(statement)
            case ast.Match():
                return self._of_match(statement)
        if (body := getattr(statement, "finalbody", None)) is not None:
            return self._of_try(statement, body)
        return _FALLS

    def _of_if(self, node: ast.If) -> Completions:
        known = outcome(node.test)
        body = _NONE if known is False else self.of_block(node.body)
        return body if known is True else body | self.of_block(node.orelse)

    def _of_loop(self, node: ast.While | ast.For | ast.AsyncFor) -> Completions:
        known = outcome(node.test) if isinstance(node, ast.While) else None
        body = _NONE if known is False else self.of_block(node.body)
        found = body - _OF_LOOP
        if BREAK in body:
            found |= _FALLS
        return found if known is True else found | self.of_block(node.orelse)

    def _of_with(self, node: ast.With | ast.AsyncWith) -> Completions:
        found = self.of_block(node.body)
        may_fail = block_may_fail(node.body)
        for item in reversed(node.items):
            if may_fail and self._swallows(item):
                found |= _FALLS
            may_fail = True  # a manager is entered inside the managers before it
        return found

    def _of_match(self, node: ast.Match) -> Completions:
        found = _NONE
        for case in node.cases:
            if case.guard is not None and surely_ends(self._ends, case.guard):
                found |= _ENDS
            else:
                found |= self.of_block(case.body)
            if is_irrefutable(case):
                return found
        return found | _FALLS

    def _of_try(self, node: ast.stmt, final: list[ast.stmt]) -> Completions:
        body: list[ast.stmt] = getattr(node, "body")  # noqa: B009  (`ast.TryStar` is not in every Python)
        handlers: list[ast.ExceptHandler] = getattr(node, "handlers")  # noqa: B009
        found = self.of_block(body)
        falls = FALL in found
        if any(catches_all(each) for each in handlers):
            found -= {RAISE}
        if falls:
            found = (found - _FALLS) | self.of_block(getattr(node, "orelse"))  # noqa: B009
        if block_may_fail(body):
            for handler in handlers:
                found |= self.of_block(handler.body)
        last = self.of_block(final)
        return found | (last - _FALLS) if FALL in last else last


def _first_evaluated(statement: ast.stmt) -> list[ast.AST]:
    """Return the nodes that a statement certainly evaluates before any of its blocks."""
    match statement:
        case ast.For() | ast.AsyncFor():
            return [statement.iter]
        case ast.With() | ast.AsyncWith():
            return []  # a manager before it may suppress its exceptions
        case ast.ClassDef():
            return [*statement.decorator_list, *statement.bases, *statement.keywords]
    return heads(statement)
