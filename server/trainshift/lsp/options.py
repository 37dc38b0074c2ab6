"""Options: the editor's settings, and their combination with a project's settings file.

The project's file takes precedence, key by key, so that everybody who works on it and `trainshift check` see
the same findings; the editor's settings apply to the other keys, and to features of editors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from msgspec import structs

from trainshift.core.choices import CHOICES, Choices
from trainshift.engine.own_codes import SYNTAX_ERROR
from trainshift.engine.settings import Settings, SettingsError, read_settings
from trainshift.host.configuration import Configuration, check_patterns
from trainshift.python.source.source import Source

if TYPE_CHECKING:
    from trainshift.engine.versions.runtime import Runtime

SECTION = "trainshift"
_WHERE = f"{SECTION} (editor settings)"
# Keys of the section that are the editor's own business.
_EDITORS = frozenset({"interpreter", "args", "trace", "path", "showNotifications", "python"})
_SWITCHES = {
    "enable": "enable",
    "hints": "hints",
    "codeLens": "code_lens",
    "staticHints": "static_hints",
    "ignoreVersions": "ignore_versions",
    "syntaxErrors": "syntax_errors",
}
_CHECKER = frozenset(
    {"select", "ignore", "severity", "perFileIgnores", "exclude", "restrictions", "docsUrl", "libraries"}
)


@dataclass(frozen=True)
class Options:
    """The section `trainshift` of an editor's settings.

    `enable`: report anything at all.  `hints`: mark statements that could be distributed.  `code_lens`: mark
    training loops.  `static_hints`: mark the `if`s and loops of Paddle's static functions.
    `ignore_versions`: convert a script even for a TensorFlow that Horovod does not work with.
    `syntax_errors`: report syntax errors unless their severity is set.  `settings`: the settings of checks.
    `python`: the Python that the editor has selected for scripts; "" for the active environment's.
    """

    enable: bool = True
    hints: bool = True
    code_lens: bool = True
    static_hints: bool = True
    ignore_versions: bool = False
    syntax_errors: bool = True
    python: str = ""
    settings: Settings = field(default_factory=Settings)


class Chosen:
    """The editor's options for the files of a folder, with lower priority than a project's settings.

    Patterns are relative to the directory of their settings.
    """

    def __init__(self, options: Options, folder: str, project: Configuration | None) -> None:
        own = Configuration(options.settings, folder or "/")
        merged = project.settings.over(options.settings) if project is not None else options.settings
        if not (options.syntax_errors or merged.severity.keys() & {SYNTAX_ERROR.code, SYNTAX_ERROR.code[:2]}):
            merged = replace(merged, ignore=(*merged.ignore, SYNTAX_ERROR.code))
        given = project.settings.given if project is not None else frozenset()
        self._exclude = project if project is not None and "exclude" in given else own
        ignores = project if project is not None and "per_file_ignores" in given else own
        self._merged = structs.replace(ignores, settings=merged)

    def excludes(self, path: str) -> bool:
        """Return whether the file at `path` is excluded."""
        return self._exclude.excludes(path)

    def settings_of(self, path: str) -> Settings:
        """The settings of a check of the file at `path`."""
        return self._merged.for_file(path, None, ())


def read_options(section: object) -> tuple[Options, list[str]]:
    """The options in a section, and its errors; invalid options count as not given."""
    if section is None:
        return Options(), []
    if not isinstance(section, Mapping):
        return Options(), [f"the settings of {SECTION} must be an object"]
    problems: list[str] = []
    switches: dict[str, bool] = {}
    settings = Settings()
    python = section.get("python")
    for key, value in section.items():
        if value is None or key in _EDITORS:
            continue
        if key in _SWITCHES:
            if isinstance(value, bool):
                switches[_SWITCHES[key]] = value
            else:
                problems.append(f"{SECTION}.{key} must be true or false, not {value!r}")
        elif key in _CHECKER or _kebab(key) in CHOICES:
            try:
                read = read_settings({_kebab(key): value}, _WHERE)
                check_patterns(read, _WHERE)
            except SettingsError as error:
                problems.append(str(error))
            else:
                settings = read.over(settings)
                settings = replace(settings, given=settings.given | read.given)
        else:
            problems.append(f"{SECTION}.{key} is not a setting of Trainshift")
    return Options(**switches, settings=settings, python=python if isinstance(python, str) else ""), problems


def _kebab(key: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", lambda match: f"-{match[1].lower()}", key)


@dataclass(frozen=True)
class Rules:
    """The settings with which a program is checked.

    `files` stays the same until a file with settings or requirements changes.
    """

    settings: Settings = field(default_factory=Settings)
    enable: bool = True
    hints: bool = True
    code_lens: bool = True
    static_hints: bool = True
    ignores_versions: bool = False
    python: str = ""
    files: object = None
    source_of: Callable[[str], Source | None] = field(default=lambda path: None, compare=False)
    runtime: Callable[[], Runtime | None] = field(default=lambda: None, compare=False)

    @property
    def choices(self) -> Choices:
        """The options of a conversion, from the user or the project."""
        from trainshift.engine.versions.runtime import settled

        return settled(self.settings.choices, self.runtime())
