"""Claims: whether the programs that share a file want the same changes in it (spec.md 7)."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from trainshift.core.choices import Choices
from trainshift.core.program import Program
from trainshift.engine.analysis import ALL_RULES, Analysis, analyze_script, whole_program
from trainshift.engine.programs import Programs
from trainshift.engine.workspace import ParsedFiles, linked
from trainshift.python.names.script import Script
from trainshift.python.names.workspace import MOST_CONVERTED
from trainshift.python.source.edit import Change, Edit, Suits, Withheld
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.training.loops.loops import Loops
from trainshift.training.seeds.agreement import Agreement
from trainshift.transforms import TRANSFORMS

# The rules whose changes one program may make and another one, sharing the file, leave out.
_HARMLESS = frozenset(rule.code for rule in TRANSFORMS if rule.sets_up or rule.harmless)
# The rules that may ask where all ranks of a program meet.
_MEETING = frozenset(rule.code for rule in TRANSFORMS if rule.meets)
# The choices that turn a rule off for a program.
_CHOSEN = {rule.code: rule.choice for rule in TRANSFORMS if rule.choice}

_NOT_SEARCHED = (
    "the project has too many files to search them all: "
    "another program may need the old version of a file that this one changes"
)


class Wanted(NamedTuple):
    """The edits of one rule to a statement of a shared file, and the programs that they suit."""

    edits: tuple[Edit, ...]
    suits: Suits


class Claims(Struct, frozen=True):
    """The edits that a program needs in shared files, by place and rule, and the places that it leaves alone.

    `left` are the statements that it runs unchanged, `met` those at which all its ranks draw a value, or read
    it from their machine.
    """

    start: str
    wanted: Mapping[tuple[str, Span, str], Wanted]
    left: frozenset[tuple[str, Span]]
    met: frozenset[tuple[str, Span]]

    def disputes(self, wanted: Mapping[tuple[str, Span, str], Wanted]) -> list[tuple[str, Span, str]]:
        """The places at which another program that runs the same statement wants other edits."""
        return [place for place, mine in wanted.items() if self._differs(place, mine)]

    def _differs(self, place: tuple[str, Span, str], other: Wanted) -> bool:
        if other.suits is Suits.MEETING and place[:2] in self.met:
            return False
        mine = self.wanted.get(place)
        return mine.edits != other.edits if mine is not None else place[:2] in self.left


class AsksClaims(Protocol):
    """A function that returns the claims of other programs on shared files."""

    def __call__(self, start: str, rules: frozenset[str]) -> Claims | None:
        """Return the claims of the program that a file starts; None for one that trains nothing.

        The caller needs only the edits of some `rules`.  Without any, it needs only the places where the
        program's ranks meet: the program may then seem to leave everything unchanged.
        """


def claims_of(analysis: Analysis) -> Claims | None:
    """The edits that a program needs in shared files; None if it does not train."""
    return _wants(analysis) if _can_claim(analysis) and _trains(analysis.scripts[0]) else None


def claims_alone(analysis: Analysis) -> tuple[Claims | None, Claims | None]:
    """The claims of a program in both forms of `AsksClaims`: as a whole, and where its ranks meet."""
    if not _trains(analysis.scripts[0]):
        return None, None
    whole = _wants(analysis) if _can_claim(analysis) else None
    return whole, whole or _meeting(analysis.program)


def _can_claim(analysis: Analysis) -> bool:
    return analysis.outlook.convertible and bool(analysis.program.fact(Loops).own)


def _wants(analysis: Analysis, rules: frozenset[str] = ALL_RULES) -> Claims:
    changed = {analysis.place(change.target) for change in analysis.changes}
    own = {(script.path, span) for script, span in changed if script is analysis.scripts[0]}
    met = frozenset[tuple[str, Span]]() if rules.isdisjoint(_MEETING) else _met(analysis.program)
    return Claims(analysis.scripts[0].path, _wanted(analysis), _run(analysis.program) - own, met)


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
    rules: frozenset[str] = ALL_RULES,
) -> Claims | None:
    """The claims under `choices` of the program that a file starts, in the form of `AsksClaims`."""
    code = files.read(start)
    if code is None:
        return None
    script = linked(code, start, files, MOST_CONVERTED)
    if not _trains(script):
        Program(script).forget()
        return None
    if rules:
        analysis = analyze_script(script, pause, choices=choices, rules=rules)
        claims = _wants(analysis, rules) if _can_claim(analysis) else None
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
        self._known: dict[tuple[str, frozenset[str]], tuple[Claims | None, dict[str, str]]] = {}

    def of(self, start: str, rules: frozenset[str]) -> Claims | None:
        """The claims of the program that a file starts, in the form of `AsksClaims`."""
        rules = enough(rules, [asked for each, asked in self._known if each == start])
        known = self._known.get((start, rules))
        if known is None or any(self._files.digest(path) != text for path, text in known[1].items()):
            with self._files.noting() as noted:
                found = claims_from(start, self._files, self._choices_of(start), rules=rules)
            known = found, {path: self._files.digest(path) for path in noted.paths}
            self._known[start, rules] = known
        return known[0]


def enough(rules: frozenset[str], asked: Collection[frozenset[str]]) -> frozenset[str]:
    """The rules to ask a program about: those `asked` before if they include `rules`.

    A program that already answered about other rules is asked about all of them, which is the last time.
    """
    if not rules or not any(asked):
        return rules
    return next((each for each in asked if rules <= each), ALL_RULES)


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
    """Every change of the program that a script starts; withheld if programs disagree about a file.

    `pause` is called repeatedly, and may raise to abort the analysis.  `claims` returns the claims of the
    program that a file starts, `choices` are those for this program; the others are as for `analyze_script`.
    """
    programs = Programs(files)
    holds = partial(programs.holds, script.path)
    analysis = analyze_script(script, pause, choices=choices, is_shared=is_shared, known=known, holds=holds)
    wanted = made_by(analysis)
    if not wanted:
        return analysis
    rivals = rivals_of(script.path, wanted, programs, claims)
    found = list(_disagreements(analysis, rivals))
    without: dict[str, Any] = {_CHOSEN[each.rule]: False for each in found if each.rule in _CHOSEN}
    if without:
        # Changes that this program leaves out are not made in part.
        left = [replace(each, essential=False) for each in found if each.rule in _CHOSEN]
        analysis = analyze_script(
            script,
            pause,
            choices=dataclasses.replace(choices or Choices(), **without),
            is_shared=is_shared,
            holds=holds,
        )
        found = [*left, *_disagreements(analysis, rivals)]
    searches_all = all(files.searches_all(path) for path, _, _ in wanted)
    doubts = () if searches_all else (_NOT_SEARCHED,)
    withheld = (*analysis.withheld, *dict.fromkeys(found))
    return replace(analysis, withheld=withheld, doubts=doubts) if found or doubts else analysis


def rivals_of(
    start: str, wanted: Mapping[tuple[str, Span, str], Wanted], programs: Programs, claims: AsksClaims
) -> list[Claims]:
    """The claims of the other programs on the shared files that the program of `start` changes."""
    asked: dict[str, set[tuple[str, Suits]]] = {}
    paths = sorted({path for path, _, _ in wanted})
    for path in paths:
        here = {(rule, edits.suits) for (file, _, rule), edits in wanted.items() if file == path}
        for each in programs.containing(path):
            asked.setdefault(each, set()).update(here)
    # What a program changes in its start file, it does not leave alone, whichever rule changes it.
    rules = {each: ALL_RULES if each in paths else _rules_of(about) for each, about in asked.items()}
    known_of = (claims(each, rules[each]) for each in asked if each != start)
    return [rival for rival in known_of if rival is not None]


def _rules_of(about: Collection[tuple[str, Suits]]) -> frozenset[str]:
    """The rules to ask a program about: none if the places where its ranks meet are enough."""
    is_whole = any(suits is Suits.ONE for _, suits in about)
    return frozenset(rule for rule, _ in about) if is_whole else frozenset()


def _disagreements(analysis: Analysis, rivals: Iterable[Claims]) -> Iterator[Withheld]:
    """Yield the changes to statements of shared files that rivals would change differently."""
    changes = _shared_changes(analysis)
    wanted = _wanted_by(changes)
    for rival in rivals:
        for place in rival.disputes(wanted):
            change = changes[place]
            mine, other = told_apart(analysis.scripts[0].path, rival.start)
            reason = (
                f"{mine} and {other} need different changes to this statement; "
                "give each of them code of its own here"
            )
            yield Withheld(change.rule, change.target, reason, True)


def told_apart(one: str, other: str) -> tuple[str, str]:
    """Return the base names of two files; if these are equal, with the folders in which the files differ."""
    names = posixpath.basename(one), posixpath.basename(other)
    if names[0] != names[1] or one == other:
        return names
    parts, others = one.split("/"), other.split("/")
    shared = len(posixpath.commonprefix([parts, others]))
    return "/".join(parts[shared:]), "/".join(others[shared:])


def made_by(analysis: Analysis) -> dict[tuple[str, Span, str], Wanted]:
    """The edits that a program makes outside its start file: none if it is refused."""
    is_refused = not analysis.outlook.convertible or any(each.essential for each in analysis.withheld)
    return {} if is_refused else _wanted(analysis)


def _wanted(analysis: Analysis) -> dict[tuple[str, Span, str], Wanted]:
    """The edits of a program outside its start file, by place and rule."""
    return _wanted_by(_shared_changes(analysis))


def _wanted_by(changes: Mapping[tuple[str, Span, str], Change]) -> dict[tuple[str, Span, str], Wanted]:
    found: dict[tuple[str, Span, str], Wanted] = {}
    for place, change in changes.items():
        distance = place[1].start - change.target.start
        found[place] = Wanted(tuple(edit.moved(distance) for edit in change.edits), change.suits)
    return found


def _shared_changes(analysis: Analysis) -> dict[tuple[str, Span, str], Change]:
    """The changes of a program outside its start file that may harm another one, by place and rule."""
    found: dict[tuple[str, Span, str], Change] = {}
    for change in analysis.changes:
        script, span = analysis.place(change.target)
        is_shared = script is not analysis.scripts[0] and change.rule not in _HARMLESS
        if is_shared and change.suits is not Suits.ALL:
            found[script.path, span, change.rule] = change
    return found
