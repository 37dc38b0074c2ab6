"""Path keys: identify expressions of a script that name the same file."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Hashable, Iterable, Iterator
from pathlib import PurePosixPath

from trainshift.core.libraries import path_returned
from trainshift.core.program import Program
from trainshift.python.flow.traversal import postorder, reachable
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Literal, UserInstance
from trainshift.python.syntax.chunk_syntax import last_name

# The beginning of the key of a known path; any other key is a number.
_SHOWN = "="
# What makes a part of a path a pattern.
_PATTERN = re.compile(r"[*?\[]")
# Functions that convert one kind of path to another.
_CONVERTING = ("Path", "PosixPath", "fspath", "str")
# Functions that join the parts of a path.
_JOINING = ("Path", "join", "joinpath", "str")


class PathKeys:
    """The keys of one script's paths: two expressions that share a key may name the same file."""

    def __init__(self, program: Program) -> None:
        self._names = program.names
        self._known: dict[ast.expr, str] = {}
        self._numbers: dict[Hashable, str] = {}

    def of(self, path: Occurrence) -> frozenset[str]:
        """Return the keys of a path from any source, such as callers' arguments."""
        found: set[str] = set()
        for at in reachable([path], self._sources, _place):
            found.add(self._key(at))
            if isinstance(at.node, ast.Name):
                found.add(self._of_name(at.node, at))
        return frozenset(found)

    def of_folders(self, path: Occurrence) -> frozenset[str]:
        """Return the keys of the folders above a path, which may be created or filled as a whole."""
        around: list[Occurrence] = []
        found: set[str] = set()
        for at in reachable([path], lambda at: (*self._sources(at), *_folders(at)), _place):
            around += _folders(at)
            if begins := _beginning(at.node):
                found.update(itertools.islice(above(f"{_SHOWN}{begins}*"), 1))
        found.update(key for at in around for key in self.of(at))
        for key in self.of(path):
            found.update(above(key))
        return frozenset(found)

    def of_listed(self, path: Occurrence) -> frozenset[str]:
        """Return the keys of a folder that the script shows, or of the one around a pattern:
        ``folder/*.csv``.
        """
        found = set[str]()
        for key in filter(is_shown, self.of(path)):
            parts = PurePosixPath(key.removeprefix(_SHOWN)).parts
            plain = itertools.takewhile(lambda part: not _PATTERN.search(part), parts)
            found.add(f"{_SHOWN}{PurePosixPath(*plain)}")
        return frozenset(found)

    def _sources(self, at: Occurrence) -> tuple[Occurrence, ...]:
        """Return the sources of a path behind a name or a function's result."""
        if not isinstance(at.node, ast.Name | ast.Call | ast.Subscript):
            return ()
        if (same := _same_path(at.node)) is not None:
            return (at.part(same),)
        if (given := self._handed_on(at)) is not None:
            return (at.part(given),)
        if isinstance(at.node, ast.Subscript):
            return ()
        if isinstance(at.node, ast.Call) and last_name(at.node.func) == "dirname" and at.node.args:
            return self._folders_of(at.part(at.node.args[0]))
        step = self._names.steps_back(at)
        if step is None:
            return ()
        return (*step.sources, *(each for each in step.within if self._handed_on(each) is not None))

    def _folders_of(self, path: Occurrence) -> tuple[Occurrence, ...]:
        return tuple(folder for each in reachable([path], self._sources, _place) for folder in _folders(each))

    def _handed_on(self, at: Occurrence) -> ast.expr | None:
        """Return the path that a call is given and returns, perhaps as the first of several values."""
        node = at.node.value if isinstance(at.node, ast.Subscript) else at.node
        if not isinstance(node, ast.Call):
            return None
        names = self._names.full_names(node.func, at.scope, at.statement)
        return next((each.node for name in names if (each := path_returned(name, node))), None)

    def _key(self, at: Occurrence) -> str:
        """Return the key of an expression: its text if known, otherwise its structure."""
        for part in postorder(at, self._needed):
            if part.node not in self._known:
                self._known[part.node] = self._read(part)
        return self._known[at.node]

    def _needed(self, at: Occurrence) -> Iterable[Occurrence]:
        """Return the expressions whose keys the key of `at` consists of."""
        if at.node in self._known or self._text(at) is not None:
            return ()
        return self._sources(at) or _names_in(at)

    def _read(self, at: Occurrence) -> str:
        text = self._text(at)
        if text is not None:
            return _SHOWN + text
        # A path made from itself, as in a loop, is identified by its location.
        parts = [self._known.get(part.node) or self._number(part.node) for part in self._needed(at)]
        if _same_path(at.node) is not None:
            return parts[0]
        step = self._names.steps_back(at) if self._sources(at) else None
        if step is not None and not step.unseen:
            return parts[0] if len(set(parts)) == 1 else self._number(frozenset(parts))
        if isinstance(at.node, ast.Name):
            return self._of_name(at.node, at)
        return self._number((_written(at.node), *parts))

    def _number(self, shape: Hashable) -> str:
        return self._numbers.setdefault(shape, str(len(self._numbers)))

    def _text(self, at: Occurrence) -> str | None:
        """Return the known text of a path; None if there is none or more than one."""
        values = self._names.values(at.node, at.scope, at.statement)
        shown = {value.value for value in values if isinstance(value, Literal)}
        text = shown.pop() if len(shown) == len(values) == 1 else None
        return text if isinstance(text, str) else None

    def _of_name(self, node: ast.Name, at: Occurrence) -> str:
        """Return the key of a name in its scope, or in the class of its object."""
        scope, bindings = self._names.lookup(node.id, at.scope, at.statement)
        is_parameter = {binding.kind for binding in bindings} == {"parameter"}
        owner = scope.owner() if is_parameter and scope is not None else None
        if owner is not None and any(
            isinstance(value, UserInstance) and value.node is None
            for value in self._names.values(node, at.scope, at.statement)
        ):
            return self._number(owner)
        return self._number((node.id, scope))


def is_shown(key: str) -> bool:
    """Return whether a key is a path that the script shows, rather than only an expression."""
    return key.startswith(_SHOWN)


def above(key: str) -> Iterator[str]:
    """Yield the keys of the folders above a path that the script shows, from the innermost."""
    parents = PurePosixPath(key.removeprefix(_SHOWN)).parents if is_shown(key) else ()
    yield from (f"{_SHOWN}{folder}" for folder in parents if folder != PurePosixPath())


def _beginning(node: ast.expr) -> str:
    """Return the text with which a path begins that is made of text and values; "" if there is none."""
    if isinstance(node, ast.JoinedStr):
        first = node.values[0] if node.values else None
        return str(first.value) if isinstance(first, ast.Constant) else ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
        return str(node.left.value).partition("%")[0]
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Constant(text), attr="format")):
            return str(text).partition("{")[0]
    return ""


def _same_path(node: ast.expr) -> ast.expr | None:
    """Return the text or object from which a path is made: ``Path(text)``; None for any other expression."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in _CONVERTING:
        return None
    return node.args[0] if len(node.args) == 1 and not node.keywords else None


def may_end_alike(one: ast.expr, other: ast.expr | None) -> bool:
    """Return whether two paths may end in the same text, as far as known; a path without known end may
    not.
    """
    if other is None:
        return False
    ends = _end(one), _end(other)
    return ends[0].endswith(ends[1]) or ends[1].endswith(ends[0])


def _end(node: ast.expr) -> str:
    """Return the text in which a path certainly ends; "" if it is unknown."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr) and node.values:
        return _end(node.values[-1])
    if isinstance(node, ast.BinOp):
        return _end(node.right)
    if isinstance(node, ast.Call) and node.args and last_name(node.func) in _JOINING:
        return _end(node.args[-1])
    return ""


def _place(at: Occurrence) -> int:
    return id(at.node)


def _names_in(at: Occurrence) -> list[Occurrence]:
    parts = ast.walk(at.node) if not isinstance(at.node, ast.Name) else ()
    return [at.part(part) for part in parts if isinstance(part, ast.Name)]


def _written(node: ast.expr) -> str:
    """Return the text of an expression without its names."""
    return re.sub(r"Name\(id='\w+'", "Name(", ast.dump(node))


def _folders(at: Occurrence) -> tuple[Occurrence, ...]:
    """Return the folder at the start of a path, if any: ``join(folder, name)`` or ``folder / name``."""
    node = at.node
    if isinstance(node, ast.Call) and node.args and last_name(node.func) in ("join", "str", "Path"):
        return (at.part(node.args[0]),)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
        return (at.part(node.left),)
    first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else None
    return (at.part(first.value),) if isinstance(first, ast.FormattedValue) else ()
