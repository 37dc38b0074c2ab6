"""Leaving: where a block is left, so that what follows it is not run."""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.core.training.executions import LOOPS
from trainshift.python.syntax.chunk_syntax import Statement, last_name

_EXITS = ("sys.exit", "os._exit", "os.abort", "builtins.exit", "builtins.quit")


class Leaving:
    """Where the code of one script is left."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names

    def leaves(self, statement: Statement) -> bool:
        """Whether what follows the statement in its block never runs after it."""
        node = statement.node
        if isinstance(node, ast.Return | ast.Continue | ast.Break):
            return True
        if isinstance(node, ast.Raise):
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            return raised is not None and last_name(raised) == "SystemExit"
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return self._names.calls(self._script.site_of(node.value), *_EXITS)
        if isinstance(node, ast.If | ast.With):
            return all(block and self.leaves(block[-1]) for block in statement.branches.values())
        return False

    def after(self, statement: Statement, outer: Statement) -> bool:
        """Whether what follows `outer` in its block never runs after `statement`, which stands in it."""
        left = False
        for each in statement.path():
            if each is outer:
                return left
            left = left or self.leaves(each.block[-1])
            # What leaves a loop, or is caught, goes on behind it.
            if each.parent is not None and isinstance(each.parent.node, (*LOOPS, ast.Try)):
                left = False
        return False
