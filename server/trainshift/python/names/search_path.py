"""Search path: the directories that a script adds to `sys.path`, where Python then searches for its
imports.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable, Iterator
from typing import NamedTuple

from trainshift.python.syntax.chunk_syntax import dotted
from trainshift.python.syntax.code import Code

_ADDING = frozenset({"sys.path.append", "sys.path.insert", "sys.path.extend"})
_JOINING = frozenset({"os.path.join", "pathlib.Path", "pathlib.PurePath"})
# Functions that return their directory argument in a different spelling.
_SAME = frozenset({"os.path.abspath", "os.path.realpath", "os.path.normpath", "os.fspath", "str"})
_SAME_METHODS = frozenset({"resolve", "absolute", "as_posix", "__str__"})
_HERE = frozenset({"os.getcwd", "pathlib.Path.cwd"})
_CONSTANTS = {"os.pardir": "..", "os.curdir": ".", "os.sep": "/", "os.path.sep": "/"}


class Added(NamedTuple):
    """A directory on the search path, absolute or relative to the working directory of Python.

    It is inserted at index `at`, where index 0 has the directory of the script by default; None is the end.
    """

    directory: str
    at: int | None


def search_path(code: Code, path: str) -> list[Added]:
    """Return the directories that the code of the module at `path` adds, in its order.

    Unknown directories, and those that its functions add, are left out.
    """
    reader = _Reader(code, path)
    return [*reader.added()] if reader.knows_sys else []


class _Reader:
    def __init__(self, code: Code, path: str) -> None:
        self._code = code
        self._path = path
        self._modules = {
            binding.target.asname or binding.target.name.partition(".")[0]: binding.full_name
            for binding in code.imports
            if isinstance(binding.target, ast.alias)
        }

    @property
    def knows_sys(self) -> bool:
        """Return whether the module imports `sys`, or something of it."""
        return any(name.partition(".")[0] == "sys" for name in self._modules.values())

    def added(self) -> Iterator[Added]:
        for site in self._code.sites:
            name = self._full_name(site.node.func)
            if name not in _ADDING or site.scope.function() is not None or not site.node.args:
                continue
            is_put = name == "sys.path.insert"
            given = site.node.args[-1]
            parts = given.elts if isinstance(given, ast.List | ast.Tuple) else [given]
            for part in parts:
                directory = self._text(part, frozenset())
                if directory is not None:
                    yield Added(posixpath.normpath(directory), _index(site.node) if is_put else None)

    def _full_name(self, node: ast.expr) -> str:
        first, _, rest = dotted(node).partition(".")
        known = self._modules.get(first, first)
        return f"{known}.{rest}" if rest else known

    def _text(self, node: ast.expr, seen: frozenset[str]) -> str | None:
        """The path that an expression evaluates to; None if it is unknown."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            return self._path if node.id == "__file__" else self._bound(node.id, seen)
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
            return self._all(parts, seen, "".join)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return self._all([node.left, node.right], seen, _join)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._all([node.left, node.right], seen, "".join)
        if isinstance(node, ast.Call):
            return self._called(node, seen)
        if isinstance(node, ast.Attribute):
            if node.attr == "parent":
                return self._above(node.value, 1, seen)
            return _CONSTANTS.get(self._full_name(node))
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
            index = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if node.value.attr == "parents" and isinstance(index, int) and index >= 0:
                return self._above(node.value.value, index + 1, seen)
        return None

    def _called(self, node: ast.Call, seen: frozenset[str]) -> str | None:
        name = self._full_name(node.func)
        if name in _HERE:
            return ""
        if name == "os.path.dirname" and len(node.args) == 1:
            return self._above(node.args[0], 1, seen, is_text=True)
        if name in _JOINING:
            return self._all(node.args, seen, _join)
        if name in _SAME and len(node.args) == 1:
            return self._text(node.args[0], seen)
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "joinpath":
                return self._all([node.func.value, *node.args], seen, _join)
            if node.func.attr in _SAME_METHODS:
                return self._text(node.func.value, seen)
        return None

    def _all(
        self, nodes: list[ast.expr], seen: frozenset[str], joined: Callable[[list[str]], str]
    ) -> str | None:
        texts = [self._text(node, seen) for node in nodes]
        known = [text for text in texts if text is not None]
        return joined(known) if len(known) == len(texts) else None

    def _above(self, node: ast.expr, levels: int, seen: frozenset[str], is_text: bool = False) -> str | None:
        """The directories some levels above a path; `os.path.dirname` removes the last part of the text."""
        text = self._text(node, seen)
        if text is None:
            return None
        path = text if is_text else posixpath.normpath(text)
        for _ in range(levels):
            path = posixpath.dirname(path) if is_text or path.strip("./") else _join([path, ".."])
        return path

    def _bound(self, name: str, seen: frozenset[str]) -> str | None:
        """The path in a name that the module binds once."""
        bindings = self._code.module_bindings.get(name, [])
        if name in seen or len(bindings) != 1 or bindings[0].kind != "value" or bindings[0].path:
            return None
        value = bindings[0].value
        return self._text(value, seen | {name}) if value is not None else None


def _index(call: ast.Call) -> int | None:
    """The index at which a call of `sys.path.insert` puts a directory, if it is 0 or 1."""
    index = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
    return index if isinstance(index, int) and index in (0, 1) else None


def _join(parts: list[str]) -> str:
    return posixpath.join("", *(part.replace("\\", "/") for part in parts))
