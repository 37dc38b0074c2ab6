"""Fast start: check the first document before the message handlers are imported, which takes equally long.

An editor starts the server for a document that the user looks at.  Its diagnostics need the engine and the
client's settings, but neither pygls nor lsprotocol, which are loaded afterwards. Messages that arrive
meanwhile are handled then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from trainshift.lsp.diagnostics import items_of
from trainshift.lsp.inbox import Event, Inbox, Told
from trainshift.lsp.project import Project, is_python
from trainshift.lsp.published import Board
from trainshift.lsp.scheduler import Desk, OpenProgram, State
from trainshift.lsp.text.documents import Paper, paper_of, plain
from trainshift.lsp.transport.client import read_client
from trainshift.lsp.transport.streams import encoded
from trainshift.lsp.transport.uris import path_of

_ASKED = "trainshift/settings"
_TO_OPEN = 0.05
"""The seconds to wait for a document."""
_TO_JUDGE = 3.0
"""The seconds to wait for the first answer."""


class Opening:
    """The initial state of a server: a client, its project, and maybe the first documents.

    `params` are those of `initialize`, plain JSON; `write` sends a message.
    """

    def __init__(self, params: dict[str, Any], inbox: Inbox, write: Callable[[bytes], None]) -> None:
        self.client = read_client(params.get("capabilities"))
        self.inbox = inbox
        self.traces = params.get("trace") in ("messages", "verbose")
        """True if the client wants a trace of the server."""
        self.board = Board(write)
        self.problems: list[str] = []
        """The problems in the settings that were not reported yet."""
        self.project = Project(self.problems.append)
        self.desk = Desk(self._tell, self.project.refresh, self.project.outline)
        self.knows_settings = False
        """True if the client has sent its settings."""
        self._write = write
        self._first: OpenProgram | None = None
        folders = params.get("workspaceFolders")
        uris = (
            [each.get("uri") for each in folders if isinstance(each, dict)]
            if isinstance(folders, list)
            else []
        )
        if not uris:
            uris = [params.get("rootUri")]
        self.project.set_folders([each for each in uris if isinstance(each, str)])
        self._wanted = self.project.wanted
        given = params.get("initializationOptions")
        self.project.set_defaults(given.get("settings", given) if isinstance(given, dict) else None)

    def _tell(self, program: OpenProgram, state: State) -> None:
        """The desk knows more (on the desk's thread)."""
        self.inbox.put(Told(program, state, items_of(state, program.rules)))

    def attend(self) -> None:
        """Wait for a document, and publish its diagnostics unless the client pulls them."""
        held: list[Event] = []
        told: Told | None = None
        ends = time.monotonic() + _TO_OPEN
        while not (self.traces or self._is_judged(told)):  # Only the server reports its progress.
            try:
                event = self.inbox.take(ends - time.monotonic())
            except TimeoutError:
                break
            if is_answer(event):
                if self._configure(event):
                    continue
                break
            held.append(event)
            if event is None:
                break
            if isinstance(event, Told):
                told = event
            elif event.get("method") == "initialized" and self.client.configures:
                self._ask()
            elif event.get("method") == "textDocument/didOpen" and self._first is None:
                self._open(event.get("params"))
                if self._first is not None:
                    ends = time.monotonic() + _TO_JUDGE
        # Errors in settings come first, and only the server can report them.
        is_free = not self.client.pulls and not self.problems
        if told is not None and self._is_judged(told) and is_free:
            for part in told.state.paper.parts:
                self.board.show(part.uri, part.version, told.items[part.uri])
        self.inbox.put_back(held)

    def _is_judged(self, told: Told | None) -> bool:
        """Return whether the first document was judged by the client's settings."""
        has_settings = self.knows_settings or not self.client.configures
        return told is not None and told.state is told.program.state and has_settings

    def _open(self, params: object) -> None:
        document = params.get("textDocument") if isinstance(params, dict) else None
        match document:
            case {"uri": str(uri), "languageId": str(kind), "version": int(version), "text": str(text)}:
                if is_python(uri, kind):
                    paper = paper_of(plain(uri, version, text, self.client.encoding))
                    self.project.opened(path_of(uri), text)
                    self._first = self.project.program(uri, paper)
                    self.desk.put(self._first)

    def _ask(self) -> None:
        params = {"items": self._wanted}
        self._write(encoded({"id": _ASKED, "method": "workspace/configuration", "params": params}))

    def _configure(self, event: Event) -> bool:
        sections = event.get("result") if isinstance(event, dict) else None
        if not isinstance(sections, list):
            return False
        self.project.set_options(self._wanted, sections)
        self.knows_settings = True
        if self._first is not None:
            rules = self.project.rules_of(path_of(self._first.uri))
            if rules != self._first.rules:
                self.desk.renew(self._first, rules)
        return True

    def program(self, uri: str, paper: Paper) -> OpenProgram | None:
        """The first document, which the desk has already; None if this is another one."""
        first, self._first = self._first, None
        return first if first is not None and first.uri == uri and first.paper == paper else None


def is_answer(event: Event) -> bool:
    """Return whether an event is the client's late answer about its settings, which only the
    opening handles.
    """
    return isinstance(event, dict) and event.get("id") == _ASKED and "method" not in event
