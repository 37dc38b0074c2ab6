"""Keeps a process from writing through links to what belongs to the person.

The scratch copy of a project has links to large files and folders.  Before something in one of them is
written, renamed or removed, the link is replaced: a folder's by a folder of links, a file's by a copy
where its content is kept.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import Any

# Python's audit events that change what is at a path, and which of their arguments are paths.
CHANGING = {
    "os.mkdir": (0,), "os.rename": (0, 1), "os.remove": (0,), "os.rmdir": (0,), "os.truncate": (0,),
    "os.link": (1,), "os.symlink": (1,), "os.chmod": (0,), "os.chown": (0,), "os.utime": (0,),
    "os.setxattr": (0,), "shutil.rmtree": (0,), "shutil.move": (0, 1), "sqlite3.connect": (0,),
}  # fmt: skip


class Links:
    """The links below some folders, `homes`."""

    def __init__(self, homes: list[str]) -> None:
        self.homes = [os.path.join(home, "") for home in homes]
        self.busy = False

    def own(self, path: Any, *, keep: bool = True) -> None:
        """Make the place of a path the process's own, a file's content too where `keep`; never raises."""
        if self.busy or not isinstance(path, (str, bytes, os.PathLike)):
            return
        name = os.path.abspath(os.fsdecode(path))
        home = next((home for home in self.homes if name.startswith(home)), None)
        if home is None:
            return
        self.busy = True
        try:
            place = home
            for part in name[len(home) :].split(os.sep):
                place = os.path.join(place, part)
                if os.path.islink(place):
                    with suppress(OSError):
                        replace(place, keep=keep)
        finally:
            self.busy = False


def replace(link: str, *, keep: bool) -> None:
    """Put what a link leads to in its place: of a folder, links to all that is in it."""
    target = os.path.realpath(link)
    os.unlink(link)
    if os.path.isdir(target):
        os.mkdir(link)
        for entry in os.scandir(target):
            os.symlink(entry.path, os.path.join(link, entry.name))
    elif keep and os.path.exists(target):
        shutil.copy2(target, link)
