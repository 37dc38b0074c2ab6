"""Notebooks: the cells of each, in order, and the program that consists of its Python cells."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from trainshift.lsp.text.documents import Change, Paper, Part, notebook_paper, plain
from trainshift.lsp.wire.capabilities import LANGUAGES


class Notebook:
    """An open notebook; markdown and cells of other languages have a place in it, but no text."""

    def __init__(self, params: types.DidOpenNotebookDocumentParams, encoding: str) -> None:
        self._encoding = encoding
        self.order = [cell.document for cell in params.notebook_document.cells]
        self._cells: dict[str, Part] = {}
        self._add(params.cell_text_documents)

    def _add(self, texts: Iterable[types.TextDocumentItem]) -> None:
        for text in texts:
            if text.language_id in LANGUAGES:
                self._cells[text.uri] = plain(text.uri, text.version, text.text, self._encoding)

    def paper(self) -> Paper:
        """The present version of the program."""
        return notebook_paper([self._cells[each] for each in self.order if each in self._cells])

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


def change_of(event: types.TextDocumentContentChangeEvent) -> Change:
    """A change in the format of the protocol."""
    where = getattr(event, "range", None)
    if where is None:
        return Change(event.text)
    first, last = where.start, where.end
    return Change(event.text, (first.line, first.character), (last.line, last.character))
