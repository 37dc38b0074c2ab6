"""Import effects: the files of a program that touch a device, or read rank or size, on import.

Horovod's set-up must come before the import of such a file (spec.md 7.2).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.libraries.entries import fact
from trainshift.python.names.script import Script
from trainshift.python.names.values import Class, Function, Library, UserInstance
from trainshift.python.source.edit import Change
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, behind_main_guard
from trainshift.python.values.call_chains import called_from, functions_leading_to


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


class Edited(NamedTuple):
    """The functions that some changes edit, the outermost ones, and whether they edit other code, too."""

    functions: frozenset[Scope]
    is_beside: bool


def edited_code(program: Program, changes: Iterable[Change]) -> Edited:
    """Return the code of a program that some changes edit."""
    script = program.script
    functions: set[Scope] = set()
    places = [edit.start for change in changes for edit in change.edits]
    for statement in script.statements if places else ():
        body = statement.branches.get("body", [])
        if isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef) and body:
            span, first = script.statement_span(statement), script.statement_span(body[0]).start
            start = script.source.text.rindex(":", 0, first)
            inside = [place for place in places if start < place <= span.end]
            function = body[0].scope.function()
            if inside and function is not None:
                functions.add(function)
                places = [place for place in places if place not in inside]
    return Edited(frozenset(functions), bool(places))


def runs_early(program: Program, code: Edited) -> bool:
    """Return whether edited code may run while files are imported, before Horovod is started.

    That is code outside functions, and in functions that lead back to a call outside of them in an imported
    file, or above the set-up of the started one.
    """
    script, names = program.script, program.names
    started = script.scripts[0]
    for function in functions_leading_to(code.functions, called_from(names)):
        for site in names.callers(function)[0]:
            outside = site.scope.function() is None and not behind_main_guard(site.statement)
            if outside and (script.home(site.scope) is not started or _is_above_imports(started, site)):
                return True
    return code.is_beside


def _is_above_imports(script: Script, site: Site) -> bool:
    """Return whether a call of a file comes before one of its own imports."""
    top = [*site.statement.path()][-1]
    return any(is_import(each) for each in script.top[script.top_index[top] :])


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
