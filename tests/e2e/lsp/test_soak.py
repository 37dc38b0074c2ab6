"""Soak: after thousands of random edits the server has the client's text, and the diagnostics of a new
server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from e2e.lsp.session import Json
from e2e.lsp.soak_client import (
    CAPABILITIES,
    STRANGE,
    Buffer,
    SoakClient,
    assert_as_checked,
    hover_at,
    running,
    text_of,
    units_of,
)
from e2e.lsp.soak_edits import Vandal
from perf.script import script
from support.fixtures import SCRIPTS
from trainshift.lsp.text.documents import Change, plain

pytestmark = pytest.mark.slow

PROBE = "#TF03"


# The text


@pytest.mark.parametrize("seed", range(4))
def test_a_part_keeps_the_text_of_the_client(seed: int, quick: bool) -> None:
    """Without a process: every change results in the client's own units."""
    vandal = Vandal(seed)
    base = units_of(STRANGE * 20)
    buffer = Buffer(base)
    part = plain("file:///nowhere/a.py", 0, text_of(base), "utf-16")
    for number in range(1, 500 if quick else 2500):
        changes = [_change(each) for each in vandal.edit(buffer, base)]
        part = part.changed(number, changes)
        assert part.text == text_of(buffer.units), f"seed {seed}, edit {number}: {changes}"


def _change(event: Json) -> Change:
    where = event.get("range")
    if where is None:
        return Change(event["text"])
    first, last = where["start"], where["end"]
    return Change(event["text"], (first["line"], first["character"]), (last["line"], last["character"]))


# The soak


class Soak:
    """A client that edits several documents at random, and sometimes violates the protocol."""

    def __init__(self, client: SoakClient, seed: int, texts: dict[str, str]) -> None:
        self.client = client
        self.seed = seed
        self.random = Random(seed)
        self.vandal = Vandal(seed)
        self.bases = {uri: units_of(text) for uri, text in texts.items()}
        self.buffers = {uri: Buffer(units) for uri, units in self.bases.items()}
        self.versions = dict.fromkeys(texts, 1)
        self.last: Json | None = None
        self.edits = 0
        for uri, text in texts.items():
            client.open(uri, text)

    def run(self, edits: int) -> None:
        """Send some notifications of changes, with all other messages in between."""
        while self.edits < edits:
            uri = self.random.choice(sorted(self.buffers))
            self.edit(uri)
            if self.random.random() < 0.1:
                self.be_rude(uri)
            if self.random.random() < 0.1:
                self.ask(uri)
            if self.random.random() < 0.01:
                self.reopen(uri)
            # Now and then, every request is made for one version.
            if self.random.random() < 0.01:
                self.client.diagnostics(uri)
            elif self.random.random() < 0.05:
                self.client.barrier()

    def edit(self, uri: str) -> None:
        """Change a document."""
        self.edits += 1
        changes = self.vandal.edit(self.buffers[uri], self.bases[uri])
        self.versions[uri] += self.random.choice((1, 1, 1, 7))
        self.last = {
            "textDocument": {"uri": uri, "version": self.versions[uri]},
            "contentChanges": changes,
        }
        self.client.notify("textDocument/didChange", self.last)

    def reopen(self, uri: str) -> None:
        """Open a document that is open, or close it, perhaps twice, and open it again."""
        for _ in range(self.random.randrange(3)):
            self.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        self.versions[uri] = self.random.choice((1, self.versions[uri] + 1))
        self.client.open(uri, self.buffers[uri].units, self.versions[uri])
        self.last = None

    def be_rude(self, uri: str) -> None:
        """Send messages that must change nothing."""
        client, version = self.client, self.versions[uri]
        junk = [{"text": "junk = 1\n"}]
        deed = self.random.randrange(12)
        if deed == 0 and self.last is not None:
            client.notify("textDocument/didChange", self.last)
        elif deed == 1:
            client.change(uri, self.random.randint(-5, version), junk)
        elif deed == 2:
            client.change("file:///nowhere/never_opened.py", 3, junk)
            client.notify("textDocument/didClose", {"textDocument": {"uri": "file:///nowhere/never.py"}})
        elif deed == 3:
            client.notify("textDocument/didChange", self.random.choice(_malformed_changes(uri, version + 1)))
        elif deed == 4:
            client.notify("$/cancelRequest", {"id": self.random.choice((-1, "x", 10**6))})
        elif deed == 5:
            client.send({"jsonrpc": "2.0", "id": self.random.choice(("never", 77_777)), "result": {"x": 1}})
            client.send({"jsonrpc": "2.0", "id": "no", "error": {"code": -1, "message": "never asked"}})
        elif deed == 6:
            client.send_bytes(self.random.choice(_BROKEN))
        elif deed == 7:
            client.send(self.random.choice(_NO_MESSAGES))
        elif deed == 8:
            client.notify(self.random.choice(("no/such", "$/none", "textDocument/hover")), {"x": uri})
        elif deed == 9:
            client.ask("no/such/request", self.random.choice((None, [], {}, 3)))
        elif deed == 10:
            client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
            kinds = [{"uri": uri, "type": kind} for kind in (1, 2, 3)]
            client.notify("workspace/didChangeWatchedFiles", {"changes": kinds})
        else:
            client.notify("workspace/didChangeConfiguration", {"settings": self.random.choice((None, 3, {}))})

    def ask(self, uri: str) -> None:
        """Send a request about a document, and perhaps cancel it."""
        places = [
            {
                "line": self.random.choice((0, 5, 50, 2**31 - 1)),
                "character": self.random.choice((0, 7, 10**6)),
            }
            for _ in range(2)
        ]
        document = {"textDocument": {"uri": uri}}
        deed = self.random.randrange(6)
        if deed == 0:
            number = self.client.ask("textDocument/hover", {**document, "position": places[0]})
        elif deed == 1:
            where = {"start": places[0], "end": places[1]}
            context: Json = {"context": {"diagnostics": []}, "range": where}
            number = self.client.ask("textDocument/codeAction", {**document, **context})
        elif deed == 2:
            number = self.client.ask("textDocument/codeLens", document)
        elif deed == 3:
            number = self.client.ask("textDocument/diagnostic", document)
        elif deed == 4:
            number = self.client.ask("trainshift/outline", document)
        else:
            arguments = {"command": "trainshift.makeDistributed", "arguments": [{"uri": uri}]}
            number = self.client.ask("workspace/executeCommand", arguments)
        if self.random.random() < 0.3:
            self.client.notify("$/cancelRequest", {"id": number})

    def finish(self) -> None:
        """Compare with the expected results: `check`, a fresh server, and places all over the text."""
        client, note = self.client, f"seed {self.seed}, {self.edits} edits"
        self.compare(note)
        for uri in self.buffers:
            self.probe(uri, f"{note}, {uri}")
        for uri, buffer in self.buffers.items():
            self.mend(uri, buffer)
        self.compare(f"{note}, mended")
        for number in client.asked:
            client.answer(number)
        twice = {number: each for number, each in client.answers.items() if len(each) != 1}
        assert not twice, f"{note}: {twice}"
        assert client.is_alive(), note

    def mend(self, uri: str, buffer: Buffer) -> None:
        """Make a text valid Python again, with findings at both ends and in the middle."""
        changes = [buffer.replace(self.bases[uri])]
        ends = [match.end() for match in re.finditer(r"\n(?=\n\n\w)", buffer.units)]
        for at in (len(buffer.units), *ends[-1:], *ends[:1]):
            changes.append(buffer.change(at, at, units_of("\nadam = '🚂', tf.keras.optimizers.Adam\n")))
        self.versions[uri] += 1
        self.client.change(uri, self.versions[uri], changes)

    def compare(self, note: str) -> None:
        """The diagnostics are those of `check`, and of a new server with the client's texts."""
        client = self.client
        found = {uri: client.diagnostics(uri) for uri in self.buffers}
        with running() as fresh:
            fresh.start(CAPABILITIES)
            for uri, buffer in self.buffers.items():
                fresh.open(uri, buffer.units, self.versions[uri])
                assert_as_checked(found[uri], text_of(buffer.units), f"{note}, {uri}")
                client.wait(
                    lambda uri=uri: client.published[uri]["diagnostics"] == found[uri],  # type: ignore[misc]
                    f"{note}, {uri}: what was published last is not what is known",
                )
                assert client.published[uri]["version"] == self.versions[uri], f"{note}, {uri}"
                expected = fresh.diagnostics(uri)
                if any(each["code"] == "TS00" for each in expected):
                    # Everything else is shown as it was before the syntax error.
                    assert [each for each in found[uri] if each["code"] == "TS00"] == expected, (
                        f"{note}, {uri}"
                    )
                    continue
                assert found[uri] == expected, f"{note}, {uri}"
                for method, params in _questions(uri, buffer):
                    assert client.request(method, params) == fresh.request(method, params), (
                        f"{note}: {params}"
                    )
            fresh.close()

    def probe(self, uri: str, note: str) -> None:
        """Write a code after some lines, and request the hover at its place."""
        buffer = self.buffers[uri]
        starts = buffer.starts
        ends = [end - 1 for end in starts[1:]] + [len(buffer.units)]
        lines = sorted(self.random.sample(range(len(starts)), min(20, len(starts))), reverse=True)
        changes = []
        for line in lines:
            end = buffer.settle(ends[line])
            changes.append(buffer.change(end, end, PROBE))
        self.versions[uri] += 1
        self.client.change(uri, self.versions[uri], changes)
        ends = [end - 1 for end in buffer.starts[1:]] + [len(buffer.units)]
        for line in lines:
            length = buffer.settle(ends[line]) - buffer.starts[line]
            said = self.client.request("textDocument/hover", hover_at(uri, line, length - 1))
            assert said is not None, f"{note}: the server's line {line} is another"
            assert "TF03" in said["contents"]["value"], f"{note}: line {line}: {said}"


_BROKEN = (
    b'Content-Length: 5\r\n\r\n{"a":',
    b"Content-Length: 3\r\n\r\n\xff\xfe\xfd",
    b"Content-Type: text/plain\r\n\r\n",
    b"Content-Length: none\r\n\r\n",
    b"Content-Length: -7\r\n\r\n",
    b"Content-Length: 99999999999999999999\r\n\r\n",
    b"Content-Length: 0\r\n\r\n",
    b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: nowhere\r\n\r\n",
    b'Content-Length: 2\r\n\r\n{"jsonrpc": "2.0", "method": "longer than it said"}',
    b"x" * 20_000,
)
_NO_MESSAGES: tuple[Any, ...] = (
    None,
    [],
    3,
    "text",
    {},
    {"jsonrpc": "2.0"},
    {"jsonrpc": "1.0", "method": "textDocument/didChange"},
    {"jsonrpc": "2.0", "method": None},
    {"jsonrpc": "2.0", "method": ["x"], "params": {}},
    {"jsonrpc": "2.0", "method": "textDocument/didOpen"},
    {"jsonrpc": "2.0", "method": "textDocument/didClose", "params": {"textDocument": None}},
    {"jsonrpc": "2.0", "id": None, "method": "textDocument/hover", "params": {}},
    {"jsonrpc": "2.0", "id": [1], "result": None},
    {"jsonrpc": "2.0", "id": {"a": 1}, "method": "shutdown"},
    {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": [1]}},
    {"jsonrpc": "2.0", "method": "$/cancelRequest"},
    [{"jsonrpc": "2.0", "id": 5, "method": "shutdown"}],
)


def _malformed_changes(uri: str, version: int) -> list[Any]:
    """Parameters of a change that are malformed, but look plausible."""
    document = {"uri": uri, "version": version}
    bad: list[Any] = [
        {"range": {"start": {"line": -1, "character": 0}, "end": {"line": 0, "character": 0}}, "text": "x"},
        {
            "range": {"start": {"line": 0, "character": 10**30}, "end": {"line": 0, "character": 0}},
            "text": "x",
        },
        {"range": {"start": {"line": "0", "character": 0}, "end": {"line": 0, "character": 0}}, "text": "x"},
        {"range": {"start": {"line": 0}}, "text": "x"},
        {"text": None},
        {"text": 7},
        {},
        None,
        [],
    ]
    return [
        None,
        [],
        {"textDocument": document},
        {"textDocument": None, "contentChanges": [{"text": "x"}]},
        {"textDocument": {"uri": None, "version": version}, "contentChanges": [{"text": "x"}]},
        {"textDocument": {"uri": 3, "version": version}, "contentChanges": [{"text": "x"}]},
        {"textDocument": {"uri": uri}, "contentChanges": [{"text": "x"}]},
        {"textDocument": {"uri": uri, "version": "new"}, "contentChanges": [{"text": "x"}]},
        {"textDocument": document, "contentChanges": None},
        {"textDocument": document, "contentChanges": {"text": "x"}},
        *({"textDocument": document, "contentChanges": [each]} for each in bad),
    ]


def _questions(uri: str, buffer: Buffer) -> Iterator[tuple[str, Json]]:
    document = {"textDocument": {"uri": uri}}
    yield "textDocument/codeLens", document
    for line in range(0, len(buffer.starts), max(len(buffer.starts) // 8, 1)):
        place = {"line": line, "character": 4}
        yield "textDocument/hover", {**document, "position": place}
        where = {"start": place, "end": place}
        yield "textDocument/codeAction", {**document, "range": where, "context": {"diagnostics": []}}
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 10**6, "character": 0}}
    yield "textDocument/codeAction", {**document, "range": whole, "context": {"diagnostics": []}}


def _texts() -> dict[str, str]:
    whole = [(folder / "before.py").read_text(encoding="utf-8-sig") for folder in SCRIPTS]
    return {
        "file:///nowhere/one.py": max(whole, key=len),
        "file:///nowhere/two.py": whole[0],
        "untitled:Untitled-1": STRANGE * 10 + script(100),
        "file:///nowhere/long.py": script(400),
    }


def _soak(seed: int, edits: int) -> None:
    with running() as client:
        client.start(CAPABILITIES)
        soak = Soak(client, seed, _texts())
        soak.run(edits)
        soak.finish()
        client.close()


def test_soak(quick: bool) -> None:
    _soak(seed=1, edits=300 if quick else 3000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_long_soak(seed: int) -> None:
    _soak(seed, edits=5000)


# Files that import each other

VARIANTS = {
    "main.py": (
        "import tensorflow as tf\nfrom helper import opt, train\ntrain(opt)\n",
        "import tensorflow as tf\nimport helper\nadam = tf.keras.optimizers.Adam\nhelper.train(adam())\n",
        "from helper import *\ntrain(opt)\n",
    ),
    "helper.py": (
        "import tensorflow as tf\nfrom loop import run\nopt = tf.keras.optimizers.Adam()\n\n\n"
        "def train(opt):\n    run(opt)\n",
        "import tensorflow as tf\nopt = None\n\n\ndef train(opt):\n"
        "    with tf.GradientTape() as tape:\n        loss = 1\n"
        "    opt.apply_gradients(zip(tape.gradient(loss, []), []))\n",
        "def train(opt:\n",
        "",
    ),
    "loop.py": (
        "import tensorflow as tf\n\n\ndef run(opt):\n    for batch in range(3):\n"
        "        with tf.GradientTape() as tape:\n            loss = 1\n"
        "        opt.apply_gradients(zip(tape.gradient(loss, []), []))\n",
        "def run(opt):\n    opt.minimize(1)\n",
        "from main import opt as run\n",
    ),
}


@pytest.mark.parametrize("seed", range(3))
def test_soak_of_files_that_import_each_other(seed: int, tmp_path: Path, quick: bool) -> None:
    """Opened, changed, closed, written, deleted in any order: the diagnostics equal those of a new server."""
    random = Random(seed)
    (tmp_path / "pyproject.toml").write_text("[tool.trainshift]\n")
    files = {name: tmp_path / name for name in VARIANTS}
    opened: dict[str, str] = {}
    version = 1
    deeds: list[str] = []
    with running() as client:
        client.start(CAPABILITIES, [tmp_path])
        for number in range(50 if quick else 200):
            name = random.choice(sorted(VARIANTS))
            uri, text = files[name].as_uri(), random.choice(VARIANTS[name])
            version += 1
            deed = random.choice(("open", "change", "change", "change", "close", "write", "delete", "ask"))
            deeds.append(f"{deed} {name}")
            if deed == "open" or (deed == "change" and name not in opened):
                client.open(uri, text, version)
                opened[name] = text
            elif deed == "change":
                client.change(uri, version, [{"text": text}])
                opened[name] = text
            elif deed == "close" and name in opened:
                client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
                del opened[name]
            elif deed == "write":
                kind = 2 if files[name].exists() else 1
                files[name].write_text(text)
                client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": kind}]})
            elif deed == "delete" and files[name].exists():
                files[name].unlink()
                client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 3}]})
            elif deed == "ask" and name in opened:
                client.diagnostics(uri)
            if number % 40 == 39:
                note = f"seed {seed}: {deeds[-40:]}"
                with running() as fresh:
                    fresh.start(CAPABILITIES, [tmp_path])
                    for each, said in opened.items():
                        fresh.open(files[each].as_uri(), said, version)
                    for each in opened:
                        where = files[each].as_uri()
                        expected = fresh.diagnostics(where)
                        assert client.diagnostics(where) == expected, f"{each}: {note}"
                        client.wait(
                            lambda where=where, expected=expected: (  # type: ignore[misc]
                                client.published[where]["diagnostics"] == expected
                            ),
                            f"{each} is not published: {note}",
                        )
                    fresh.close()
        client.close()


# Memory


def _resident(client: SoakClient) -> int:
    """The resident memory of the server, in bytes."""
    fields = Path(f"/proc/{client.process.pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_memory_stays_flat() -> None:
    """Typing in a long script for hours needs no more memory than typing for minutes."""
    uri = "file:///nowhere/long.py"
    text = script(1000)
    with running() as client:
        client.start(CAPABILITIES)
        client.open(uri, text)
        random = Random(5)
        line = text.count("\n", 0, text.index("probe_alias = t")) if "probe_alias = t" in text else 500
        sizes = []
        for number in range(1, 12_001):
            start = {"line": line, "character": 4}
            new = f"x{number % 1000} = tf.keras.optimizers.Adam\n    " if number % 2 else ""
            end = start if number % 2 else {"line": line + 1, "character": 4}
            client.change(uri, number + 1, [{"range": {"start": start, "end": end}, "text": new}])
            if random.random() < 0.1:
                client.barrier()
            if number % 500 == 0:
                client.diagnostics(uri)
                sizes.append(_resident(client) / 2**20)
        grown = max(sizes[4:]) - sizes[3]
        assert grown < 15, f"grew by {grown:.1f} MB: {sizes}"
        client.close()
