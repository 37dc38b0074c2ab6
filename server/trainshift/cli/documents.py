"""Documents: the inputs of a command, scripts and notebooks alike, and the names of places in reports.

The engine knows only one text; this module maps its lines to the cells of a notebook.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from trainshift.cli.diff import unified_diff
from trainshift.engine.cells import Body, Cells, Plain, Spot
from trainshift.engine.checking import Diagnostic, Region
from trainshift.engine.conversion import Conversion, Note, whole
from trainshift.host import files
from trainshift.host.disk import absolute
from trainshift.host.files import FileProblem, SourceFile, is_notebook
from trainshift.host.notebooks import Notebook, Written, looks_like_notebook, read_notebook
from trainshift.host.walk import STANDARD_INPUT, Input
from trainshift.python.lazy import cached_property
from trainshift.python.source.edit import Change, Edit, merge
from trainshift.python.source.source import Source, Span

_SCRIPT = ".py"


class Shown(Struct, frozen=True, dict=True):
    """The text of a script as reports quote it."""

    text: str = ""

    @cached_property
    def _source(self) -> Source:
        return Source(self.text)

    def line(self, region: Region | Spot) -> str | None:
        """The first line of a region; None if it does not exist."""
        return _line(self._source, region.line)

    def edits(self, change: Change) -> Iterator[tuple[Region, str]]:
        """Yield the edits of a fix in text order: the replaced region, and the new text."""
        for edit in merge([change]).edits:
            yield Region.of(self._source, Span(edit.start, edit.end)), edit.text

    def in_file(self, region: Region) -> Region:
        """The region as lines and columns of the file itself."""
        return region

    def edits_in_file(self, change: Change) -> Iterator[tuple[Region, str]]:
        """The edits of a fix, in lines and columns of the file and in its encoding."""
        return self.edits(change)


class ShownCells(Shown, frozen=True):
    """The cells of a notebook as reports quote them, with their places in its JSON."""

    cells: Cells = Cells(())
    written: tuple[Written, ...] = ()

    def line(self, region: Region | Spot) -> str | None:
        """The first line of a region of a cell."""
        return _line(self.cells.sources[self._index(region)], region.line) if region.cell else None

    def edits(self, change: Change) -> Iterator[tuple[Region, str]]:
        """The edits of a fix, each with its region of a cell."""
        for index, edit in self._homes(change):
            where = Region.of(self.cells.sources[index], Span(edit.start, edit.end))
            yield replace(where, cell=self.cells.numbers[index]), edit.text

    def in_file(self, region: Region) -> Region:
        """The region of the JSON for a region of a cell."""
        if not region.cell:
            return region
        index = self._index(region)
        starts = self.cells.sources[index].line_starts
        offsets = (
            starts[region.line - 1] + region.column - 1,
            starts[region.end_line - 1] + region.end_column - 1,
        )
        return self._in_file(index, *offsets)

    def edits_in_file(self, change: Change) -> Iterator[tuple[Region, str]]:
        """The edits of a fix as edits of the JSON."""
        for index, edit in self._homes(change):
            yield self._in_file(index, edit.start, edit.end), json.dumps(edit.text)[1:-1]

    def _homes(self, change: Change) -> Iterator[tuple[int, Edit]]:
        return map(self.cells.home, merge([change]).edits)

    def _index(self, region: Region | Spot) -> int:
        return self.cells.numbers.index(region.cell or 0)

    def _in_file(self, index: int, start: int, end: int) -> Region:
        written = self.written[index]
        return Region(*written.place(start), *written.place(end))


class Document(Struct, frozen=True):
    """A script that was read."""

    file: SourceFile

    @property
    def body(self) -> Body:
        """The script or notebook that contains the program."""
        return Plain(self.file.text)

    @property
    def text(self) -> str:
        """The program."""
        return self.file.text

    @property
    def starts(self) -> Sequence[int]:
        """The offset of each cell in the program; none for a script."""
        return ()

    @property
    def nothing(self) -> str:
        """The message that the document has nothing to read; empty if it has."""
        return ""

    def after(self, body: Body) -> Document:
        """The document with another program."""
        return replace(self, file=replace(self.file, text=body.text))

    def converted(self, conversion: Conversion) -> tuple[Conversion, Document]:
        """The outcome of a conversion, and the document after it."""
        return conversion, self.after(Plain(conversion.text))

    def content(self, name: str) -> str:
        """The content of a file with that name; raises FileProblem if it cannot be encoded."""
        if is_notebook(name) and not is_notebook(self.file.path):
            raise FileProblem(f"is a script; name a *.py file, not {name}")
        return self.file.text

    def diff(self, after: Document) -> tuple[bytes, ...]:
        """The diffs from this document to another state of it."""
        new = self.file.encode(after.file.text)
        diff = unified_diff(self.file.data, new, self.file.path)
        return (diff,) if diff else ()

    def line_at(self, cell: int | None, line: int) -> int:
        """The program's line for `--at`; raises FileProblem if there is none."""
        if cell is not None:
            raise FileProblem("is not a notebook; give --at a LINE")
        return existing(self.text, line)

    def shown(self) -> Shown:
        """The document as reports quote it."""
        return Shown(self.text)

    def spot(self, line: int, column: int) -> Spot:
        """The name of a place in reports."""
        return Spot(line, column)

    def region(self, region: Region) -> Region:
        """The name of a region in reports."""
        return region

    def notes(self, notes: tuple[Note, ...]) -> tuple[Note, ...]:
        """Notes with the places that reports show."""
        return notes

    def diagnostics(self, found: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        """Diagnostics with the places that reports show."""
        return found


class NotebookDocument(Document, frozen=True):
    """A notebook that was read."""

    notebook: Notebook

    @property
    def body(self) -> Cells:
        """The cells."""
        return self.notebook.cells

    @property
    def text(self) -> str:
        """The program that consists of the cells."""
        return self.notebook.cells.text

    @property
    def starts(self) -> Sequence[int]:
        """The offset of each cell in the program."""
        return self.notebook.cells.starts

    @property
    def nothing(self) -> str:
        """The message that the notebook's code is not Python."""
        if not self.notebook.is_foreign:
            return ""
        listed = ", ".join(sorted(self.notebook.languages))
        return f"the language of this notebook is {listed}, not Python; it was left alone"

    def after(self, body: Body) -> Document:
        """Return the notebook with its cells replaced."""
        assert isinstance(body, Cells)
        notebook = self.notebook.after(body)
        return NotebookDocument(notebook.file, notebook)

    def converted(self, conversion: Conversion) -> tuple[Conversion, Document]:
        """The outcome of a conversion, cell by cell."""
        conversion = whole(conversion, self.notebook.cells)
        conversion = replace(conversion, reason=self.nothing or conversion.reason)
        edits = conversion.files[0].edits if conversion.plan is not None else ()
        return conversion, self.after(self.notebook.cells.edited(edits)) if edits else self

    def content(self, name: str) -> str:
        """The content: a script with the cells one after another, or a notebook."""
        return self.notebook.cells.as_script() if name.lower().endswith(_SCRIPT) else self.file.text

    def diff(self, after: Document) -> tuple[bytes, ...]:
        """The diffs of the changed cells; a cell's last line needs no line ending."""
        assert isinstance(after, NotebookDocument)
        old, new = self.notebook.cells, after.notebook.cells
        diffs = []
        for number, before, now in zip(old.numbers, old.texts, new.texts, strict=True):
            end = "" if before.endswith("\n") and now.endswith("\n") else "\n"
            pair = [f"{text}{end}".encode("utf-8", "surrogatepass") for text in (before, now)]
            diffs.append(unified_diff(pair[0], pair[1], self.file.path, f":cell {number}"))
        return tuple(filter(None, diffs))

    def line_at(self, cell: int | None, line: int) -> int:
        """The line of the program for a line of a cell."""
        cells = self.notebook.cells
        if cell is None:
            raise FileProblem("is a notebook; give --at a CELL:LINE, for example 3:12")
        if cell not in cells.numbers:
            raise FileProblem(f"has no Python code in cell {cell} (--at)")
        text = cells.sources[cells.numbers.index(cell)].text
        return cells.line(cell, existing(text, line, f" in cell {cell}"))

    def shown(self) -> Shown:
        """The cells as reports quote them."""
        return ShownCells("", self.notebook.cells, self.notebook.written)

    def spot(self, line: int, column: int) -> Spot:
        """Map a place to its cell, and the place in the cell."""
        return self.notebook.cells.spot(line, column)

    def region(self, region: Region) -> Region:
        """Map a region to its cell, and the region in the cell, which ends at the end of the cell."""
        line, column, cell = self.spot(region.line, region.column)
        end_line, end_column, end_cell = self.spot(region.end_line, region.end_column)
        if end_cell != cell:
            source = self.notebook.cells.sources[self.notebook.cells.numbers.index(cell or 0)]
            end_line, end_column = source.position(len(source.text))
        return Region(line, column, end_line, end_column, cell)

    def notes(self, notes: tuple[Note, ...]) -> tuple[Note, ...]:
        """Notes with their cells."""
        return tuple(replace(note, **self.spot(note.line, note.column)._asdict()) for note in notes)

    def diagnostics(self, found: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        """Map diagnostics to their cells, and their other places in the notebook."""
        path = absolute(self.file.path)
        return tuple(
            dataclasses.replace(
                each,
                region=self.region(each.region),
                related=tuple(
                    replace(other, region=self.region(other.region)) if other.path == path else other
                    for other in each.related
                ),
            )
            for each in found
        )


def read_document(item: Input, name: str) -> Document:
    """The document of an input, or standard input under `name`; raises FileProblem."""
    file = _read_file(item, name)
    if is_notebook(name) or (item.path == STANDARD_INPUT and looks_like_notebook(file.text)):
        return NotebookDocument(file, read_notebook(file))
    return Document(file)


def _read_file(item: Input, name: str) -> SourceFile:
    if item.path != STANDARD_INPUT:
        return files.read(item.path)
    if sys.stdin is None:
        raise FileProblem("standard input is closed")
    return files.read_stream(name, sys.stdin.buffer)


def _line(source: Source, line: int) -> str | None:
    if not 0 < line <= len(source.line_starts):
        return None
    start = source.line_starts[line - 1]
    return source.text[start : source.line_end(start)]


def existing(text: str, line: int, where: str = "") -> int:
    """Check that the line exists; raises FileProblem otherwise. No line follows a newline at the end."""
    lines = len(Source(text).line_starts) - text.endswith(("\n", "\r"))
    if line > lines:
        raise FileProblem(f"has {lines} lines{where}, and no line {line} (--at)")
    return line
