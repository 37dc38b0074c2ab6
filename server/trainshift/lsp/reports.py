"""Reports: diagnostics for the client, pushed or pulled, of what is open and of the workspace."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from trainshift.lsp import diagnostics
from trainshift.lsp.desk import OpenProgram, Outdated, State
from trainshift.lsp.protocol import Endpoint, ServerCancelled
from trainshift.lsp.streams import notification

if TYPE_CHECKING:
    from trainshift.lsp.server import Server

log = logging.getLogger(__name__)

_PROMPTLY = 0.03
"""So many seconds a pulled report waits for the full check before it is what is known at once."""


class Reports:
    """What the client of a server is told, and has been told, of its documents."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._published: dict[str, bytes] = {}
        self.has_begun = False

    def begin(self) -> None:
        """Tell what is known: it is judged by the client's settings now, or these are long in coming."""
        if self.has_begun:
            return
        self.has_begun = True
        for program in self._server.programs.values():
            if program.state is not None and program.state.is_full:
                self.show(program, program.state, diagnostics.items_of(program.state, program.rules))

    def forget(self, uri: str) -> None:
        """A document is no longer open: nothing is said of it any more."""
        if self._published.pop(uri, None) is not None:
            self._publish(uri, None, [])

    def told(self, program: OpenProgram, state: State) -> None:
        """The desk knows more of a version (on the desk's thread)."""
        items = diagnostics.items_of(state, program.rules)
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            self._server.loop.call_soon_threadsafe(self.show, program, state, items)

    def show(self, program: OpenProgram, state: State, items: dict[str, list[diagnostics.Item]]) -> None:
        """Push what is known of a version, or ask the client to pull it anew."""
        if program.paper is not state.paper or program.is_closed or not self.has_begun:
            return
        if self._server.endpoint.protocol.trace != types.TraceValue.Off:
            known = "settled" if state.is_settled else "checked" if state.is_full else "checked at once"
            number = len(state.report.diagnostics)
            message = f"{program.uri}: version {state.paper.version} is {known}, {number} findings"
            self._server.endpoint.log_trace(types.LogTraceParams(message))
        if self._server.client.pulls:
            answered = program.answered
            if answered is not None and answered != items and self._server.client.refreshes_diagnostics:
                program.answered = None
                self._server.endpoint.workspace_diagnostic_refresh(None)
        else:
            for part in state.paper.parts:
                self._publish(part.uri, part.version, items[part.uri])
        if state.is_settled and self._server.client.refreshes_lenses:
            outline = state.outline if program.rules.code_lens and program.rules.enable else None
            if program.lensed is not outline:
                program.lensed = outline
                self._server.endpoint.workspace_code_lens_refresh(None)

    def _publish(self, uri: str, version: int | None, items: list[diagnostics.Item]) -> None:
        known = "" if version is None else f'"version":{version},'
        listed = diagnostics.encoded_list(items)
        params = f'{{"uri":{json.dumps(uri)},{known}"diagnostics":{listed}}}'
        message = notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, params)
        # The second and the third step often have nothing to add to what is shown.
        if self._published.get(uri) != message:
            self._published[uri] = message
            self._server.endpoint.protocol.write(message)

    async def pulled(self, params: types.DocumentDiagnosticParams) -> Any:
        """The report on one document."""
        await self._server.has_settings()
        uri = params.text_document.uri
        program = self._server.program_of(uri)
        if program is None:
            return {"kind": "full", "items": []}
        try:
            is_patient = not self._server.client.refreshes_diagnostics
            state = await self._soon(program, lambda state: state.is_settled if is_patient else state.is_full)
        except Outdated:
            raise ServerCancelled(data={"retriggerRequest": True}) from None
        if program.state is not None and program.state.paper is state.paper:
            state = program.state  # More may have become known since the answer was ready.
        items = diagnostics.items_of(state, program.rules)
        program.answered = items
        return _report(items.get(uri, []), params.previous_result_id)

    async def _soon(self, program: OpenProgram, is_enough: Callable[[State], bool]) -> State:
        """The state of a version, less than what would be enough if that takes long and may follow."""
        if self._server.client.refreshes_diagnostics:
            with contextlib.suppress(asyncio.TimeoutError):
                return await asyncio.wait_for(self._server.known(program, is_enough), _PROMPTLY)
            return await self._server.known(program, lambda state: True)
        return await self._server.known(program, is_enough)

    async def pulled_workspace(self, params: types.WorkspaceDiagnosticParams) -> Any:
        """The reports on all documents and files."""
        await self._server.has_settings()
        known = {each.uri: each.value for each in params.previous_result_ids}
        reports: list[dict[str, Any]] = []
        for program in list(self._server.programs.values()):
            with contextlib.suppress(Outdated):
                state = await self._server.known(program, lambda state: state.is_full)
                items = diagnostics.items_of(state, program.rules)
                for part in state.paper.parts:
                    report = _report(items[part.uri], known.get(part.uri))
                    reports.append({"uri": part.uri, "version": part.version, **report})
        opened = {part.uri for each in self._server.programs.values() for part in each.paper.parts}
        scanned = await self._scan(params.work_done_token)
        # Of a file that is gone nothing is said any more.
        for uri, found in {**{each: [] for each in known}, **scanned}.items():
            if uri not in opened and (found or uri in known):
                reports.append({"uri": uri, "version": None, **_report(found, known.get(uri))})
        return {"items": reports}

    async def _scan(self, token: Any) -> dict[str, list[diagnostics.Item]]:
        """The diagnostics of the files in the workspace's folders, as far as they train or are imported."""
        scan = await asyncio.to_thread(self._server.project.scan, self._server.client.encoding)
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
                self._server.loop.call_soon_threadsafe(progress.report, scan.done, scan.total)
            if not more:
                with contextlib.suppress(Exception):
                    done.set_result(scan.found)
            return more

        self._server.desk.in_background(work)
        try:
            return await asyncio.wrap_future(done)
        finally:
            if progress is not None:
                progress.end()

    async def _progress(self, token: Any) -> Progress | None:
        """A progress bar for the first scan: the client's own, or one that it makes for us."""
        if token is None:
            if not self._server.client.has_progress:
                return None
            token = "trainshift/scan"
            try:
                await asyncio.wait_for(self._server.endpoint.work_done_progress.create_async(token), 1)
            except Exception as error:
                log.debug("no progress is shown: %s", error)
                return None
        return Progress(self._server.endpoint, token)


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
    from hashlib import sha1

    identity = sha1(json.dumps(items).encode(), usedforsecurity=False).hexdigest()
    if identity == previous:
        return {"kind": "unchanged", "resultId": identity}
    return {"kind": "full", "resultId": identity, "items": items}
