"""Start: answer `initialize` at once, then import the handlers of everything else.

Loading pygls, lsprotocol and the engine takes a while, during which an editor would wait.  The server's
capabilities are known without them, so the top of this file imports only modules that are needed to announce
them.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from trainshift.lsp.inbox import Inbox
from trainshift.lsp.transport.capabilities import initialize_result
from trainshift.lsp.transport.client import read_client
from trainshift.lsp.transport.streams import Reader, Writer, encoded

if TYPE_CHECKING:
    from trainshift.lsp.fast_start import Opening
    from trainshift.lsp.server import Server


class _Nowhere:
    """A writer whose output is never read."""

    def write(self, data: bytes) -> None:
        """Drop some bytes."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def may_serve(arguments: Sequence[str]) -> bool:
    """Return whether a server with these arguments has no options to parse, and a client."""
    return arguments in ([], ["--stdio"]) and sys.stdin is not None and not sys.stdin.isatty()


def serve_stdio() -> int:
    """Serve one client on standard input and output; returns the exit status, or ends with it.

    Standard output belongs to the protocol: other output goes to standard error.
    """
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr
    return _serve(Reader(partial(os.read, sys.stdin.fileno())), Writer(partial(os.write, output)))


def serve_tcp(host: str, port: int, ready: Callable[[str], None]) -> int:
    """Serve one client that connects to a TCP port, for debugging; returns or ends with the status."""
    import socket

    try:
        with socket.create_server((host, port)) as listener:
            ready(f"listening on {host}:{listener.getsockname()[1]}")
            connection, _ = listener.accept()
    except OSError as error:
        ready(f"cannot listen on {host}:{port}: {error.strerror or error}")
        return 2
    with connection:
        return _serve(Reader(connection.recv), Writer(connection.send))


def _serve(reader: Reader, writer: Writer) -> int:
    gc.disable()  # Loading leaves no garbage that is worth a collection.
    first = _greet(reader, writer)
    if first is None:
        return 1
    inbox = Inbox()
    inbox.fill(reader)
    import logging

    if not logging.getLogger().handlers:
        from trainshift.lsp.transport.logfile import log_to

        log_to(None, verbose=False)
    from trainshift.lsp.fast_start import Opening

    params = first.get("params")
    opening = Opening(params if isinstance(params, dict) else {}, inbox, writer.write)
    opening.attend()
    server = _load(opening)
    protocol = server.endpoint.protocol
    protocol.set_writer(_Nowhere())
    protocol.receive(first)
    protocol.set_writer(writer)
    _leave(server.run())


def _leave(status: int) -> NoReturn:
    """End the process at once, because the desk's thread may be in native code, which would abort on exit."""
    import logging

    logging.shutdown()
    os._exit(status)


def _load(opening: Opening) -> Server:
    from trainshift.lsp.transport.lazily import load

    sys.setswitchinterval(0.001)  # A running check does not delay a message.
    load()
    from trainshift.lsp.server import Server

    server = Server(opening)
    # Loaded modules stay and are never collected; the desk collects garbage when the user does not type.
    gc.freeze()
    gc.set_threshold(20_000, 10, 50)
    gc.enable()
    return server


def _greet(reader: Reader, writer: Writer) -> dict[str, Any] | None:
    """Answer `initialize`, and refuse earlier messages; None if the client has gone."""
    while True:
        try:
            message = reader.read()
        except OSError:
            return None
        if message is None:
            return None
        if not isinstance(message, dict):
            continue
        method, identity = message.get("method"), message.get("id")
        if method == "initialize" and identity is not None:
            params = message.get("params")
            capabilities = params.get("capabilities") if isinstance(params, dict) else None
            writer.write(encoded({"id": identity, "result": initialize_result(read_client(capabilities))}))
            return message
        if method == "exit":
            return None
        if identity is not None and method is not None:
            error = {"code": -32002, "message": "the server is not initialized"}
            writer.write(encoded({"id": identity, "error": error}))
