"""Published: the diagnostics last published for each document; nothing is published twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from trainshift.lsp.diagnostics import Item, encoded_list
from trainshift.lsp.transport.streams import notification


class Board:
    """The diagnostics shown to a client; `write` sends a message."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._shown: dict[str, bytes] = {}

    def show(self, uri: str, version: int | None, items: Iterable[Item]) -> None:
        """Publish the diagnostics of a document, if the client does not have them."""
        known = "" if version is None else f'"version":{version},'
        params = f'{{"uri":{json.dumps(uri)},{known}"diagnostics":{encoded_list(items)}}}'
        message = notification("textDocument/publishDiagnostics", params)
        # The second and the third step often add nothing to the shown result.
        if self._shown.get(uri) != message:
            self._shown[uri] = message
            self._write(message)

    def clear(self, uri: str) -> None:
        """Remove the diagnostics of a document that was closed."""
        if uri in self._shown:
            self.show(uri, None, ())
            del self._shown[uri]
