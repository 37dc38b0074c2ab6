"""An editor for tests: it starts the real server, keeps documents, applies edits and records messages.

Nothing here sleeps: tests wait for the message that changes the state.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from cattrs import Converter
from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.protocol import default_converter
from pytest_lsp import ClientServerConfig, LanguageClient
from pytest_lsp.client import DEFAULT_CLIENT_FEATURES, register_lsp_features

from e2e.lsp.edits import TextEdit, applied, position, span
from trainshift.lsp.transport.protocol import plain_json
from trainshift.lsp.transport.uris import path_of

Json = dict[str, Any]
T = TypeVar("T")

PATIENCE = 60.0
"""The seconds that a test waits for anything; the machine may be busy."""

SERVER = [sys.executable, "-m", "trainshift.lsp"]

EDITOR: Json = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True, "showDocument": {"support": True}, "showMessage": {}},
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {}},
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "workspaceFolders": True,
        "configuration": True,
        "codeLens": {"refreshSupport": True},
        "diagnostics": {"refreshSupport": True},
    },
    "textDocument": {
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor", "source"]}},
            "resolveSupport": {"properties": ["edit"]},
            "dataSupport": True,
            "disabledSupport": True,
            "isPreferredSupport": True,
            "honorsChangeAnnotations": True,
        },
        "publishDiagnostics": {
            "relatedInformation": True,
            "versionSupport": True,
            "codeDescriptionSupport": True,
            "tagSupport": {"valueSet": [1, 2]},
        },
        "codeLens": {"dynamicRegistration": False},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
    },
    "notebookDocument": {"synchronization": {"dynamicRegistration": False}},
}
"""The capabilities of a full-featured editor that gets its diagnostics pushed."""


def converter() -> Converter:
    """lsprotocol's converter, extended by notebook selectors with cells only, and actions with commands."""
    made: Converter = default_converter()  # type: ignore[no-untyped-call]
    made.register_structure_hook(
        types.NotebookDocumentFilterWithCells,
        lambda value, _: types.NotebookDocumentFilterWithCells(
            [types.NotebookCellLanguage(**each) for each in value["cells"]], value.get("notebook")
        ),
    )
    made.register_structure_hook(
        types.Command | types.CodeAction,
        lambda value, _: made.structure(value, types.CodeAction if "kind" in value else types.Command),
    )
    return made


def able(changes: Mapping[str, object], base: Json = EDITOR) -> Json:
    """Capabilities with other values at dotted paths; None removes one."""
    made = deepcopy(base)
    for path, value in changes.items():
        *parents, name = path.split(".")
        inside = made
        for parent in parents:
            inside = inside.setdefault(parent, {})
        if value is None:
            inside.pop(name, None)
        else:
            inside[name] = value
    return made


PULLING = able({"textDocument.diagnostic": {}, "workspace.diagnostics": None})
"""An editor that asks for diagnostics, and is not told when to ask again: an answer has to be complete."""


def structured(edit: Json) -> types.WorkspaceEdit:
    """An edit in an answer of a command."""
    return get_converter().structure(edit, types.WorkspaceEdit)


@dataclass
class Document:
    """A document of the editor: its text, its version, and the diagnostics shown at each version."""

    uri: str
    text: str
    version: int = 1
    shown: list[types.Diagnostic] | None = None
    shown_version: int | None = None

    @property
    def identifier(self) -> types.TextDocumentIdentifier:
        """The document's identifier in requests."""
        return types.TextDocumentIdentifier(self.uri)

    def line(self, beginning: str) -> int:
        """The line, from 0, of the first statement that begins with a text."""
        lines = self.text.replace("\r\n", "\n").split("\n")
        return next(number for number, line in enumerate(lines) if line.lstrip().startswith(beginning))


@dataclass
class Session:
    """A client with its server."""

    client: LanguageClient
    encoding: str = "utf-16"
    greeting: types.InitializeResult | None = None
    documents: dict[str, Document] = field(default_factory=dict)
    published: list[types.PublishDiagnosticsParams] = field(default_factory=list)
    messages: list[types.ShowMessageParams] = field(default_factory=list)
    shown_documents: list[types.ShowDocumentParams] = field(default_factory=list)
    registrations: list[types.Registration] = field(default_factory=list)
    progress: list[tuple[types.ProgressToken, Any]] = field(default_factory=list)
    refreshes: list[str] = field(default_factory=list)
    logged: list[types.LogMessageParams] = field(default_factory=list)
    traced: list[str] = field(default_factory=list)
    edits: list[types.WorkspaceEdit] = field(default_factory=list)
    configured: int = 0
    refuses: str = ""
    """The reason why the editor applies no edits; empty if it applies them."""
    _heard: asyncio.Event = field(default_factory=asyncio.Event)
    _numbers: Iterable[int] = field(default_factory=lambda: count(1))

    # Received messages

    def hear(self) -> None:
        """Let all waiting tests check again."""
        self._heard.set()
        self._heard = asyncio.Event()

    async def until(self, what: str, holds: Callable[[], T]) -> T:
        """Wait until something holds; return it."""
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE
        while not (value := holds()):
            assert self.client.error is None, self.client.error
            try:
                await asyncio.wait_for(self._heard.wait(), end - loop.time())
            except asyncio.TimeoutError:
                raise AssertionError(f"waited {PATIENCE:.0f} s in vain until {what}") from None
        return value

    def features(self) -> dict[str, Callable[..., Any]]:
        """The client's handlers of the server's messages."""

        def publish(params: types.PublishDiagnosticsParams) -> None:
            self.published.append(params)
            document = self.documents.get(params.uri)
            if document is not None:
                document.shown, document.shown_version = list(params.diagnostics), params.version
            self.hear()

        def show(params: types.ShowMessageParams) -> None:
            self.messages.append(params)
            self.hear()

        def show_document(params: types.ShowDocumentParams) -> types.ShowDocumentResult:
            self.shown_documents.append(params)
            self.hear()
            return types.ShowDocumentResult(success=True)

        def register(params: types.RegistrationParams) -> None:
            self.registrations += params.registrations
            self.hear()

        def configuration(client: LanguageClient, params: types.ConfigurationParams) -> list[Any]:
            self.configured += 1
            self.hear()
            return [
                client.get_configuration(section=each.section, scope_uri=each.scope_uri)
                for each in params.items
            ]

        def begin(params: types.WorkDoneProgressCreateParams) -> None:
            self.progress.append((params.token, {"kind": "create"}))

        def go_on(params: types.ProgressParams) -> None:
            self.progress.append((params.token, params.value))
            self.hear()

        def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            self.edits.append(params.edit)
            if self.refuses:
                return types.ApplyWorkspaceEditResult(False, failure_reason=self.refuses)
            self.apply(params.edit)
            return types.ApplyWorkspaceEditResult(True)

        def log(params: types.LogMessageParams) -> None:
            self.logged.append(params)
            self.hear()

        def trace(params: types.LogTraceParams) -> None:
            self.traced.append(params.message)
            self.hear()

        def refresh_of(method: str) -> Callable[[None], None]:
            def refresh(params: None) -> None:
                self.refreshes.append(method)
                self.hear()

            return refresh

        return {
            **DEFAULT_CLIENT_FEATURES,
            types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: publish,
            types.WINDOW_SHOW_MESSAGE: show,
            types.WINDOW_SHOW_DOCUMENT: show_document,
            types.WINDOW_LOG_MESSAGE: log,
            types.LOG_TRACE: trace,
            types.CLIENT_REGISTER_CAPABILITY: register,
            types.WORKSPACE_CONFIGURATION: configuration,
            types.WINDOW_WORK_DONE_PROGRESS_CREATE: begin,
            types.PROGRESS: go_on,
            types.WORKSPACE_APPLY_EDIT: apply,
            types.WORKSPACE_DIAGNOSTIC_REFRESH: refresh_of(types.WORKSPACE_DIAGNOSTIC_REFRESH),
            types.WORKSPACE_CODE_LENS_REFRESH: refresh_of(types.WORKSPACE_CODE_LENS_REFRESH),
        }

    # Documents

    def open(self, text: str, uri: str = "", language: str = "python") -> Document:
        """Open a document; one without a name is new and unsaved."""
        document = Document(uri or f"untitled:script-{next(iter(self._numbers))}", text)
        self.documents[document.uri] = document
        item = types.TextDocumentItem(document.uri, language, document.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return document

    def write(self, document: Document, text: str) -> None:
        """Replace the whole text of a document."""
        self._changed(document, text, types.TextDocumentContentChangeWholeDocument(text))

    def edit(self, document: Document, old: str, new: str) -> None:
        """Replace the only occurrence of a text."""
        assert document.text.count(old) == 1, f"{old!r} is there {document.text.count(old)} times"
        start = document.text.index(old)
        first = position(document.text, start, self.encoding)
        last = position(document.text, start + len(old), self.encoding)
        change = types.TextDocumentContentChangePartial(types.Range(first, last), new)
        self._changed(document, document.text.replace(old, new), change)

    def _changed(self, document: Document, text: str, *changes: types.TextDocumentContentChangeEvent) -> None:
        document.text, document.version = text, document.version + 1
        identifier = types.VersionedTextDocumentIdentifier(document.version, document.uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, list(changes)))

    def close(self, document: Document) -> None:
        """Close a document."""
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(document.identifier))

    def clear(self) -> None:
        """Close all documents, and forget the received messages."""
        for document in self.documents.values():
            self.close(document)
        self.documents.clear()
        for heard in (self.published, self.messages, self.refreshes, self.logged, self.traced, self.edits):
            heard.clear()

    def save(self, document: Document) -> None:
        """Notify the server that a document was saved."""
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(document.identifier))

    def watched(self, path: Path, kind: types.FileChangeType) -> None:
        """Notify the server that a file has changed on the disk."""
        event = types.FileEvent(path.as_uri(), kind)
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))

    async def shown(
        self, document: Document, holds: Callable[[list[types.Diagnostic]], object]
    ) -> list[types.Diagnostic]:
        """The diagnostics of the current version, once a condition holds for them."""

        def right() -> bool:
            is_fresh = document.shown_version == document.version
            return document.shown is not None and is_fresh and bool(holds(document.shown))

        try:
            await self.until("diagnostics are shown", right)
        except AssertionError as error:
            shown = [(each.code, each.range.start.line, each.message) for each in document.shown or ()]
            raise AssertionError(f"{error}; at last, of version {document.shown_version}: {shown}") from None
        return document.shown or []

    async def pull(self, document: Document, known: str | None = None) -> Any:
        """The report of a document that the client asks for."""
        params = types.DocumentDiagnosticParams(document.identifier, previous_result_id=known)
        return await self.ask(self.client.text_document_diagnostic_async(params))

    async def pulled(self, document: Document) -> list[types.Diagnostic]:
        """The diagnostics of a document that the client asks for."""
        return list((await self.pull(document)).items)

    async def ask(self, answer: Any) -> Any:
        """The answer to a request."""
        return await asyncio.wait_for(answer, PATIENCE)

    # Actions

    async def actions(
        self, document: Document, first: int, last: int | None = None, *, only: Sequence[str] | None = None
    ) -> list[types.CodeAction]:
        """The menu at the start of a line, or for all lines up to the start of the last one."""
        start = types.Position(first, 0)
        where = types.Range(start, start if last is None else types.Position(last, 0))
        return await self.menu(document, where, only=only)

    async def menu(
        self, document: Document, where: types.Range, *, only: Sequence[str] | None = None
    ) -> list[types.CodeAction]:
        """The menu for a range."""
        context = types.CodeActionContext([], only=list(only) if only is not None else None)
        params = types.CodeActionParams(document.identifier, where, context)
        return list(await self.ask(self.client.text_document_code_action_async(params)) or ())

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        """An action with its edit."""
        answer = await self.ask(self.client.code_action_resolve_async(action))
        assert isinstance(answer, types.CodeAction)
        return answer

    async def result(self, action: types.CodeAction, document: Document) -> str:
        """The text of a document after an action, without changing it."""
        resolved = await self.resolve(action) if action.edit is None else action
        assert resolved.edit is not None
        return self.texts_after(resolved.edit).get(document.uri, document.text)

    async def run(self, command: str, *arguments: object) -> Any:
        """The result of a command."""
        params = types.ExecuteCommandParams(command, list(arguments))
        return await self.ask(self.client.workspace_execute_command_async(params))

    async def request(self, method: str, params: object = None) -> Any:
        """The answer to a request of this server only, as plain JSON."""
        sent = self.client.protocol.send_request_async(method, params)  # type: ignore[no-untyped-call]
        return plain_json(await self.ask(sent))

    async def outline(self, uri: str) -> Any:
        """The summary of a program as a whole."""
        return await self.request("trainshift/outline", {"textDocument": {"uri": uri}})

    async def lenses(self, document: Document) -> list[types.CodeLens]:
        """The lenses of a document."""
        params = types.CodeLensParams(document.identifier)
        return list(await self.ask(self.client.text_document_code_lens_async(params)) or ())

    async def hover(self, document: Document, at: int) -> str:
        """The hover for the code point at an offset."""
        place = position(document.text, at, self.encoding)
        found = await self.ask(
            self.client.text_document_hover_async(types.HoverParams(document.identifier, place))
        )
        return found.contents.value if found is not None else ""

    def texts_after(self, edit: types.WorkspaceEdit) -> dict[str, str]:
        """The texts after an edit, by document; its versions and annotations must be valid.

        A document that is not open has no version, and is opened from its file with its line endings.
        """
        made: dict[str, str] = {}
        for change in edit.document_changes or ():
            assert isinstance(change, types.TextDocumentEdit)
            identifier = change.text_document
            document = self._document(identifier.uri)
            assert identifier.version == (document.version if identifier.uri in self.documents else None)
            for each in change.edits:
                if isinstance(each, types.AnnotatedTextEdit):
                    assert each.annotation_id in (edit.change_annotations or {})
            made[identifier.uri] = self._applied(document, change.edits)
        for uri, edits in (edit.changes or {}).items():
            assert edit.document_changes is None
            made[uri] = self._applied(self._document(uri), edits)
        return made

    def _document(self, uri: str) -> Document:
        """An open document, or as an editor would open it: without a byte order mark."""
        if uri in self.documents:
            return self.documents[uri]
        return Document(uri, Path(path_of(uri)).read_bytes().decode("utf-8-sig"))

    def _applied(self, document: Document, edits: Sequence[TextEdit]) -> str:
        text = applied(document.text, edits, self.encoding)
        is_dos = document.uri not in self.documents and "\r\n" in document.text
        return text.replace("\r\n", "\n").replace("\n", "\r\n") if is_dos else text

    def apply(self, edit: types.WorkspaceEdit) -> None:
        """Apply an edit, and notify the server as usual."""
        for uri, text in self.texts_after(edit).items():
            self.write(self.documents.get(uri) or self.open(self._document(uri).text, uri), text)

    def underlined(self, document: Document, diagnostic: types.Diagnostic) -> str:
        """The text that a diagnostic is about."""
        start, end = span(document.text, diagnostic.range, self.encoding)
        return document.text[start:end]

    def configure(self, section: object, uri: str = "") -> None:
        """Set the section of the editor's settings, for a folder or for all, and notify the server."""
        self.client.set_configuration(section, section="trainshift", scope_uri=uri or None)
        self.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))


@asynccontextmanager
async def serve(
    capabilities: Json = EDITOR,
    *,
    folders: Sequence[Path] = (),
    options: object = None,
    settings: Mapping[str, object] | None = None,
    tcp: int | None = None,
) -> AsyncIterator[Session]:
    """A session with a server of its own; `settings` are the sections of the editor, by folder or ""."""
    client = LanguageClient(
        converter_factory=converter,
        configuration={uri: {"trainshift": section} for uri, section in (settings or {}).items()},
    )
    session = Session(client)
    register_lsp_features(client, session.features())
    with tempfile.TemporaryDirectory(prefix="trainshift-") as place:
        log = Path(place) / "log"
        if tcp is None:
            command = [*SERVER, "--log-file", str(log)]
            await ClientServerConfig(command, client_factory=lambda: client).start()
        else:
            await client.start_tcp("127.0.0.1", tcp)
        structured = get_converter().structure(capabilities, types.ClientCapabilities)
        session.greeting = await session.ask(
            client.initialize_session(
                types.InitializeParams(
                    structured,
                    process_id=os.getpid(),
                    workspace_folders=[types.WorkspaceFolder(each.as_uri(), each.name) for each in folders],
                    initialization_options=options,
                )
            )
        )
        session.encoding = session.greeting.capabilities.position_encoding or "utf-16"
        try:
            yield session
        finally:
            await session.ask(client.shutdown_session())
            await client.stop()  # type: ignore[no-untyped-call]
        if tcp is None:
            assert client._server is not None
            assert client._server.stderr is not None
            assert client._server.returncode == 0, await client._server.stderr.read()
            said = log.read_text(encoding="utf-8")
            assert " ERROR " not in said, said[said.index(" ERROR ") :][:4_000]
