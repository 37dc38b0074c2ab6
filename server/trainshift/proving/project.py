"""Scratch copies of a project: code is copied, data are linked, and no link back is writable.

`observed.links` prevents writes through links; `changed` finds those that got through.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path

from trainshift.proving.judging.runs import fingerprint
from trainshift.proving.observed.links import Links

# Folders that no script reads its data from.
SKIPPED = {
    ".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", "venv", ".tox", ".nox", ".idea", ".vscode",
    ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints",
}  # fmt: skip
# Marker files of folders that do not belong to a project: environments, and other proofs.
STRANGE = ("pyvenv.cfg", os.path.join("original", "rank0", "record"))
# Larger files are linked, as are folders with more entries, and everything after this many entries.
LARGEST = 256 * 1024
MOST_IN_FOLDER = 500
MOST_ENTRIES = 4000
CODE = (".py", ".json", ".yaml", ".yml", ".toml", ".cfg", ".ini")
LARGEST_CODE = 16 * 1024 * 1024


@dataclass(frozen=True)
class Project:
    """A program to run: its folder, its start file, and its arguments.

    `top` contains all of its files, `here` is the folder in which it starts; `command` follows `python`
    there. `texts` are the contents of files that differ from the disk, by path below `top`.
    """

    top: str
    here: str
    command: tuple[str, ...]
    texts: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def start(self) -> str:
        """The folder of a copy in which the program starts."""
        return (
            os.path.normpath(os.path.join("work", os.path.relpath(self.here, self.top)))
            if self.is_inside
            else "here"
        )

    @property
    def is_inside(self) -> bool:
        """Return whether it is started from within its folder."""
        return os.path.commonpath([self.top, self.here]) == self.top

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command for a copy; for a module, `-m` and its name."""
        script, *rest = self.command
        if script == "-m":
            return self.command
        base = self.here if self.is_inside else self.top
        name = os.path.relpath(script, base)
        return (name if self.is_inside else os.path.join("..", "work", name), *rest)


def as_module(path: str, text: str) -> tuple[str, str] | None:
    """The folder and the name for running a script by `python -m`; None if it is run by its path.

    Only a script that imports from its own package needs that.
    """
    folder, name = os.path.split(os.path.splitext(path)[0])
    names = [name]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        names.insert(0, name)
    imports = re.compile(rf"^\s*(?:from\s+\.|(?:from|import)\s+{re.escape(names[0])}\b)", re.M)
    return (folder, ".".join(names)) if len(names) > 1 and imports.search(text) else None


def top_of(here: str, files: Sequence[str]) -> str:
    """The folder to copy for a program of some files that starts in `here`, all absolute."""
    folders = [os.path.dirname(each) for each in files]
    inside = os.path.commonpath([here, *folders]) == here
    top = here if inside else os.path.commonpath(folders)
    # Never a whole disk or a whole home.
    return os.path.dirname(files[0]) if top in ("/", os.path.expanduser("~")) and not inside else top


def own_line(before: Project, after: Project, path: str, line: int) -> int:
    """The line of the user's file for a line of the program on the ranks; 0 for a new line."""
    text = after.texts.get(path)
    if text is None or before == after:
        return line
    old = before.texts.get(path)
    if old is None:
        old = Path(before.top, path).read_bytes()
    matcher = SequenceMatcher(None, old.splitlines(), text.splitlines(), autojunk=False)
    shared = (
        each.a + line - each.b
        for each in matcher.get_matching_blocks()
        if each.b < line <= each.b + each.size
    )
    return next(shared, 0)


class Copier:
    """Copies projects; `taboo` is a folder that does not belong to the project."""

    def __init__(self, project: Project, taboo: str) -> None:
        self.project = project
        self.taboo = os.path.realpath(taboo)
        self.linked: dict[str, tuple[int, int]] = {}

    def copy(self, directory: Path) -> dict[str, str]:
        """Copy the project into a directory; returns the copied files, by path in it and digest."""
        project = self.project
        given: dict[str, str] = {}
        self.entries = 0
        (directory / "work").mkdir()
        self.fill(project.top, directory / "work", "work", given)
        if not project.is_inside:
            (directory / "here").mkdir()
            for entry in os.scandir(project.here):
                self.link(entry.path, directory / "here" / entry.name)
        links = Links([str(directory)])
        for name, content in project.texts.items():
            path = directory / "work" / name
            links.own(path, keep=False)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            given[f"work/{name}"] = fingerprint(content)
        return given

    def fill(self, folder: str, place: Path, name: str, given: dict[str, str]) -> None:
        """Copy a folder's contents to a place."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return
        folders = []
        for entry in entries:
            path, target = place / entry.name, entry.path
            self.entries += 1
            if entry.is_symlink() and entry.is_dir():
                if os.path.realpath(target) != self.taboo:
                    self.link(target, path)
            elif entry.is_dir():
                if entry.name not in SKIPPED and os.path.realpath(target) != self.taboo:
                    folders.append(entry)
            elif entry.is_file():
                # Files that others write or remove meanwhile are not missing.
                with suppress(FileNotFoundError):
                    self.put(target, path, f"{name}/{entry.name}", given)
        for entry in folders:
            path = place / entry.name
            if any(os.path.exists(os.path.join(entry.path, each)) for each in STRANGE):
                continue
            if self.entries > MOST_ENTRIES or has_many(entry.path):
                self.link(entry.path, path)
            else:
                path.mkdir()
                self.fill(entry.path, path, f"{name}/{entry.name}", given)

    def put(self, source: str, path: Path, name: str, given: dict[str, str]) -> None:
        """Copy a file, or link a large one."""
        info = os.stat(source)
        if not stat.S_ISREG(info.st_mode):
            return
        if info.st_size > (LARGEST_CODE if source.endswith(CODE) else LARGEST) or not os.access(
            source, os.R_OK
        ):
            self.link(source, path)
            return
        with open(source, "rb") as stream:
            content = stream.read()
        path.write_bytes(content)
        shutil.copystat(source, path)
        path.chmod(stat.S_IMODE(info.st_mode) | stat.S_IWUSR)
        given[name] = fingerprint(content)

    def link(self, source: str, path: Path) -> None:
        """Link a file or a folder."""
        target = os.path.realpath(source)
        os.symlink(target, path)
        if os.path.isfile(target):
            info = os.stat(target)
            self.linked[source] = (info.st_mtime_ns, info.st_size)

    def changed(self) -> list[str]:
        """The user's files whose content has changed."""
        found = []
        for path, before in self.linked.items():
            try:
                info = os.stat(path)
            except OSError:
                found.append(path)
                continue
            if (info.st_mtime_ns, info.st_size) != before:
                found.append(path)
        return found


def has_many(folder: str) -> bool:
    """Return whether a folder has so many entries that it must be data."""
    with suppress(OSError), os.scandir(folder) as entries:
        return sum(1 for _ in islice(entries, MOST_IN_FOLDER + 1)) > MOST_IN_FOLDER
    return False
