"""Session: the state between the server and its client, for all request handlers."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from trainshift.engine.cells import Plain
from trainshift.engine.checking import CheckReport
from trainshift.engine.fixing import fixed
from trainshift.engine.settings import Settings, Severity
from trainshift.lsp.fast_start import Opening
from trainshift.lsp.project import Turn
from trainshift.lsp.scheduler import OpenProgram, State
from trainshift.lsp.transport.protocol import Endpoint
from trainshift.lsp.transport.uris import path_of
from trainshift.python.source.edit import Plan

if TYPE_CHECKING:
    from lsprotocol.types import WorkspaceEdit

    from trainshift.lsp.answers.places import Places

_TO_CONFIGURE = 2.0
"""The seconds that a request waits for the client's settings."""


class Session:
    """The client, its programs by URI, and the results about them."""

    def __init__(self, endpoint: Endpoint, opening: Opening, loop: asyncio.AbstractEventLoop) -> None:
        self.endpoint = endpoint
        self.client = opening.client
        self.project = opening.project
        self.desk = opening.desk
        self.board = opening.board
        self.programs: dict[str, OpenProgram] = {}
        self.cells: dict[str, OpenProgram] = {}
        """The notebooks that cells belong to."""
        self.configured = asyncio.Event()
        """Set when the client has told its settings."""
        self._loop = loop
        self._is_surveying = False

    def program_of(self, uri: str) -> OpenProgram | None:
        """The program of a document, or of a notebook's cell."""
        return self.programs.get(uri) or self.cells.get(uri)

    async def known(
        self, program: OpenProgram, is_enough: Callable[[State], bool], wants_outline: bool = False
    ) -> State:
        """Like `Desk.known`."""
        return await asyncio.wrap_future(self.desk.known(program, is_enough, wants_outline=wants_outline))

    async def alone(self, program: OpenProgram, code: str) -> CheckReport:
        """The report of a program for one restriction."""
        source, settings = program.paper.source, program.rules.settings
        work = functools.partial(program.live.of_code, source, settings, code)
        return await asyncio.wrap_future(self.desk.errand(program, work))

    async def fixed(self, program: OpenProgram, settings: Settings, least: Severity) -> tuple[str, ...]:
        """The texts of a program's documents after all fixes of `settings`, from a severity on."""
        paper, live = program.paper, program.live

        def work() -> tuple[str, ...]:
            if paper.cells is not None:
                return fixed(paper.cells, settings, live.path, live.files, least).body.texts
            return (fixed(Plain(paper.text), settings, live.path, live.files, least).text,)

        return await asyncio.wrap_future(self.desk.errand(program, work))

    # Relations between documents

    def file_changed(self, path: str, *, is_edit: bool) -> None:
        """Handle the change of a file on the disk; with `is_edit`, it existed before and still does."""
        self.renew_users(path, self.project.changed(path, is_edit=is_edit), soon=True)

    def renew_users(self, path: str, turn: Turn, *, soon: bool) -> None:
        """Re-check the programs that read a file, or that may import one created or deleted."""
        if turn is Turn.NONE:
            return
        for other in self.programs.values():
            # The files of a program are known after its check, which may be reading the file right now.
            is_known = turn is Turn.EDITED and other.state is not None and other.state.is_full
            is_itself = path_of(other.uri) == path
            checks = path in other.live.linked or (not is_known and not is_itself)
            if checks or (other.reads(path) and not is_itself):
                self.desk.renew(other, soon=soon, checks=checks)
        self.survey_soon()

    def survey_soon(self) -> None:
        """Find the programs of the documents when idle."""
        if self._is_surveying:
            return
        self._is_surveying = True
        number = self.project.number_of_changes
        opened = reversed(list(self.programs.values()))
        waiting = [path_of(each.uri) for each in opened]
        found: dict[str, tuple[str, ...]] = {}

        def work(pause: Callable[[], None]) -> bool:
            while waiting and not waiting[-1]:
                waiting.pop()
            if waiting:
                found.update(self.project.starts(waiting[-1:], pause))
                waiting.pop()
            if not waiting:
                with contextlib.suppress(RuntimeError):  # The loop has ended.
                    self._loop.call_soon_threadsafe(self._surveyed, found, number)
            return bool(waiting)

        self.desk.in_background(work)

    def _surveyed(self, found: Mapping[str, tuple[str, ...]], number: int) -> None:
        self._is_surveying = False
        self._belong(found, number)
        if self.project.number_of_changes != number:
            self.survey_soon()

    def _belong(self, found: Mapping[str, tuple[str, ...]], number: int) -> None:
        """Record the start files of the documents' programs, as of a number of changes."""
        for program in self.programs.values():
            path = path_of(program.uri)
            starts = found.get(path)
            if starts is not None:
                before, program.starts = program.starts, starts
                program.surveyed = number
                # A file that is its own program already counts as one.
                if starts != (before or (path,)) or (not before and program.is_of_several):
                    self.desk.renew(program, checks=False)

    async def surveyed(self, program: OpenProgram) -> None:
        """Wait until the programs of a document are known for the current files; raises Outdated."""
        path, number = path_of(program.uri), self.project.number_of_changes
        if path and program.surveyed != number:
            work = functools.partial(self.project.starts, [path], lambda: None)
            self._belong(await asyncio.wrap_future(self.desk.errand(program, work)), number)

    # The documents of a program

    def places(self, state: State) -> Places:
        """The places of a version's program in documents."""
        from trainshift.lsp.answers.places import Places

        opened = {
            path: each.paper.parts[0]
            for each in self.programs.values()
            if not each.paper.is_notebook and (path := path_of(each.uri))
        }
        return Places(state, opened)

    def edit(self, state: State, plan: Plan) -> WorkspaceEdit:
        """The edit of a plan for a version's program; Outdated if a file has changed."""
        from trainshift.lsp.answers.places import Changed
        from trainshift.lsp.text.edits import workspace_edit

        places = self.places(state)
        try:
            places.confirm(self.project.text_of)
        except Changed as changed:
            self.file_changed(changed.path, is_edit=self.project.text_of(changed.path) is not None)
            raise
        return workspace_edit(plan, places.home, self.client, places.names)

    async def has_settings(self) -> None:
        """Wait for the client's initial settings, for a short time."""
        if self.client.configures and not self.configured.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.configured.wait(), _TO_CONFIGURE)
