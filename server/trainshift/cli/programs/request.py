"""Requests: the user's request to `convert`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct, field

from trainshift.cli.options import STANDARD_STREAM
from trainshift.cli.report import Mode
from trainshift.core.choices import Choices, Value
from trainshift.engine.versions.runtime import settled
from trainshift.host.configuration import Configurations
from trainshift.host.declarations import Declarations
from trainshift.host.disk import absolute

_NAMES_OF_FILES = (".py", ".ipynb")
# These settings are overridden by a flag, whichever choice the two name.
_OF_VERSIONS = frozenset({"keras", "tensorflow"})


class At(NamedTuple):
    """The place of a statement: a line of a file of the program, or of a cell in a notebook, both from 1.
    Without a file, it is in the one that the user named.
    """

    line: int
    cell: int | None = None
    file: str = ""


class Request(Struct, frozen=True):
    """The request of the user; `output` (a path, or "-") belongs to Mode.OUTPUT only.

    `at` is a line of the one input or of its program, `only` the one file of its program to convert.
    `declarations` tell what versions the projects declare; without them none are looked for.  `chosen` are
    the choices of the command line, by their names, which decide over those of the `configurations`.
    """

    paths: tuple[str, ...]
    mode: Mode
    output: str = ""
    at: At | None = None
    only: str = ""
    exclude: tuple[str, ...] = ()
    show_progress: bool = True
    declarations: Declarations | None = None
    configurations: Configurations = field(default_factory=lambda: Configurations(isolated=True))
    chosen: Mapping[str, Value] = field(default_factory=dict)

    def choices_of(self, path: str) -> Choices:
        """The conversion options for the script at `path`, with its project's; raises
        ConfigurationProblem.
        """
        settings = self.configurations.of(path).settings
        is_told = not _OF_VERSIONS.isdisjoint(self.chosen)
        kept = {
            name: value for name, value in settings.chosen.items() if not (is_told and name in _OF_VERSIONS)
        }
        choices = Choices(**{**kept, **self.chosen}, libraries=settings.libraries)  # type: ignore[arg-type]
        return settled(choices, self.declarations.of(path)) if self.declarations is not None else choices

    @property
    def folder(self) -> str:
        """The one named directory, or the common directory of all named files; "" for a single file."""
        if len(self.paths) == 1:
            return self.paths[0] if os.path.isdir(self.paths[0]) else ""
        homes = [each if os.path.isdir(each) else os.path.dirname(each) for each in map(absolute, self.paths)]
        return os.path.commonpath(homes)


def is_directory(output: str, *, several: bool) -> bool:
    """Return whether -o names a directory, which need not exist if `several` files may be written."""
    if os.path.isdir(output) or output.endswith(("/", os.sep)):
        return True
    is_file = output == STANDARD_STREAM or output.lower().endswith(_NAMES_OF_FILES) or os.path.exists(output)
    return several and not is_file
