"""Session: what is open between the server and its client, for all who answer something."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable

from trainshift.engine.checking import CheckReport
from trainshift.lsp.desk import OpenProgram, State
from trainshift.lsp.opening import Opening
from trainshift.lsp.wire.protocol import Endpoint

_TO_CONFIGURE = 2.0
"""So many seconds what is asked for waits for the client's settings."""


class Session:
    """The client, its programs by their URIs, and what is known of them."""

    def __init__(self, endpoint: Endpoint, opening: Opening) -> None:
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

    def program_of(self, uri: str) -> OpenProgram | None:
        """The program that a document is, or is a cell of."""
        return self.programs.get(uri) or self.cells.get(uri)

    async def known(
        self, program: OpenProgram, is_enough: Callable[[State], bool], wants_outline: bool = False
    ) -> State:
        """As `Desk.known`."""
        return await asyncio.wrap_future(self.desk.known(program, is_enough, wants_outline=wants_outline))

    async def alone(self, program: OpenProgram, code: str) -> CheckReport:
        """What is said of a program under one restriction."""
        source, settings = program.paper.source, program.rules.settings
        work = functools.partial(program.live.of_code, source, settings, code)
        return await asyncio.wrap_future(self.desk.errand(program, work))

    async def has_settings(self) -> None:
        """Wait for the client's settings at the start, if it does not take long to tell them."""
        if self.client.configures and not self.configured.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.configured.wait(), _TO_CONFIGURE)
