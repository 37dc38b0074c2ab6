"""Documents: the client's exact texts by version, and the document of each part of a program.

A plain document is one part.  A notebook is several: its Python cells are one program, in order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from trainshift.engine.cells import Cells
from trainshift.lsp.text.positions import Place, Positions, joined, replaced
from trainshift.python.lazy import cached_property
from trainshift.python.source.edit import Edit
from trainshift.python.source.source import BOM, Source, Span


class Change(Struct, frozen=True):
    """A change of a document: the text between two positions, or all of it if they are None."""

    text: str
    first: Place | None = None
    last: Place | None = None


class Within(NamedTuple):
    """The text of a file around a part, and a function from the part's offsets to those in it."""

    source: Source
    offset_of: Callable[[int], int]


class Part(Struct, frozen=True, dict=True):
    """A document of the client: its exact text, and its offset in the program.

    `hidden` are the code points at its start that the program leaves out (a byte order mark).  A cell of a
    notebook that is not open has its places `within` the notebook's file.
    """

    uri: str
    version: int | None
    text: str
    encoding: str
    start: int = 0
    hidden: int = 0
    within: Within | None = None

    @cached_property
    def source(self) -> Source:
        """The text with its lines."""
        return Source(self.text)

    @cached_property
    def positions(self) -> Positions:
        """The positions of the text, or of the file that contains it."""
        return Positions(self.within.source if self.within is not None else self.source, self.encoding)

    @property
    def end(self) -> int:
        """The end of the part in the program."""
        return self.start + len(self.text) - self.hidden

    def places(self, span: Span) -> tuple[Place, Place]:
        """The positions of a span of the program, clipped to this part."""
        start, end, hidden = self.start, self.end, self.hidden - self.start
        return (
            self._place(min(max(span.start, start), end) + hidden),
            self._place(min(max(span.end, start), end) + hidden),
        )

    def _place(self, at: int) -> Place:
        return self.positions.place(self.within.offset_of(at) if self.within is not None else at)

    def offset(self, place: Place) -> int:
        """The offset in the program of a position in this part."""
        return self.start + max(self.positions.offset(place) - self.hidden, 0)

    def changed(self, version: int | None, changes: Iterable[Change]) -> Part:
        """The part after changes, applied one after another."""
        source = self.source
        for change in changes:
            if change.first is None or change.last is None:
                source = Source(joined(change.text))
            else:
                source = replaced(source, change.first, change.last, change.text, self.encoding)
        part = plain(self.uri, version, source.text, self.encoding)
        vars(part)["source"] = source
        return part


def plain(uri: str, version: int | None, text: str, encoding: str) -> Part:
    """A document without others."""
    return Part(uri, version, text, encoding, hidden=len(BOM) if text.startswith(BOM) else 0)


class Paper(Struct, frozen=True, dict=True):
    """One version of a program: its text, and its documents, one for each of its `cells`.

    `path` is the absolute path of a notebook, "" if it has no file.
    """

    text: str
    parts: tuple[Part, ...]
    cells: Cells | None = None
    path: str = ""

    @property
    def is_notebook(self) -> bool:
        """Return whether the documents are cells."""
        return self.cells is not None

    @cached_property
    def source(self) -> Source:
        """The program's text with its lines."""
        first = self.parts[0] if self.parts else None
        return first.source if first is not None and first.text is self.text else Source(self.text)

    @cached_property
    def version(self) -> int | str | None:
        """The version of the document, or a combination of those of all cells."""
        if not self.is_notebook:
            return self.parts[0].version
        from hashlib import sha1

        versions = repr([(part.uri, part.version) for part in self.parts])
        return sha1(versions.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()

    def part_at(self, offset: int) -> Part:
        """The part at an offset, its end included."""
        if len(self.parts) == 1:
            return self.parts[0]
        starts = [part.start for part in self.parts]
        return self.parts[max(bisect_right(starts, offset) - 1, 0)]

    def home(self, edit: Edit) -> tuple[Part, Edit]:
        """The part of an edit, and the edit with the part's offsets."""
        if self.cells is None:
            return self.parts[0], edit
        index, inside = self.cells.home(edit)
        part = self.parts[index]
        return part, inside.moved(part.start)

    def part_of(self, uri: str) -> Part | None:
        """The part for a document."""
        return next((part for part in self.parts if part.uri == uri), None)


def paper_of(part: Part) -> Paper:
    """The program of a plain document."""
    return Paper(part.text[part.hidden :] if part.hidden else part.text, (part,))


def notebook_paper(documents: Sequence[Part], path: str) -> Paper:
    """The program that consists of the Python cells of the notebook at `path`."""
    cells = Cells(tuple(each.text for each in documents))
    parts = (
        Part(each.uri, each.version, each.text, each.encoding, start)
        for each, start in zip(documents, cells.starts, strict=True)
    )
    return Paper(cells.text, tuple(parts), cells, path)
