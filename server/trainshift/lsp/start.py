"""Start: answers `initialize` at once, then loads what answers everything else.

Loading pygls, lsprotocol and the engine takes a while, in which an editor would wait.  What the server
can do is known without them.
"""

from __future__ import annotations

import gc
import logging
import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from trainshift.lsp.capabilities import initialize_result
from trainshift.lsp.client import read_client
from trainshift.lsp.streams import Reader, Writer, encoded

if TYPE_CHECKING:
    from trainshift.lsp.server import Server


class _Nowhere:
    """A writer of which nothing is read."""

    def write(self, data: bytes) -> None:
        """Drop some bytes."""

    def close(self) -> None:
        """Nothing to close."""


def serve_stdio() -> int:
    """Serve one client on standard input and output; returns the exit status.

    Standard output belongs to the protocol: whatever else is printed goes to standard error.
    """
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr
    return _serve(Reader(partial(os.read, sys.stdin.fileno())), Writer(partial(os.write, output)))


def serve_tcp(host: str, port: int, ready: Callable[[str], None]) -> int:
    """Serve one client that connects to a TCP port, for debugging; returns the exit status."""
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
    first = _greet(reader, writer)
    if first is None:
        return 1
    server = _load()
    protocol = server.endpoint.protocol
    protocol.set_writer(_Nowhere())
    protocol.receive(first)
    protocol.set_writer(writer)
    return server.run(reader)


def _load() -> Server:
    from trainshift.lsp.lazily import load

    load()
    sys.setswitchinterval(0.001)  # A message is not kept waiting by a check that is under way.
    from trainshift.lsp.server import Server

    server = Server()
    gc.freeze()  # What was loaded stays, and need not be looked at again and again.
    return server


def _greet(reader: Reader, writer: Writer) -> dict[str, Any] | None:
    """Answer `initialize`, and refuse what comes before; None if the client has gone."""
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


def log_to(path: str | None, verbose: bool) -> None:
    """Write the log to a file, or errors to standard error."""
    level = logging.DEBUG if verbose else logging.INFO if path else logging.WARNING
    handler = logging.FileHandler(path, encoding="utf-8") if path else logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # What cannot be read is told by our own protocol, in one line.
    logging.getLogger("pygls").setLevel(logging.INFO if verbose else logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
