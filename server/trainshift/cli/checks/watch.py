"""Watch: check again whenever a file changes, until the user stops it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from trainshift.cli.run import INTERRUPTED
from trainshift.host.walk import collect

# Seconds between two polls of the files.
_PAUSE = 0.5
_CLEAR = "\x1b[2J\x1b[H"
_SETTINGS = ("trainshift.toml", "pyproject.toml")


def watch(check: Callable[[], int], paths: Sequence[str], exclude: Sequence[str]) -> int:
    """Call `check`, and again after each change of the files; returns the exit status of an interrupt."""
    try:
        while True:
            before = dict(_files(paths, exclude))
            if sys.stdout.isatty():
                sys.stdout.write(_CLEAR)
            status = check()
            if status == INTERRUPTED:
                return status
            sys.stderr.write("Watching for changes; press Ctrl-C to stop.\n")
            sys.stderr.flush()
            while dict(_files(paths, exclude)) == before:
                time.sleep(_PAUSE)
    except KeyboardInterrupt:
        return INTERRUPTED


def _files(paths: Sequence[str], exclude: Sequence[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the files that a check may read, with a fingerprint of each.

    These are the named scripts, the files beside and below them, and the settings above them.
    """
    folders = {each if os.path.isdir(each) else os.path.dirname(each) or os.curdir for each in paths}
    found = {each.path for each in collect([*paths, *sorted(folders)], exclude)}
    for folder in map(os.path.abspath, folders):
        while folder != (above := os.path.dirname(folder)):
            found |= {os.path.join(folder, name) for name in _SETTINGS}
            folder = above
    for path in found:
        try:
            known = os.stat(path)
        except OSError:
            continue
        yield path, (known.st_mtime_ns, known.st_size)
