"""Logs: the server's log, in the client and in a file."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from lsprotocol import types
from pygls.protocol import LanguageServerProtocol

_KINDS = {
    logging.ERROR: types.MessageType.Error,
    logging.WARNING: types.MessageType.Warning,
    logging.INFO: types.MessageType.Info,
}


class ClientLog(logging.Handler):
    """Sends warnings and errors to the client, and the rest too while it traces.

    Records may come from any thread; `send` is called on the loop's.
    """

    def __init__(
        self, protocol: LanguageServerProtocol, send: Callable[[types.LogMessageParams], None]
    ) -> None:
        super().__init__(logging.INFO)
        self._protocol = protocol
        self._send = send
        self.loop: asyncio.AbstractEventLoop | None = None
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record to the client; one caused by sending is dropped."""
        traces = self._protocol.trace != types.TraceValue.Off
        if self.loop is None or (record.levelno < logging.WARNING and not traces):
            return
        if not record.name.startswith("trainshift"):  # Libraries log at length what the server logs briefly.
            return
        kind = next((_KINDS[level] for level in _KINDS if record.levelno >= level), types.MessageType.Log)
        params = types.LogMessageParams(kind, self.format(record))
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            self.loop.call_soon_threadsafe(self._send, params)
