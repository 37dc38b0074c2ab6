"""The process: its greeting, its end, its streams and its log."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.lsp.raw import EXIT, INITIALIZED, SHUTDOWN, decoded, encoded, initialize, python, talk
from e2e.lsp.session import EDITOR, PATIENCE, PULLING, SERVER, Json, able, serve

pytestmark = pytest.mark.slow

KINDS = [
    "quickfix",
    "refactor.rewrite.distribute",
    "source.makeDistributed.trainshift",
    "notebook.source.makeDistributed.trainshift",
    "source.fixAll.trainshift",
    "refactor.rewrite.differentiate.forward.trainshift",
    "refactor.rewrite.differentiate.reverse.trainshift",
    "refactor.rewrite.expandStatic.trainshift",
    "source.expandStatic.trainshift",
    "refactor.rewrite.makeStatic.trainshift",
]
OPEN: Json = {
    "method": "textDocument/didOpen",
    "params": {
        "textDocument": {
            "uri": "untitled:x",
            "languageId": "python",
            "version": 1,
            "text": "import tensorflow as tf\n",
        }
    },
}


def capabilities(client: Json) -> Json:
    """The capabilities of the server."""
    answer = talk(initialize(client)).answer("begin")["result"]
    assert answer["serverInfo"]["name"] == "trainshift"
    found: Json = answer["capabilities"]
    return found


@pytest.mark.slow
def test_a_client_that_says_nothing_gets_what_needs_nothing() -> None:
    said = capabilities({})
    assert said["positionEncoding"] == "utf-16"
    assert said["textDocumentSync"] == {"openClose": True, "change": 2, "save": {"includeText": False}}
    assert said["codeActionProvider"] is False
    assert "diagnosticProvider" not in said
    assert said["hoverProvider"] is True
    assert said["inlayHintProvider"] is True
    assert said["codeLensProvider"] == {"resolveProvider": False}
    assert said["executeCommandProvider"] == {
        "commands": [
            "trainshift.makeDistributed",
            "trainshift.differentiate",
            "trainshift.expandStatic",
            "trainshift.explain",
            "trainshift.makeStatic",
            "trainshift.openLine",
            "trainshift.showWarnings",
        ]
    }
    assert said["workspace"] == {"workspaceFolders": {"supported": True, "changeNotifications": True}}
    (selector,) = said["notebookDocumentSync"]["notebookSelector"]
    assert selector["cells"] == [{"language": "python"}]


def test_a_capable_client_gets_all() -> None:
    said = capabilities(able({"general.positionEncodings": ["utf-16", "utf-8", "utf-32"]}, PULLING))
    assert said["positionEncoding"] == "utf-32"
    assert said["codeActionProvider"] == {"codeActionKinds": KINDS, "resolveProvider": True}
    assert said["diagnosticProvider"] == {
        "identifier": "trainshift",
        "interFileDependencies": True,
        "workspaceDiagnostics": True,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["utf-16"], "utf-16"),
        (["utf-8", "utf-16"], "utf-8"),
        (["utf-7"], "utf-16"),
        ("utf-8", "utf-16"),
        ([], "utf-16"),
    ],
)
def test_the_encoding_is_one_that_the_client_offers(offered: Any, chosen: str) -> None:
    assert capabilities({"general": {"positionEncodings": offered}})["positionEncoding"] == chosen


@pytest.mark.slow
@pytest.mark.parametrize("junk", [None, 7, [], {"textDocument": 3, "general": [], "workspace": None}])
def test_junk_for_capabilities_is_no_capabilities(junk: Any) -> None:
    done = talk(
        {
            "id": 1,
            "method": "initialize",
            "params": {"processId": None, "rootUri": None, "capabilities": junk},
        }
    )
    assert done.answer(1)["result"]["capabilities"]["positionEncoding"] == "utf-16"


# The end


@pytest.mark.slow
def test_after_shutdown_and_exit_the_status_is_0() -> None:
    done = talk(initialize(), INITIALIZED, SHUTDOWN, EXIT)
    assert done.answer("end")["result"] is None
    assert (done.status, done.errors) == (0, "")


@pytest.mark.slow
def test_after_exit_alone_the_status_is_1() -> None:
    assert talk(initialize(), INITIALIZED, EXIT).status == 1


@pytest.mark.slow
def test_exit_before_anything_else_is_1() -> None:
    done = talk(EXIT)
    assert (done.messages, done.status) == ([], 1)


def test_when_standard_input_is_closed_the_process_ends() -> None:
    assert talk(initialize(), INITIALIZED, OPEN).status == 1
    assert talk().status == 1


@pytest.mark.slow
def test_standard_input_that_ends_within_a_message_ends_the_process() -> None:
    whole = encoded(initialize()) + encoded(OPEN)
    done = subprocess.run(SERVER, input=whole[:-10], capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert [each["id"] for each in decoded(done.stdout)] == ["begin"]


@pytest.mark.slow
def test_the_server_ends_with_its_client() -> None:
    """A client that is killed may leave the pipes open to other processes."""
    client = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    server = subprocess.Popen(
        SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert server.stdin
    server.stdin.write(encoded(initialize(processId=client.pid)) + encoded(INITIALIZED))
    server.stdin.flush()
    assert server.stdout
    assert server.stdout.readline().startswith(b"Content-Length")
    client.send_signal(signal.SIGKILL)
    client.communicate()
    assert server.wait(PATIENCE) == 1
    server.communicate()


# Order


@pytest.mark.slow
def test_nothing_is_answered_before_the_greeting() -> None:
    hover = {"id": 5, "method": "textDocument/hover", "params": {}}
    done = talk(hover, OPEN, initialize(), SHUTDOWN, EXIT)
    assert done.answer(5)["error"]["code"] == -32002
    assert [each.get("id") for each in done.messages] == [5, "begin", "end"]
    assert done.status == 0


def test_every_request_is_answered_and_nothing_else() -> None:
    again = {**initialize(), "id": "again"}
    ignored = {"method": "$/ofSomebodyElse", "params": {}}
    trace = {"method": "$/setTrace", "params": {"value": "verbose"}}
    unknown = {"id": "unknown", "method": "workspace/symbol", "params": {"query": ""}}
    broken = {"id": "broken", "method": "textDocument/hover", "params": {"textDocument": 3}}
    lens = {
        "id": "late",
        "method": "textDocument/codeLens",
        "params": {"textDocument": {"uri": "untitled:x"}},
    }
    done = talk(initialize(), INITIALIZED, again, ignored, trace, unknown, broken, SHUTDOWN, lens, EXIT)
    codes = {each["id"]: each["error"]["code"] for each in done.messages if "error" in each}
    assert codes == {"again": -32600, "unknown": -32601, "broken": -32602, "late": -32600}
    assert done.answer("end")["result"] is None
    assert done.status == 0


# Streams


def test_nothing_but_the_protocol_is_on_standard_output() -> None:
    """All other output, by Python or by libraries, goes to standard error."""
    code = (
        "import os, trainshift.lsp.diagnostics as module\n"
        "judge = module.items_of\n"
        "def noisy(*given):\n"
        "    print('junk', flush=True); os.write(1, b'more junk'); os.system('echo most junk')\n"
        "    return judge(*given)\n"
        "module.items_of = noisy\n"
    )
    pull = {"id": 9, "method": "textDocument/diagnostic", "params": {"textDocument": {"uri": "untitled:x"}}}
    server = subprocess.Popen(
        python(code), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert server.stdin
    assert server.stdout
    silent = able({"workspace.configuration": None}, PULLING)
    for message in (initialize(silent), INITIALIZED, OPEN, pull):
        server.stdin.write(encoded(message))
    server.stdin.flush()
    written = b""
    while b'"resultId"' not in written:
        written += server.stdout.read1()  # type: ignore[attr-defined]
    rest, errors = server.communicate(encoded(SHUTDOWN) + encoded(EXIT), PATIENCE)
    found = decoded(written + rest)
    (report,) = (each for each in found if each.get("id") == 9)
    assert report["result"]["items"] == []
    assert b"junk" in errors
    assert b"more junk" in errors
    assert b"most junk" in errors
    assert server.returncode == 0


@pytest.mark.slow
def test_a_log_is_written_to_a_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    gone = {
        "method": "textDocument/didChange",
        "params": {"textDocument": {"uri": "untitled:gone", "version": 2}, "contentChanges": [{"text": ""}]},
    }
    done = talk(initialize(), INITIALIZED, gone, SHUTDOWN, EXIT, command=[*SERVER, "--log-file", str(log)])
    assert (done.status, done.errors) == (0, "")
    assert "untitled:gone" in log.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_log_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    done = talk(initialize(), command=[*SERVER, "--log-file", str(tmp_path / "no" / "log")])
    assert (done.messages, done.status) == ([], 2)
    assert "cannot be written" in done.errors


@pytest.mark.slow
def test_the_command_of_the_command_line_is_the_same_server() -> None:
    command = [str(Path(sys.executable).with_name("trainshift")), "server", "--stdio"]
    done = talk(initialize(EDITOR), INITIALIZED, SHUTDOWN, EXIT, command=command)
    assert done.answer("begin")["result"]["serverInfo"]["name"] == "trainshift"
    assert done.status == 0


# TCP


@pytest.mark.asyncio
async def test_a_client_can_connect_to_a_port() -> None:
    server = subprocess.Popen(
        [*SERVER, "--tcp", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr
        said = server.stderr.readline()
        assert said.startswith("listening on 127.0.0.1:")
        port = int(said.rpartition(":")[2])
        async with serve(tcp=port) as session:
            document = session.open("import tensorflow as tf\nAdam = tf.keras.optimizers.Adam\n")
            (found,) = await session.shown(document, lambda found: found)
            assert found.code == "TF03"
        out, errors = server.communicate(timeout=PATIENCE)
        assert (out, errors, server.returncode) == ("", "", 0)
    finally:
        server.kill()


@pytest.mark.slow
def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [*SERVER, "--tcp", address], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    assert done.returncode == 2
    assert "cannot listen" in done.stderr
    assert "Traceback" not in done.stderr
