"""Programs: which files start the programs that a file belongs to (SPEC §7).

A start file is one that no other file imports, or that has code behind a ``__main__`` guard.  Files of tests
import what they test, and start no program.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from trainshift.core.names.script import Script
from trainshift.core.text.code import Code
from trainshift.core.text.facts import behind_main_guard
from trainshift.core.training.loop_reader import candidates
from trainshift.engine.workspace import ParsedFiles, linked

# A file is not followed upwards through more files than this.
_MOST_IMPORTERS = 200


class Programs:
    """The programs of a workspace, told by its files' imports; paths are absolute."""

    def __init__(self, files: ParsedFiles) -> None:
        self._files = files
        self._importers: dict[str, list[str]] = {}

    def importers(self, path: str) -> list[str]:
        """The files that import the one at `path` themselves, those of tests left out."""
        if path not in self._importers:
            self._importers[path] = [
                other
                for other in self._files.naming(path)
                if not is_test(other) and self._imports(other, path)
            ]
        return self._importers[path]

    def starts(self, path: str) -> list[str]:
        """The start files of the programs that train and that the file at `path` belongs to, sorted.

        The file itself where it starts one that trains, or where nothing that trains imports it.
        """
        if not self.importers(path) or (self._is_start(path) and self.may_train(path)):
            return [path]
        found: list[str] = []
        seen = [path]
        for each in seen:
            for other in self.importers(each):
                if other not in seen and len(seen) < _MOST_IMPORTERS:
                    seen.append(other)
                    if self._is_start(other):
                        found.append(other)
        return sorted(each for each in found if self.may_train(each)) or [path]

    def all(self, paths: Iterable[str]) -> list[str]:
        """The start files of all programs that some files belong to, in the order of the files."""
        return list(dict.fromkeys(start for path in paths for start in self.starts(path)))

    def reached(self, start: str) -> list[str]:
        """The files of the program that a file starts, itself first."""
        script = self._script(start)
        if script is None or script.workspace is None:
            return [start]
        return [each.path for each in script.workspace.reachable]

    def may_train(self, start: str) -> bool:
        """Whether something in the program that a file starts is called as what trains is."""
        script = self._script(start)
        return (
            script is not None
            and script.workspace is not None
            and any(candidates(each) for each in script.workspace.reachable)
        )

    def _is_start(self, path: str) -> bool:
        code = self._files.read(path)
        return code is None or _guards_code(code) or not self.importers(path)

    def _imports(self, path: str, wanted: str) -> bool:
        script = self._script(path)
        return (
            script is not None
            and script.workspace is not None
            and wanted in script.workspace.imported_by(script)
        )

    def _script(self, path: str) -> Script | None:
        code = self._files.read(path)
        return linked(code, path, self._files) if code is not None else None


def is_test(path: str) -> bool:
    """Whether a file holds tests, by its name."""
    name = posixpath.basename(path)
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"


def _guards_code(code: Code) -> bool:
    return any(
        behind_main_guard(inner)
        for statement in code.top
        for block in statement.branches.values()
        for inner in block[:1]
    )
