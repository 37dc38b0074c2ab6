"""Wholes: the programs that open documents belong to, each analysed once until one of its files changes.

All of this is done on the desk's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from trainshift.engine.programs import Programs
from trainshift.engine.workspace import ParsedFiles, linked
from trainshift.lsp.desk import OpenProgram, Rules
from trainshift.lsp.outline import Outline, outline_of
from trainshift.lsp.text.documents import Paper
from trainshift.lsp.whole import Whole, refused, whole_of
from trainshift.lsp.wire.uris import path_of

# So many of the programs that a file belongs to are asked what they want of it.
_MOST_PROGRAMS = 4


class Wholes:
    """The programs of a workspace's `files`; `rules_of` tells what holds for a path."""

    def __init__(self, files: ParsedFiles, rules_of: Callable[[str], Rules]) -> None:
        self._files = files
        self._rules_of = rules_of
        self._kept: dict[str, Whole] = {}
        self._programs: Programs | None = None

    def forget(self, path: str, *, is_edit: bool) -> None:
        """A file has changed, or is new or gone unless that `is_edit`."""
        self._programs = None
        self._keep(lambda whole: is_edit and path not in whole.paths)

    def keep(self, opened: Collection[str]) -> None:
        """Forget the programs none of whose files is open."""
        self._keep(lambda whole: not whole.sources.keys().isdisjoint(opened))

    def _keep(self, wanted: Callable[[Whole], bool]) -> None:
        self._kept = {start: whole for start, whole in self._kept.items() if wanted(whole)}

    def starts(self, path: str, pause: Callable[[], None]) -> tuple[str, ...]:
        """The files that start the programs which a file belongs to; `pause` may raise to give up."""
        self._files.survey(path, pause)
        if self._programs is None:
            self._programs = Programs(self._files)
        return tuple(self._programs.starts(path))

    def outline(self, program: OpenProgram, paper: Paper, pause: Callable[[], None]) -> Outline:
        """What could be made distributed in a document, as a part of its programs."""
        path = "" if paper.is_notebook else path_of(program.uri)
        found, starts = [], program.starts
        for start in starts[:_MOST_PROGRAMS]:
            whole = self._started_by(start, pause) if start != path else None
            # Of a program that is too large, or was read too early, the document is no part.
            if whole is not None and path in whole.sources and whole.sources[path].text == paper.text:
                found.append(whole)
        return outline_of(paper, path, starts, found or [self._of(program, path, paper, pause)])

    def _started_by(self, start: str, pause: Callable[[], None]) -> Whole | None:
        kept = self._kept.get(start)
        if kept is not None and not kept.is_retired:
            return kept
        code = self._files.read(start)
        if code is None:
            return None
        whole = whole_of(linked(code, start, self._files), self._rules_of(start).runtime, pause)
        self._kept[start] = whole
        return whole

    def _of(self, program: OpenProgram, path: str, paper: Paper, pause: Callable[[], None]) -> Whole:
        """The program that a document starts."""
        kept = self._kept.get(path)
        if kept is not None and not kept.is_retired and kept.sources[path].text == paper.text:
            return kept
        script = program.live.with_imports(paper.source)
        if script is None:
            reason = refused(paper.source, "not Python")
            return Whole({path: paper.source}, frozenset(), None, None, reason)
        whole = whole_of(script, program.rules.runtime, pause)
        if path:
            self._kept[path] = whole
        return whole
