"""Hazards of a script's programs, with the conversion's changes that fix them.

Loaded only for scripts that use Horovod, since it loads the rules of the conversion.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from trainshift.core.choices import Choices
from trainshift.core.finding import Finding, Verdict
from trainshift.core.program import Program
from trainshift.engine.analysis import analyze_script, whole_program
from trainshift.engine.edited import edited, forget_edited
from trainshift.engine.findings import Judgement, find, hazards_of, own_of, uses_horovod
from trainshift.engine.programs import Programs
from trainshift.engine.settings import HAZARD_CODES
from trainshift.engine.workspace import ParsedFiles, linked
from trainshift.python.lazy import cached_property
from trainshift.python.names.workspace import MOST_CONVERTED
from trainshift.python.source.edit import Change, Edit, merge
from trainshift.python.source.source import Span
from trainshift.restrictions import HAZARDS
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.transforms import TRANSFORMS

_MENDING = {rule.code: rule.mended_by for rule in HAZARDS if rule.mended_by}
_SURE = frozenset(rule.code for rule in TRANSFORMS if rule.is_sure)
_SETTING_UP = frozenset(rule.code for rule in TRANSFORMS if rule.sets_up)
_ASKING = frozenset(rule.code for rule in TRANSFORMS if rule.asks)
# The number of attempts to fix a hazard by a rule's change that may not fit.
_MOST_TRIED = 12
_BY_WEIGHT = (Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.HARMLESS)


class _Elsewhere(NamedTuple):
    """The files of a program that one file starts, and the hazards of each."""

    paths: frozenset[str]
    found: dict[str, tuple[Finding, ...]]
    defects: tuple[str, ...] = ()
    failed: frozenset[str] = frozenset()


def found_around(
    program: Program, codes: Collection[str], files: ParsedFiles | None, pause: Callable[[], None]
) -> Judgement:
    """The result of `find` for a program's script, as a part of each program that contains it."""
    hazards = frozenset(each for each in codes if each in HAZARD_CODES)
    wholes = _started_elsewhere(program, hazards, files, pause) if hazards else {}
    if wholes:
        judgement = find(program, frozenset(codes) - hazards, pause)
        return judgement.joined(_of_programs(wholes, program.script.path))
    judgement = find(program, codes, pause)
    if any(_is_mended(each) for each in judgement.found):
        found = _with_fixes(program, judgement.found, pause)
        judgement = replace(judgement, found=found)
    return judgement


def _of_programs(wholes: Mapping[str, _Elsewhere], path: str) -> Judgement:
    """The hazards of a file, grouped by the start file of each program that contains it.

    Hazards of all programs are reported once; for the others, their programs are named.
    """
    told: dict[tuple[str, Span], dict[str, Finding]] = {}
    for start, whole in wholes.items():
        for each in whole.found.get(path, ()):
            told.setdefault((each.code, each.span), {}).setdefault(start, each)
    found = [_of_some(by_start, list(wholes)) for by_start in told.values()]
    found.sort(key=lambda each: (each.span, each.code))
    defects = dict.fromkeys(each for whole in wholes.values() for each in whole.defects)
    failed = frozenset(each for whole in wholes.values() for each in whole.failed)
    return Judgement(tuple(found), tuple(defects), failed)


def _of_some(by_start: Mapping[str, Finding], starts: Sequence[str]) -> Finding:
    """The finding of several programs at one place, for the programs in which it is worst."""
    worst = min(by_start.values(), key=lambda each: _BY_WEIGHT.index(each.verdict))
    having = [start for start, each in by_start.items() if each.verdict is worst.verdict]
    if len(having) == len(starts):
        same = all(each.fix == worst.fix for each in by_start.values())
        return worst if same else replace(worst, fix=None, asks=False)
    names = [posixpath.basename(each) for each in having]
    where = f"program of {names[0]}" if len(names) == 1 else f"programs of {', '.join(names)}"
    # Its fix was not tried in the programs that have nothing to fix.
    return replace(worst, message=f"{worst.message} It concerns the {where}.", fix=None, asks=False)


def _started_elsewhere(
    program: Program, codes: frozenset[str], files: ParsedFiles | None, pause: Callable[[], None]
) -> dict[str, _Elsewhere]:
    """The programs with other start files that contain the script and train."""
    path = program.script.path
    found: dict[str, _Elsewhere] = {}
    if files is None or not path or not files.naming(path):
        return found
    for start in Programs(files).starts(path):
        if start == path:
            continue
        key = start, codes, program.choices
        whole = files.once(("hazards", *key), partial(_judged, *key, path, files, pause))
        if whole is not None and path in whole.paths:
            found[start] = whole
    return found


def _judged(
    start: str,
    codes: frozenset[str],
    choices: Choices,
    path: str,
    files: ParsedFiles,
    pause: Callable[[], None],
) -> _Elsewhere | None:
    """The program that a file starts, if it trains with Horovod and another file is a part of it."""
    code = files.read(start)
    if code is None:
        return None
    script = linked(code, start, files, MOST_CONVERTED)
    reached, whole = script.linked, whole_program(script, choices)
    try:
        paths = frozenset(each.path for each in reached)
        if not uses_horovod(whole):
            return _Elsewhere(frozenset(), {})
        if path not in paths and not files.are_steady:
            return None
        judgement = hazards_of(whole, codes, pause)
        asked = paths if files.are_steady else {path}
        found = {each: tuple(own_of(whole, judgement.found, each)) for each in asked}
        return _Elsewhere(paths, found, judgement.defects, judgement.failed)
    finally:
        whole.forget()


def _is_mended(finding: Finding) -> bool:
    return finding.fix is None and finding.verdict is Verdict.VIOLATED and finding.code in _MENDING


def _with_fixes(
    program: Program, found: tuple[Finding, ...], pause: Callable[[], None]
) -> tuple[Finding, ...]:
    """The findings; those that a change of the conversion fixes get that change."""
    analysis = analyze_script(program.script, pause, choices=program.choices, is_shared=True, known=program)
    try:
        if analysis.read is not analysis.program:
            return found
        size = len(program.script.source.text)
        mending = _Mending(analysis.program, [each for each in analysis.changes if _is_of_file(each, size)])
        mended = []
        for each in found:
            pause()
            mended.append(mending.of(each) if _is_mended(each) else each)
        return tuple(mended)
    finally:
        if analysis.read is not analysis.program:
            analysis.read.forget()
        if analysis.program is not program:
            analysis.program.forget_facts()


class _Mending:
    """Find the change that fixes a hazard: it removes this hazard and adds no other."""

    def __init__(self, program: Program, changes: list[Change]) -> None:
        self._program = program
        self._changes = changes
        self._tried: dict[int, Counter[str]] = {}
        self._lone: dict[int, tuple[Change, Change]] = {}

    def of(self, finding: Finding) -> Finding:
        """The finding with the nearest change that fixes it, if one does."""
        for change in sorted(self._changes, key=lambda each: _distance(finding.span, each.target)):
            if change.rule not in _MENDING[finding.code]:
                continue
            met = _distance(finding.span, change.target) == 0
            change = self._alone(change)
            if (met and change.rule in _SURE) or self._mends(finding.code, change):
                # A fix of two findings is made once: equal required edits are merged.
                edits = (*change.requires, *change.edits)
                fix = replace(change, rule=finding.code, edits=(), requires=edits)
                return replace(finding, fix=fix, asks=change.rule in _ASKING)
        return finding

    def _alone(self, change: Change) -> Change:
        """The change without the set-up that other changes of a conversion need."""
        known = self._lone.get(id(change))
        if known is not None:
            return known[1]
        alone = change
        if change.rule not in _SETTING_UP:
            own = tuple(each for each in change.requires if each not in self._setup)
            words = frozenset(
                word for each in (*own, *change.edits) for word in re.findall(r"\w+", each.text)
            )
            file = self._program.linked(self._program.script.at(change.target.start)[0])
            start = self._program.start_of(file)
            needed = file.fact(Prerequisites).needed_by(words)
            alone = replace(change, requires=(*(each.moved(start) for each in needed), *own))
        self._lone[id(change)] = change, alone
        return alone

    @cached_property
    def _setup(self) -> frozenset[Edit]:
        """The edits that set the files of the program up."""
        return frozenset(
            edit.moved(self._program.start_of(file))
            for file in self._program.files
            for said in (None, frozenset[str]())
            for edit in file.fact(Prerequisites).edits(said)
        )

    def _mends(self, code: str, change: Change) -> bool:
        after = self._after(change)
        return after is not None and after[code] < self._before[code] and not after - self._before

    @cached_property
    def _before(self) -> Counter[str]:
        return _violated(hazards_of(self._program))

    def _after(self, change: Change) -> Counter[str] | None:
        """The hazards of the program with a change; None after too many attempts."""
        if id(change) not in self._tried:
            if len(self._tried) >= _MOST_TRIED:
                return None
            self._tried[id(change)] = Counter({change.rule: 1})  # The change produces invalid Python.
            try:
                result = edited(self._program, merge([change]).edits)
            except ValueError:
                return self._tried[id(change)]
            try:
                self._tried[id(change)] = _violated(hazards_of(result))
            finally:
                forget_edited(result)
        return self._tried[id(change)]


def _violated(judgement: Judgement) -> Counter[str]:
    return Counter(each.code for each in judgement.found if each.verdict is Verdict.VIOLATED)


def _is_of_file(change: Change, size: int) -> bool:
    """Return whether a change is only in the start file, which comes first in a program's text."""
    return all(edit.end <= size for edit in (*change.edits, *change.requires))


def _distance(one: Span, other: Span) -> int:
    """The distance of two spans; 0 if they meet."""
    return max(one.start - other.end, other.start - one.end, -1) + 1
