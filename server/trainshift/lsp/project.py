"""Project: the folders of the workspace, their settings, and the files around what is open."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainshift.core.text.source import Source
from trainshift.engine.live import Live
from trainshift.host import files as disk_files
from trainshift.host.configuration import Configuration, ConfigurationProblem, Configurations
from trainshift.host.disk import files_under
from trainshift.host.files import FileProblem
from trainshift.host.walk import collect
from trainshift.lsp import diagnostics
from trainshift.lsp.desk import OpenProgram, Rules, State
from trainshift.lsp.options import SECTION, Chosen, Options, read_options
from trainshift.lsp.text.documents import Paper, paper_of, plain
from trainshift.lsp.wire.capabilities import LANGUAGES
from trainshift.lsp.wire.uris import path_of, uri_of

if TYPE_CHECKING:
    from trainshift.engine.versions.runtime import Runtime
    from trainshift.host.declarations import Declarations

log = logging.getLogger(__name__)

_WAY_OUT = "switch trainshift.ignoreVersions on to convert all the same"
_MANY = 50
"""From this many files on a scan of the workspace shows its progress."""


class Project:
    """What is around the documents; `problem` is called once with each thing that is wrong with settings."""

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
        self.forget_settings()

    # Folders and settings

    def set_folders(self, uris: Iterable[str]) -> None:
        """The workspace consists of these folders."""
        self.folders = list(dict.fromkeys(uris))

    def set_defaults(self, section: object) -> None:
        """What the editor says where it says nothing of a folder."""
        self._defaults = self._read(section)

    @property
    def wanted(self) -> list[dict[str, str]]:
        """What to ask the editor for: its section for every folder, and for what is in none."""
        return [*({"scopeUri": uri, "section": SECTION} for uri in self.folders), {"section": SECTION}]

    def set_options(self, wanted: Iterable[dict[str, str]], sections: Iterable[object]) -> None:
        """What the editor says, section by section, to what was `wanted`."""
        self._options = {
            each.get("scopeUri", ""): self._defaults if section is None else self._read(section)
            for each, section in zip(wanted, sections, strict=False)
        }

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
        """Files of settings, or of requirements, have changed."""
        self._configurations = Configurations()
        self._declarations = None

    def rules_of(self, path: str) -> Rules:
        """What decides how the file at `path` is judged ("" for one that is nowhere)."""
        folder = self._folder_of(path)
        options = self._options.get(folder, self._options.get("", self._defaults))
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
            ignores_versions=options.ignore_versions,
            files=self._configurations,
            source_of=self.source_of,
            runtime=functools.partial(self._runtime, path, options.ignore_versions),
        )

    def _runtime(self, path: str, ignores_versions: bool) -> Runtime | None:
        if not path or ignores_versions:
            return None
        if self._declarations is None:
            from trainshift.host.declarations import Declarations

            self._declarations = Declarations(_WAY_OUT)
        return self._declarations.of(path)

    def _folder_of(self, path: str) -> str:
        """The URI of the innermost folder that holds a file; "" if none does."""
        inside = [
            (len(folder), uri)
            for uri in self.folders
            if (folder := path_of(uri)) and path.startswith(f"{folder.rstrip('/')}/")
        ]
        return max(inside)[1] if inside else ""

    # Files

    def program(self, uri: str, paper: Paper) -> OpenProgram:
        """A program that is opened; its imports are followed if it is a file."""
        path = path_of(uri)
        live = Live(path, self.files if path and not paper.is_notebook else None)
        return OpenProgram(uri, paper, live, self.rules_of(path))

    def opened(self, path: str, text: str) -> bool:
        """A file is open with this text, whatever the disk holds; tells whether it was there before."""
        is_edit = path in self._texts or os.path.exists(path)
        self._texts[path] = text
        self.changed(path, is_edit=is_edit)
        return is_edit

    def changed(self, path: str, *, is_edit: bool) -> None:
        """A file holds something else; it was there before, and still is, if `is_edit`."""
        self._stale[path] = self._stale.get(path, True) and is_edit

    def refresh(self) -> None:
        """Forget what was read of files that have changed (on the thread that reads them)."""
        while self._stale:
            path, is_edit = self._stale.popitem()
            self.files.forget(path, is_edit=is_edit)
            for other, scanned in list(self._scanned.items()):
                if not is_edit or path in scanned.linked:
                    self._scanned[other] = replace(scanned, stamp=None)

    def closed(self, path: str) -> bool:
        """A file is no longer open; tells whether it is still there."""
        self._texts.pop(path, None)
        is_edit = os.path.exists(path)
        self.changed(path, is_edit=is_edit)
        return is_edit

    def source_of(self, path: str) -> Source | None:
        """What a file that a program imports says."""
        code = self.files.read(path)
        return code.source if code is not None else None

    def scan(self, encoding: str) -> Scan:
        """A walk over the files of all folders."""
        return Scan(self, [path for uri in self.folders if (path := path_of(uri))], encoding)


def is_python(uri: str, language: str) -> bool:
    """Whether a document is judged."""
    return language in LANGUAGES or path_of(uri).endswith((".py", ".pyi"))


@dataclass(frozen=True)
class Scanned:
    """What the last scan found in a file: of which version of it (None for one that is outdated), and with
    which other files."""

    stamp: object
    linked: frozenset[str]
    items: list[diagnostics.Item]


class Scan:
    """Checks the files of folders, one a step; what has not changed since the last scan is not read again."""

    def __init__(self, project: Project, folders: list[str], encoding: str) -> None:
        self._project = project
        self._encoding = encoding
        self._paths = [
            each.path
            for each in collect([folder for folder in folders if os.path.isdir(folder)])
            if not each.problem and not each.nothing
        ]
        self.total = len(self._paths)
        self.done = 0
        self.found: dict[str, list[diagnostics.Item]] = {}

    @property
    def is_long(self) -> bool:
        """Whether a person would like to know how far it is."""
        return self.total >= _MANY and not self._project._scanned

    def step(self, pause: Callable[[], None]) -> bool:
        """Check one file; False when there are no more.  `pause` may raise to begin the step again."""
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
            text = disk_files.read(path).text
        except (FileProblem, OSError) as problem:
            log.debug("%s is not scanned: %s", path, problem)
            return None
        paper = paper_of(plain(uri, None, text, self._encoding))
        live = Live(path, self._project.files)
        report = live.in_full(paper.source, rules.settings)
        items = diagnostics.items_of(State(paper, report, True, None), rules)[uri]
        self._project._scanned[path] = Scanned(stamp, live.linked, items)
        return items
