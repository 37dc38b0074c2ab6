"""Clients that send nonsense, fail, fall silent or disappear; and a restriction that fails."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.lsp.session import PATIENCE, Json
from e2e.lsp.soak_client import (
    CAPABILITIES,
    STRANGE,
    SoakClient,
    assert_as_checked,
    refuse,
    running,
    with_code,
)
from perf.script import script

# Unreadable messages


REQUESTS = (
    "textDocument/hover",
    "textDocument/codeAction",
    "codeAction/resolve",
    "textDocument/codeLens",
    "textDocument/inlayHint",
    "textDocument/diagnostic",
    "workspace/diagnostic",
    "workspace/executeCommand",
    "trainshift/outline",
    "trainshift/rules",
    "trainshift/scripts",
    "no/such/method",
)

pytestmark = pytest.mark.slow
NONSENSE: tuple[Any, ...] = (
    None,
    {},
    [],
    3,
    "text",
    {"textDocument": None},
    {"textDocument": {"uri": 3}, "position": None},
    {"textDocument": {"uri": "file:///nowhere/one.py"}, "position": {"line": -1, "character": 2**70}},
    {"textDocument": {"uri": "http://[broken"}, "range": 7, "context": {}},
    {"textDocument": {"uri": "file:///%00"}, "position": {"line": 0, "character": 0}},
    {"command": None, "arguments": {}},
    {"command": "trainshift.makeDistributed", "arguments": [None]},
    {"command": "trainshift.makeDistributed"},
    {
        "command": "trainshift.makeDistributed",
        "arguments": [{"uri": "file:///nowhere/one.py", "apply": "no"}],
    },
    {"command": "trainshift.explain", "arguments": [[[]]]},
    {"command": "no.such.command", "arguments": []},
    {"title": 3},
    {"title": "x", "data": {"do": "fix"}},
    {"title": "x", "data": [1]},
    {
        "title": "x",
        "data": {"do": "x", "uri": "file:///nowhere/one.py", "version": 1, "span": "no", "code": []},
    },
    {
        "title": "x",
        "data": {
            "do": "fix",
            "uri": "file:///nowhere/one.py",
            "version": 1,
            "span": [9**20, -9],
            "code": "TF03",
        },
    },
    {"previousResultIds": [{"uri": None}]},
    {"previousResultIds": [], "identifier": 7, "partialResultToken": {}},
)


def _nested(depth: int) -> Any:
    value: Any = None
    for _ in range(depth):
        value = [value]
    return value


def test_every_request_is_answered_whatever_it_holds() -> None:
    with running() as client:
        client.start(CAPABILITIES)
        client.open("file:///nowhere/one.py", STRANGE)
        numbers = {
            client.ask(method, params): (method, params)
            for method in REQUESTS
            for params in (*NONSENSE, {"textDocument": _nested(400)})
        }
        for number, asked in numbers.items():
            answer = client.answer(number)
            assert ("error" in answer) != ("result" in answer), f"{asked}: {answer}"
        assert {each["code"] for each in client.diagnostics("file:///nowhere/one.py")} >= {"TF03"}
        client.close()


def test_nesting_beyond_all_reason_is_no_message() -> None:
    with running() as client:
        client.start()
        body = b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        client.send_bytes(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        client.barrier()
        client.close()


def test_a_message_that_is_longer_than_it_says_costs_no_other() -> None:
    with running() as client:
        client.start()
        for data in (b"", b"x" * 100_000, b"\r\n" * 5, b"{}" * 9):
            client.send_bytes(b"Content-Length: 2\r\n\r\n{}" + data)
            client.barrier()
        client.close()


# A client that lacks the requested ability


@pytest.mark.parametrize(
    "reply", [refuse, lambda request: {}, lambda request: {"result": 7}, lambda request: {"result": [[None]]}]
)
def test_a_client_that_answers_with_errors_is_served(reply: Callable[[Json], Json], tmp_path: Path) -> None:
    """Errors, silence and nonsense instead of registrations, settings, progress and edits."""
    capabilities: Json = {
        "window": {"workDoneProgress": True, "showDocument": {"support": True}},
        "workspace": {
            "configuration": True,
            "applyEdit": True,
            "didChangeConfiguration": {"dynamicRegistration": True},
            "didChangeWatchedFiles": {"dynamicRegistration": True},
            "codeLens": {"refreshSupport": True},
            "diagnostics": {"refreshSupport": True},
        },
    }
    for number in range(60):
        (tmp_path / f"file{number}.py").write_text(STRANGE, encoding="utf-8", newline="")
    uri = (tmp_path / "main.py").as_uri()
    with running(reply=reply) as client:
        client.start(capabilities, [tmp_path])
        client.open(uri, script(120))
        asked = [
            client.ask(
                "workspace/executeCommand", {"command": "trainshift.makeDistributed", "arguments": [uri]}
            ),
            client.ask("workspace/executeCommand", {"command": "trainshift.explain", "arguments": ["TF03"]}),
        ]
        found = client.request("workspace/diagnostic", {"previousResultIds": []})
        assert len(found["items"]) == 61
        assert client.diagnostics(uri)
        if reply({"method": "any"}):
            for number in asked:
                client.answer(number)
        client.close()


def test_folders_and_files_may_go(tmp_path: Path) -> None:
    """A missing or unreadable file does not keep the others from being checked."""
    folder, other = tmp_path / "one", tmp_path / "two"
    for each in (folder, other):
        each.mkdir()
        (each / "pyproject.toml").write_text("[tool.trainshift]\n")
        (each / "helper.py").write_text("import tensorflow as tf\nopt = tf.keras.optimizers.Adam()\n")
        (each / "main.py").write_text("from helper import opt\n")
    uri = (folder / "main.py").as_uri()
    with running(folder=tmp_path) as client:
        client.start(CAPABILITIES, [folder, other])
        client.open(uri, "import tensorflow as tf\nfrom helper import opt\nadam = tf.keras.optimizers.Adam\n")
        before = client.diagnostics(uri)
        assert "TF03" in {each["code"] for each in before}
        client.request("workspace/diagnostic", {"previousResultIds": []})
        shutil.rmtree(folder)
        (other / "helper.py").unlink()
        (other / "helper.py").mkdir()
        (other / "main.py").write_bytes(b"\xff\xfe\0\0" * 10)
        (other / "dangling.py").symlink_to(other / "nothing.py")
        (other / "loop.py").symlink_to(other / "loop.py")
        os.mkfifo(other / "pipe.py")
        (other / "secret.py").write_text("import tensorflow as tf\n")
        (other / "secret.py").chmod(0)
        changes = [
            {"uri": (folder / name).as_uri(), "type": 3}
            for name in ("helper.py", "main.py", "pyproject.toml")
        ]
        client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        gone = [{"uri": "file:///nowhere/never", "name": "x"}, {"uri": folder.as_uri(), "name": "one"}]
        added = [{"uri": "file:///nowhere/at_all", "name": "y"}, {"uri": "nonsense", "name": "z"}]
        client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": gone}})
        client.request("workspace/diagnostic", {"previousResultIds": []})
        version = 2
        client.change(uri, version, [{"text": "import tensorflow as tf\nadam = tf.keras.optimizers.Adam\n"}])
        assert {each["code"] for each in client.diagnostics(uri)} >= {"TF03"}
        client.close()


# A client that disconnects


def test_the_process_ends_when_its_client_is_killed_though_the_pipes_stay_open() -> None:
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as parent, running(reads=False) as client:
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
        client.send({**message, "params": {"processId": parent.pid, "capabilities": {}}})
        client.notify("initialized", {})
        _flood(client, 300)  # The client reads nothing, so that the server cannot even write.
        parent.kill()
        parent.wait(PATIENCE)
        assert client.process.wait(PATIENCE) == 1


def test_the_process_ends_when_its_input_does_though_nobody_reads() -> None:
    with running(reads=False) as client:
        client.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}})
        client.notify("initialized", {})
        _flood(client, 300)
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(PATIENCE) == 1


def test_the_process_ends_when_its_output_is_closed_and_its_input_after_it() -> None:
    with running(reads=False) as client:
        assert client.process.stdout is not None
        assert client.process.stdin is not None
        client.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}})
        client.process.stdout.close()
        _flood(client, 50)
        client.process.stdin.close()
        assert client.process.wait(PATIENCE) == 1


def test_a_stopped_process_goes_on_where_it_was() -> None:
    with running() as client:
        client.start()
        client.open("file:///nowhere/one.py", STRANGE)
        client.process.send_signal(signal.SIGSTOP)
        number = client.ask("textDocument/diagnostic", {"textDocument": {"uri": "file:///nowhere/one.py"}})
        client.process.send_signal(signal.SIGCONT)
        assert client.answer(number)["result"]["items"]
        client.close()


def _flood(client: SoakClient, edits: int) -> str:
    """More diagnostics than fit into a pipe, and their text."""
    line = "adam{} = tf.keras.optimizers.Adam\n"
    text = "import tensorflow as tf\n" + "".join(line.format(number) for number in range(100))
    client.open("file:///nowhere/one.py", text)
    start = {"line": 0, "character": 0}
    for version in range(2, edits + 2):
        client.change(
            "file:///nowhere/one.py", version, [{"range": {"start": start, "end": start}, "text": "\n"}]
        )
        text = "\n" + text
    return text


def test_no_edit_is_lost_while_nobody_reads() -> None:
    with running(reads=False) as client:
        client.send({"jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": {"capabilities": {}}})
        client.notify("initialized", {})
        text = _flood(client, 300)
        client.read_on()
        found = client.diagnostics("file:///nowhere/one.py")
        assert_as_checked(found, text, "after the flood")
        shown = client.published
        client.wait(lambda: shown["file:///nowhere/one.py"]["version"] == 301, "not all is published")
        client.wait(lambda: shown["file:///nowhere/one.py"]["diagnostics"] == found, "not all is published")
        client.close()


# A restriction that fails


FAILING = """
from trainshift.restrictions import tf03_tensorflow_member_alias

def fail(program, report):
    raise KeyError("on purpose")

tf03_tensorflow_member_alias.check = fail
"""


def test_a_restriction_that_fails_sinks_no_other() -> None:
    with running(with_code(FAILING)) as client, running() as sound:
        for each in (client, sound):
            each.start(CAPABILITIES)
            each.open("file:///nowhere/one.py", script(150) + "adam = tf.keras.optimizers.Adam\n")
        found = client.diagnostics("file:///nowhere/one.py")
        expected = sound.diagnostics("file:///nowhere/one.py")
        assert any(each["code"] == "TF03" for each in expected)
        told = [each for each in found if "TF03" in each["message"]]
        assert len(told) == 1, told
        assert "on purpose" in told[0]["message"]
        start = {"line": 0, "character": 0}
        for version in range(2, 12):
            change = {"range": {"start": start, "end": start}, "text": "\n"}
            client.change("file:///nowhere/one.py", version, [change])
            client.diagnostics("file:///nowhere/one.py")
        assert client.said().count("TF03 failed") == 1, client.said()
        assert [each for each in found if each not in told] == [
            each for each in expected if each["code"] != "TF03"
        ]
        client.close()
        sound.close()
