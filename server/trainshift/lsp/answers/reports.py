"""Reports: diagnostics for the client, pushed or pulled, for open documents and the workspace."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from lsprotocol import types

from trainshift.lsp import diagnostics
from trainshift.lsp.scheduler import OpenProgram, Outdated, State
from trainshift.lsp.session import Session
from trainshift.lsp.transport.protocol import Endpoint, ServerCancelled

log = logging.getLogger(__name__)

_PROMPTLY = 0.03
"""The seconds that a pulled report waits for the full check; then it contains the results so far."""


class Reports:
    """The reports about a client's documents; `has_begun` is set once it gets any."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.has_begun = False

    def begin(self) -> None:
        """Report the known diagnostics: settings have arrived, or are late."""
        if self.has_begun:
            return
        self.has_begun = True
        for program in self._session.programs.values():
            if program.state is not None and program.state.is_full:
                self.show(program, program.state, diagnostics.items_of(program.state, program.rules))

    def show(self, program: OpenProgram, state: State, items: dict[str, list[diagnostics.Item]]) -> None:
        """Push the diagnostics of a version, or ask the client to pull again."""
        if program.paper is not state.paper or program.is_closed or not self.has_begun:
            return
        if self._session.endpoint.protocol.trace != types.TraceValue.Off:
            known = "settled" if state.is_settled else "checked" if state.is_full else "checked at once"
            number = len(state.report.diagnostics)
            message = f"{program.uri}: version {state.paper.version} is {known}, {number} findings"
            self._session.endpoint.log_trace(types.LogTraceParams(message))
        if self._session.client.pulls:
            answered = program.answered
            if answered is not None and answered != items and self._session.client.refreshes_diagnostics:
                program.answered = None
                self._session.endpoint.workspace_diagnostic_refresh(None)
        else:
            for part in state.paper.parts:
                self._session.board.show(part.uri, part.version, items[part.uri])
        if state.is_settled and self._session.client.refreshes_lenses:
            outline = state.outline if program.rules.code_lens and program.rules.enable else None
            if program.lensed is not outline:
                program.lensed = outline
                self._session.endpoint.workspace_code_lens_refresh(None)

    async def pulled(self, params: types.DocumentDiagnosticParams) -> Any:
        """The report on one document, for a client that pulls."""
        await self._session.has_settings()
        uri = params.text_document.uri
        program = self._session.program_of(uri)
        if program is None:
            return {"kind": "full", "items": []}
        try:
            is_patient = not self._session.client.refreshes_diagnostics
            if is_patient:
                await self._session.surveyed(program)
            state = await self._soon(program, lambda state: state.is_settled if is_patient else state.is_full)
        except Outdated:
            raise ServerCancelled(data={"retriggerRequest": True}) from None
        if program.state is not None and program.state.paper is state.paper:
            state = program.state  # More may have become known since the answer was computed.
        items = diagnostics.items_of(state, program.rules)
        program.answered = items
        return _report(items.get(uri, []), params.previous_result_id)

    async def _soon(self, program: OpenProgram, is_enough: Callable[[State], bool]) -> State:
        """The state of a version; a partial one if the full one takes long and may follow."""
        if self._session.client.refreshes_diagnostics:
            with contextlib.suppress(asyncio.TimeoutError):
                return await asyncio.wait_for(self._session.known(program, is_enough), _PROMPTLY)
            return await self._session.known(program, lambda state: True)
        return await self._session.known(program, is_enough)

    async def pulled_workspace(self, params: types.WorkspaceDiagnosticParams) -> Any:
        """The reports on all documents and files."""
        await self._session.has_settings()
        known = {each.uri: each.value for each in params.previous_result_ids}
        reports: list[dict[str, Any]] = []
        for program in list(self._session.programs.values()):
            with contextlib.suppress(Outdated):
                state = await self._session.known(program, lambda state: state.is_full)
                items = diagnostics.items_of(state, program.rules)
                for part in state.paper.parts:
                    report = _report(items[part.uri], known.get(part.uri))
                    reports.append({"uri": part.uri, "version": part.version, **report})
        opened = {part.uri for each in self._session.programs.values() for part in each.paper.parts}
        scanned = await self._scan(params.work_done_token)
        # A deleted file has no diagnostics.
        for uri, found in {**{each: [] for each in known}, **scanned}.items():
            if uri not in opened and (found or uri in known):
                reports.append({"uri": uri, "version": None, **_report(found, known.get(uri))})
        return {"items": reports}

    async def _scan(self, token: Any) -> dict[str, list[diagnostics.Item]]:
        """The diagnostics of the files in the workspace's folders that train or are imported."""
        scan = await asyncio.to_thread(self._session.project.scan, self._session.client.encoding)
        done: Future[dict[str, list[diagnostics.Item]]] = Future()
        loop = asyncio.get_running_loop()
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
                loop.call_soon_threadsafe(progress.report, scan.done, scan.total)
            if not more:
                with contextlib.suppress(Exception):
                    done.set_result(scan.found)
            return more

        self._session.desk.in_background(work)
        try:
            return await asyncio.wrap_future(done)
        finally:
            if progress is not None:
                progress.end()

    async def _progress(self, token: Any) -> Progress | None:
        """A progress bar for the first scan: the client's own, or one that it creates for us."""
        if token is None:
            if not self._session.client.has_progress:
                return None
            token = "trainshift/scan"
            try:
                await asyncio.wait_for(self._session.endpoint.work_done_progress.create_async(token), 1)
            except Exception as error:
                log.debug("no progress is shown: %s", error)
                return None
        return Progress(self._session.endpoint, token)


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
        """Return whether the user wants no more of it."""
        future = self._progress.tokens.get(self._token)
        return future is not None and future.cancelled()

    def report(self, done: int, total: int) -> None:
        """Report progress: `done` of `total`."""
        part = types.WorkDoneProgressReport(message=f"{done}/{total}", percentage=100 * done // max(total, 1))
        self._progress.report(self._token, part)

    def end(self) -> None:
        """End the progress bar."""
        self._progress.end(self._token, types.WorkDoneProgressEnd())


def _report(items: list[diagnostics.Item], previous: str | None) -> dict[str, Any]:
    """The report of a document; only a note if the client has it already."""
    from hashlib import sha1

    identity = sha1(json.dumps(items).encode(), usedforsecurity=False).hexdigest()
    if identity == previous:
        return {"kind": "unchanged", "resultId": identity}
    return {"kind": "full", "resultId": identity, "items": items}
