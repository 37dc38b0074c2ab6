"""Streams: messages on standard input and output, or on a connection."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

_CHUNK = 1 << 16
_MOST_AT_ONCE = 1 << 20
_LONGEST_HEADER = 1 << 13
_LONGEST_BODY = 1 << 30
# The text before it in a header may be the rest of a message that was longer than stated.
_LENGTH = re.compile(rb"(?i).*content-length[ \t]*:[ \t]*([0-9]{1,19})[ \t]*(?:\r\n|\Z)", re.DOTALL)


class Reader:
    """Read messages from `read`, which returns up to a number of bytes, or none at the end."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._buffer = b""

    def read(self) -> dict[str, Any] | None:
        """The next message as plain JSON, {} for a malformed one; None at the end of the stream.

        Raises OSError if nothing can be read.
        """
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _LONGEST_HEADER:  # Junk, which may end in the start of a header.
                self._buffer = self._buffer[-_LONGEST_HEADER:]
            if not self._fill():
                return None
        header, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
        length = _length(header)
        parts, have = [self._buffer], len(self._buffer)
        while have < length:
            more = self._read(min(max(_CHUNK, length - have), _MOST_AT_ONCE))
            if not more:
                return None
            parts.append(more)
            have += len(more)
        whole = b"".join(parts)
        self._buffer = whole[length:]
        try:
            message = json.loads(whole[:length]) if length else {}
        except (ValueError, RecursionError):
            return {}
        return message if isinstance(message, dict) else {}

    def _fill(self) -> bool:
        more = self._read(_CHUNK)
        self._buffer += more
        return bool(more)


def _length(header: bytes) -> int:
    """Return the length of the message after a header; 0 if the header has none, or an absurd one."""
    match = _LENGTH.match(header)
    length = int(match[1]) if match else 0
    return length if length <= _LONGEST_BODY else 0


class Writer:
    """Writes messages with `write`, which returns the number of bytes written; drops them if the reader has
    gone.
    """

    def __init__(self, write: Callable[[memoryview], int]) -> None:
        self._write = write
        self._is_open = True

    def write(self, data: bytes) -> None:
        """Write all of some bytes."""
        view = memoryview(data)
        try:
            while view and self._is_open:
                view = view[self._write(view) :]
        except OSError:
            self._is_open = False

    def close(self) -> None:
        """Write no more."""
        self._is_open = False


def notification(method: str, params: str) -> bytes:
    """A notification whose parameters are already JSON."""
    return _framed(f'{{"jsonrpc":"2.0","method":"{method}","params":{params}}}')


def encoded(message: dict[str, Any]) -> bytes:
    """A message of plain JSON, with its header."""
    return _framed(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")))


def _framed(text: str) -> bytes:
    body = text.encode("ascii")
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
