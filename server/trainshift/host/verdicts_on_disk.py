"""The cache of verdicts on the disk: one file in a folder of its own, `.trainshift_cache`.

It is a convenience: an unreadable cache counts as empty, and a failed write only costs time.  The file is
JSON and is replaced as a whole, so that two processes do not harm each other: the slower one's verdicts
remain.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import trainshift
from trainshift.engine.evidence import digest_of_names
from trainshift.engine.verdicts import Verdicts
from trainshift.engine.workspace import ParsedFiles
from trainshift.host.disk import absolute

log = logging.getLogger(__name__)

FOLDER = ".trainshift_cache"
_NAME = "verdicts.json"
_IGNORE = "# Made by trainshift.\n*\n"
_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is a cache of trainshift, and may be deleted.\n"
    "# See https://bford.info/cachedir/\n"
)
_DAY = 24 * 60 * 60
# Verdicts unused for this many days are dropped.
_MOST_DAYS = 30
_MOST_BYTES = 200_000_000


def today() -> int:
    """The number of the day."""
    return int(time.time()) // _DAY


def folder_for(directory: str, files: ParsedFiles) -> str:
    """The folder of the cache for a directory: in the root of its project, or else in itself."""
    at = absolute(directory)
    while not files.is_root(at):
        if at == os.path.dirname(at):
            return os.path.join(directory, FOLDER)
        at = os.path.dirname(at)
    return os.path.join(at, FOLDER)


def read_verdicts(folder: str) -> Verdicts:
    """The verdicts in a folder, by this version of Trainshift; none if they cannot be read."""
    path = os.path.join(folder, _NAME)
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            return Verdicts()
        with open(path, encoding="utf-8") as stream:
            data = json.load(stream)
        if data.pop("made by") != _maker():
            return Verdicts()
        return Verdicts.from_json(data)
    except FileNotFoundError:
        return Verdicts()
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        log.debug("%s is not used: %s", path, error)
        return Verdicts()


def write_verdicts(folder: str, verdicts: Verdicts) -> bool:
    """Replace the verdicts in a folder; return whether that was possible.

    Verdicts of deleted files, and long unused ones, are left out.
    """
    kept = Verdicts()
    oldest = today() - _MOST_DAYS
    paths = [path for path, each in verdicts.entries.items() if each.day >= oldest and os.path.isfile(path)]
    kept.take(verdicts, paths)
    text = json.dumps({"made by": _maker(), **kept.as_json()}, separators=(",", ":"))
    try:
        os.makedirs(folder, exist_ok=True)
        for name, said in ((".gitignore", _IGNORE), ("CACHEDIR.TAG", _TAG)):
            if not os.path.exists(os.path.join(folder, name)):
                _replace(folder, name, said)
        _replace(folder, _NAME, text)
    except OSError as error:
        log.debug("%s is not written: %s", folder, error)
        return False
    return True


def _replace(folder: str, name: str, text: str) -> None:
    """Put a file in place at once; raises OSError with the folder as it was."""
    descriptor, path = tempfile.mkstemp(prefix=f"{name}.", dir=folder)
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(path, os.path.join(folder, name))
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


@cache
def _maker() -> str:
    """A fingerprint of this version of Trainshift and of Python; editing a source file changes it."""
    package = Path(trainshift.__file__).parent
    stamps = []
    waiting = [str(package)]
    for folder in waiting:
        with os.scandir(folder) as found:
            for each in sorted(found, key=lambda entry: entry.name):
                if each.is_dir():
                    waiting += [each.path] if each.name != "__pycache__" else []
                elif each.name.endswith((".py", ".toml", ".json")):
                    info = each.stat()
                    stamps.append(f"{each.path} {info.st_size} {info.st_mtime_ns}")
    return f"{trainshift.__version__} {sys.version} {digest_of_names(stamps)}"
