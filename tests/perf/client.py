"""A client of a language server over its standard streams, which stamps every message with its time."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any, NamedTuple

Json = dict[str, Any]
# Seconds to wait for any message; the slowest peer needs five for a file of 1,000 lines.
PATIENCE = 30.0


class ServerFailure(Exception):
    """A server that ended, kept silent or answered with an error."""


class Message(NamedTuple):
    """A message, and the time of its last byte, in seconds."""

    time: float
    content: Json


class Reply(NamedTuple):
    """The reply to a request, with the times of its first byte and of its end, in seconds."""

    sent: float
    received: float
    result: Any


class Client:
    """A running server and the messages from it."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.started = perf_counter()
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors
        )
        self.inbox: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
        self.requests = 0
        Thread(target=self._read, daemon=True).start()

    def notify(self, method: str, params: Json | None) -> float:
        """Send a notification; the time before its first byte went out."""
        return self._send({"method": method, "params": params})

    def request(self, method: str, params: Json | None) -> Reply:
        """Send a request and wait for the reply."""
        self.requests += 1
        sent = self._send({"id": self.requests, "method": method, "params": params})
        while True:
            time, content = self.receive()
            if "method" in content or content.get("id") != self.requests:
                continue
            if "error" in content:
                raise ServerFailure(f"{method}: {content['error'].get('message')}")
            return Reply(sent, time, content.get("result"))

    def receive(self) -> Message:
        """The next message; requests of the server are answered before."""
        try:
            time, body = self.inbox.get(timeout=PATIENCE)
        except Empty:
            raise ServerFailure(f"no message within {PATIENCE:.0f} s") from None
        if not body:
            raise ServerFailure(f"ended: {self._last_error()}")
        content: Json = json.loads(body)
        if "method" in content and "id" in content:
            self._send({"id": content["id"], "result": answer(content)})
        return Message(time, content)

    def close(self) -> None:
        """End the server, by force if it does not end by itself."""
        try:
            self.request("shutdown", None)
            self.notify("exit", None)
            self.process.wait(10)
        except (ServerFailure, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.errors.close()

    def _send(self, content: Json) -> float:
        present = {key: value for key, value in content.items() if (key, value) != ("params", None)}
        body = json.dumps({"jsonrpc": "2.0", **present}).encode()
        assert self.process.stdin
        time = perf_counter()
        try:
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            self.process.stdin.flush()
        except OSError:
            raise ServerFailure(f"ended: {self._last_error()}") from None
        return time

    def _read(self) -> None:
        """Put messages into the inbox, and an empty one when the server ends."""
        stream = self.process.stdout
        assert stream
        while header := stream.readline():
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            elif header == b"\r\n":
                body = stream.read(length)
                self.inbox.put((perf_counter(), body))
        self.inbox.put((perf_counter(), b""))

    def _last_error(self) -> str:
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "no message")


def answer(request: Json) -> Any:
    """Answer a request of the server like an editor without settings."""
    if request["method"] == "workspace/configuration":
        return [None for _ in request["params"]["items"]]
    return None
