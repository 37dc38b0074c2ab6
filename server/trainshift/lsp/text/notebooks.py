"""Notebooks: the cells of each, in order, and the program that consists of its Python cells.

A notebook that is not open is one document, the JSON of its file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trainshift.host.files import SourceFile
from trainshift.host.notebooks import Written, read_notebook
from trainshift.lsp.text.documents import Change, Paper, Part, Within, notebook_paper, plain
from trainshift.lsp.transport.capabilities import LANGUAGES
from trainshift.lsp.transport.uris import path_of, uri_of
from trainshift.python.source.source import Source

if TYPE_CHECKING:
    from lsprotocol import types


class Notebook:
    """An open notebook; markdown and cells of other languages have a place in it, but no text."""

    def __init__(self, params: types.DidOpenNotebookDocumentParams, encoding: str) -> None:
        self._encoding = encoding
        self._path = path_of(params.notebook_document.uri)
        self.order = [cell.document for cell in params.notebook_document.cells]
        self._cells: dict[str, Part] = {}
        self._add(params.cell_text_documents)

    def _add(self, texts: Iterable[types.TextDocumentItem]) -> None:
        for text in texts:
            if text.language_id in LANGUAGES:
                self._cells[text.uri] = plain(text.uri, text.version, text.text, self._encoding)

    def paper(self) -> Paper:
        """The present version of the program."""
        cells = [self._cells[each] for each in self.order if each in self._cells]
        return notebook_paper(cells, self._path)

    def change(self, changes: types.NotebookDocumentCellChanges) -> list[str]:
        """Add, remove, move and edit cells; return the removed ones."""
        gone: list[str] = []
        structure = changes.structure
        if structure is not None:
            array = structure.array
            taken = slice(array.start, array.start + array.delete_count)
            before = self.order[taken]
            self.order[taken] = [cell.document for cell in array.cells or ()]
            self._add(structure.did_open or ())
            for closed in structure.did_close or ():
                self._cells.pop(closed.uri, None)
            gone = [cell for cell in before if cell not in self.order]
        for content in changes.text_content or ():
            cell = self._cells.get(content.document.uri)
            if cell is not None:
                made = [change_of(each) for each in content.changes]
                self._cells[content.document.uri] = cell.changed(content.document.version, made)
        return gone


def paper_on_disk(file: SourceFile, path: str, encoding: str) -> Paper:
    """The program of a notebook that is not open; raises FileProblem if the file is none."""
    notebook = read_notebook(file)
    cells, json = notebook.cells, Source(file.text)

    def cell(text: str, start: int, written: Written) -> Part:
        def place(at: int) -> int:
            line, column = written.place(at)
            return json.line_starts[line - 1] + column - 1

        return Part(uri_of(path), None, text, encoding, start, within=Within(json, place))

    parts = map(cell, cells.texts, cells.starts, notebook.written)
    return Paper(cells.text, tuple(parts), cells, path)


def change_of(event: types.TextDocumentContentChangeEvent) -> Change:
    """A change in the format of the protocol."""
    where = getattr(event, "range", None)
    if where is None:
        return Change(event.text)
    first, last = where.start, where.end
    return Change(event.text, (first.line, first.character), (last.line, last.character))
