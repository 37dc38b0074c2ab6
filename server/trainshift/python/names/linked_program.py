"""The linked program: the files of a program as one script, which rules read across files.

Its text is that of the files one after another, with a line end between them, and its statements and calls
are those that run (`Workspace.runs`).  Names keep their files: a question about code is passed on to the
names of its own file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeVar

from trainshift.python.names.script import Script
from trainshift.python.source.edit import Edit
from trainshift.python.source.source import Source
from trainshift.python.syntax.chunk_syntax import (
    AttributeBinding,
    ItemBinding,
    Scope,
)
from trainshift.python.syntax.chunks import Chunk
from trainshift.python.syntax.code import Code

T = TypeVar("T", AttributeBinding, ItemBinding)
# No file ends where the next one begins, so an offset belongs to one file.
_BETWEEN = "\n"


def joined(scripts: Sequence[Script]) -> Script:
    """Return linked scripts, the start file's first, as one script; a single one is its own joined script."""
    return LinkedProgram(scripts) if len(scripts) > 1 else scripts[0]


class LinkedProgram(Script):
    """The linked scripts of one program, the start file's first; offsets refer to the joined text."""

    def __init__(self, scripts: Sequence[Script]) -> None:
        self._scripts = tuple(scripts)
        self.starts: list[int] = []
        chunks: list[Chunk] = []
        at = 0
        for script in scripts:
            self.starts.append(at)
            chunks += [Chunk(at + each.offset, each.text, each.facts) for each in script.code.pieces]
            at += len(script.source.text) + len(_BETWEEN)
        text = _BETWEEN.join(script.source.text for script in scripts)
        first = scripts[0]
        super().__init__(Code(Source(text), chunks, first.runs), first.workspace, first.path)

    def home(self, scope: Scope) -> Script:
        """The script of the scope's file."""
        assert self.workspace is not None
        return self.workspace.home(scope)

    def text_of(self, scope: Scope) -> Script:
        """The joined script itself, for code of its files."""
        return self if id(scope.facts) in self.code.offsets else self.home(scope)

    @property
    def scripts(self) -> tuple[Script, ...]:
        """The scripts of the program."""
        return self._scripts

    @property
    def users(self) -> list[Script]:
        """The scripts of the program."""
        return list(self._scripts)

    def at(self, offset: int) -> tuple[Script, int]:
        """The script of the file at an offset of the joined text, and the offset in that file."""
        index = bisect_right(self.starts, offset) - 1
        return self._scripts[index], offset - self.starts[index]

    def start_of(self, script: Script) -> int:
        """The offset of a file's text in the joined text."""
        return self.starts[self._scripts.index(script)]

    def parts(self, edits: tuple[Edit, ...]) -> list[tuple[Script, tuple[Edit, ...]]]:
        """Split edits, in text order, by file, with the offsets of each file."""
        found: dict[Script, list[Edit]] = {script: [] for script in self._scripts}
        for edit in edits:
            script, start = self.at(edit.start)
            found[script].append(edit.moved(start - edit.start))
        return [(script, tuple(own)) for script, own in found.items()]
