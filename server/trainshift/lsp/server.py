"""The server: which message does what.

Handlers run on the loop's thread and only take down what is new; the desk's thread judges, and its
answers come back through the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcException, JsonRpcInvalidParams

from trainshift import __version__
from trainshift.core.source import Span
from trainshift.engine.checking import CheckReport
from trainshift.lsp import diagnostics
from trainshift.lsp.capabilities import CONVERT, EXPLAIN, initialize_result
from trainshift.lsp.client import Client, read_client
from trainshift.lsp.desk import Desk, Outdated, Program, State
from trainshift.lsp.documents import Change, Paper, notebook_paper, paper_of, plain
from trainshift.lsp.logs import ClientLog
from trainshift.lsp.project import Project
from trainshift.lsp.protocol import Endpoint, Protocol, ServerCancelled
from trainshift.lsp.streams import Reader, notification
from trainshift.lsp.uris import path_of

log = logging.getLogger(__name__)
T = TypeVar("T")

_LANGUAGES = ("python",)
_WATCHED = ("**/*.py", "**/pyproject.toml", "**/trainshift.toml", "**/requirements*.txt", "**/*.lock")
_TO_CONFIGURE = 2.0
"""So many seconds a report that is pulled waits for the client's settings."""
_PROMPTLY = 0.03
"""So many seconds a pulled report waits for the full check before it is what is known at once."""
_FAREWELL = 5.0
"""So many seconds after the client's last word the process ends in any case."""
_WATCH = 3.0
"""Every so many seconds the server looks whether its client's process is still there."""


class Server:
    """One client's server."""

    def __init__(self) -> None:
        self.endpoint = Endpoint("trainshift", __version__, protocol_cls=Protocol)
        self.endpoint.protocol.initialize = self._initialize
        self.log = ClientLog(self.endpoint.protocol, self.endpoint.window_log_message)
        logging.getLogger().addHandler(self.log)
        self.client = Client()
        self.project = Project(self._show_problem)
        self.desk = Desk(self._told, self.project.refresh)
        self._loop = self.log.loop = asyncio.new_event_loop()
        self._programs: dict[str, Program] = {}
        self._cells: dict[str, Program] = {}
        self._notebooks: dict[str, dict[str, Any]] = {}
        self._published: dict[str, bytes] = {}
        self._fresh: dict[str, Program] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._configured = asyncio.Event()
        self.was_shut_down = False
        self._register()

    # Start and end

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        self.client = read_client(params.get("capabilities"))
        parent = params.get("processId")
        if isinstance(parent, int) and parent > 0:
            threading.Thread(target=_end_with, args=(parent,), name="trainshift-parent", daemon=True).start()
        folders = params.get("workspaceFolders")
        uris = (
            [each.get("uri") for each in folders if isinstance(each, dict)]
            if isinstance(folders, list)
            else []
        )
        if not uris:
            uris = [params.get("rootUri")]
        self.project.set_folders([each for each in uris if isinstance(each, str)])
        if params.get("trace") in ("messages", "verbose"):
            self.endpoint.protocol.trace = types.TraceValue(params["trace"])
            self._traced(types.SetTraceParams(self.endpoint.protocol.trace))
        given = params.get("initializationOptions")
        self.project.set_defaults(given.get("settings", given) if isinstance(given, dict) else None)
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
        """Do something beside the handling of messages."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def run(self, reader: Reader) -> int:
        """Handle messages until there are no more; returns the exit status."""
        loop = self._loop
        asyncio.set_event_loop(loop)

        def read() -> None:
            message: Any = {}
            while message is not None:
                try:
                    message = reader.read()
                except OSError:
                    message = None
                call = self.endpoint.protocol.receive if message is not None else lambda _: loop.stop()
                with contextlib.suppress(RuntimeError):  # The loop has ended.
                    loop.call_soon_threadsafe(call, message)
            time.sleep(_FAREWELL)  # The process has ended, unless the loop writes what nobody reads.
            os._exit(1)

        threading.Thread(target=read, name="trainshift-reader", daemon=True).start()
        try:
            loop.run_forever()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0
        finally:
            self.desk.end()
        return 0 if self.was_shut_down else 1

    def _traced(self, params: types.SetTraceParams) -> None:
        """The client wants to know more, or no more than usual."""
        traces = params.value != types.TraceValue.Off
        logging.getLogger("trainshift").setLevel(logging.INFO if traces else logging.NOTSET)

    def _shutdown(self, params: Any) -> None:
        self.was_shut_down = True
        self.desk.end()

    # Settings

    async def _configure(self) -> None:
        """Ask the client for its settings, of every folder and of what is in none."""
        await self._ask_for_settings()
        self._configured.set()
        self._reconsider()

    async def _ask_for_settings(self) -> None:
        if self.client.configures:
            folders = self.project.folders
            items = [types.ConfigurationItem(scope_uri=uri, section="trainshift") for uri in folders]
            items.append(types.ConfigurationItem(section="trainshift"))
            try:
                sections = await self.endpoint.workspace_configuration_async(types.ConfigurationParams(items))
            except Exception as error:
                log.warning("the client does not tell its settings: %s", error)
                return
            plain = [_plain(each) for each in sections]
            self.project.set_options(dict(zip((*folders, ""), plain, strict=False)))

    async def _has_settings(self) -> None:
        """Wait for the client's settings at the start, if it does not take long to tell them."""
        if self.client.configures and not self._configured.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._configured.wait(), _TO_CONFIGURE)

    def _configuration_changed(self, params: types.DidChangeConfigurationParams) -> None:
        if not self.client.configures:
            settings = _plain(params.settings)
            section = settings.get("trainshift", settings) if isinstance(settings, dict) else None
            self.project.set_defaults(section)
            self._reconsider()
        else:
            self._spawn(self._configure())

    def _reconsider(self) -> None:
        """Judge anew what other rules than before hold for."""
        for program in self._programs.values():
            rules = self.project.rules_of(path_of(program.uri))
            if rules != program.rules:
                self.desk.renew(program, rules)

    def _show_problem(self, problem: str) -> None:
        """Tell the user, once, what is wrong with settings."""

        def show() -> None:
            self.endpoint.window_show_message(
                types.ShowMessageParams(types.MessageType.Warning, f"Trainshift: {problem}")
            )

        self._loop.call_soon_threadsafe(show)

    # Documents

    def _opened(self, params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        is_python = document.language_id in _LANGUAGES or path_of(document.uri).endswith((".py", ".pyi"))
        if document.uri in self._programs:
            self._close(document.uri)
        if is_python and document.uri not in self._cells:
            part = plain(document.uri, document.version, document.text, self.client.encoding)
            self._open(document.uri, paper_of(part))

    def _open(self, uri: str, paper: Paper) -> Program:
        path = path_of(uri)
        live = self.project.live(path, is_linked=not paper.is_notebook)
        program = Program(uri, paper, live, self.project.rules_of(path))
        self._programs[uri] = program
        self._text_changed(program)
        self.desk.put(program)
        return program

    def _changed(self, params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        program = self._programs.get(document.uri)
        part = program.paper.part_of(document.uri) if program is not None else None
        if program is None or part is None:
            log.info("a change of %s, which is not open, was ignored", document.uri)
            return
        if not _is_newer(document.version, part.version):
            log.warning("a change of %s to the old version %s was ignored", document.uri, document.version)
            return
        changes = [_change(each) for each in params.content_changes]
        self._touch(program, paper_of(part.changed(document.version, changes)))

    def _touch(self, program: Program, paper: Paper) -> None:
        """A new version; it is judged at once when all messages that are here have been handled."""
        self.desk.touch(program, paper)
        self._text_changed(program)
        if not self._fresh:
            self._loop.call_soon(self._judge_fresh)
        self._fresh[program.uri] = program

    def _judge_fresh(self) -> None:
        programs, self._fresh = self._fresh, {}
        for program in programs.values():
            state = self.desk.at_once(program)
            if state is not None:
                self._show(program, state, diagnostics.items_of(state, program.rules))
        self.desk.go_on()

    def _closed(self, params: types.DidCloseTextDocumentParams) -> None:
        if params.text_document.uri in self._programs:
            self._close(params.text_document.uri)

    def _close(self, uri: str) -> None:
        program = self._programs.pop(uri)
        self.desk.close(program)
        path = path_of(uri)
        if path and not program.paper.is_notebook:
            is_edit = self.project.closed(path)
            self._renew_users(path, is_edit=is_edit)
        if not self.client.pulls:
            for part in program.paper.parts:
                if self._published.pop(part.uri, None) is not None:
                    self._publish(part.uri, None, [])

    def _saved(self, params: types.DidSaveTextDocumentParams) -> None:
        if not self.client.watches:
            self._file_changed(path_of(params.text_document.uri), is_edit=True)

    def _text_changed(self, program: Program) -> None:
        """Other programs may import from this one."""
        path = path_of(program.uri)
        if path and not program.paper.is_notebook:
            is_edit = self.project.opened(path, program.paper.text)
            self._renew_users(path, is_edit=is_edit)

    def _renew_users(self, path: str, *, is_edit: bool) -> None:
        """Judge those anew that import a file, or may import one that is new or gone."""
        for other in self._programs.values():
            # What a program imports is known when it has been checked; it may be reading the file just now.
            is_known = is_edit and other.state is not None and other.state.is_full
            if path in other.live.linked or (not is_known and path_of(other.uri) != path):
                self.desk.renew(other, soon=False)

    def _watched(self, params: types.DidChangeWatchedFilesParams) -> None:
        settings = False
        for change in params.changes:
            path = path_of(change.uri)
            if path.endswith(".py"):
                self._file_changed(path, is_edit=change.type == types.FileChangeType.Changed)
            else:
                settings = True
        if settings:
            self.project.forget_settings()
            self._reconsider()

    def _file_changed(self, path: str, *, is_edit: bool) -> None:
        self.project.changed(path, is_edit=is_edit)
        for program in self._programs.values():
            # A new file may be what an import of any program means, and one that is gone no longer.
            if path in program.live.linked or not is_edit:
                self.desk.renew(program)

    def _folders_changed(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        gone = {each.uri for each in params.event.removed}
        kept = [uri for uri in self.project.folders if uri not in gone]
        self.project.set_folders([*kept, *(each.uri for each in params.event.added)])
        self._spawn(self._configure())

    # Notebooks

    def _notebook_opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        uri = params.notebook_document.uri
        texts = {each.uri: each for each in params.cell_text_documents}
        cells = {
            cell.document: plain(cell.document, text.version, text.text, self.client.encoding)
            for cell in params.notebook_document.cells
            if (text := texts.get(cell.document)) is not None and text.language_id in _LANGUAGES
        }
        order = [cell.document for cell in params.notebook_document.cells]
        self._notebooks[uri] = {"order": order, "cells": cells}
        if uri in self._programs:
            self._close(uri)
        program = self._open(uri, self._paper(uri))
        self._cells.update(dict.fromkeys(order, program))

    def _paper(self, uri: str) -> Paper:
        notebook = self._notebooks[uri]
        order, cells = notebook["order"], notebook["cells"]
        return notebook_paper([cells[each] for each in order if each in cells])

    def _notebook_changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        uri = params.notebook_document.uri
        notebook, program = self._notebooks.get(uri), self._programs.get(uri)
        changes = params.change.cells
        if notebook is None or program is None or changes is None:
            return
        order, cells = notebook["order"], notebook["cells"]
        structure = changes.structure
        if structure is not None:
            array = structure.array
            added = [cell.document for cell in array.cells or ()]
            gone = order[array.start : array.start + array.delete_count]
            order[array.start : array.start + array.delete_count] = added
            for text in structure.did_open or ():
                if text.language_id in _LANGUAGES:
                    cells[text.uri] = plain(text.uri, text.version, text.text, self.client.encoding)
            for closed in structure.did_close or ():
                cells.pop(closed.uri, None)
            for cell in gone:
                if cell not in order:
                    self._cells.pop(cell, None)
                    if self._published.pop(cell, None) is not None:
                        self._publish(cell, None, [])
            self._cells.update(dict.fromkeys(order, program))
        for content in changes.text_content or ():
            cell = cells.get(content.document.uri)
            if cell is not None:
                made = [_change(each) for each in content.changes]
                cells[content.document.uri] = cell.changed(content.document.version, made)
        self._touch(program, self._paper(uri))

    def _notebook_closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        uri = params.notebook_document.uri
        notebook = self._notebooks.pop(uri, None)
        for cell in notebook["order"] if notebook else ():
            self._cells.pop(cell, None)
        if uri in self._programs:
            self._close(uri)

    # Diagnostics

    def _told(self, program: Program, state: State) -> None:
        """The desk knows more of a version (on the desk's thread)."""
        items = diagnostics.items_of(state, program.rules)
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            self._loop.call_soon_threadsafe(self._show, program, state, items)

    def _show(self, program: Program, state: State, items: dict[str, list[diagnostics.Item]]) -> None:
        if program.paper is not state.paper or program.is_closed:
            return
        if self.endpoint.protocol.trace != types.TraceValue.Off:
            known = "settled" if state.is_settled else "checked" if state.is_full else "checked at once"
            number = len(state.report.diagnostics)
            message = f"{program.uri}: version {state.paper.version} is {known}, {number} findings"
            self.endpoint.log_trace(types.LogTraceParams(message))
        if self.client.pulls:
            answered = program.answered
            if answered is not None and answered != items and self.client.refreshes_diagnostics:
                program.answered = None
                self.endpoint.workspace_diagnostic_refresh(None)
        else:
            for part in state.paper.parts:
                self._publish(part.uri, part.version, items[part.uri])
        if state.is_settled and self.client.refreshes_lenses:
            outline = state.outline if program.rules.code_lens and program.rules.enable else None
            if program.lensed is not outline:
                program.lensed = outline
                self.endpoint.workspace_code_lens_refresh(None)

    def _publish(self, uri: str, version: int | None, items: list[diagnostics.Item]) -> None:
        known = "" if version is None else f'"version":{version},'
        listed = diagnostics.encoded_list(items)
        params = f'{{"uri":{json.dumps(uri)},{known}"diagnostics":{listed}}}'
        message = notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, params)
        # The second and the third step often have nothing to add to what is shown.
        if self._published.get(uri) != message:
            self._published[uri] = message
            self.endpoint.protocol.write(message)

    async def _pulled(self, params: types.DocumentDiagnosticParams) -> Any:
        await self._has_settings()
        uri = params.text_document.uri
        program = self._program_of(uri)
        if program is None:
            return {"kind": "full", "items": []}
        try:
            is_patient = not self.client.refreshes_diagnostics
            state = await self._soon(program, lambda state: state.is_settled if is_patient else state.is_full)
        except Outdated:
            raise ServerCancelled(data={"retriggerRequest": True}) from None
        if program.state is not None and program.state.paper is state.paper:
            state = program.state  # More may have become known since the answer was ready.
        items = diagnostics.items_of(state, program.rules)
        program.answered = items
        return _report(items.get(uri, []), params.previous_result_id)

    async def _soon(self, program: Program, is_enough: Callable[[State], bool]) -> State:
        """The state of a version, less than what would be enough if that takes long and may follow."""
        if self.client.refreshes_diagnostics:
            with contextlib.suppress(asyncio.TimeoutError):
                return await asyncio.wait_for(self._known(program, is_enough), _PROMPTLY)
            return await self._known(program, lambda state: True)
        return await self._known(program, is_enough)

    async def _known(
        self, program: Program, is_enough: Callable[[State], bool], wants_outline: bool = False
    ) -> State:
        return await _result(self.desk.known(program, is_enough, wants_outline=wants_outline))

    async def _alone(self, program: Program, code: str) -> CheckReport:
        source, settings = program.paper.source, program.rules.settings
        return await _result(self.desk.errand(program, lambda: program.live.of_code(source, settings, code)))

    async def _pulled_workspace(self, params: types.WorkspaceDiagnosticParams) -> Any:
        await self._has_settings()
        known = {each.uri: each.value for each in params.previous_result_ids}
        reports: list[dict[str, Any]] = []
        for program in list(self._programs.values()):
            with contextlib.suppress(Outdated):
                state = await self._known(program, lambda state: state.is_full)
                items = diagnostics.items_of(state, program.rules)
                for part in state.paper.parts:
                    report = _report(items[part.uri], known.get(part.uri))
                    reports.append({"uri": part.uri, "version": part.version, **report})
        opened = {part.uri for each in self._programs.values() for part in each.paper.parts}
        scanned = await self._scan(params.work_done_token)
        # Of a file that is gone nothing is said any more.
        for uri, found in {**{each: [] for each in known}, **scanned}.items():
            if uri not in opened and (found or uri in known):
                reports.append({"uri": uri, "version": None, **_report(found, known.get(uri))})
        return {"items": reports}

    async def _scan(self, token: Any) -> dict[str, list[diagnostics.Item]]:
        """The diagnostics of the files in the workspace's folders, as far as they train or are imported."""
        scan = await asyncio.to_thread(self.project.scan, self.client.encoding)
        done: Future[dict[str, list[diagnostics.Item]]] = Future()
        progress = await self._progress(token) if scan.is_long else None

        def work(pause: Callable[[], None]) -> bool:
            if done.cancelled() or (progress is not None and progress.is_cancelled):
                done.cancel()
                return False
            try:
                more = scan.step(pause)
            except Exception as error:
                with contextlib.suppress(Exception):
                    done.set_exception(error)
                return False
            if progress is not None:
                self._loop.call_soon_threadsafe(progress.report, scan.done, scan.total)
            if not more:
                with contextlib.suppress(Exception):
                    done.set_result(scan.found)
            return more

        self.desk.in_background(work)
        try:
            return await _result(done)
        finally:
            if progress is not None:
                progress.end()

    async def _progress(self, token: Any) -> Progress | None:
        """A progress bar for the first scan: the client's own, or one that it makes for us."""
        if token is None:
            if not self.client.has_progress:
                return None
            token = "trainshift/scan"
            try:
                await asyncio.wait_for(self.endpoint.work_done_progress.create_async(token), 1)
            except Exception as error:
                log.debug("no progress is shown: %s", error)
                return None
        return Progress(self.endpoint, token)

    # Actions, lenses, hovers

    def _program_of(self, uri: str) -> Program | None:
        return self._programs.get(uri) or self._cells.get(uri)

    async def _actions(self, params: types.CodeActionParams) -> list[types.CodeAction] | None:
        from trainshift.lsp.actions import Wanted, menu

        program = self._program_of(params.text_document.uri)
        if program is None:
            return None
        # What a menu says may be of the version before; the edits behind it are not.
        state = await self._or_modified(program, lambda state: state.outline is not None)
        part = state.paper.part_of(params.text_document.uri)
        if part is None or not program.rules.enable:
            return None
        start, end = params.range.start, params.range.end
        first, last = part.offset((start.line, start.character)), part.offset((end.line, end.character))
        only = tuple(params.context.only) if params.context.only is not None else None
        is_hinted = any(
            each.source == diagnostics.SOURCE and str(each.code).startswith("HV")
            for each in params.context.diagnostics
        )
        wanted = Wanted(part, Span(min(first, last), max(first, last)), only, is_hinted)
        actions = menu(state, wanted, self.client)
        if not self.client.resolves_edits:
            return [each for each in actions if await self._fill(program, each)]
        return actions

    async def _fill(self, program: Program, action: types.CodeAction) -> bool:
        """Give an action its edit; False where it has none after all."""
        from trainshift.lsp.actions import NotPossible, carried_out

        if action.data is not None:
            try:
                action.edit = await carried_out(
                    program, dict(action.data), self.client, self._known, self._alone
                )
            except (NotPossible, Outdated):
                return False
            action.data = None
        return True

    async def _resolve(self, action: types.CodeAction) -> types.CodeAction:
        from trainshift.lsp.actions import NotPossible, carried_out

        data = _plain(action.data)
        if action.edit is not None or data is None:
            return action
        if not isinstance(data, dict) or not {"do", "uri", "version", "span", "code"} <= data.keys():
            raise JsonRpcInvalidParams(message="this action is not one of this server's")
        program = self._program_of(str(data["uri"]))
        part = program.paper.part_of(str(data["uri"])) if program is not None else None
        if program is None or part is None or program.paper.version != data["version"]:
            raise JsonRpcContentModified(message="the document has changed since; ask for the actions again")
        try:
            action.edit = await carried_out(program, data, self.client, self._known, self._alone)
        except Outdated:
            raise JsonRpcContentModified(message="the document has changed meanwhile") from None
        except NotPossible as reason:
            raise JsonRpcException(f"{action.title}: {reason}", -32803) from None
        except (TypeError, ValueError) as error:
            raise JsonRpcInvalidParams(message=f"this action cannot be read: {error}") from None
        return action

    async def _or_modified(self, program: Program, is_enough: Callable[[State], bool]) -> State:
        try:
            return await self._known(program, is_enough)
        except Outdated:
            raise JsonRpcContentModified(message="the document has changed meanwhile") from None

    async def _convert(self, *arguments: Any) -> dict[str, Any]:
        """The command that converts a whole file: one argument, its URI or an object that holds it."""
        from trainshift.lsp.actions import NotPossible, converted
        from trainshift.lsp.edits import workspace_edit

        given = _plain(arguments[0]) if arguments else None
        uri = given.get("uri") if isinstance(given, dict) else given
        program = self._program_of(uri) if isinstance(uri, str) else None
        if program is None:
            raise JsonRpcInvalidParams(message=f"{uri} is no open Python document")
        try:
            state = await self._known(program, lambda state: state.has_outline, wants_outline=True)
            conversion = converted(state)
        except (NotPossible, Outdated) as error:
            reason = str(error) or "the document has changed meanwhile"
            self._say(types.MessageType.Warning, f"Not made distributed: {reason}")
            return {"applied": False, "reason": reason}
        if not self.client.applies_edits:
            reason = "the editor applies no edits of a command"
            self._say(types.MessageType.Warning, f"Not made distributed: {reason}")
            return {"applied": False, "reason": reason}
        assert conversion.plan is not None
        edit = workspace_edit(state.paper, conversion.plan, self.client)
        answer = await self.endpoint.workspace_apply_edit_async(
            types.ApplyWorkspaceEditParams(edit=edit, label="Make distributed")
        )
        reason = "" if answer.applied else answer.failure_reason or "the editor did not apply the edit"
        notes = {
            name: [{"rule": each.rule, "line": each.line, "text": each.text} for each in listed]
            for name, listed in (
                ("changes", conversion.applied),
                ("decisions", conversion.decisions),
                ("doubts", conversion.doubts),
                ("withheld", conversion.withheld),
            )
        }
        if answer.applied and conversion.withheld:
            first = conversion.withheld[0]
            more = f" (and {len(conversion.withheld) - 1} more)" if len(conversion.withheld) > 1 else ""
            self._say(
                types.MessageType.Info,
                f"Made distributed, but for {first.rule} at line {first.line}: {first.text}{more}",
            )
        return {**notes, "applied": answer.applied, "reason": reason}

    async def _explain(self, *arguments: Any) -> None:
        """The command that shows the page of a code."""
        from trainshift.lsp.hovers import explanation
        from trainshift.pages import page_url

        code = str(arguments[0]) if arguments else ""
        url = page_url(code)
        if url and self.client.shows_documents:
            await self.endpoint.window_show_document_async(
                types.ShowDocumentParams(uri=url, external=False, take_focus=True)
            )
            return
        try:
            self._say(types.MessageType.Info, explanation(code))
        except KeyError:
            raise JsonRpcInvalidParams(message=f"{code!r} is no code") from None

    def _say(self, kind: types.MessageType, text: str) -> None:
        self.endpoint.window_show_message(types.ShowMessageParams(kind, f"Trainshift: {text}"))

    async def _lenses(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        from trainshift.lsp.lenses import lenses

        program = self._program_of(params.text_document.uri)
        if program is None or not program.rules.code_lens or not program.rules.enable:
            return []
        state = await self._or_modified(program, lambda state: state.outline is not None)
        return list(lenses(state, params.text_document.uri))

    async def _hover(self, params: types.HoverParams) -> types.Hover | None:
        from trainshift.lsp.hovers import hover

        program = self._program_of(params.text_document.uri)
        if program is None or not program.rules.enable:
            return None
        place = params.position.line, params.position.character
        found = None
        # What a name of Horovod's is for is known last.
        for is_enough in (lambda state: True, lambda state: state.is_settled):
            state = await self._or_modified(program, is_enough)
            part = state.paper.part_of(params.text_document.uri)
            found = found or (hover(state, part, part.offset(place)) if part is not None else None)
            if found is not None or state.is_settled:
                break
        return found

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
            types.TEXT_DOCUMENT_DIAGNOSTIC: self._pulled,
            types.WORKSPACE_DIAGNOSTIC: self._pulled_workspace,
            types.TEXT_DOCUMENT_CODE_ACTION: self._actions,
            types.CODE_ACTION_RESOLVE: self._resolve,
            types.TEXT_DOCUMENT_CODE_LENS: self._lenses,
            types.TEXT_DOCUMENT_HOVER: self._hover,
        }
        for method, handler in handlers.items():
            self.endpoint.feature(method)(_function(handler))
        self.endpoint.command(CONVERT)(_function(self._convert))
        self.endpoint.command(EXPLAIN)(_function(self._explain))


def _end_with(parent: int) -> None:
    """End when the client's process has gone without saying so, whatever the loop is at."""
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
    """A bound method as a function, on which pygls can leave its marks."""
    if asyncio.iscoroutinefunction(method):

        async def call_async(*params: Any) -> Any:
            return await method(*params)

        return call_async
    return lambda *params: method(*params)


class Progress:
    """A progress bar in the client."""

    def __init__(self, endpoint: Endpoint, token: Any) -> None:
        self._progress = endpoint.work_done_progress
        self._token = token
        self._progress.begin(
            token, types.WorkDoneProgressBegin(title="Trainshift: reading the workspace", cancellable=True)
        )

    @property
    def is_cancelled(self) -> bool:
        """Whether the user wants no more of it."""
        future = self._progress.tokens.get(self._token)
        return future is not None and future.cancelled()

    def report(self, done: int, total: int) -> None:
        """So many of all are done."""
        part = types.WorkDoneProgressReport(message=f"{done}/{total}", percentage=100 * done // max(total, 1))
        self._progress.report(self._token, part)

    def end(self) -> None:
        """It is over."""
        self._progress.end(self._token, types.WorkDoneProgressEnd())


def _report(items: list[diagnostics.Item], previous: str | None) -> dict[str, Any]:
    """A report of a document; nothing but a note where it is what the client has."""
    identity = hashlib.sha1(json.dumps(items).encode(), usedforsecurity=False).hexdigest()
    if identity == previous:
        return {"kind": "unchanged", "resultId": identity}
    return {"kind": "full", "resultId": identity, "items": items}


def _change(event: types.TextDocumentContentChangeEvent) -> Change:
    where = getattr(event, "range", None)
    if where is None:
        return Change(event.text)
    first, last = where.start, where.end
    return Change(event.text, (first.line, first.character), (last.line, last.character))


def _is_newer(version: int | None, than: int | None) -> bool:
    return version is None or than is None or version > than


def _plain(value: Any) -> Any:
    """What pygls read as an object of some kind, as plain JSON."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


async def _result(future: Future[T]) -> T:
    return await asyncio.wrap_future(future)
