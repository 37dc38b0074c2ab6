"""Configuration: finds the settings that govern a file, and reads them once per directory."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from trainshift.engine.settings import Settings, SettingsError, read_settings
from trainshift.host.files import MAX_BYTES, describe, shown_path
from trainshift.host.line_lengths import LineLengths
from trainshift.host.walk import spec_of, verdict_of
from trainshift.python.lazy import cached_property

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

OWN_FILE = "trainshift.toml"
PROJECT_FILE = "pyproject.toml"
_TABLE = "trainshift"
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)")


class ConfigurationProblem(Exception):
    """An error in a settings file: its place, and the problem."""


class Configuration(Struct, frozen=True, dict=True):
    """Settings, and the directory that their patterns are relative to."""

    settings: Settings
    directory: str

    def excludes(self, path: str) -> bool:
        """Return whether the settings leave this file out of a walk."""
        return bool(self._matches(self._exclude, path)) if self.settings.exclude else False

    def for_file(self, path: str, select: Sequence[str] | None, ignore: Sequence[str]) -> Settings:
        """The settings of one file, with the codes of the command line."""
        settings = self.settings.overridden(select, ignore)
        specs = self._per_file
        return settings.for_file(lambda pattern: bool(self._matches(specs[pattern], path)))

    def _matches(self, spec: GitIgnoreSpec, path: str) -> bool | None:
        return verdict_of(spec, self.directory, path, False)

    @cached_property
    def _exclude(self) -> GitIgnoreSpec:
        return spec_of(self.settings.exclude)

    @cached_property
    def _per_file(self) -> dict[str, GitIgnoreSpec]:
        return {pattern: spec_of([pattern]) for pattern, _ in self.settings.per_file_ignores}


class Configurations:
    """The configurations of a run: the nearest settings file above each script, or the one that was named.

    `trainshift.toml` comes before `pyproject.toml` in one directory; a pyproject without a
    `[tool.trainshift]` table is passed over.  `isolated` knows the defaults only.  Every method may
    raise ConfigurationProblem.
    """

    def __init__(self, file: str | None = None, *, isolated: bool = False) -> None:
        self._known: dict[str, Configuration] = {}
        self._with_lengths: dict[tuple[str, int], Configuration] = {}
        self._lengths = None if isolated else LineLengths()
        self._fixed: Configuration | None = None
        if file is not None:
            settings = _read(file, is_project=os.path.basename(file) == PROJECT_FILE)
            self._fixed = Configuration(settings or Settings(), os.path.dirname(os.path.abspath(file)))
        elif isolated:
            self._fixed = Configuration(Settings(), os.getcwd())

    def of(self, path: str) -> Configuration:
        """The configuration of the file at `path`, which need not exist."""
        directory = os.path.dirname(os.path.abspath(path))
        found = self._fixed or self._in(directory)
        length = self._lengths.of(directory) if self._lengths is not None else 0
        if not length:
            return found
        key = found.directory, length
        if key not in self._with_lengths:
            chosen = {**found.settings.chosen, "line_length": length}
            self._with_lengths[key] = replace(
                found, settings=dataclasses.replace(found.settings, chosen=chosen)
            )
        return self._with_lengths[key]

    def _in(self, directory: str) -> Configuration:
        passed: list[str] = []
        at = directory
        while (found := self._known.get(at) or _here(at)) is None:
            passed.append(at)
            above = os.path.dirname(at)
            if above == at:
                found = Configuration(Settings(), at)
                break
            at = above
        self._known.update(dict.fromkeys([*passed, at], found))
        return found


def _here(directory: str) -> Configuration | None:
    """The configuration in one directory."""
    for name in (OWN_FILE, PROJECT_FILE):
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            settings = _read(shown_path(path), is_project=name == PROJECT_FILE)
            if settings is not None:
                return Configuration(settings, directory)
    return None


def _read(path: str, *, is_project: bool) -> Settings | None:
    """The settings in a file; None for a project file without settings."""
    table: object = _parse(path)
    where = path
    # A file of settings alone may name its table as a project does.
    if is_project or (isinstance(table, dict) and list(table) == ["tool"]):
        tools = table.get("tool") if isinstance(table, dict) else None
        table = tools.get(_TABLE) if isinstance(tools, dict) else None
        where = f"{path}: [tool.{_TABLE}]"
        if table is None:
            return None
    try:
        if not isinstance(table, dict):
            raise SettingsError(where, "", "must be a table")
        settings = read_settings(table, where)
        check_patterns(settings, where)
    except SettingsError as error:
        raise ConfigurationProblem(str(error)) from error
    return settings


def check_patterns(settings: Settings, where: str) -> None:
    """Raise SettingsError for a pattern that git could not read."""
    patterns = [("exclude", each) for each in settings.exclude]
    patterns += [("per-file-ignores", each) for each, _ in settings.per_file_ignores]
    for key, pattern in patterns:
        try:
            spec_of([pattern])
        except ValueError:
            raise SettingsError(
                where, key, f"holds {pattern!r}, which is not a .gitignore pattern."
            ) from None


def _parse(path: str) -> dict[str, object]:
    from trainshift.libraries import toml

    try:
        with open(path, "rb") as stream:
            text = stream.read(MAX_BYTES).decode("utf-8")
        table: dict[str, object] = toml.loads(text)
    except OSError as error:
        raise ConfigurationProblem(f"{path}: cannot be read: {describe(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationProblem(f"{path}: is not UTF-8 text") from error
    except toml.TOMLDecodeError as error:
        message = str(error)
        place = _PLACE.search(message)
        line, column = (place[1], place[2]) if place and place[1] else (text.count("\n") + 1, 1)
        what = _PLACE.sub("", message)
        raise ConfigurationProblem(f"{path}:{line}:{column}: is not TOML: {what}") from error
    except RecursionError as error:
        raise ConfigurationProblem(f"{path}: is nested too deeply to be read") from error
    return table
