"""Protect the user's files from writes through links, and show each rank the files of others.

The scratch copy of a project has links to large files and folders.  Before something in one of them is
written, renamed or removed, the link is replaced: a folder's by a folder of links, a file's by a copy
if its content is kept.

Ranks started by hand share one folder.  Here each has its own copy, which shows its own files; so the files
of one rank are linked into the copies of the others, once they have waited for it.
"""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

# Python's audit events that change a file, and which of their arguments are paths.
CHANGING = {
    "os.mkdir": (0,), "os.rename": (0, 1), "os.remove": (0,), "os.rmdir": (0,), "os.truncate": (0,),
    "os.link": (1,), "os.symlink": (1,), "os.chmod": (0,), "os.chown": (0,), "os.utime": (0,),
    "os.setxattr": (0,), "shutil.rmtree": (0,), "shutil.move": (0, 1), "sqlite3.connect": (0,),
}  # fmt: skip
# The folder shared by ranks that were started by hand.
SHARED = ("work", "here")
# In the folder of a rank's record: the number of file changes seen.
CHANGES = "changes"
# While no change is seen, the next look waits for this many times the duration of the last one.
PAUSE = 25

Mark = tuple[int, int, int]


class Links:
    """The links below some folders, `homes`; calls `tell` before anything in them changes."""

    def __init__(self, homes: list[str], tell: Callable[[], None] = lambda: None) -> None:
        self.homes = [os.path.join(home, "") for home in homes]
        self.tell = tell
        self.state = threading.local()

    @contextmanager
    def left_alone(self) -> Iterator[None]:
        """Exempt this thread's work in the `with` block from the script's."""
        self.state.busy = True
        try:
            yield
        finally:
            self.state.busy = False

    def own(self, path: Any, *, keep: bool = True) -> None:
        """Make a path belong to this process; with `keep`, a file's content too; never raises."""
        if getattr(self.state, "busy", False) or not isinstance(path, (str, bytes, os.PathLike)):
            return
        name = os.path.abspath(os.fsdecode(path))
        home = next((home for home in self.homes if name.startswith(home)), None)
        if home is not None:
            self.tell()
            with self.left_alone():
                replace_along(home, name, keep=keep)


def replace_along(home: str, name: str, *, keep: bool) -> None:
    """Replace each link on the path from a folder to a file in it."""
    place = home
    for part in os.path.relpath(name, home).split(os.sep):
        place = os.path.join(place, part)
        if os.path.islink(place):
            with suppress(OSError):
                replace(place, keep=keep)


def replace(link: str, *, keep: bool) -> None:
    """Replace a link by its target; for a folder, by links to its contents."""
    target = os.path.realpath(link)
    os.unlink(link)
    if os.path.isdir(target):
        os.mkdir(link)
        for entry in os.scandir(target):
            os.symlink(entry.path, os.path.join(link, entry.name))
    elif keep and os.path.exists(target):
        shutil.copy2(target, link)


class Others:
    """The files of a run's other ranks, for a rank whose folder `home` is next to theirs."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.links = Links([home], self.tell)
        beside = os.path.dirname(home)
        self.run = os.path.join(os.path.realpath(beside), "")
        names = [name for name in os.listdir(beside) if re.fullmatch(r"rank\d+", name)]
        self.folders = [os.path.join(beside, name) for name in sorted(names) if not home.endswith(f"/{name}")]
        self.counter = open_counter(home)
        self.counters = [open_counter(folder) for folder in self.folders]
        self.counts = [b""] * len(self.folders)
        self.changes = 0
        self.given = {name: mark(entry.stat()) for name, entry in files(home)}
        self.known: dict[str, Mark] = {}
        self.made: set[str] = set()
        self.next = 0.0
        self.looking = threading.Lock()

    def tell(self) -> None:
        """Record for the others that this rank changes a file."""
        self.changes += 1
        os.pwrite(self.counter, b"%016d" % self.changes, 0)

    def look(self) -> None:
        """Link the others' new files; call this where the rank may have waited for them."""
        counts = [os.pread(counter, 16, 0) for counter in self.counters]
        begun = time.monotonic()
        if (counts == self.counts and begun < self.next) or not self.looking.acquire(blocking=False):
            return
        try:
            self.counts = counts
            with self.links.left_alone():
                for path in [path for path in self.made if not os.path.exists(path)]:
                    self.made.remove(path)
                    with suppress(OSError):
                        os.unlink(path)
                for folder in self.folders:
                    for name, entry in files(folder):
                        with suppress(OSError):
                            self.see(name, entry)
            self.next = time.monotonic() + PAUSE * (time.monotonic() - begun)
        finally:
            self.looking.release()

    def see(self, name: str, entry: os.DirEntry[str]) -> None:
        """Link one file, unless it is unchanged, or this rank has written its own."""
        at = mark(entry.stat(follow_symlinks=False))
        if self.known.get(entry.path) == at:
            return
        self.known[entry.path] = at
        own = os.path.join(self.home, name)
        if os.path.lexists(own):
            if os.path.realpath(own).startswith(self.run):
                is_given = not os.path.islink(own) and mark(os.lstat(own)) == self.given.get(name)
                if not is_given or filecmp.cmp(own, entry.path):
                    return
            os.unlink(own)
        replace_along(self.home, os.path.dirname(own), keep=False)
        os.makedirs(os.path.dirname(own), exist_ok=True)
        os.symlink(entry.path, own)
        self.made.add(own)


def open_counter(home: str) -> int:
    """The open file in which a rank counts its changes."""
    return os.open(os.path.join(home, "record", CHANGES), os.O_RDWR | os.O_CREAT, 0o644)


def files(home: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield all files of a rank that it would share, without links, by path in its folder."""
    folders = list(SHARED)
    while folders:
        folder = folders.pop()
        with suppress(OSError), os.scandir(os.path.join(home, folder)) as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                elif entry.is_file(follow_symlinks=False):
                    yield name, entry


def mark(info: os.stat_result) -> Mark:
    """A fingerprint that changes with the content of a file, or with the file itself."""
    return info.st_mtime_ns, info.st_size, info.st_ino
