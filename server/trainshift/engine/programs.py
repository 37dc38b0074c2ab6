"""Programs: the start files of the programs that contain a file, and whether these programs agree (spec.md
7).

A start file is one that no other file imports, or that has code under a ``__main__`` guard.  Test files
import other files, and start no program.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from trainshift.core.choices import Choices
from trainshift.core.program import Program
from trainshift.engine.analysis import Analysis, analyze_script, whole_program
from trainshift.engine.workspace import ParsedFiles, is_test, linked
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.script import Script
from trainshift.python.names.workspace import MOST_CONVERTED
from trainshift.python.source.edit import Change, Edit, Suits, Withheld
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Statement, behind_main_guard
from trainshift.python.syntax.code import Code
from trainshift.training.loops.loop_reader import candidates
from trainshift.training.loops.loops import Loops
from trainshift.training.seeds.agreement import Agreement
from trainshift.transforms import TRANSFORMS

# The rules whose changes one program may make and another one, sharing the file, leave out.
_HARMLESS = frozenset(rule.code for rule in TRANSFORMS if rule.sets_up or rule.harmless)
# The choices that turn a rule off for a program.
_CHOSEN = {rule.code: rule.choice for rule in TRANSFORMS if rule.choice}

_NOT_SEARCHED = (
    "the project has too many files to search them all: "
    "another program may need the old version of a file that this one changes"
)


class Programs:
    """The programs of a workspace, by its files' imports; paths are absolute."""

    def __init__(self, files: ParsedFiles) -> None:
        self._files = files
        self._importers: dict[str, list[str]] = {}
        self._imported: dict[str, frozenset[str]] = {}
        self._may_train: dict[str, bool] = {}

    def importers(self, path: str) -> list[str]:
        """The files that directly import the one at `path`, tests excluded."""
        return [other for other in self._all_importers(path) if not is_test(other)]

    def _all_importers(self, path: str) -> list[str]:
        if path not in self._importers:
            naming = self._files.naming(path)
            self._importers[path] = [other for other in naming if path in self._imported_by(other)]
        return self._importers[path]

    def holds(self, start: str, path: str) -> bool:
        """Return whether all that starts or imports the file at `path` belongs to the program of `start`."""
        if not self._files.searches_all(path) or self._files.has_notebooks(path):
            return False
        above = reachable([path], self._all_importers)
        return all(each == start or self._is_inner(each) for each in above)

    def _is_inner(self, path: str) -> bool:
        """Return whether others import a file, which starts nothing itself."""
        return bool(self._all_importers(path)) and not self._is_start(path)

    def starts(self, path: str) -> list[str]:
        """The start files of the training programs that contain the file at `path`, sorted.

        The file itself if it starts one, or if no training program imports it.
        """
        if path.endswith(".ipynb"):
            return [path]
        # Importers are searched last, because that reads the whole project.
        if (self._is_start(path) and self.may_train(path)) or not self.importers(path):
            return [path]
        above = (each for each in reachable([path], self.importers) if each != path)
        return sorted(each for each in above if self._is_start(each) and self.may_train(each)) or [path]

    def all(self, paths: Iterable[str]) -> list[str]:
        """The start files of all programs that contain some files, in the order of the files."""
        return list(dict.fromkeys(start for path in paths for start in self.starts(path)))

    def reached(self, start: str) -> list[str]:
        """The files of the program that a file starts, itself first."""
        script = self._script(start)
        if script is None or script.workspace is None:
            return [start]
        return [each.path for each in script.workspace.reachable]

    def may_train(self, start: str) -> bool:
        """Return whether the program that a file starts calls a function with the name of a training
        function.
        """
        if start not in self._may_train:
            self._may_train[start] = self._files.once(("may train", start), partial(self._trains, start))
        return self._may_train[start]

    def starts_training(self, path: str) -> bool:
        """Return whether the file at `path` trains, under a guard for being started."""
        code = self._files.read(path)
        return code is not None and _guards_code(code) and self.may_train(path)

    def _is_start(self, path: str) -> bool:
        code = self._files.read(path)
        return code is None or _guards_code(code) or not self.importers(path)

    def _imported_by(self, path: str) -> frozenset[str]:
        """The files that the one at `path` directly imports."""
        if path not in self._imported:
            self._imported[path] = self._files.once(("imported by", path), partial(self._imports, path))
        return self._imported[path]

    def _imports(self, path: str) -> frozenset[str]:
        script = self._script(path)
        if script is None or script.workspace is None:
            return frozenset()
        return frozenset(script.workspace.imported_by(script))

    def _trains(self, start: str) -> bool:
        script = self._script(start)
        return (
            script is not None
            and script.workspace is not None
            and any(candidates(each) for each in script.workspace.reachable)
        )

    def _script(self, path: str) -> Script | None:
        code = self._files.read(path)
        return linked(code, path, self._files) if code is not None else None


@dataclass(frozen=True)
class Claims:
    """The edits that a program needs in shared files, by place and rule, and the places that it leaves alone.

    `left` are the statements that it runs unchanged, `met` those at which all its ranks draw a value, or read
    it from their machine.
    """

    start: str
    wanted: Mapping[tuple[str, Span, str], tuple[Edit, ...]]
    left: frozenset[tuple[str, Span]]
    met: frozenset[tuple[str, Span]]


class AsksClaims(Protocol):
    """A function that returns the claims of other programs on shared files."""

    def __call__(self, start: str, *, is_whole: bool) -> Claims | None:
        """Return the claims of the program that a file starts; None for one that trains nothing.

        Unless `is_whole`, the caller needs only the places where its ranks meet: the program may then seem to
        leave everything unchanged.
        """


def claims_of(analysis: Analysis) -> Claims | None:
    """The edits that a program needs in shared files; None if it does not train."""
    if not _can_claim(analysis):
        return None
    return _wants(analysis) if _trains(analysis.scripts[0]) else None


def _can_claim(analysis: Analysis) -> bool:
    return analysis.outlook.convertible and bool(analysis.program.fact(Loops).own)


def _wants(analysis: Analysis) -> Claims:
    wanted = {place: edits for place, (_, edits) in _wanted(analysis).items()}
    changed = {analysis.place(change.target) for change in analysis.changes}
    own = {(script.path, span) for script, span in changed if script is analysis.scripts[0]}
    return Claims(analysis.scripts[0].path, wanted, _run(analysis.program) - own, _met(analysis.program))


def _trains(start: Script) -> bool:
    """Return whether a file trains when it is started, by its known calls.

    A file that only lists the contents of a package, such as a generator of its docs, does not count.
    """
    return Program(start).fact(Loops).runs_any


def claims_from(
    start: str,
    files: ParsedFiles,
    choices: Choices,
    pause: Callable[[], None] = lambda: None,
    *,
    is_whole: bool = True,
) -> Claims | None:
    """The claims under `choices` of the program that a file starts, in the form of `AsksClaims`."""
    code = files.read(start)
    if code is None:
        return None
    script = linked(code, start, files, MOST_CONVERTED)
    if not _trains(script):
        return None
    if is_whole:
        analysis = analyze_script(script, pause, choices=choices)
        claims = _wants(analysis) if _can_claim(analysis) else None
        read = analysis.programs
    else:
        program = whole_program(script, choices)
        with program.names.memo.pausing(pause):
            claims = _meeting(program)
        read = (program,)
    for program in read:
        program.forget()
    return claims


def _meeting(program: Program) -> Claims | None:
    if not program.fact(Loops).own:
        return None
    return Claims(program.script.scripts[0].path, {}, _run(program), _met(program))


def _run(program: Program) -> frozenset[tuple[str, Span]]:
    """Return the places of the statements that a program runs."""
    return frozenset(_place(program, each) for each in program.script.statements)


def _met(program: Program) -> frozenset[tuple[str, Span]]:
    return frozenset(_place(program, each) for each in program.fact(Agreement).places)


def _place(program: Program, statement: Statement) -> tuple[str, Span]:
    """Return the file of a statement, and its span there."""
    span = program.script.statement_span(statement)
    script, start = program.script.at(span.start)
    return script.path, Span(start, start + span.end - span.start)


class KeptClaims:
    """The claims of programs on shared files, each computed once until one of its files changes.

    `choices_of` returns the choices for the program that the file at a path starts.
    """

    def __init__(
        self, files: ParsedFiles, choices_of: Callable[[str], Choices] = lambda path: Choices()
    ) -> None:
        self._files = files
        self._choices_of = choices_of
        self._known: dict[tuple[str, bool], tuple[Claims | None, dict[str, Code | None]]] = {}

    def of(self, start: str, *, is_whole: bool) -> Claims | None:
        """The claims of the program that a file starts, in the form of `AsksClaims`."""
        known = self._known.get((start, is_whole))
        if known is None or any(self._files.read(path) is not code for path, code in known[1].items()):
            with self._files.noting() as noted:
                found = claims_from(start, self._files, self._choices_of(start), is_whole=is_whole)
            known = found, {path: self._files.read(path) for path in noted.paths}
            self._known[start, is_whole] = known
        return known[0]


def analyze_program(
    script: Script,
    files: ParsedFiles,
    pause: Callable[[], None] = lambda: None,
    *,
    claims: AsksClaims,
    choices: Choices | None = None,
    is_shared: bool = False,
    known: Program | None = None,
) -> Analysis:
    """Every change of the program that a script starts; withheld if programs disagree about a file (P4).

    `pause` is called repeatedly, and may raise to abort the analysis.  `claims` returns the claims of the
    program that a file starts, `choices` are those for this program; the others are as for `analyze_script`.
    """
    programs = Programs(files)
    holds = partial(programs.holds, script.path)
    analysis = analyze_script(script, pause, choices=choices, is_shared=is_shared, known=known, holds=holds)
    wanted = _made(analysis)
    shared = {path for path, _, _ in wanted}
    if not shared:
        return analysis
    starts = dict.fromkeys(start for path in sorted(shared) for start in programs.starts(path))
    starts.pop(script.path, None)
    own = {path for (path, _, _), (change, _) in wanted.items() if change.suits is Suits.ONE}
    asked = {start for path in own for start in programs.starts(path)}
    known_of = (claims(start, is_whole=start in asked) for start in starts)
    rivals = [rival for rival in known_of if rival is not None]
    found = [each for rival in rivals for each in _disagreements(analysis, rival)]
    without: dict[str, Any] = {_CHOSEN[each.rule]: False for each in found if each.rule in _CHOSEN}
    if without:
        # Changes that this program leaves out are not made in part.
        left = [replace(each, essential=False) for each in found if each.rule in _CHOSEN]
        analysis = analyze_script(
            script, pause, choices=replace(choices or Choices(), **without), is_shared=is_shared, holds=holds
        )
        found = [*left, *(each for rival in rivals for each in _disagreements(analysis, rival))]
    doubts = () if all(map(files.searches_all, shared)) else (_NOT_SEARCHED,)
    withheld = (*analysis.withheld, *dict.fromkeys(found))
    return replace(analysis, withheld=withheld, doubts=doubts) if found or doubts else analysis


def _disagreements(analysis: Analysis, rival: Claims) -> Iterator[Withheld]:
    """Yield the statements of shared files that both programs run and would change differently."""
    for place, (change, edits) in _wanted(analysis).items():
        suits = change.suits is Suits.MEETING and place[:2] in rival.met
        differs = rival.wanted[place] != edits if place in rival.wanted else place[:2] in rival.left
        if differs and not suits:
            mine, other = (posixpath.basename(each) for each in (analysis.scripts[0].path, rival.start))
            reason = (
                f"{mine} and {other} need different changes to this statement; "
                "give each of them code of its own here"
            )
            yield Withheld(change.rule, change.target, reason, True)


def _made(analysis: Analysis) -> dict[tuple[str, Span, str], tuple[Change, tuple[Edit, ...]]]:
    """The changes of a program outside its start file, by place and rule; none of a refused one."""
    is_refused = not analysis.outlook.convertible or any(each.essential for each in analysis.withheld)
    return {} if is_refused else _wanted(analysis)


def _wanted(analysis: Analysis) -> dict[tuple[str, Span, str], tuple[Change, tuple[Edit, ...]]]:
    """The changes of a program outside its start file, by place and rule."""
    found: dict[tuple[str, Span, str], tuple[Change, tuple[Edit, ...]]] = {}
    for change in analysis.changes:
        script, span = analysis.place(change.target)
        if (
            script is not analysis.scripts[0]
            and change.rule not in _HARMLESS
            and change.suits is not Suits.ALL
        ):
            distance = span.start - change.target.start
            edits = tuple(edit.moved(distance) for edit in change.edits)
            found[script.path, span, change.rule] = change, edits
    return found


def _guards_code(code: Code) -> bool:
    return any(
        behind_main_guard(inner)
        for statement in code.top
        for block in statement.branches.values()
        for inner in block[:1]
    )
