"""Import effects: the files of a program that touch a device, or read rank or size, on import.

Horovod's set-up must come before the import of such a file (spec.md 7.2).
"""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.libraries.entries import fact
from trainshift.python.names.script import Script
from trainshift.python.names.values import Class, Function, Library, UserInstance
from trainshift.python.syntax.chunk_syntax import Site, Statement, behind_main_guard


class ImportEffects:
    """The effects of importing the files of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[Script, bool] = {}

    def touch(self, script: Script) -> bool:
        """Return whether importing a file may use a device, itself or through its own imports."""
        if script not in self._known:
            self._known[script] = False  # Asked again while it is being answered: a cycle of imports.
            others = (other for binding in script.imports for other in script.run_by_import(binding))
            self._known[script] = any(map(self._touches, _at_import(script))) or any(map(self.touch, others))
        return self._known[script]

    def _touches(self, site: Site) -> bool:
        names = self._program.names
        for value in names.callee(site):
            if isinstance(value, Library):
                quiet = bool(fact(value.name, "deviceless")) or value.name in _DEFINING
                if value.name.startswith(("tensorflow.", "keras.")) and not quiet:
                    return True
            elif isinstance(value, Function | Class | UserInstance):
                home = self._program.script.home(value.scope)
                roots = {binding.full_name.partition(".")[0] for binding in home.imports}
                if not roots.isdisjoint({"tensorflow", "keras"}):
                    return True
        return False


# TensorFlow names used in the definitions of functions and classes.
_DEFINING = frozenset(
    {
        "tensorflow.function", "tensorflow.TensorSpec", "tensorflow.autograph.experimental.do_not_convert",
        "tensorflow.keras.utils.register_keras_serializable",
        "tensorflow.keras.saving.register_keras_serializable",
    }
)  # fmt: skip


def _at_import(script: Script) -> list[Site]:
    """The calls that a file makes when it is imported."""
    return [
        site
        for site in script.sites
        if site.scope.function() is None and not behind_main_guard(site.statement)
    ]


def imports_package(statement: Statement, package: str) -> bool:
    """Return whether the statement is an import of the package or from it."""
    node = statement.node
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] == package for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == package


def is_import(statement: Statement) -> bool:
    """Return whether the statement is an import, or a test or `try` around one."""
    if isinstance(statement.node, ast.Import | ast.ImportFrom):
        return True
    return isinstance(statement.node, ast.If | ast.Try) and any(
        is_import(each) for block in statement.branches.values() for each in block
    )
