"""Handle Ctrl-C: show only one line.  This module is loaded first, so it imports little."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130


def end_at_once(number: int, frame: FrameType | None) -> None:
    """End at once on Ctrl-C if there is nothing to clean up; an exception would be shown, or lost in an
    import.
    """
    os.write(2, b"Interrupted.\n")
    os._exit(INTERRUPTED)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise on Ctrl-C, because something may have to be cleaned up."""
    raise KeyboardInterrupt


def install() -> None:
    """Make Ctrl-C end this process at once, unless it is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)
