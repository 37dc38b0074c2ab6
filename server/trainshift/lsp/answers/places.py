"""Places: map places of a program to the client's documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from trainshift.engine.analysis import Analysis
from trainshift.engine.conversion import Conversion, Note
from trainshift.engine.own_codes import UNSUPPORTED_VERSION
from trainshift.lsp.scheduler import Outdated, State
from trainshift.lsp.text.documents import Paper, Part
from trainshift.lsp.transport.uris import uri_of
from trainshift.python.source.edit import Edit
from trainshift.python.source.source import BOM, Span

_LINE_END = re.compile("\r\n?")
Text = Callable[[str], str | None]
"""Gives what a file that is not open holds on the disk; None if it cannot be read."""


class Changed(Outdated):
    """A file of the program has changed; `path` is its path."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class Places:
    """The documents of a program: the open ones, and those that the client would open."""

    def __init__(self, state: State, opened: Mapping[str, Part]) -> None:
        """Take the open documents by path, `opened`."""
        whole = state.outline.whole if state.outline is not None else None
        self.sources = whole.sources if whole is not None else {}
        self.paper: Paper | None = state.paper if len(self.sources) <= 1 else None
        """The document, where it is all."""
        self._broken = state.paper if state.is_broken else None
        self._path = state.outline.path if state.outline is not None else ""
        self._cells = state.paper if state.paper.is_notebook else None
        self._whole = whole
        self._analysis: Analysis | None = whole.analysis if whole is not None else None
        self._opened = opened
        encoding = state.paper.parts[0].encoding if state.paper.parts else ""
        # Editors strip a byte order mark from the text.
        self._parts = {
            path: opened.get(path) or Part(uri_of(path), None, source.text, encoding)
            for path, source in self.sources.items()
            if self.paper is None and (self._cells is None or path != self._path)
        }

    def confirm(self, text_of: Text) -> None:
        """Raise `Changed` if a file has changed since the program was analysed."""
        for path, part in self._parts.items():
            known = self.sources[path].text
            text = part.text if path in self._opened else text_of(path)
            if text is None or text.removeprefix(BOM) != known:
                raise Changed(path)

    def home(self, edit: Edit) -> tuple[Part, Edit]:
        """The document of an edit, and the edit with the document's offsets."""
        if self.paper is not None:
            return self.paper.home(edit)
        if self._analysis is None:
            raise Outdated
        script, start = self._analysis.file_at(edit.start)
        inside = edit.moved(start - edit.start)
        if self._cells is not None and script.path == self._path:
            return self._cells.home(inside)
        if script.path not in self._opened:
            # The editor handles the line endings of a file: Emacs would write the carriage return twice.
            inside = replace(inside, text=_LINE_END.sub("\n", edit.text))
        return self._parts[script.path], inside

    @property
    def names(self) -> dict[str, str]:
        """The names of the documents by URI, if there are several."""
        cells = self._cells.parts if self._cells is not None and self._parts else ()
        return {
            **{part.uri: self._name_of(self._path) for part in cells},
            **{part.uri: self._name_of(path) for path, part in self._parts.items()},
        }

    def _name_of(self, path: str) -> str:
        return self._whole.name_of(path) if self._whole is not None else ""

    @property
    def _start(self) -> str:
        return next(iter(self.sources), "")

    def part(self, path: str) -> Part:
        """The document of a file, "" for the start file of the program; of a notebook, its first cell."""
        path = path or self._start
        cells = self._paper_of(path)
        return cells.parts[0] if cells is not None else self._parts[path]

    def _paper_of(self, path: str) -> Paper | None:
        """The document if it is all, or the notebook at `path` if it is that."""
        return self.paper or (self._cells if path == self._path else None)

    def told(self, note: Note) -> dict[str, Any]:
        """A note with its line and column in its document, from 1."""
        return self._told(note, self._paper_of(note.path or self._start))

    def at(self, conversion: Conversion) -> dict[str, Any] | None:
        """The place of a conversion's obstacle, as a note; None if it has none."""
        runtime = self._whole.runtime if self._whole is not None else None
        if conversion.code == UNSUPPORTED_VERSION.code and runtime is not None:
            asks = f"asks for {runtime.asks}"
            return {**_plain(Note(conversion.code, runtime.line, 1, asks)), "uri": uri_of(runtime.path)}
        if conversion.position is None:
            return None
        note = Note(conversion.code, *conversion.position, conversion.reason, path=conversion.path)
        # There is no analysis of a text that does not parse.
        path = note.path or self._start
        paper = self._broken or self._paper_of(path)
        if paper is None and path not in self.sources:
            return {**_plain(note), "uri": uri_of(path)}
        return self._told(note, paper)

    def _told(self, note: Note, paper: Paper | None) -> dict[str, Any]:
        """A note on a document, or on a file of the program that is not open."""
        source = paper.source if paper is not None else self.sources[note.path or self._start]
        offset = source.line_starts[note.line - 1] + note.column - 1
        part = paper.part_at(offset) if paper is not None else self.part(note.path)
        (line, character), _ = part.places(Span(offset, offset))
        return {**_plain(note), "uri": part.uri, "line": line + 1, "column": character + 1}

    def reason(self, conversion: Conversion) -> str:
        """Return the reason why nothing is changed, with the place if that is in another document."""
        path = conversion.path or self._start
        if path == self._path or (conversion.position is None and not conversion.path):
            return conversion.reason
        line = f", line {conversion.position[0]}" if conversion.position is not None else ""
        return f"{self._name_of(path)}{line}: {conversion.reason}"


def _plain(note: Note) -> dict[str, Any]:
    told = {"rule": note.rule, "line": note.line, "column": note.column, "text": note.text}
    return {**told, "optional": True} if note.optional else told
