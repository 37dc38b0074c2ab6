"""Make the loops of a script ask, before each iteration, whether the training is over.

A loop that has taken steps then ends as if it had no more iterations, so that the code after it is observed
too. The files stay unchanged: the question is compiled in. Code that AutoGraph reads is not touched.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import runpy
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import wraps
from importlib.machinery import SourceFileLoader
from operator import length_hint
from typing import Any

from trainshift.proving.observed.stopping import Stopping

TURNS, GOES_ON, TURN = "__trainshift_turns__", "__trainshift_goes_on__", "__trainshift_turn__"


class Loops:
    """The questions of the loops in the files below some folders."""

    def __init__(self, stopping: Stopping, roots: Sequence[str]) -> None:
        self.stopping = stopping
        self.roots = tuple(roots)
        self.begun: dict[int, int] = {}
        for name, function in ((TURNS, self.turns), (GOES_ON, self.goes_on), (TURN, self.turn)):
            setattr(builtins, name, function)
        self.hook_compiling()

    def is_over(self, begun: int) -> bool:
        """Return whether a loop must end whose iteration began at this boundary, and took a step."""
        stopping = self.stopping
        return stopping.told and stopping.trained > begun and stopping.thread == threading.get_ident()

    def turns(self, iterable: Iterable[Any]) -> Iterator[Any]:
        """Yield the elements of a `for`, until the training is over."""
        for each in iterable:
            begun = self.stopping.trained
            yield each
            if self.is_over(begun):
                self.stopping.turns.append(length_hint(iterable, -1))
                return

    def goes_on(self, loop: int) -> bool:
        """Return whether a `while` may look at its condition."""
        begun = self.begun.pop(loop, None)
        return begun is None or not self.is_over(begun)

    def turn(self, loop: int) -> None:
        """Record that an iteration of a `while` begins."""
        self.begun[loop] = self.stopping.trained

    def hook_compiling(self) -> None:
        """Insert the question when the script or its imports are compiled."""
        loader: Any = SourceFileLoader
        runner: Any = runpy
        original = loader.source_to_code

        @wraps(original)
        def source_to_code(this: Any, data: Any, path: Any, **options: Any) -> Any:
            return original(this, self.asking(data, path), path, **options)

        def compiled(source: Any, filename: Any, *args: Any, **kwargs: Any) -> Any:
            return compile(self.asking(source, filename), filename, *args, **kwargs)

        loader.source_to_code, runner.compile = source_to_code, compiled

    def asking(self, source: Any, path: Any) -> Any:
        """The source with the question inserted into its loops, if it belongs to the script."""
        if not str(path).startswith(self.roots):
            return source
        return ast.fix_missing_locations(Asking().visit(ast.parse(source, str(path))))


class Asking(ast.NodeTransformer):
    """Insert the question into all loops of a module."""

    numbers = itertools.count()

    def visit_For(self, node: ast.For) -> ast.For:
        """Wrap the iterable of a loop."""
        self.generic_visit(node)
        node.iter = called(node.iter, TURNS, node.iter)
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        """Extend the condition of a loop, and record each iteration."""
        self.generic_visit(node)
        number = ast.Constant(next(self.numbers))
        node.test = ast.copy_location(
            ast.BoolOp(ast.And(), [called(node.test, GOES_ON, number), node.test]), node.test
        )
        node.body.insert(0, ast.copy_location(ast.Expr(called(node.test, TURN, number)), node.test))
        return node


def called(at: ast.expr, name: str, argument: ast.expr) -> ast.Call:
    """The call of a function, at the place of an expression."""
    function = ast.copy_location(ast.Name(name, ast.Load()), at)
    return ast.copy_location(ast.Call(function, [argument], []), at)
