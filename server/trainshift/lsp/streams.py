"""Streams: messages on standard input and output."""

from __future__ import annotations

import json
import os
from typing import Any

_CHUNK = 1 << 16
_LONGEST_HEADER = 1 << 13


class Reader:
    """Messages out of a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""

    def read(self) -> Any:
        """The next message as plain JSON, {} for what is none; None when there will be no more.

        Raises OSError if the descriptor cannot be read.
        """
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _LONGEST_HEADER:  # Junk: what follows the next line may be a header.
                self._buffer = self._buffer.partition(b"\n")[2]
            if not self._fill():
                return None
        header, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
        length = _length(header)
        parts, have = [self._buffer], len(self._buffer)
        while have < length:
            more = os.read(self._descriptor, max(_CHUNK, length - have))
            if not more:
                return None
            parts.append(more)
            have += len(more)
        whole = b"".join(parts)
        self._buffer = whole[length:]
        try:
            return json.loads(whole[:length]) if length else {}
        except (ValueError, RecursionError):
            return {}

    def _fill(self) -> bool:
        more = os.read(self._descriptor, _CHUNK)
        self._buffer += more
        return bool(more)


def _length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return int(value)
    return 0


class Writer:
    """Messages into a file descriptor; when nobody reads them any more they are dropped."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_open = True

    def write(self, data: bytes) -> None:
        """Write all of some bytes."""
        view = memoryview(data)
        try:
            while view and self._is_open:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            self._is_open = False

    def close(self) -> None:
        """Write no more."""
        self._is_open = False


def notification(method: str, params: str) -> bytes:
    """A notification of which the parameters are JSON already."""
    return _framed(f'{{"jsonrpc":"2.0","method":"{method}","params":{params}}}')


def encoded(message: dict[str, Any]) -> bytes:
    """A message of plain JSON, with its header."""
    return _framed(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")))


def _framed(text: str) -> bytes:
    body = text.encode("ascii")
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
