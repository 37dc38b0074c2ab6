"""Inbox: unhandled events from the client and from the desk."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from trainshift.lsp.transport.streams import Reader

if TYPE_CHECKING:
    from trainshift.lsp.diagnostics import Item
    from trainshift.lsp.scheduler import OpenProgram, State

_FAREWELL = 20.0
"""The seconds from the client's last message until the process ends in any case."""


class Told(NamedTuple):
    """A message that the desk has new results for a version, with the diagnostics."""

    program: OpenProgram
    state: State
    items: dict[str, list[Item]]


Event: TypeAlias = dict[str, Any] | Told | None
"""A message as plain JSON, or news from the desk; None when there will be no more."""


class Inbox:
    """A queue to which any thread may add; one thread removes."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._changed = threading.Condition()
        self._call: Callable[[], None] | None = None

    def put(self, event: Event) -> None:
        """Add something."""
        with self._changed:
            self._events.append(event)
            if self._call is not None:
                self._call()
            self._changed.notify()

    def put_back(self, events: Iterable[Event]) -> None:
        """Put events back to the front."""
        with self._changed:
            self._events.extendleft(reversed(list(events)))

    def take(self, seconds: float) -> Event:
        """The next event; raises TimeoutError if none comes in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._events, max(seconds, 0)):
                raise TimeoutError
            return self._events.popleft()

    @property
    def is_empty(self) -> bool:
        """Return whether no event is waiting."""
        return not self._events

    def announce(self, call: Callable[[], None]) -> None:
        """Call `call` for each waiting event, and for each later one."""
        with self._changed:
            self._call = call
            for _ in self._events:
                call()

    def fill(self, reader: Reader) -> None:
        """Receive a client's messages on a thread of its own; the process ends soon after the last one."""

        def read() -> None:
            message: Any = {}
            while message is not None:
                try:
                    message = reader.read()
                except OSError:
                    message = None
                self.put(message)
            time.sleep(_FAREWELL)  # The process has ended, unless the loop writes to a deaf client.
            os._exit(1)

        threading.Thread(target=read, name="trainshift-reader", daemon=True).start()
