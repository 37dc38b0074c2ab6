"""Handle Ctrl-C, lost connections and a plain `kill` at any moment, once all processes can be ended.

An exception at any moment could also interrupt the clean-up of processes and files.  So it is raised only
within windows, where a proof waits or computes; between them it is delayed to the next.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupts:
    """A request to stop (Ctrl-C, SIGTERM), kept until the proof can stop cleanly."""

    def __init__(self) -> None:
        self.asked = False
        self.is_open = False

    def ask(self, number: int, frame: FrameType | None) -> None:
        """Record a request to stop; a second one changes nothing."""
        self.asked = True
        if self.is_open:
            self.is_open = False
            raise KeyboardInterrupt

    @contextmanager
    def window(self) -> Iterator[None]:
        """Raise KeyboardInterrupt inside the block as soon as it is requested."""
        try:
            self.is_open = True
            self.heed()
            yield
        finally:
            self.is_open = False

    def heed(self) -> None:
        """Raise KeyboardInterrupt if it was requested."""
        if self.asked:
            raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Route all requests to stop to one `Interrupts`; ignored signals stay ignored."""
    interrupts = Interrupts()
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    known = {number: signal.getsignal(number) for number in numbers}
    known = {number: handler for number, handler in known.items() if handler != signal.SIG_IGN}
    for number in known:
        signal.signal(number, interrupts.ask)
    try:
        yield interrupts
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)
    interrupts.heed()
