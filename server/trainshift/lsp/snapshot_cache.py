"""Snapshot cache: the programs of open documents, each analysed once until one of its files changes.

All of this runs on the desk's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from trainshift.engine.analysis import Analysis, analyze_script
from trainshift.engine.claims import Claims, analyze_program, claims_from, claims_of, enough
from trainshift.engine.effects.asking import MOST_STARTS
from trainshift.engine.programs import Programs
from trainshift.engine.workspace import ParsedFiles, linked
from trainshift.lsp.options import Rules
from trainshift.lsp.outline import Outline, outline_of
from trainshift.lsp.scheduler import OpenProgram
from trainshift.lsp.snapshot import Whole, refused, whole_of
from trainshift.lsp.text.documents import Paper
from trainshift.lsp.transport.uris import path_of
from trainshift.python.names.script import Script
from trainshift.python.names.workspace import MOST_CONVERTED


class Wholes:
    """The programs of a workspace's `files`; `rules_of` returns the settings for a path."""

    def __init__(self, files: ParsedFiles, rules_of: Callable[[str], Rules]) -> None:
        self._files = files
        self._rules_of = rules_of
        self._kept: dict[str, Whole] = {}
        self._claims: dict[tuple[str, frozenset[str]], tuple[Claims | None, frozenset[str]]] = {}
        self._programs: Programs | None = None

    def forget(self, path: str, *, is_edit: bool) -> None:
        """Forget results about a file: with `is_edit` it was edited, otherwise created or deleted."""
        self._programs = None
        for start, whole in list(self._kept.items()):
            # A file that imports a file of a program may start another program, whose needs count as well.
            names = any(self._files.names(path, each) for each in whole.sources if each) if is_edit else True
            if names or path in whole.paths or path in whole.sources:
                self._kept.pop(start).is_dated = True
        for asked, (_, paths) in list(self._claims.items()):
            if not is_edit or path in paths:
                del self._claims[asked]

    def keep(self, opened: Collection[str]) -> None:
        """Forget the programs without an open file."""
        for start, whole in list(self._kept.items()):
            if whole.sources.keys().isdisjoint(opened):
                del self._kept[start]
        if not self._kept:
            self._claims.clear()

    def starts(self, path: str, pause: Callable[[], None]) -> tuple[str, ...]:
        """The start files of a file's programs; `pause` may raise to abort."""
        self._files.survey(path, pause)
        if self._programs is None:
            self._programs = Programs(self._files)
        return tuple(self._programs.starts(path))

    def outline(self, program: OpenProgram, paper: Paper, pause: Callable[[], None]) -> Outline:
        """The possible changes in a document, as a part of its program."""
        path, starts = path_of(program.uri), program.starts
        idle = None
        for start in starts[:MOST_STARTS]:
            whole = self._started_by(start, pause) if start != path else None
            # The document is not part of a program that is too large or was read too early.
            if whole is None or path not in whole.sources or whole.sources[path].text != paper.text:
                continue
            if whole.trains:
                return outline_of(paper, path, starts, whole)
            idle = idle or whole
        return outline_of(paper, path, starts, idle or self._of(program, path, paper, pause))

    def _started_by(self, start: str, pause: Callable[[], None]) -> Whole | None:
        kept = self._kept.get(start)
        if kept is not None and not kept.is_dated:
            return kept
        code = self._files.read(start)
        if code is None:
            return None
        script = linked(code, start, self._files, MOST_CONVERTED)
        return self._made(script, self._rules_of(start), pause)

    def _of(self, program: OpenProgram, path: str, paper: Paper, pause: Callable[[], None]) -> Whole:
        """The program that a document starts."""
        kept = self._kept.get(path)
        if kept is not None and not kept.is_dated and kept.sources[path].text == paper.text:
            return kept
        script = program.live.whole(paper.source)
        if script is None:
            reason = refused(paper.source, "not Python")
            return Whole({path: paper.source}, frozenset(), None, None, reason)
        if script.workspace is None or not program.starts:
            # Until the programs are known, no other program counts.
            return whole_of(
                script,
                lambda each: analyze_script(each, pause, choices=program.rules.choices),
                self._files,
                program.rules.runtime,
            )
        return self._made(script, program.rules, pause)

    def _made(self, script: Script, rules: Rules, pause: Callable[[], None]) -> Whole:
        def analyze(script: Script) -> Analysis:
            return analyze_program(
                script,
                self._files,
                pause,
                claims=partial(self._claims_of, pause),
                choices=rules.choices,
            )

        whole = self._kept[script.path] = whole_of(script, analyze, self._files, rules.runtime)
        return whole

    def _claims_of(self, pause: Callable[[], None], start: str, rules: frozenset[str]) -> Claims | None:
        """The claims of another program on files that it shares with this one."""
        rules = enough(rules, [asked for each, asked in self._claims if each == start])
        known = self._claims.get((start, rules))
        if known is None:
            with self._files.noting() as noted:
                kept = self._kept.get(start)
                analysis = kept.analysis if kept is not None else None
                if kept is not None and analysis is not None:
                    found = claims_of(analysis)
                    noted.paths |= kept.paths | kept.sources.keys()
                else:
                    choices = self._rules_of(start).choices
                    found = claims_from(start, self._files, choices, pause, rules=rules)
            known = self._claims[start, rules] = found, frozenset(noted.paths)
        self._files.note(known[1])
        return known[0]
