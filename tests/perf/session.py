"""One server with one script open, and the actions of an editor, each timed in milliseconds."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from perf.client import Client, Json, ServerFailure

# The protocol's number for servers that accept edits instead of whole texts.
INCREMENTAL = 2

# Diagnostics are pushed: `textDocument.diagnostic`, with which the client could pull them, is left out.
CAPABILITIES: Json = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {
        "workspaceEdit": {"documentChanges": True},
        "configuration": True,
        "workspaceFolders": True,
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True, "dataSupport": True, "codeDescriptionSupport": True},
        "codeAction": {
            "codeActionLiteralSupport": {
                "codeActionKind": {"valueSet": ["", "quickfix", "refactor", "refactor.rewrite", "source"]}
            },
            "isPreferredSupport": True,
            "disabledSupport": True,
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
    },
}


@dataclass(frozen=True)
class Server:
    """A language server, an edit that makes it find something, and the actions to ask it for."""

    name: str
    command: Sequence[str]
    # The start of the line to edit, a harmless suffix, and a suffix that causes a finding with this code.
    line: str
    harmless: str
    problem: str
    code: str
    # A part of a line whose statement has an action, and the kind of an action on the whole file.
    statement: str = ""
    file_kind: str = ""
    # Takes seconds for an edit: a few edits of 1,000 lines suffice.
    slow: bool = False


class Session:
    """A server in a workspace of its own, which holds one script, and maybe `others` by their names."""

    def __init__(self, server: Server, text: str, others: Mapping[str, str] = MappingProxyType({})) -> None:
        self.server = server
        self.lines = text.split("\n")
        self.edited = next(i for i, line in enumerate(self.lines) if line.startswith(server.line))
        self.broken = False
        self.version = 0
        self.found: list[Json] = []
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name).resolve() / "train.py"
        path.write_text(text, encoding="utf-8")
        # The root of a project: what else lies in the system's folder of temporary files is no part of it.
        (path.parent / "pyproject.toml").write_text("", encoding="utf-8")
        for name, other in others.items():
            (path.parent / name).parent.mkdir(parents=True, exist_ok=True)
            (path.parent / name).write_text(other, encoding="utf-8")
        self.uri = path.as_uri()
        self.client = Client(server.command, path.parent)
        self.server_version = ""
        self.incremental = False

    def start(self) -> float:
        """Introduce the editor: from the start of the process to the reply."""
        folder = Path(self.folder.name).resolve()
        params = {
            "processId": os.getpid(),
            "rootUri": folder.as_uri(),
            "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name}],
            "capabilities": CAPABILITIES,
        }
        reply = self.client.request("initialize", params)
        sync = reply.result["capabilities"].get("textDocumentSync")
        self.incremental = (sync.get("change") if isinstance(sync, dict) else sync) == INCREMENTAL
        self.server_version = reply.result.get("serverInfo", {}).get("version", "")
        return (reply.received - self.client.started) * 1000

    def open(self) -> float:
        """Open the script, with the problem in it: from `initialized` to the diagnostics that show it."""
        self._change(problem=True)
        document = {"uri": self.uri, "languageId": "python", "version": self.version, "text": self._text()}
        sent = self.client.notify("initialized", {})
        self.client.notify("textDocument/didOpen", {"textDocument": document})
        return self._await_diagnostics(sent, problem=True)

    def edit(self, problem: bool) -> float:
        """Make an edit that brings the problem or removes it: until the diagnostics show it."""
        return self._await_diagnostics(self._type(problem), problem)

    def burst(self, edits: int) -> float:
        """Make edits without waiting: from the last, which brings the problem, until diagnostics show it."""
        for _ in range(edits - 1):
            self._type(problem=False)
        return self.edit(problem=True)

    def statement_action(self) -> float:
        """Ask for the actions on a statement and for what the first one changes."""
        line = next(i for i, line in enumerate(self.lines) if self.server.statement in line)
        column = self.lines[line].index(self.server.statement)
        context = {"diagnostics": [each for each in self.found if each["range"]["start"]["line"] == line]}
        return self._act((line, column), (line, len(self.lines[line])), context)

    def file_action(self) -> float:
        """Ask for the action on the whole file and for what it changes."""
        context = {"diagnostics": [], "only": [self.server.file_kind]}
        return self._act((0, 0), (len(self.lines) - 1, 0), context)

    def outline(self) -> float:
        """Request the summary of the script's program in its current state."""
        reply = self.client.request("trainshift/outline", {"textDocument": {"uri": self.uri}})
        if reply.result["status"] != "convertible":
            raise ServerFailure(f"the program is not convertible: {reply.result['reason']}")
        return (reply.received - reply.sent) * 1000

    def memory(self) -> float:
        """Resident megabytes of the server and of all processes below it."""
        done = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,rss="], capture_output=True, text=True, check=True
        )
        rows = [tuple(map(int, row.split())) for row in done.stdout.splitlines()]
        tree = [self.client.process.pid]
        for process in tree:
            tree += [child for child, parent, _ in rows if parent == process]
        return sum(size for process, _, size in rows if process in tree) / 1024

    def close(self) -> None:
        """End the server and remove the workspace."""
        self.client.close()
        self.folder.cleanup()

    def _text(self) -> str:
        return "\n".join(self.lines)

    def _change(self, problem: bool) -> Json:
        """Change the edited line; the range and the text of the edit.

        A number makes every version of the script new, as typing does: no server may remember its findings.
        """
        self.version += 1
        old = self.lines[self.edited]
        tail = f"{self.server.problem if problem else self.server.harmless}  # edit {self.version}"
        self.lines[self.edited] = self.server.line + tail
        return {"range": span((self.edited, len(self.server.line)), (self.edited, len(old))), "text": tail}

    def _type(self, problem: bool) -> float:
        """Send an edit; the time before its first byte went out."""
        change = self._change(problem)
        if not self.incremental:
            change = {"text": self._text()}
        document = {"uri": self.uri, "version": self.version}
        params = {"textDocument": document, "contentChanges": [change]}
        return self.client.notify("textDocument/didChange", params)

    def _await_diagnostics(self, sent: float, problem: bool) -> float:
        """Milliseconds until there are diagnostics of the last version, with the problem or without it."""
        while True:
            time, content = self.client.receive()
            if content.get("method") != "textDocument/publishDiagnostics":
                continue
            params = content["params"]
            if params["uri"] != self.uri or params.get("version") not in (None, self.version):
                continue
            self.found = params["diagnostics"]
            if any(self._is_problem(finding) for finding in self.found) == problem:
                return (time - sent) * 1000

    def _is_problem(self, finding: Json) -> bool:
        return bool(
            finding["range"]["start"]["line"] == self.edited and finding.get("code") == self.server.code
        )

    def _act(self, start: tuple[int, int], end: tuple[int, int], context: Json) -> float:
        """Ask for actions and for the edit of the first one: milliseconds of both requests."""
        reply = self.client.request(
            "textDocument/codeAction",
            {"textDocument": {"uri": self.uri}, "range": span(start, end), "context": context},
        )
        taken = reply.received - reply.sent
        action = next((each for each in reply.result or () if "edit" in each or "data" in each), None)
        if action and "edit" not in action:
            reply = self.client.request("codeAction/resolve", action)
            taken += reply.received - reply.sent
            action = reply.result
        if not action or not action.get("edit"):
            raise ServerFailure(
                f"no action with an edit at line {start[0] + 1} for {context.get('only', 'any')}"
            )
        return taken * 1000


def span(start: tuple[int, int], end: tuple[int, int]) -> Json:
    """A range of the protocol."""
    return {"start": position(*start), "end": position(*end)}


def position(line: int, column: int) -> Json:
    """A position of the protocol."""
    return {"line": line, "character": column}
