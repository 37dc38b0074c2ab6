"""The server as a process: bytes in, bytes out, and its end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from e2e.lsp.session import PATIENCE, SERVER, Json

SHUTDOWN: Json = {"id": "end", "method": "shutdown"}
EXIT: Json = {"method": "exit"}
INITIALIZED: Json = {"method": "initialized", "params": {}}


def initialize(capabilities: Json | None = None, **params: object) -> Json:
    """The request that comes first."""
    capable = {"processId": None, "rootUri": None, "capabilities": capabilities or {}}
    return {"id": "begin", "method": "initialize", "params": {**capable, **params}}


def encoded(message: Json) -> bytes:
    """A message in its transmitted form."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def decoded(data: bytes) -> list[Json]:
    """All messages in a server's output, which must contain nothing else."""
    found = []
    while data:
        header, _, rest = data.partition(b"\r\n\r\n")
        named = dict(line.split(b": ") for line in header.split(b"\r\n"))
        assert named.keys() <= {b"Content-Length", b"Content-Type"}, data[:200]
        length = int(named[b"Content-Length"])
        assert len(rest) >= length, rest
        found.append(json.loads(rest[:length]))
        assert found[-1]["jsonrpc"] == "2.0"
        data = rest[length:]
    return found


class Talk(NamedTuple):
    """The result of sending messages: those of the server, its errors, its status."""

    messages: list[Json]
    errors: str
    status: int

    def answer(self, identity: Any) -> Json:
        """The only answer to a request."""
        (found,) = (each for each in self.messages if each.get("id") == identity and "method" not in each)
        return found


def talk(*messages: Json, command: Sequence[str] = SERVER) -> Talk:
    """Send messages to a new server, close its standard input, and wait until it ends."""
    done = subprocess.run(
        command, input=b"".join(map(encoded, messages)), capture_output=True, timeout=PATIENCE, check=False
    )
    return Talk(decoded(done.stdout), done.stderr.decode(), done.returncode)


def python(code: str) -> list[str]:
    """A command that runs code before it starts the server."""
    start = "from trainshift.lsp.command import server; server(args=[])"
    return [sys.executable, "-c", f"{code}\n{start}"]
