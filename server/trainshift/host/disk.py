"""Disk: access to the files around a script, for following imports."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from functools import lru_cache

from trainshift.engine.workspace import ParsedFiles
from trainshift.host import files
from trainshift.host.files import FileProblem

_MOST_DIRECTORIES = 4096
_MOST_BYTES = 2_000_000


def files_on_disk(known: Callable[[str], str | None] = lambda _: None) -> ParsedFiles:
    """The files of this machine; directories are listed once and never again.

    `known` is tried first for the text of a file, by its absolute path.
    """

    def text_of(path: str) -> str | None:
        text = known(path)
        return text_on_disk(path) if text is None else text

    return ParsedFiles(text_of, lru_cache(_MOST_DIRECTORIES)(_entries))


def files_under(opened: Mapping[str, str]) -> ParsedFiles:
    """The files of this machine, overlaid by an editor's open files, by absolute path.

    Open files need not be on the disk.  A directory is listed again when its time stamp changes.
    """

    @lru_cache(_MOST_DIRECTORIES)
    def listed(directory: str, _: int) -> frozenset[str]:
        return _entries(directory)

    def entries(directory: str) -> frozenset[str]:
        inside = f"{directory.rstrip('/')}/"
        unsaved = {path[len(inside) :].partition("/")[0] for path in list(opened) if path.startswith(inside)}
        try:
            changed = os.stat(directory).st_mtime_ns
        except OSError:
            return frozenset(unsaved)
        return listed(directory, changed) | unsaved

    def text_of(path: str) -> str | None:
        text = opened.get(path)
        return text_on_disk(path) if text is None else text

    return ParsedFiles(text_of, entries)


def absolute(path: str) -> str:
    """The path in the core's format: absolute, with ``/`` between its parts."""
    return os.path.abspath(path).replace(os.sep, "/")


def text_on_disk(path: str) -> str | None:
    """The text of a file; None if it is not a file, cannot be read, or is too long for a module."""
    try:
        info = os.stat(path)
        # Reading a pipe would block, and no module that a script imports is that long.
        if not stat.S_ISREG(info.st_mode) or info.st_size > _MOST_BYTES:
            return None
        return files.read(path).text
    except (FileProblem, OSError):
        return None


def _entries(directory: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(directory))
    except OSError:
        return frozenset()
