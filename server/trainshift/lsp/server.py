"""The server: maps messages to handlers.

Handlers run on the loop's thread and only record changes; the desk's thread checks, and its answers come back
through the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

from lsprotocol import types

from trainshift import __version__
from trainshift.lsp import diagnostics
from trainshift.lsp.answers.reports import Reports
from trainshift.lsp.answers.requests import Answers
from trainshift.lsp.fast_start import Opening, is_answer
from trainshift.lsp.inbox import Told
from trainshift.lsp.project import is_python
from trainshift.lsp.scheduler import OpenProgram
from trainshift.lsp.session import Session
from trainshift.lsp.text.documents import Paper, paper_of, plain
from trainshift.lsp.text.notebooks import Notebook, change_of
from trainshift.lsp.transport.capabilities import (
    CONVERT,
    DIFFERENTIATE,
    EXPAND_STATIC,
    EXPLAIN,
    MAKE,
    OPEN,
    OUTLINE,
    RULES,
    SCRIPTS,
    WARNINGS,
    initialize_result,
)
from trainshift.lsp.transport.logs import ClientLog
from trainshift.lsp.transport.protocol import Endpoint, Protocol, plain_json
from trainshift.lsp.transport.uris import path_of

log = logging.getLogger(__name__)

_WATCHED = (
    *("**/*.py", "**/*.lock", "**/.env", "**/Pipfile", "**/setup.cfg"),
    *("**/pyproject.toml", "**/pylock*.toml", "**/trainshift.toml"),
    *("**/*requirements*.txt", "**/*requirements*.in", "**/requirements/*.txt", "**/requirements/*.in"),
    *("**/environment*.yml", "**/environment*.yaml", "**/conda*.yml", "**/conda*.yaml"),
)
_TO_PUSH = 0.5
"""The seconds that diagnostics to be pushed wait for the settings."""
_WATCH = 3.0
"""Every so many seconds the server looks whether its client's process is still there."""


class Server:
    """One client's server; takes over from its opening."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self.endpoint = Endpoint("trainshift", __version__, protocol_cls=Protocol)
        self.endpoint.protocol.initialize = self._initialize
        self.log = ClientLog(self.endpoint.protocol, self.endpoint.window_log_message)
        logging.getLogger().addHandler(self.log)
        self.loop = self.log.loop = asyncio.new_event_loop()
        self.session = session = Session(self.endpoint, opening, self.loop)
        self.reports = Reports(session)
        self.answers = Answers(session)
        self.client, self.project, self.desk = session.client, session.project, session.desk
        self.programs = session.programs
        self._notebooks: dict[str, Notebook] = {}
        self._fresh: dict[str, OpenProgram] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.was_shut_down = False
        self._register()
        self.project.problem = self._show_problem
        for problem in opening.problems:
            self._show_problem(problem)

    # Start and end

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        parent = params.get("processId")
        if isinstance(parent, int) and parent > 0:
            threading.Thread(target=_end_with, args=(parent,), name="trainshift-parent", daemon=True).start()
        if self._opening.traces:
            self.endpoint.protocol.trace = types.TraceValue(params["trace"])
            self._traced(types.SetTraceParams(self.endpoint.protocol.trace))
        if not self.client.configures:
            self.reports.begin()
        return initialize_result(self.client)

    async def _initialized(self, params: Any) -> None:
        registrations = []
        if self.client.registers_configuration:
            options = {"section": "trainshift"}
            method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
            registrations.append(types.Registration("configuration", method, options))
        if self.client.watches:
            watchers = [{"globPattern": pattern} for pattern in _WATCHED]
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            registrations.append(types.Registration("files", method, {"watchers": watchers}))
        if registrations:
            self.endpoint.client_register_capability(types.RegistrationParams(registrations))
        await self._configure()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task beside the message loop."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def run(self) -> int:
        """Handle messages until there are no more; return the exit status."""
        loop = self.loop
        asyncio.set_event_loop(loop)

        def announce() -> None:
            with contextlib.suppress(RuntimeError):  # The loop has ended.
                loop.call_soon_threadsafe(self._next)

        self._opening.inbox.announce(announce)
        try:
            loop.run_forever()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0
        finally:
            self.desk.end()
        return 0 if self.was_shut_down else 1

    def _next(self) -> None:
        event = self._opening.inbox.take(0)
        if event is None:
            self.loop.stop()
        elif isinstance(event, Told):
            self.reports.show(*event)
        elif not is_answer(event):
            self.endpoint.protocol.receive(event)
        if self._fresh and self._opening.inbox.is_empty:
            self._judge_fresh()

    def _traced(self, params: types.SetTraceParams) -> None:
        """Follow the client's change of the trace level."""
        traces = params.value != types.TraceValue.Off
        logging.getLogger("trainshift").setLevel(logging.INFO if traces else logging.NOTSET)

    def _shutdown(self, params: Any) -> None:
        self.was_shut_down = True
        self.desk.end()

    # Settings

    async def _configure(self) -> None:
        """Request the client's settings, for every folder and for files outside them."""
        await self._ask_for_settings()
        self.session.configured.set()
        self._reconsider()
        self.reports.begin()

    async def _ask_for_settings(self) -> None:
        if self._opening.knows_settings:  # They were sent just now.
            self._opening.knows_settings = False
        elif self.client.configures:
            wanted = self.project.wanted
            items = [types.ConfigurationItem(each.get("scopeUri"), each["section"]) for each in wanted]
            try:
                sections = await self.endpoint.workspace_configuration_async(types.ConfigurationParams(items))
            except Exception as error:
                log.warning("the client did not send its settings: %s", error)
                return
            self.project.set_options(wanted, [plain_json(each) for each in sections])

    def _configuration_changed(self, params: types.DidChangeConfigurationParams) -> None:
        if not self.client.configures:
            settings = plain_json(params.settings)
            section = settings.get("trainshift", settings) if isinstance(settings, dict) else None
            self.project.set_defaults(section)
            self._reconsider()
        else:
            self._spawn(self._configure())

    def _reconsider(self) -> None:
        """Re-check documents whose settings changed."""
        for program in self.programs.values():
            rules = self.project.rules_of(path_of(program.uri))
            if rules != program.rules:
                self.desk.renew(program, rules)

    def _show_problem(self, problem: str) -> None:
        """Show the user an error in settings, once."""

        def show() -> None:
            self.endpoint.window_show_message(
                types.ShowMessageParams(types.MessageType.Warning, f"Trainshift: {problem}")
            )

        self.loop.call_soon_threadsafe(show)

    # Documents

    def _opened(self, params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        if document.uri in self.programs:
            self._close(document.uri)
        if is_python(document.uri, document.language_id) and document.uri not in self.session.cells:
            part = plain(document.uri, document.version, document.text, self.client.encoding)
            self._open(document.uri, paper_of(part))

    def _open(self, uri: str, paper: Paper) -> OpenProgram:
        first = self._opening.program(uri, paper)
        program = first or self.project.program(uri, paper)
        self.programs[uri] = program
        if not self.reports.has_begun:
            self.loop.call_later(_TO_PUSH, self.reports.begin)
        if first is None:
            self._text_changed(program)
            self.desk.put(program)
        self.session.survey_soon()
        return program

    def _changed(self, params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        program = self.programs.get(document.uri)
        part = program.paper.part_of(document.uri) if program is not None else None
        if program is None or part is None:
            log.info("a change of %s, which is not open, was ignored", document.uri)
            return
        if not _is_newer(document.version, part.version):
            log.warning("a change of %s to the old version %s was ignored", document.uri, document.version)
            return
        changes = [change_of(each) for each in params.content_changes]
        self._touch(program, paper_of(part.changed(document.version, changes)))

    def _touch(self, program: OpenProgram, paper: Paper) -> None:
        """Record a new version, which is checked at once when all waiting messages have been handled."""
        self._text_changed(program, paper)
        self.desk.touch(program, paper)
        self._fresh[program.uri] = program

    def _judge_fresh(self) -> None:
        programs, self._fresh = self._fresh, {}
        for program in programs.values():
            state = self.desk.at_once(program)
            if state is not None:
                self.reports.show(program, state, diagnostics.items_of(state, program.rules))
        self.desk.go_on()

    def _closed(self, params: types.DidCloseTextDocumentParams) -> None:
        if params.text_document.uri in self.programs:
            self._close(params.text_document.uri)

    def _close(self, uri: str) -> None:
        program = self.programs.pop(uri)
        self.desk.close(program)
        path = path_of(uri)
        if path:
            self.session.renew_users(path, self.project.closed(path), soon=False)
        if not self.client.pulls:
            for part in program.paper.parts:
                self.session.board.clear(part.uri)

    def _saved(self, params: types.DidSaveTextDocumentParams) -> None:
        if not self.client.watches:
            self.session.file_changed(path_of(params.text_document.uri), is_edit=True)

    def _text_changed(self, program: OpenProgram, paper: Paper | None = None) -> None:
        """Re-check other programs that may import this one."""
        path, paper = path_of(program.uri), paper or program.paper
        if path:
            self.session.renew_users(path, self.project.opened(path, paper.text), soon=False)

    def _watched(self, params: types.DidChangeWatchedFilesParams) -> None:
        settings = False
        for change in params.changes:
            path = path_of(change.uri)
            if path.endswith(".py"):
                self.session.file_changed(path, is_edit=change.type == types.FileChangeType.Changed)
            if not path.endswith(".py") or os.path.basename(path) == "setup.py":
                settings = True
        if settings:
            self.project.forget_settings()
            self._reconsider()

    def _folders_changed(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        gone = {each.uri for each in params.event.removed}
        kept = [uri for uri in self.project.folders if uri not in gone]
        self.project.set_folders([*kept, *(each.uri for each in params.event.added)])
        self._spawn(self._configure())

    # Notebooks

    def _notebook_opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        uri = params.notebook_document.uri
        notebook = Notebook(params, self.client.encoding)
        self._notebooks[uri] = notebook
        if uri in self.programs:
            self._close(uri)
        self.session.cells.update(dict.fromkeys(notebook.order, self._open(uri, notebook.paper())))

    def _notebook_changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        uri = params.notebook_document.uri
        notebook, program = self._notebooks.get(uri), self.programs.get(uri)
        if notebook is None or program is None or params.change.cells is None:
            return
        for cell in notebook.change(params.change.cells):
            self.session.cells.pop(cell, None)
            self.session.board.clear(cell)
        self.session.cells.update(dict.fromkeys(notebook.order, program))
        self._touch(program, notebook.paper())

    def _notebook_closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        uri = params.notebook_document.uri
        notebook = self._notebooks.pop(uri, None)
        for cell in notebook.order if notebook is not None else ():
            self.session.cells.pop(cell, None)
        if uri in self.programs:
            self._close(uri)

    def _register(self) -> None:
        handlers: dict[str, Callable[..., Any]] = {
            types.INITIALIZED: self._initialized,
            types.SHUTDOWN: self._shutdown,
            types.SET_TRACE: self._traced,
            types.TEXT_DOCUMENT_DID_OPEN: self._opened,
            types.TEXT_DOCUMENT_DID_CHANGE: self._changed,
            types.TEXT_DOCUMENT_DID_CLOSE: self._closed,
            types.TEXT_DOCUMENT_DID_SAVE: self._saved,
            types.NOTEBOOK_DOCUMENT_DID_OPEN: self._notebook_opened,
            types.NOTEBOOK_DOCUMENT_DID_CHANGE: self._notebook_changed,
            types.NOTEBOOK_DOCUMENT_DID_CLOSE: self._notebook_closed,
            types.WORKSPACE_DID_CHANGE_CONFIGURATION: self._configuration_changed,
            types.WORKSPACE_DID_CHANGE_WATCHED_FILES: self._watched,
            types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: self._folders_changed,
            types.TEXT_DOCUMENT_DIAGNOSTIC: self.reports.pulled,
            types.WORKSPACE_DIAGNOSTIC: self.reports.pulled_workspace,
            types.TEXT_DOCUMENT_CODE_ACTION: self.answers.actions,
            types.CODE_ACTION_RESOLVE: self.answers.resolve,
            types.TEXT_DOCUMENT_CODE_LENS: self.answers.lenses,
            types.TEXT_DOCUMENT_HOVER: self.answers.hover,
            types.TEXT_DOCUMENT_INLAY_HINT: self.answers.hints,
            OUTLINE: self.answers.outline,
            RULES: self.answers.rules,
            SCRIPTS: self.answers.scripts,
        }
        for method, handler in handlers.items():
            self.endpoint.feature(method)(_function(handler))
        self.endpoint.command(CONVERT)(_function(self.answers.convert))
        self.endpoint.command(DIFFERENTIATE)(_function(self.answers.differentiate))
        self.endpoint.command(EXPAND_STATIC)(_function(self.answers.expand_static))
        self.endpoint.command(MAKE)(_function(self.answers.make_static))
        self.endpoint.command(EXPLAIN)(_function(self.answers.explain))
        self.endpoint.command(OPEN)(_function(self.answers.open))
        self.endpoint.command(WARNINGS)(_function(self.answers.show_warnings))


def _end_with(parent: int) -> None:
    """End when the client's process has disappeared, whatever the loop is doing."""
    while True:
        time.sleep(_WATCH)
        try:
            os.kill(parent, 0)
        except PermissionError:
            continue
        except (OSError, OverflowError):
            log.info("the client has gone")
            os._exit(1)


def _function(method: Callable[..., Any]) -> Callable[..., Any]:
    """A bound method as a function, to which pygls can attach its attributes."""
    if asyncio.iscoroutinefunction(method):

        async def call_async(*params: Any) -> Any:
            return await method(*params)

        return call_async
    return lambda *params: method(*params)


def _is_newer(version: int | None, than: int | None) -> bool:
    return version is None or than is None or version > than
