"""Streams: standard output and standard error for all commands, and the handling of their failures."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, RawIOBase, StringIO, TextIOWrapper
from typing import TextIO

import click

from trainshift.interrupts import INTERRUPTED

BROKEN_PIPE = 141


@contextmanager
def exit_statuses() -> Iterator[None]:
    """Turn an interrupt, a reader that closes early and a full disk into an exit status."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _abandon_standard_output()
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        _abandon_standard_output()
        click.echo(f"Error: standard output cannot be written: {error.strerror or error}", err=True)
        sys.exit(2)


@contextmanager
def written_to(path: str) -> Iterator[TextIO]:
    """Yield a new text for `path`, which is written as a whole; end the command if that fails."""
    text = StringIO()
    try:
        # A caller that waits for a report learns at once that there will be none.
        with open(path, "a", encoding="utf-8"):
            pass
        yield text
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.getvalue())
    except OSError as error:
        click.echo(f"Error: {path} cannot be written: {error.strerror or error}", err=True)
        sys.exit(2)


@contextmanager
def heeded(now: Callable[..., None], before: Callable[..., None]) -> Iterator[None]:
    """Handle Ctrl-C by `now` instead of `before`; do nothing if another handler is installed."""
    is_ours = signal.getsignal(signal.SIGINT) is before
    if is_ours:
        signal.signal(signal.SIGINT, now)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)


def print_bytes(data: bytes) -> None:
    """Write bytes to standard output, after its buffered text."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def prepare_streams() -> None:
    """Make sure that both output streams exist, take every character, and write all or raise.

    An unbuffered stream (PYTHONUNBUFFERED) would silently drop data if the disk is full. The streams opened
    here live as long as the process.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = TextIOWrapper(BufferedWriter(_Closed()))
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper) and isinstance(stream.buffer, RawIOBase):
            stream = open(stream.fileno(), "w", encoding=stream.encoding, buffering=1, closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Closed(RawIOBase):
    """Represents a standard output that the caller closed: it fails only when it is used."""

    def writable(self) -> bool:
        return True

    def write(self, _: object) -> int:
        raise OSError(errno.EBADF, "it is closed")


def _abandon_standard_output() -> None:
    """Redirect standard output to nothing, so that the final flush cannot fail."""
    nothing = open(os.devnull, "w")  # noqa: SIM115
    with suppress(OSError, ValueError):
        os.dup2(nothing.fileno(), sys.stdout.fileno())
    sys.stdout = nothing
