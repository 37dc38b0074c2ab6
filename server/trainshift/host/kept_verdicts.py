"""Kept: the verdicts of earlier runs of `check`, and those that this run adds."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from msgspec.structs import replace

from trainshift.engine.evidence import Noted, digest
from trainshift.engine.verdicts import Holding, Verdict, Verdicts, fingerprint
from trainshift.engine.workspace import ParsedFiles
from trainshift.host.verdicts_on_disk import folder_for, read_verdicts, today, write_verdicts

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainshift.engine.settings import Settings
    from trainshift.engine.versions.runtime import Runtime


class Kept:
    """The verdicts in the cache folder: `folder`, or that of the project of a `directory`."""

    def __init__(self, files: ParsedFiles, folder: str, directory: str) -> None:
        self._folder = folder or folder_for(directory, files)
        self._verdicts = read_verdicts(self._folder)
        self._holding = Holding(self._verdicts, files)
        self._is_changed = False

    def of(self, path: str, under: str, demanded: Callable[[], Runtime | None]) -> Verdict | None:
        """The kept verdict on a file under the same settings, if it is still valid."""
        found = self._holding.of(path, under, lambda: fingerprint(demanded()))
        if found is not None:
            entry = self._verdicts.entries[path]
            if entry.day != today():
                self._verdicts.entries[path] = replace(entry, day=today())
                self._is_changed = True
        return found

    def texts_behind(self, path: str) -> frozenset[str]:
        """The paths of the files whose texts the kept verdict on a file depends on."""
        return self._verdicts.texts_behind(path)

    def take(self, learned: Verdicts) -> None:
        """Keep the verdicts of this run."""
        self._verdicts.take(learned)
        self._is_changed |= bool(learned.entries)

    def save(self) -> None:
        """Save the new verdicts, if possible."""
        if self._is_changed:
            write_verdicts(self._folder, self._verdicts)


class Learning:
    """The verdicts of this run so far; `files` are the files they depend on."""

    def __init__(self, files: ParsedFiles) -> None:
        self._files = files
        self._verdicts = Verdicts()

    def add(self, path: str, text: str, under: str, noted: Noted, demand: str | None, found: Verdict) -> None:
        """Record the verdict on a file with the content `text`, unless a file has changed meanwhile."""
        self._files.note((path,))
        noted.paths.add(path)
        is_read = self._files.digest(path) == digest(text)
        if is_read and not self._files.is_torn:
            self._verdicts.add(path, under, noted, self._files, demand, found, today())

    def hand_over(self) -> Verdicts:
        """The verdicts recorded since the last call."""
        found, self._verdicts = self._verdicts, Verdicts()
        return found


def asked_under(settings: Settings) -> str:
    """A key for settings."""
    return fingerprint(dataclasses.replace(settings, given=frozenset()))
