"""The workspace: the scripts linked to one script by imports, found and read on demand.

Modules are searched like Python would if the script were run from its own directory or from one above it, up
to the workspace's root: relative imports, packages with and without an ``__init__.py``, ``src/`` layouts, the
script's additions to `sys.path`, the PYTHONPATH of a `.env`, and finally beside the importing file.  A module
that is not found is unknown; cycles are harmless.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import Protocol, TypeVar

from trainshift.libraries.roles import NOT_IN_WORKSPACES
from trainshift.python.lazy import cached_property
from trainshift.python.names.linked import LinkedScript
from trainshift.python.names.memo import Memo
from trainshift.python.names.reachability import Reachability, idle_scopes, only_imports
from trainshift.python.names.script import Script, all_run
from trainshift.python.names.search_path import search_path
from trainshift.python.syntax.chunk_syntax import Binding, ChunkSyntax, Scope, for_type_checkers
from trainshift.python.syntax.code import Code, Runs

T = TypeVar("T")
# At most this many files are read for one script, unless its program is to be converted.
MOST_FILES = 100
MOST_CONVERTED = 400
# The number of questions about names that are answered for one script (more for a long one); the rest is
# unknown.
_MOST_ANSWERS = 40_000
# The number of directories above a script's own in which its imports are searched.
_MOST_LEVELS = 8


class Files(Protocol):
    """The files that scripts may import from; paths are absolute, with ``/`` between their parts."""

    def read(self, path: str) -> Code | None:
        """The parsed file; None if it does not exist or is not Python."""

    def has_file(self, path: str) -> bool:
        """Return whether there is such a file."""

    def has_modules(self, path: str) -> bool:
        """Return whether there is such a directory with Python files right in it."""

    def is_root(self, directory: str) -> bool:
        """Return whether modules are not looked for above `directory`."""

    def may_be_imported(self, path: str) -> bool:
        """Return whether another file of the project may import the one at `path`."""

    def python_path(self, directory: str) -> list[str]:
        """The directories in the PYTHONPATH of the `.env` in or above `directory`."""

    def once(self, question: Hashable, find: Callable[[], T]) -> T:
        """Return the result of `find`, cached for each `question` about the same files."""


class _Rewritten:
    """Files, some with a different text."""

    def __init__(self, files: Files, codes: Mapping[str, Code]) -> None:
        self._codes = codes
        self._files = files
        self.has_file, self.has_modules = files.has_file, files.has_modules
        self.is_root, self.may_be_imported = files.is_root, files.may_be_imported
        self.python_path, self.once = files.python_path, files.once

    def read(self, path: str) -> Code | None:
        """The file after the rewrite."""
        return self._codes.get(path) or self._files.read(path)


class Workspace:
    """The files around one script, the `root`, which is read with the names of all of them linked."""

    def __init__(self, files: Files, path: str, code: Code, most: int = MOST_FILES) -> None:
        self.memo = Memo(_MOST_ANSWERS + len(code.source.text))
        self._most = most
        self.left_out: dict[str, None] = {}
        """The files that are imported and could not be read, or were not since there are too many."""
        self._files = files
        self._scripts: dict[str, Script | None] = {}
        self._homes: dict[int, Script] = {}
        self._modules: dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self.root = Script(code, self, path)
        self._add(path, self.root)

    def rewritten(self, codes: Mapping[str, Code]) -> Workspace:
        """The workspace as if the files at some paths, including the root, had these texts."""
        path = self.root.path
        return Workspace(_Rewritten(self._files, codes), path, codes[path], self._most)

    @property
    def scripts(self) -> list[Script]:
        """The scripts read so far."""
        return [script for script in self._scripts.values() if script is not None]

    @property
    def paths(self) -> frozenset[str]:
        """The files examined so far, including those that are not Python."""
        return frozenset(self._scripts)

    @cached_property
    def reachable(self) -> list[Script]:
        """The root, and every script that it imports, directly or indirectly, nearest first."""
        found, seen = [self.root], {self.root.path}
        for script in found:
            for path in self.imported_by(script):
                if path not in seen:
                    seen.add(path)
                    other = self.script(path)
                    found += [other] if other is not None else []
        return found

    @cached_property
    def running(self) -> list[Script]:
        """The `reachable` scripts except those of which nothing runs but imports: no call, no value."""
        runs = self.runs
        if runs is all_run:
            return self.reachable
        return [each for each in self.reachable if each is self.root or not only_imports(each, runs)]

    @cached_property
    def runs(self) -> Runs:
        """The test of whether code in a scope, at a statement if given, may run where the root is started."""
        others = self.reachable[1:]
        if not others:
            return all_run
        # An answer rests on the texts of all files, and stays right when one of them changes later.
        texts = tuple((each.path, each.source.text) for each in self.reachable)
        known = self._shared(("idle", texts), self._idle)
        idle = {
            scope for each in others for number, scope in _scopes(each) if number in known.get(each.path, ())
        }
        return Reachability(self.root, idle).runs

    def _idle(self) -> dict[str, set[int]]:
        """The numbers of the scopes in each file that do not run."""
        # Names are resolved apart for it: here, questions may be open that need this answer.
        apart = self.rewritten({each.path: each.code for each in self.reachable})
        vars(apart)["runs"] = all_run
        try:
            idle = idle_scopes(apart.reachable)
            found = {
                each.path: {number for number, scope in _scopes(each) if scope in idle}
                for each in apart.reachable
            }
        finally:
            apart.forget()
        return {path: numbers for path, numbers in found.items() if numbers}

    def _shared(self, question: tuple[Hashable, ...], find: Callable[[], T]) -> T:
        """The result of `find`, which other workspaces share that look for modules in the same places."""
        return self._files.once((*question, self._first_places), find) if self._root_is_on_disk else find()

    def forget(self) -> None:
        """Free at once all that is known of names; the workspace must not be used afterwards."""
        for each in (*(script.names for script in self.scripts), self):
            vars(each).clear()

    def imported_by(self, script: LinkedScript) -> Iterator[str]:
        """The files that a script imports from, including a name that is a module of a package."""
        directory = posixpath.dirname(script.path)
        names = tuple(name for facts in script.facts for name in facts.once(_imported_names))

        def find() -> tuple[str, ...]:
            return tuple(
                dict.fromkeys(path for name in names for path in self._python_files(directory, name))
            )

        return iter(self._shared(("imported", directory, names), find) if names else ())

    def imported_in(self, script: LinkedScript, facts: ChunkSyntax) -> Iterator[str]:
        """Yield the files that the imports in one chunk of a script run, as by `run_by_import`."""
        names = facts.once(_imported_names)
        directory = posixpath.dirname(script.path) if names else ""
        for name in names:
            yield from self._python_files(directory, name)

    def run_by_import(self, script: LinkedScript, binding: Binding) -> Iterator[str]:
        """Yield the files that one import runs: packages first, then the module; none for type checkers."""
        name = _imported_name(binding)
        return iter(self._python_files(posixpath.dirname(script.path), name) if name else ())

    def _python_files(self, directory: str, full_name: str) -> tuple[str, ...]:
        """The files that a dotted name in a file of a directory leads through."""
        return tuple(path for path in self._trail(directory, full_name)[0] if path.endswith(".py"))

    def script(self, path: str) -> Script | None:
        """The script at `path`; None for a directory, a missing file or one that is not Python."""
        if path not in self._scripts:
            read = self._files.read(path) if len(self._scripts) < self._most else None
            if read is None:
                self._scripts[path] = None
                if path.endswith(".py"):
                    self.left_out[path] = None
            else:
                self._add(path, Script(read, self, path))
        return self._scripts[path]

    def _add(self, path: str, script: Script) -> None:
        self._scripts[path] = script
        for facts in script.facts:
            self._homes[id(facts)] = script

    @cached_property
    def root_may_be_imported(self) -> bool:
        """Return whether another file may import names from the root, so that none of them may be removed."""
        return self._files.may_be_imported(self.root.path)

    def home(self, scope: Scope) -> Script:
        """The script of a scope."""
        return self._homes[id(scope.facts)]

    def locate(self, script: LinkedScript, full_name: str) -> tuple[str, tuple[str, ...]]:
        """The file (or directory) to which a dotted name of an import leads, and the remaining names.

        An empty path if the module is not in the workspace.  Leading dots are relative to the script.
        """
        trail, names = self._trail(posixpath.dirname(script.path), full_name)
        return (trail[-1], names) if trail else ("", ())

    def _trail(self, directory: str, full_name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The packages and the module that a dotted name in a file of a directory leads through, and the
        remaining names.
        """
        key = (directory, full_name)
        if key not in self._modules:
            self._modules[key] = self._shared(("module", *key), partial(self._find, *key))
        return self._modules[key]

    @cached_property
    def _root_is_on_disk(self) -> bool:
        return self._files.has_file(self.root.path)

    def _find(self, directory: str, full_name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        name = full_name.lstrip(".")
        level = len(full_name) - len(name)
        parts = [part for part in name.split(".") if part]
        if level:
            for _ in range(level - 1):
                directory = posixpath.dirname(directory)
            package = posixpath.join(directory, "__init__.py")
            return self._follow(package if self._has_file(package) else directory, parts)
        if not parts or parts[0] in NOT_IN_WORKSPACES:
            return (), ()
        for place in dict.fromkeys((*self._first_places, *self._places(directory))):
            path = self.below(place, parts[0])
            if path:
                return self._follow(path, parts[1:])
        return (), ()

    def _follow(self, path: str, parts: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        trail = [path]
        for index, part in enumerate(parts):
            below = self.below(trail[-1], part)
            if not below:
                return tuple(trail), tuple(parts[index:])
            trail.append(below)
        return tuple(trail), ()

    def _has_file(self, path: str) -> bool:
        return self._scripts.get(path) is not None or self._files.has_file(path)

    def below(self, path: str, name: str) -> str:
        """The module `name` of the package at `path` (a directory or its ``__init__.py``); "" if none."""
        if posixpath.basename(path) == "__init__.py":
            path = posixpath.dirname(path)
        elif path.endswith(".py"):
            return ""
        inside = posixpath.join(path, name)
        for file in (posixpath.join(inside, "__init__.py"), f"{inside}.py"):
            if self._has_file(file):
                return file
        return inside if self._files.has_modules(inside) else ""

    @cached_property
    def _first_places(self) -> tuple[str, ...]:
        """The directories that Python searches first for any import: the root's, its parent, and `sys.path`.

        A root with relative imports is run as a module, and then Python does not search beside it.
        """
        own, *above = places = [*self._places(posixpath.dirname(self.root.path))]
        is_module = any(binding.full_name.startswith(".") for binding in self.root.imports)
        found, end = [*above] if is_module else [own], list[str]()
        behind = [own] if is_module else above
        for directory, index in search_path(self.root.code, self.root.path):
            # Python's working directory is unknown: the root's, or one above it.
            added = [posixpath.normpath(posixpath.join(each, directory)) for each in places]
            if index is None:
                end += added
            else:
                found[index:index] = added
        return *found, *behind, *self._files.python_path(posixpath.dirname(self.root.path)), *end

    def _places(self, directory: str) -> Iterator[str]:
        for _ in range(_MOST_LEVELS):
            yield directory
            yield posixpath.join(directory, "src")
            above = posixpath.dirname(directory)
            if above == directory or self._files.is_root(directory):
                return
            directory = above


def _scopes(script: Script) -> Iterator[tuple[int, Scope]]:
    return enumerate(scope for facts in script.facts for scope in facts.scopes)


def _imported_names(facts: ChunkSyntax) -> list[str]:
    """The dotted names that the imports of a chunk run."""
    return list(dict.fromkeys(filter(None, map(_imported_name, facts.imports))))


def _imported_name(binding: Binding) -> str:
    """The dotted name that an import runs; "" for type checkers."""
    if binding.statement is None or for_type_checkers(binding.statement):
        return ""
    # `import a.b` binds `a`, and runs the file of `a.b` too.
    full = getattr(binding.target, "name", "")
    return full if full.startswith(f"{binding.full_name}.") else binding.full_name
