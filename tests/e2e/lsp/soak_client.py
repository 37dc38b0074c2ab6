"""A client of raw bytes, which may violate the protocol, and keeps its text as UTF-16 units.

Every unit is one character of a Python string, halves of surrogate pairs too, as in a JavaScript editor.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Any

from e2e.lsp.session import PATIENCE, SERVER, Json
from trainshift.engine.checking import check
from trainshift.engine.settings import Settings
from trainshift.python.source.source import Source

CAPABILITIES: Json = {
    "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}},
    "workspace": {"configuration": True, "didChangeWatchedFiles": {"dynamicRegistration": True}},
}
STRANGE = "import tensorflow as tf\r\n\x0c\r\nx = '🚂\u2028é'\radam = tf.keras.optimizers.Adam  # 👩‍👩‍👧\n"
_BREAK = re.compile(r"\r\n|\r|\n")


def units_of(text: str) -> str:
    """A text with each of its UTF-16 units as one character."""
    return "".join(map(chr, array("H", text.encode("utf-16-le", "surrogatepass"))))


def text_of(units: str) -> str:
    """The text of some units, with matching surrogate halves joined."""
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


class Buffer:
    """A text in the editor, with offsets in the protocol's units."""

    def __init__(self, units: str) -> None:
        self.units = units

    @property
    def starts(self) -> list[int]:
        """The offsets of lines."""
        return [0, *(match.end() for match in _BREAK.finditer(self.units))]

    def place(self, at: int, starts: list[int]) -> Json:
        """The position of a unit; there is none inside a line break."""
        line = bisect_right(starts, at) - 1
        return {"line": line, "character": at - starts[line]}

    def settle(self, at: int) -> int:
        """The unit itself, or the start of the line break around it."""
        return at - 1 if self.units[at - 1 : at + 1] == "\r\n" else at

    def change(self, start: int, end: int, new: str) -> Json:
        """Replace some units, and return the client's notification."""
        start, end = self.settle(start), self.settle(end)
        starts = self.starts
        where = {"start": self.place(start, starts), "end": self.place(end, starts)}
        self.units = self.units[:start] + new + self.units[end:]
        return {"range": where, "text": new}

    def replace(self, new: str) -> Json:
        """Replace the whole text."""
        self.units = new
        return {"text": new}


class SoakClient:
    """A server's process, and its messages; `reply` answers requests of the server."""

    def __init__(
        self,
        command: Sequence[str] = SERVER,
        reply: Callable[[Json], Json] | None = None,
        folder: Path | None = None,
        *,
        reads: bool = True,
    ) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, cwd=folder
        )
        self.reply = reply or _polite
        self.heard: list[Json] = []
        self.answers: dict[Any, list[Json]] = {}
        self.asked: list[Any] = []
        self.published: dict[str, Json] = {}
        self.has_ended = False
        self._news = Condition()
        self._reads = Event()
        if reads:
            self._reads.set()
        Thread(target=self._listen, daemon=True).start()

    # Sent messages

    def send_bytes(self, data: bytes) -> None:
        """Send arbitrary bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        """Send JSON."""
        body = json.dumps(message).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: Any = None) -> int:
        """Send a request; return its number."""
        number = len(self.asked) + 1
        self.asked.append(number)
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    def answer(self, number: Any) -> Json:
        """The answer to a request, once it has arrived."""
        self.wait(lambda: number in self.answers, f"request {number} is not answered")
        return self.answers[number][0]

    def request(self, method: str, params: Any = None) -> Any:
        """The result of a request, which must have one."""
        answer = self.answer(self.ask(method, params))
        assert "error" not in answer, f"{method}: {answer}"
        return answer["result"]

    def start(self, capabilities: Json | None = None, folders: Sequence[Path] = (), **params: Any) -> None:
        """Begin a session."""
        named = [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
        self.request(
            "initialize",
            {
                "processId": None,
                "rootUri": None,
                "capabilities": capabilities or {},
                "workspaceFolders": named or None,
                **params,
            },
        )
        self.notify("initialized", {})

    def open(self, uri: str, text: str, version: int = 1, language: str = "python") -> None:
        """Open a document."""
        document = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, uri: str, version: Any, changes: list[Json]) -> None:
        """Change a document."""
        params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}
        self.notify("textDocument/didChange", params)

    def barrier(self) -> None:
        """Wait until everything that was sent is handled."""
        self.answer(self.ask("textDocument/hover", hover_at("file:///nowhere/unknown.py", 0, 0)))

    def diagnostics(self, uri: str) -> list[Json]:
        """All diagnostics of a document's newest version."""
        while True:
            answer = self.answer(self.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}}))
            if "result" in answer:
                found: list[Json] = answer["result"]["items"]
                return found

    # Received messages

    def wait(self, holds: Callable[[], bool], note: str) -> None:
        """Wait until something holds, which only a message can cause."""
        with self._news:
            came = self._news.wait_for(lambda: holds() or self.has_ended, PATIENCE)
            if holds():
                return
        assert came, f"{note} within {PATIENCE:.0f} s; {self.said()}"
        raise AssertionError(
            f"{note}: the server has ended with {self.process.wait(PATIENCE)}; {self.said()}"
        )

    def said(self) -> str:
        """The end of standard error."""
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")[-3000:]

    def read_on(self) -> None:
        """Start reading the server's output."""
        self._reads.set()

    def _listen(self) -> None:
        self._reads.wait()
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            length = 0
            while header != b"\r\n":
                name, _, value = header.partition(b":")
                length = int(value) if name == b"Content-Length" else length
                header = stream.readline()
            message = json.loads(stream.read(length))
            if "method" in message and "id" in message:
                answer = self.reply(message)
                try:
                    if answer:
                        self.send({"jsonrpc": "2.0", "id": message["id"], **answer})
                except OSError:
                    pass
            with self._news:
                self._take_down(message)
                self._news.notify_all()
        with self._news:
            self.has_ended = True
            self._news.notify_all()

    def _take_down(self, message: Json) -> None:
        if "method" not in message:
            self.answers.setdefault(message["id"], []).append(message)
        elif message["method"] == "textDocument/publishDiagnostics":
            self.published[message["params"]["uri"]] = message["params"]
        else:
            self.heard.append(message)

    # The end

    def is_alive(self) -> bool:
        """Return whether the process is there."""
        return self.process.poll() is None

    def close(self) -> None:
        """End the session properly."""
        self.request("shutdown")
        self.notify("exit")
        assert self.process.wait(PATIENCE) == 0, self.said()
        self.errors.close()

    def kill(self) -> None:
        """End the process in any case."""
        if self.is_alive():
            self.process.kill()
        self.process.wait(PATIENCE)


def hover_at(uri: str, line: int, character: int) -> Json:
    """The parameters of a question about a place."""
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


def _polite(request: Json) -> Json:
    if request["method"] == "workspace/configuration":
        return {"result": [None for _ in request["params"]["items"]]}
    return {"result": None}


def refuse(request: Json) -> Json:
    """Answer every request of the server with an error."""
    return {"error": {"code": -32603, "message": f"no {request['method']} here"}}


def with_code(code: str) -> list[str]:
    """A server's command that runs some code before."""
    return [sys.executable, "-c", f"{code}\nfrom trainshift.lsp.command import server\nserver(args=[])"]


@contextmanager
def running(*args: Any, **options: Any) -> Iterator[SoakClient]:
    """A running client, ended after the block."""
    client = SoakClient(*args, **options)
    try:
        yield client
    finally:
        client.kill()


def assert_as_checked(found: list[Json], text: str, note: str) -> None:
    """Assert that the server's diagnostics of a text are those of `trainshift check`, without hints."""
    source = Source(text.removeprefix("\ufeff"))
    lines = source.text, source.line_starts

    def place(line: int, column: int) -> tuple[int, int]:
        start = lines[1][min(line, len(lines[1])) - 1]
        before = source.text[start : start + column - 1]
        mark = len("\ufeff") if line == 1 and text.startswith("\ufeff") else 0
        return line - 1, len(units_of(before)) + mark

    expected = [
        (each.code, each.message, place(each.region.line, each.region.column))
        for each in check(text, Settings()).diagnostics
    ]
    # While a text cannot be parsed, the previous findings are shown beside the error.
    is_read = all(code != "TS00" for code, *_ in expected)
    said = [
        (each["code"], each["message"], (each["range"]["start"]["line"], each["range"]["start"]["character"]))
        for each in found
        if not each["code"].startswith("HV") and (is_read or each["code"] == "TS00")
    ]
    assert said == expected, note
