"""Options: what the editor's settings say, and how they go together with a project's file of settings.

The project's file decides, key by key, so that everybody who works on it and `trainshift check` see the
same findings; the editor decides what the file leaves open, and what only an editor shows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trainshift.engine.settings import Settings, SettingsError, read_settings
from trainshift.host.configuration import Configuration

SECTION = "trainshift"
# Keys of the section that are the editor's own business.
_EDITORS = frozenset({"interpreter", "args", "trace", "path", "showNotifications"})
_SWITCHES = {
    "enable": "enable",
    "hints": "hints",
    "codeLens": "code_lens",
    "ignoreVersions": "ignore_versions",
}
_CHECKER = frozenset({"select", "ignore", "severity", "perFileIgnores", "exclude"})


@dataclass(frozen=True)
class Options:
    """The section `trainshift` of an editor's settings.

    `enable`: whether anything is reported.  `hints`: whether statements that could be made distributed
    are marked.  `code_lens`: whether training loops are.  `ignore_versions`: whether a script is converted
    for a TensorFlow that Horovod does not work with.  `settings`: what is checked.
    """

    enable: bool = True
    hints: bool = True
    code_lens: bool = True
    ignore_versions: bool = False
    settings: Settings = field(default_factory=Settings)

    def settings_of(self, path: str, configuration: Configuration | None) -> Settings:
        """What is checked in the file at `path`, with the settings of its project."""
        if configuration is None:
            return self.settings
        merged = replace(configuration, settings=configuration.settings.over(self.settings))
        return merged.for_file(path, None, ())


def read_options(section: object) -> tuple[Options, list[str]]:
    """The options that a section holds, and what is wrong with it; what is wrong counts as not given."""
    if section is None:
        return Options(), []
    if not isinstance(section, Mapping):
        return Options(), [f"the settings of {SECTION} have to be an object"]
    problems: list[str] = []
    switches: dict[str, bool] = {}
    settings = Settings()
    for key, value in section.items():
        if value is None or key in _EDITORS:
            continue
        if key in _SWITCHES:
            if isinstance(value, bool):
                switches[_SWITCHES[key]] = value
            else:
                problems.append(f"{SECTION}.{key} has to be true or false, not {value!r}")
        elif key in _CHECKER:
            try:
                read = read_settings({_kebab(key): value}, f"{SECTION} (editor settings)")
            except SettingsError as error:
                problems.append(str(error))
            else:
                settings = read.over(settings)
                settings = replace(settings, given=settings.given | read.given)
        else:
            problems.append(f"{SECTION}.{key} is no setting of Trainshift")
    return Options(**switches, settings=settings), problems


def _kebab(key: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", lambda match: f"-{match[1].lower()}", key)
