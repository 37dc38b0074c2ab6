"""Declarations: find the files that declare a project's requirements, and read them once."""

from __future__ import annotations

import codecs
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import replace

from trainshift.engine.versions.demands import Demand, is_declaration, read_demands
from trainshift.engine.versions.runtime import Runtime, Shown, judge
from trainshift.host.disk import absolute
from trainshift.host.files import MAX_BYTES, shown_path

log = logging.getLogger(__name__)

_SUBDIRECTORY = "requirements"
_ROOT_MARKS = (".git", "pyproject.toml")
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


class Declarations:
    """The versions that projects require, for the scripts of one run; `way_out` describes how to convert
    anyway.

    With `is_ignored`, the user ignores requirements; `shown` returns the names of files in messages, and
    `environment` returns the versions in a script's Python, for scripts without requirements.
    """

    def __init__(
        self,
        way_out: str = "",
        *,
        is_ignored: bool = False,
        shown: Shown = shown_path,
        environment: Callable[[str], Runtime | None] = lambda path: None,
    ) -> None:
        self._environment = environment
        self._way_out = way_out
        self._is_ignored = is_ignored
        self._shown = shown
        self._of_scripts: dict[str, Runtime | None] = {}
        self._of_directories: dict[str, Runtime | None] = {}

    def of(self, path: str) -> Runtime | None:
        """The requirements from the nearest directory that has any, for the script at `path`.

        Standard input (``-``) counts as a file of the current directory.
        """
        directory = os.path.dirname(os.path.abspath(path))
        if directory not in self._of_scripts:
            found = self._decided(project_folders(directory))
            if found is None or found.is_open:
                found = _over(self._environment(path), found)
            self._of_scripts[directory] = found
        return self._of_scripts[directory]

    def _decided(self, directories: list[str]) -> Runtime | None:
        """The requirements of the nearest directory that has any; one that names only Paddle decides only
        that.
        """
        found = Runtime(is_open=True)
        for each in directories:
            runtime = self._in(each)
            if runtime is not None:
                found = replace(
                    runtime,
                    is_paddle2=found.is_paddle2 or runtime.is_paddle2,
                    problem=found.problem or runtime.problem,
                    backend=found.backend if found.backend[1] else runtime.backend,
                )
                if not runtime.is_open:
                    return found
        return found.if_told

    def _in(self, directory: str) -> Runtime | None:
        if directory not in self._of_directories:
            runtime = judge(_demands(sorted(_declaring(directory))), self._shown)
            if runtime is not None and runtime.path:
                runtime = replace(runtime, way_out=self._way_out, is_ignored=self._is_ignored)
            self._of_directories[directory] = runtime
        return self._of_directories[directory]


def _over(installed: Runtime | None, found: Runtime | None) -> Runtime | None:
    """The installed versions, overridden by declarations; those that leave the version open do not
    override.
    """
    if installed is None or found is None:
        return installed or found
    return replace(installed, is_paddle2=found.is_paddle2, problem=found.problem, backend=found.backend)


def project_folders(directory: str) -> list[str]:
    """The directory and those above it, up to the root of its project.

    The root is the nearest directory with a repository, or else with a project file; without any, the walk
    ends below the user's home and the root of the file system.
    """
    stops = (os.path.expanduser("~"), os.path.abspath(os.sep))
    directories = [directory]
    while directories[-1] not in stops and (above := os.path.dirname(directories[-1])) not in stops:
        directories.append(above)
    for mark in _ROOT_MARKS:
        for number, each in enumerate(directories, 1):
            if os.path.exists(os.path.join(each, mark)):
                return directories[:number]
    return directories


def _declaring(directory: str) -> Iterator[str]:
    """The paths of the files of a directory that declare dependencies."""
    for within in ("", _SUBDIRECTORY):
        folder = os.path.join(directory, within)
        try:
            names = os.listdir(folder)
        except OSError as error:
            log.debug("%s is not listed: %s", folder, error)
            continue
        for name in names:
            if is_declaration(os.path.join(within, name)):
                yield os.path.join(folder, name)


def _demands(paths: list[str]) -> Iterator[Demand]:
    """Yield the requirements in files and in the files that they include; each is read once."""
    seen: set[str] = set()
    while paths:
        path, *paths = paths
        if not os.path.isfile(path) or (real := os.path.realpath(path)) in seen:
            continue
        seen.add(real)
        reading = read_demands(absolute(path), _text(path))
        yield from reading.demands
        paths += [os.path.normpath(os.path.join(os.path.dirname(path), each)) for each in reading.includes]


def _text(path: str) -> str:
    """The text of a file, empty if it cannot be read; undecodable bytes are replaced."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(MAX_BYTES)
    except OSError as error:
        log.debug("%s is not read: %s", path, error)
        return ""
    encoding = next((each for mark, each in _MARKS.items() if data.startswith(mark)), "utf-8-sig")
    return data.decode(encoding, "replace")
