"""Programs: the start files of the programs that contain a file (spec.md 7).

A start file is one that no other file imports, or that has code under a ``__main__`` guard.  Test files
import other files, and start no program.  Nothing here needs the rules of the conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from trainshift.core.program import Program
from trainshift.engine.workspace import ParsedFiles, is_test, linked
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.script import Script, all_run
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import behind_main_guard
from trainshift.python.syntax.code import Code
from trainshift.training.loops.loop_reader import candidates


class Programs:
    """The programs of a workspace, by its files' imports; paths are absolute.

    `release` is called after each file that was read with its imports, and may free what no longer serves.
    """

    def __init__(self, files: ParsedFiles, release: Callable[[], None] = lambda: None) -> None:
        self._files = files
        self._release = release
        self._importers: dict[str, list[str]] = {}
        self._imported: dict[str, frozenset[str]] = {}
        self._may_train: dict[str, bool] = {}

    def importers(self, path: str) -> list[str]:
        """The files that directly import the one at `path`, tests excluded."""
        return [other for other in self._all_importers(path) if not is_test(other)]

    def _all_importers(self, path: str) -> list[str]:
        if path not in self._importers:
            naming = self._files.naming(path)
            self._importers[path] = [other for other in naming if path in self._imported_by(other)]
        return self._importers[path]

    def holds(self, start: str, path: str, functions: Collection[Span]) -> bool:
        """Return whether no other program runs some functions of the file at `path`.

        Whether it starts Horovod by now does not count: the result would depend on the order of conversions.
        """
        if not self._files.searches_all(path) or self._files.has_notebooks(path):
            return False
        above = reachable([path], self._all_importers)
        others = (each for each in above if each != start and not self._is_inner(each))
        return all(self._run_elsewhere(each, path).isdisjoint(functions) for each in others)

    def _run_elsewhere(self, start: str, path: str) -> frozenset[Span]:
        """The functions of the file at `path` that another start file runs."""
        return self._files.once(("run", start, path), partial(self._find_run, start, path))

    def _find_run(self, start: str, path: str) -> frozenset[Span]:
        script = self._script(start)
        workspace = script.workspace if script is not None else None
        other = workspace.script(path) if workspace is not None else None
        if script is None or workspace is None or other is None:
            return frozenset()
        program = Program(script)
        try:
            runs = workspace.runs if not workspace.left_out else all_run
            scopes = (scope for facts in other.facts for scope in facts.scopes)
            return frozenset(
                other.span(each.node, each) for each in scopes if each.node is not None and runs(each, None)
            )
        finally:
            program.forget()

    def _is_inner(self, path: str) -> bool:
        """Return whether others import a file, which starts nothing itself."""
        return bool(self._all_importers(path)) and not self._is_start(path)

    def starts(self, path: str) -> list[str]:
        """The start files of the training programs that contain the file at `path`, sorted.

        The file itself if it starts one, or if no training program imports it.
        """
        if path.endswith(".ipynb"):
            return [path]
        # Importers are searched last, because that reads the whole project.
        if (self._is_start(path) and self.may_train(path)) or not self.importers(path):
            return [path]
        return self._above(path) or [path]

    def containing(self, path: str) -> list[str]:
        """The start files of all training programs that contain the file at `path`, its own first."""
        return list(dict.fromkeys((*self.starts(path), *self._above(path))))

    def _above(self, path: str) -> list[str]:
        above = (each for each in reachable([path], self.importers) if each != path)
        return sorted(each for each in above if self._is_start(each) and self.may_train(each))

    def reached(self, start: str) -> list[str]:
        """The files of the program that a file starts, itself first."""
        script = self._script(start)
        if script is None or script.workspace is None:
            return [start]
        return [each.path for each in script.workspace.reachable]

    def may_train(self, start: str) -> bool:
        """Return whether the program that a file starts calls a function with the name of a training
        function.
        """
        if start not in self._may_train:
            self._may_train[start] = self._files.once(("may train", start), partial(self._trains, start))
        return self._may_train[start]

    def starts_training(self, path: str) -> bool:
        """Return whether the file at `path` trains, under a guard for being started."""
        code = self._files.read(path)
        return code is not None and _guards_code(code) and self.may_train(path)

    def may_share(self, path: str) -> bool:
        """Return whether a file starts a training program with files that other programs may import, too."""
        return self._is_start(path) and bool(self._imported_by(path)) and self.may_train(path)

    def _is_start(self, path: str) -> bool:
        code = self._files.read(path)
        return code is None or _guards_code(code) or not self.importers(path)

    def _imported_by(self, path: str) -> frozenset[str]:
        """The files that the one at `path` directly imports."""
        if path not in self._imported:
            self._imported[path] = self._files.once(("imported by", path), partial(self._imports, path))
        return self._imported[path]

    def _imports(self, path: str) -> frozenset[str]:
        script = self._script(path)
        if script is None or script.workspace is None:
            return frozenset()
        found = frozenset(script.workspace.imported_by(script))
        Program(script).forget()
        self._release()
        return found

    def _trains(self, start: str) -> bool:
        script = self._script(start)
        if script is None or script.workspace is None:
            return False
        found = any(candidates(each) for each in script.workspace.reachable)
        Program(script).forget()
        self._release()
        return found

    def _script(self, path: str) -> Script | None:
        code = self._files.read(path)
        return linked(code, path, self._files) if code is not None else None


def _guards_code(code: Code) -> bool:
    return any(
        behind_main_guard(inner)
        for statement in code.top
        for block in statement.branches.values()
        for inner in block[:1]
    )
