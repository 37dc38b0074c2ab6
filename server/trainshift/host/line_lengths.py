"""Read the line length of a project from the settings of its formatter and its linters."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping

from trainshift.host.files import MAX_BYTES
from trainshift.libraries import toml

_USUAL = 88
"""The default of black and ruff, for a project that uses one of them and sets no length."""
_SECTIONS = (
    (".flake8", "flake8", "max-line-length"),
    ("setup.cfg", "flake8", "max-line-length"),
    ("tox.ini", "flake8", "max-line-length"),
    ("setup.cfg", "pycodestyle", "max-line-length"),
    ("tox.ini", "pycodestyle", "max-line-length"),
)
_EDITOR = re.compile(r"^\s*max_line_length\s*=\s*(\d+|off)\s*$", re.MULTILINE)


class LineLengths:
    """The line length of each directory, read once."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, directory: str) -> int:
        """The line length set for a project, from a directory upwards; 0 if there is none.

        The search ends at the root of a repository.
        """
        if directory not in self._known:
            above = os.path.dirname(directory)
            found = _here(directory)
            if found is None and above != directory and not os.path.exists(os.path.join(directory, ".git")):
                found = self.of(above)
            self._known[directory] = found or 0
        return self._known[directory]


def _here(directory: str) -> int | None:
    """Return the line length set in one directory: 0 for no limit; None if it is not set."""
    for name in (".ruff.toml", "ruff.toml"):
        if (text := _text(directory, name)) is not None:
            return _length(_table(text)) or _USUAL
    tools = _table(_text(directory, "pyproject.toml") or "").get("tool")
    for name in ("ruff", "black"):
        table = tools.get(name) if isinstance(tools, Mapping) else None
        if isinstance(table, Mapping):
            return _length(table) or _USUAL
    for file, section, key in _SECTIONS:
        text = _text(directory, file)
        if text is not None and (found := _option(text, section, key)):
            return found
    told = _EDITOR.search(_python_part(_text(directory, ".editorconfig") or ""))
    if told is None:
        return None
    return int(told[1]) if told[1] != "off" else 0


def _text(directory: str, name: str) -> str | None:
    try:
        with open(os.path.join(directory, name), encoding="utf-8") as stream:
            return stream.read(MAX_BYTES)
    except (OSError, UnicodeDecodeError):
        return None


def _table(text: str) -> Mapping[str, object]:
    """The tables of a TOML text; none if it is invalid, which its own tool reports."""
    try:
        table: Mapping[str, object] = toml.loads(text)
        return table
    except (toml.TOMLDecodeError, RecursionError):
        return {}


def _length(table: Mapping[str, object]) -> int:
    value = table.get("line-length", table.get("line_length"))
    return value if isinstance(value, int) and value > 0 else 0


def _option(text: str, section: str, key: str) -> int:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return 0
    if not parser.has_section(section):
        return 0
    own = parser[section]
    value = own.get(key) or own.get(key.replace("-", "_")) or ""
    return int(value) if value.strip().isdigit() else 0


def _python_part(text: str) -> str:
    """The sections of an .editorconfig that mean Python's files."""
    parts = re.split(r"(?m)^\s*\[(.+)\]\s*$", text)
    named = zip(parts[1::2], parts[2::2], strict=True)
    return "\n".join(body for name, body in named if name.strip() == "*" or re.search(r"\bpy\b", name))
