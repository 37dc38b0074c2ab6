"""Legacy: the lines that a file needs for `tf_keras`, which is Keras 2 on TensorFlow 2.16 and later.

TensorFlow uses it if an environment variable is set before its import; Horovod's callbacks use the backend of
the installed Keras 3, unless they get the right one.
"""

from __future__ import annotations

import ast
import sys

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.python.source.edit import Edit
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.training.keras_version.keras_signs import FLAG, KerasSigns
from trainshift.training.keras_version.target import Target


class Legacy:
    """The set-up of one file for `tf_keras`; nothing for another Keras."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._is_meant = program.whole.fact(Target).is_legacy

    def lines(self, tf: str, hvd_keras: str | None) -> list[str]:
        """The lines below the start of Horovod; `hvd_keras` is its module for Keras, if the file has it."""
        return [f"{hvd_keras}.callbacks.K = {tf}.keras.backend"] if self._is_meant and hvd_keras else []

    def edits(self) -> list[Edit]:
        """The edits that make TensorFlow use `tf_keras`, before the first import, unless the script
        already does.
        """
        signs = self._program.whole.fact(KerasSigns)
        if not self._is_meant or signs.sets_flag or not self._program.is_started:
            return []
        top, layout = self._script.top, self._program.fact(Layout)
        first = next(filter(_may_import_tensorflow, top), top[0])
        lines = [] if any(map(_imports_os, top[: top.index(first)])) else ["import os"]
        lines.append(f'os.environ["{FLAG}"] = "1"')
        return [*layout.isolate(first), layout.before(first, lines, -20)]


def _may_import_tensorflow(statement: Statement) -> bool:
    """Return whether a statement's import may load TensorFlow: any but those of the standard library."""
    node = statement.node
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or (node.module or "").partition(".")[0] not in sys.stdlib_module_names
    if isinstance(node, ast.Import):
        return any(each.name.partition(".")[0] not in sys.stdlib_module_names for each in node.names)
    inner = [each for block in statement.branches.values() for each in block]
    return not isinstance(node, ast.FunctionDef | ast.ClassDef) and any(map(_may_import_tensorflow, inner))


def _imports_os(statement: Statement) -> bool:
    """Return whether a statement imports `os` by this name."""
    node = statement.node
    return isinstance(node, ast.Import) and any(each.name == "os" and not each.asname for each in node.names)
