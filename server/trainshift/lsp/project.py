"""Project: the workspace folders, their settings, and the files around open documents."""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from trainshift.engine.checking import check
from trainshift.engine.incremental import Live
from trainshift.host import files as disk_files
from trainshift.host.configuration import Configuration, ConfigurationProblem, Configurations
from trainshift.host.disk import files_under, text_on_disk
from trainshift.host.files import FileProblem, is_notebook
from trainshift.host.kept_verdicts import Kept, asked_under
from trainshift.host.verdicts_on_disk import folder_for
from trainshift.host.walk import collect
from trainshift.lsp import diagnostics
from trainshift.lsp.options import SECTION, Chosen, Options, Rules, read_options
from trainshift.lsp.scheduler import OpenProgram, State
from trainshift.lsp.text.documents import Paper, paper_of, plain
from trainshift.lsp.text.notebooks import paper_on_disk
from trainshift.lsp.transport.capabilities import LANGUAGES
from trainshift.lsp.transport.uris import path_of, uri_of
from trainshift.python.source.source import BOM, Source

if TYPE_CHECKING:
    from trainshift.engine.versions.runtime import Runtime
    from trainshift.host.declarations import Declarations
    from trainshift.lsp.outline import Outline
    from trainshift.lsp.snapshot_cache import Wholes

log = logging.getLogger(__name__)

_WAY_OUT = "turn on trainshift.ignoreVersions to convert anyway"
_MANY = 50
"""A scan of at least this many files shows its progress."""


class Turn(Enum):
    """The kind of a file's change: none, new text, created or deleted."""

    NONE = 0
    EDITED = 1
    NEW_OR_GONE = 2


class Project:
    """The surroundings of the documents; calls `problem` once for each error in settings."""

    def __init__(self, problem: Callable[[str], None]) -> None:
        self.problem = problem
        self._told: set[str] = set()
        self._texts: dict[str, str] = {}
        self._stale: dict[str, bool] = {}
        self.files = files_under(self._texts)
        self.folders: list[str] = []
        self._defaults = Options()
        self._options: dict[str, Options] = {}
        self._declarations: Declarations | None = None
        self._scanned: dict[str, Scanned] = {}
        self._wholes: Wholes | None
        self.number_of_changes = 0
        """The number of times that files were opened, edited or closed, or changed on the disk."""
        self.forget_settings()

    # Folders and settings

    def set_folders(self, uris: Iterable[str]) -> None:
        """Set the folders of the workspace."""
        self.folders = list(dict.fromkeys(uris))

    def set_defaults(self, section: object) -> None:
        """Set the editor's options for files outside its folders."""
        self._defaults = self._read(section)
        self._wholes = self._declarations = None

    @property
    def wanted(self) -> list[dict[str, str]]:
        """The sections to request from the editor: one for every folder, and one for other files."""
        return [*({"scopeUri": uri, "section": SECTION} for uri in self.folders), {"section": SECTION}]

    def set_options(self, wanted: Iterable[dict[str, str]], sections: Iterable[object]) -> None:
        """Set the editor's answers to `wanted`, section by section."""
        self._options = {
            each.get("scopeUri", ""): self._defaults if section is None else self._read(section)
            for each, section in zip(wanted, sections, strict=False)
        }
        self._wholes = self._declarations = None

    def _read(self, section: object) -> Options:
        options, problems = read_options(section)
        for problem in problems:
            self._tell(problem)
        return options

    def _tell(self, problem: str) -> None:
        if problem not in self._told:
            self._told.add(problem)
            self.problem(problem)

    def forget_settings(self) -> None:
        """Forget the settings and requirements, whose files have changed."""
        self._configurations = Configurations()
        self._declarations = None
        self._wholes = None  # They were made with the previous choices.

    def rules_of(self, path: str) -> Rules:
        """The settings for checking the file at `path` ("" for a document without a file)."""
        folder, options = self._folder_of(path), self._options_of(path)
        project: Configuration | None = None
        if path:
            try:
                project = self._configurations.of(path)
            except ConfigurationProblem as problem:
                self._tell(str(problem))
        chosen = Chosen(options, path_of(folder), project)
        return Rules(
            chosen.settings_of(path) if path else options.settings,
            enable=options.enable and not (path and chosen.excludes(path)),
            hints=options.hints,
            code_lens=options.code_lens,
            static_hints=options.static_hints,
            ignores_versions=options.ignore_versions,
            python=options.python,
            files=self._configurations,
            source_of=self.source_of,
            runtime=functools.partial(self._runtime, path, options.ignore_versions),
        )

    def _runtime(self, path: str, ignores_versions: bool) -> Runtime | None:
        from trainshift.host.environment import environment

        if not path:
            return environment(python=self._options_of(path).python)
        if self._declarations is None:
            from trainshift.host.declarations import Declarations

            self._declarations = Declarations(
                _WAY_OUT,
                shown=self._shown,
                environment=lambda path: environment(path, self._options_of(path).python),
            )
        found = self._declarations.of(path)
        return (
            dataclasses.replace(found, is_ignored=ignores_versions)
            if found is not None and found.why
            else found
        )

    def _options_of(self, path: str) -> Options:
        """The editor's settings for the file at `path`."""
        return self._options.get(self._folder_of(path), self._options.get("", self._defaults))

    def _shown(self, path: str) -> str:
        """The path of a file relative to its folder, without the server's own directory."""
        return path.removeprefix(f"{path_of(self._folder_of(path)).rstrip('/')}/")

    def _folder_of(self, path: str) -> str:
        """The URI of the innermost folder around a file; "" if there is none."""
        inside = [
            (len(folder), uri)
            for uri in self.folders
            if (folder := path_of(uri)) and path.startswith(f"{folder.rstrip('/')}/")
        ]
        return max(inside)[1] if inside else ""

    # Files

    def program(self, uri: str, paper: Paper) -> OpenProgram:
        """An opened program; its imports are followed if it is a file."""
        path = path_of(uri)
        live = Live(path, self.files if path else None, is_open=True)
        return OpenProgram(uri, paper, live, self.rules_of(path))

    def opened(self, path: str, text: str) -> Turn:
        """Record that a file is open with this text, whatever is on disk."""
        is_edit = path in self._texts or os.path.exists(path)
        before, self._texts[path] = self._texts.get(path), text
        return self._turned(path, text, is_edit=is_edit, is_same=before == text)

    def changed(self, path: str, *, is_edit: bool) -> Turn:
        """Record that a file on disk has changed; with `is_edit` it existed before, and still does."""
        if is_edit and path in self._texts:
            return Turn.NONE
        return self._turned(path, None, is_edit=is_edit)

    def _turned(self, path: str, text: str | None, *, is_edit: bool, is_same: bool = False) -> Turn:
        if is_same or (is_edit and path not in self._stale and text is not None and self._holds(path, text)):
            return Turn.NONE
        self._stale[path] = self._stale.get(path, True) and is_edit
        self.number_of_changes += 1
        return Turn.EDITED if is_edit else Turn.NEW_OR_GONE

    def _holds(self, path: str, text: str) -> bool:
        return self.files.holds(path, text.removeprefix(BOM))

    def refresh(self) -> None:
        """Forget the contents of changed files (on the thread that reads them)."""
        while self._stale:
            path, is_edit = self._stale.popitem()
            self.files.forget(path, is_edit=is_edit)
            if self._wholes is not None:
                self._wholes.forget(path, is_edit=is_edit)
            for other, scanned in list(self._scanned.items()):
                if not is_edit or path in scanned.linked:
                    self._scanned[other] = replace(scanned, stamp=None)
        if self._wholes is not None:
            self._wholes.keep(self._texts)

    def closed(self, path: str) -> Turn:
        """Record that a file was closed."""
        self._texts.pop(path, None)
        return self._turned(path, self.text_of(path), is_edit=os.path.exists(path))

    def text_of(self, path: str) -> str | None:
        """The text on disk of a file that is not open; None if it cannot be read."""
        return text_on_disk(path)

    # Programs

    def outline(self, program: OpenProgram, paper: Paper, pause: Callable[[], None]) -> Outline:
        """The possible changes in a document (on the thread that reads files)."""
        return self._known_wholes().outline(program, paper, pause)

    def starts(self, paths: Iterable[str], pause: Callable[[], None]) -> dict[str, tuple[str, ...]]:
        """The start files of the programs that contain some files (on the thread that reads files)."""
        return {path: self._known_wholes().starts(path, pause) for path in paths}

    def _known_wholes(self) -> Wholes:
        if self._wholes is None:
            from trainshift.lsp.snapshot_cache import Wholes

            self._wholes = Wholes(self.files, self.rules_of)
        return self._wholes

    def source_of(self, path: str) -> Source | None:
        """The text of a file that a program imports, or that declares its versions."""
        if path.endswith((".py", ".pyi")):
            code = self.files.read(path)
            return code.source if code is not None else None
        text = self.text_of(path)
        return Source(text) if text is not None else None

    def scan(self, encoding: str) -> Scan:
        """A walk over the files of all folders."""
        return Scan(self, [path for uri in self.folders if (path := path_of(uri))], encoding)


def is_python(uri: str, language: str) -> bool:
    """Return whether a document is judged."""
    return language in LANGUAGES or path_of(uri).endswith((".py", ".pyi"))


class Scanned(Struct, frozen=True):
    """The last scan's result for a file: its version (None if outdated), and the other files of its
    program.
    """

    stamp: object
    linked: frozenset[str]
    items: list[diagnostics.Item]


class Scan:
    """A check of the files of folders, one per step; unchanged files are not read again."""

    def __init__(self, project: Project, folders: list[str], encoding: str) -> None:
        self._project = project
        self._encoding = encoding
        self._paths = [
            each.path
            for each in collect([folder for folder in folders if os.path.isdir(folder)])
            if not each.problem and not each.nothing
        ]
        self._kept: dict[str, Kept] = {}
        self.total = len(self._paths)
        self.done = 0
        self.found: dict[str, list[diagnostics.Item]] = {}

    @property
    def is_long(self) -> bool:
        """Return whether a person would like to know how far it is."""
        return self.total >= _MANY and not self._project._scanned

    def step(self, pause: Callable[[], None]) -> bool:
        """Check one file; return False if there are no more. `pause` may raise to restart the step."""
        if self.done >= self.total:
            return False
        path = os.path.abspath(self._paths[self.done]).replace(os.sep, "/")
        pause()
        uri = uri_of(path)
        items = self._items(path, uri)
        if items is not None:
            self.found[uri] = items
        self.done += 1
        return self.done < self.total

    def _items(self, path: str, uri: str) -> list[diagnostics.Item] | None:
        rules = self._project.rules_of(path)
        try:
            info = os.stat(path)
            stamp = (info.st_mtime_ns, info.st_size, rules)
            known = self._project._scanned.get(path)
            if known is not None and known.stamp == stamp:
                return known.items
            file = disk_files.read(path)
            if is_notebook(path):
                paper = paper_on_disk(file, path, self._encoding)
            else:
                paper = paper_of(plain(uri, None, file.text, self._encoding))
        except (FileProblem, OSError) as problem:
            log.debug("%s is not scanned: %s", path, problem)
            return None
        files = self._project.files
        cache = self._cache_beside(path)
        kept = cache.of(path, asked_under(rules.settings), rules.runtime)
        if kept is not None:
            report, linked = kept.report, cache.texts_behind(path)
        else:
            with files.noting() as noted:
                report = check(paper.source.text, rules.settings, path, files, rules.runtime)
            linked = frozenset(noted.paths)
        items = diagnostics.items_of(State(paper, report, True, None), rules).get(uri, [])
        self._project._scanned[path] = Scanned(stamp, linked, items)
        return items

    def _cache_beside(self, path: str) -> Kept:
        """Return the verdicts that `trainshift check` has kept in the project around a file."""
        folder = folder_for(os.path.dirname(path), self._project.files)
        if folder not in self._kept:
            self._kept[folder] = Kept(self._project.files, folder, folder)
        return self._kept[folder]
