"""Terminal: styled lines, a progress bar, and text made safe to show.  Rich is loaded only when used."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from time import monotonic
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

Segment = tuple[str, str]
"""Text, and the Rich style it is shown in on a terminal ("" for none)."""

_PICTURES = (
    {code: 0x2400 + code for code in range(32)} | {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)
_PICTURES_BUT_TAB = {code: picture for code, picture in _PICTURES.items() if code != ord("\t")}


class Printer:
    """Writes whole lines to `stream`, styled if `colour` and plain otherwise."""

    def __init__(self, stream: TextIO, colour: bool) -> None:
        self._stream = stream
        self._colour = colour
        self._console: Console | None = None

    def line(self, *segments: Segment) -> None:
        """Write the segments and a line feed; nothing is wrapped or cut."""
        if not self._colour:
            self._stream.write("".join(text for text, _ in segments) + "\n")
            return
        from rich.text import Text

        if self._console is None:
            self._console = console_on(self._stream, colour=True)
        self._console.print(Text.assemble(*segments), soft_wrap=True)


def console_on(stream: TextIO, *, colour: bool, width: int | None = None) -> Console:
    """A Rich console that takes our decision about colours, and adds nothing of its own."""
    from rich.console import Console

    return Console(
        file=stream,
        force_terminal=True,
        color_system="standard" if colour else None,
        no_color=not colour,
        markup=False,
        emoji=False,
        highlight=False,
        width=width,
    )


def wants_colour(stream: TextIO, choice: str = "auto") -> bool:
    """Return whether to colour `stream`: `choice` is "always", "never" or "auto".

    "auto" checks NO_COLOR, then FORCE_COLOR, then whether the stream is a terminal with colours.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def visible(text: str, *, keep_tabs: bool = False) -> str:
    """`text` on one line, with control characters as pictures, so that it cannot steer a terminal."""
    return text.translate(_PICTURES_BUT_TAB if keep_tabs else _PICTURES)


def width_of(text: str) -> int:
    """The number of terminal cells that `text` takes: two for wide characters, none for combining ones."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def describe_defect(error: Exception) -> str:
    """One line with which a maintainer can find the defect: the exception and its origin."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    where = ""
    if frames is not None:
        code = frames.tb_frame.f_code
        where = f" at {os.path.basename(code.co_filename)}:{frames.tb_lineno}"
    detail = f": {error}" if str(error) else ""
    what = f"{type(error).__name__}{detail}{where}"
    return f"{what}; please report this with the script, the file was left alone"


class ProgressBar:
    """A bar on standard error that vanishes when done.

    There is none without a terminal, or if the `total` is small and everything is fast.
    """

    FEW = 5
    LONG = 0.7

    def __init__(self, total: int, *, wanted: bool = True, label: str = "Converting") -> None:
        self._label = label
        self._total = total
        self._begun = monotonic()
        self._progress: Progress | None = None
        self._waiting: Timer | None = None
        self._path = ""
        self._wanted = wanted and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def __enter__(self) -> ProgressBar:
        if self._total > self.FEW:
            self._start()
        return self

    def start_late(self) -> None:
        """Show the bar once the work has taken a long time: even one big file deserves a bar."""
        if self._wanted and self._progress is None and self._waiting is None:
            self._waiting = Timer(self.LONG, self._start)
            self._waiting.daemon = True
            self._waiting.start()

    def _start(self) -> None:
        if not self._wanted or self._progress is not None:
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        console = console_on(sys.stderr, colour=wants_colour(sys.stderr))
        columns = (
            TextColumn(self._label),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
        )
        progress = Progress(*columns, console=console, transient=True)
        progress.add_task(visible(self._path), total=self._total)
        progress.start()
        self._progress = progress

    def __exit__(self, *_: object) -> None:
        self._wanted = False
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting.join()
        if self._progress is not None:
            self._progress.stop()

    def show(self, path: str) -> None:
        """Show the name of the current file."""
        self._path = path
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], description=visible(path))

    def reading(self, path: str) -> None:
        """Show the name of a file being read, since slow work deserves a bar, whatever the total."""
        if self._progress is None and monotonic() - self._begun > self.LONG:
            self._start()
        self.show(path)

    def expect(self, total: int) -> None:
        """Set the number of files to process."""
        self._total = total
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], total=total)

    def advance(self) -> None:
        """Count one finished file."""
        if self._progress is not None:
            self._progress.advance(self._progress.task_ids[0])

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the bar while other output is written to the terminal."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting.join()
            self._waiting = None
        if self._progress is not None:
            self._progress.stop()
        yield
        if self._progress is not None:
            self._progress.start()
