"""What Ctrl-C does: nothing is shown but a line, whether there is something to clean up or not."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130


def end_at_once(number: int, frame: FrameType | None) -> None:
    """Heed Ctrl-C where nothing is to be cleaned up; an exception would be shown, or lost in an import."""
    os.write(2, b"Interrupted.\n")
    os._exit(INTERRUPTED)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Heed Ctrl-C where something may have to be cleaned up."""
    raise KeyboardInterrupt


@contextmanager
def heeded(now: Callable[..., None], before: Callable[..., None]) -> Iterator[None]:
    """Have `now` heed Ctrl-C where `before` does; nothing where another one does, or nobody."""
    is_ours = signal.getsignal(signal.SIGINT) is before
    if is_ours:
        signal.signal(signal.SIGINT, now)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)
