"""Analysis: every change that a program allows, each with the edits of one statement of one of its files."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from trainshift.core.choices import Choices
from trainshift.core.finding import Finding
from trainshift.core.program import Program
from trainshift.engine.audit import Fault, faults_of
from trainshift.engine.audit.hazards import hazards_left
from trainshift.engine.edited import edited, forget_edited
from trainshift.engine.findings import ON_LOOPS, find, hazards_of
from trainshift.engine.guards import GUARDING, guarded
from trainshift.engine.outlook import Outlook, look
from trainshift.engine.suppressions import read_suppressions, suppress
from trainshift.python.lazy import cached_property
from trainshift.python.names.linked_program import joined
from trainshift.python.names.script import Script, read_script
from trainshift.python.source.edit import Change, Edit, Remark, Withheld
from trainshift.python.source.offset_map import OffsetMap
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunks import ChunkCache, ParseFailure
from trainshift.restrictions import HAZARDS
from trainshift.rewriting.import_effects import Edited, edited_code, runs_early
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.rewriting.steps.minimizing import Minimizing
from trainshift.rewriting.strategies.leaving import Leaving
from trainshift.training.horovod.choice import Choice
from trainshift.training.horovod.existing_use import Horovod
from trainshift.transforms import TRANSFORMS
from trainshift.transforms.rule import Transform

log = logging.getLogger(__name__)

_ENTANGLED = "this edit and the removal of the strategy meet in one expression; remove the strategy first"
# The rules that set a file up: their changes are made if other changes of the file need them.
_SETTING_UP = frozenset(rule.code for rule in TRANSFORMS if rule.sets_up)
_IMPORTED = "Import Horovod"
"""The title of the set-up of a file that relies on the start of another one."""
ALL_RULES = frozenset(rule.code for rule in TRANSFORMS)
_ESSENTIAL = frozenset(rule.code for rule in TRANSFORMS if rule.essential)
_SAID_BY = {hazard.code: hazard.said_by for hazard in HAZARDS}
_MENDED_BY = {hazard.code: hazard.mended_by for hazard in HAZARDS}
Holds: TypeAlias = Callable[[str, frozenset[Span]], bool]
"""A function that tells whether no other program runs some functions of a file."""
_OPTIONAL = "Horovod is imported under a condition and may be missing; by hand: {}"


class Analysis(Struct, frozen=True, dict=True):
    """Every change that a program allows, and the withheld ones; `defects` are the rules that failed.

    Spans and edits refer to the text of the program: of one file, or of all files one after another.  `read`
    is the program that the rules have read, which differs if a strategy was removed first.
    """

    program: Program
    read: Program
    outlook: Outlook
    changes: tuple[Change, ...]
    withheld: tuple[Withheld, ...]
    remarks: tuple[Remark, ...]
    defects: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    """The assumptions about other programs, which do not belong to a single change."""

    @property
    def scripts(self) -> tuple[Script, ...]:
        """The scripts of the files, the start file's first."""
        return self.program.script.scripts

    @cached_property
    def faults(self) -> tuple[Fault, ...]:
        """The defects of the converted text that no remark reports already."""
        speaking = {each.rule for each in self.remarks}
        said = frozenset(code for code, rules in _SAID_BY.items() if not speaking.isdisjoint(rules))
        found = faults_of(self.program, self.changes, said)
        return tuple(
            each
            for each in found
            if not each.code or not (self._is_told(each.span) or self._is_withheld(each))
        )

    def _is_withheld(self, fault: Fault) -> bool:
        """Return whether a withheld change at the same place already reports a doubtful defect."""
        return not fault.certain and any(
            each.rule in _MENDED_BY[fault.code] and each.target.start == fault.span.start
            for each in self.withheld
        )

    def _is_told(self, span: Span) -> bool:
        """Return whether a remark is a doubt about the code at a place."""
        return any(
            each.is_doubt and each.target.start <= span.start <= each.target.end for each in self.remarks
        )

    def doubts_of(self, change: Change) -> tuple[str, ...]:
        """The doubts about a change, without those that a remark tells at their cause."""
        return () if change.because is not None and self._is_told(change.because) else change.doubts

    @cached_property
    def hazards(self) -> tuple[Finding, ...]:
        """The violated hazards of the text after all changes, for a program that uses Horovod.

        Hazards that a comment of the original silences are left out.
        """
        found = hazards_left(self.program, self.changes)
        return tuple(each for each in found if not self._is_ignored(each))

    def _is_ignored(self, hazard: Finding) -> bool:
        """Return whether a comment of its file silences a hazard."""
        script, span = self.place(hazard.span)
        there = replace(hazard, span=span, related=(), fix=None)
        return not suppress(script, [there], read_suppressions(script.source)).kept

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs whose facts to forget: this one, and the one that the rules have read, if
        different.
        """
        return tuple(dict.fromkeys((self.read, self.program)))

    @property
    def taken_out_of(self) -> frozenset[str]:
        """The files from which strategies are removed: in all of them or in none."""
        edits = self.read.origin[1].first if self.read.origin is not None else ()
        return frozenset(self.file_at(edit.start)[0].path for edit in edits)

    def given(self, span: Span) -> Span:
        """Map a span of the text that the rules have read to the program's text."""
        return (
            span if self.read is self.program or self.read.origin is None else self.read.origin[1].back(span)
        )

    def file_at(self, offset: int) -> tuple[Script, int]:
        """The script of the file at an offset of the program's text, and the offset in that file."""
        return self.program.script.at(offset)

    def place(self, span: Span) -> tuple[Script, Span]:
        """The script of the file at a span of the program's text, and the span in that file."""
        script, start = self.file_at(span.start)
        return script, Span(start, start + span.end - span.start)

    def start_of(self, path: str) -> int:
        """The offset at which the text of one of the files begins in the program's text."""
        return next(self.program.start_of(file) for file in self.program.files if file.script.path == path)

    def edits_by_file(self, edits: tuple[Edit, ...]) -> list[tuple[Script, tuple[Edit, ...]]]:
        """Split edits by file, with the offsets of each file; every file is included."""
        return self.program.script.parts(edits)


def analyze(
    text: str, cache: ChunkCache | None = None, choices: Choices | None = None
) -> Analysis | ParseFailure:
    """Analyze a script (without byte order mark): every change, each with the edits of one statement."""
    script = read_script(text, cache)
    return script if isinstance(script, ParseFailure) else analyze_script(script, choices=choices)


def whole_program(script: Script, choices: Choices | None) -> Program:
    """Return the program of a script and all scripts linked to it."""
    return Program(joined(script.linked), choices=choices)


def analyze_script(
    script: Script,
    pause: Callable[[], None] = lambda: None,
    choices: Choices | None = None,
    *,
    is_shared: bool = False,
    known: Program | None = None,
    holds: Holds = lambda path, functions: False,
    rules: Collection[str] = ALL_RULES,
) -> Analysis:
    """Run every rule on a script and its linked scripts; a failing rule does not stop the others.

    `pause` is called repeatedly, and may raise to abort the analysis: the script is unusable then, unless it
    `is_shared`.  `choices` are those of the conversion.  If possible, the rules reuse the `known` program of
    the single script for the same choices, which its owner keeps.  `holds` tells whether no
    other program runs some functions of a file.  Only the named `rules` run, which do not depend on others.
    """
    is_known = (
        known is not None and known.choices == (choices or Choices()) and script.linked == [known.script]
    )
    program = known if known is not None and is_known else whole_program(script, choices)
    read: Program | str = program
    try:
        with program.names.memo.pausing(pause):
            read = _read(program)
            if isinstance(read, str):
                return Analysis(program, program, Outlook(False), (), (), (), (read,))
            if read is program:
                return _analyze(program, pause, holds, rules)
        with read.names.memo.pausing(pause):
            return _brought_back(_analyze(read, pause, holds, rules))
    except BaseException:  # The analysis was given up, and nothing else uses the program.
        if isinstance(read, Program) and read is not program:
            forget_edited(read)
        if program is known:
            raise
        if is_shared:
            program.forget_facts()
        else:
            program.forget()
        raise


def _read(program: Program) -> Program | str:
    """The program as the rules read it: without its strategies, its steps by `minimize` written out.

    If that fails, a text has the reason.
    """
    try:
        edits = program.fact(Leaving).edits or program.fact(Minimizing).edits
        return edited(program, edits) if edits else program
    except RecursionError:
        raise
    except Exception as error:
        log.exception("a statement could not be rewritten")
        said = f"{type(error).__name__}: {error}"
        return f"removing strategies or expanding `minimize` failed on this script ({said})"


def _brought_back(analysis: Analysis) -> Analysis:
    """Map an analysis of an edited program back to the original program.

    Each change includes all of these edits, because the rules have read their result.
    """
    assert analysis.program.origin is not None
    program, passage = analysis.program.origin
    shared = dict.fromkeys(passage.first)
    for change in analysis.changes:
        if change.former is not None:
            shared.update(dict.fromkeys(_back(passage, change.edits) or ()))
    changes: list[Change] = []
    withheld: list[Withheld] = []
    for change in analysis.changes:
        edits = () if change.former is not None else _back(passage, change.edits)
        requires = _back(passage, change.requires)
        target = change.former or passage.back(change.target)
        if edits is None or requires is None:
            withheld.append(Withheld(change.rule, target, _ENTANGLED, essential=True))
        else:
            changes.append(replace(change, target=target, edits=edits, requires=(*shared, *requires)))
    at = analysis.outlook.at
    return replace(
        analysis,
        program=program,
        outlook=replace(analysis.outlook, at=passage.back(at) if at is not None else None),
        changes=tuple(changes),
        withheld=(
            *(replace(each, target=passage.back(each.target)) for each in analysis.withheld),
            *withheld,
        ),
        remarks=tuple(replace(each, target=passage.back(each.target)) for each in analysis.remarks),
    )


def _back(passage: OffsetMap, edits: tuple[Edit, ...]) -> tuple[Edit, ...] | None:
    """Map edits of a passage's result to the text before it; None if one cannot be mapped."""
    found: list[Edit] = []
    for edit in edits:
        moved = passage.edits(edit)
        if moved is None:
            return None
        found += moved
    return tuple(found)


def _analyze(program: Program, pause: Callable[[], None], holds: Holds, rules: Collection[str]) -> Analysis:
    outlook = look(program, pause)
    defects: list[str] = []
    proposed: list[tuple[Transform, Change]] = []
    withheld: list[Withheld] = []
    remarks: list[Remark] = []
    for rule in TRANSFORMS if outlook.convertible else ():
        if rule.code not in rules:
            continue
        pause()
        try:
            for proposal in rule.propose(program):
                if isinstance(proposal, Change):
                    proposed.append((rule, proposal))
                elif isinstance(proposal, Remark):
                    remarks.append(proposal)
                else:
                    withheld.append(proposal)
        except RecursionError:
            raise
        except Exception as error:
            log.exception("%s failed", rule.code)
            defects.append(f"{rule.code} failed on this script ({type(error).__name__}: {error})")
    findings, failed = _findings(program, proposed, pause)
    defects = [*failed, *defects]
    changes: list[Change] = []
    for rule, change in proposed:
        codes = {guard.code for guard in rule.guards}
        kept = guarded(change, rule.guards, [each for each in findings if each.code in codes])
        if isinstance(kept, Change):
            changes.append(kept)
        else:
            withheld.append(kept)
    if program.fact(Choice).is_optional:
        withheld += [
            Withheld(each.rule, each.target, _OPTIONAL.format(each.title), each.rule in _ESSENTIAL)
            for each in changes
        ]
        changes = []
    return Analysis(
        program,
        program,
        outlook,
        tuple(_set_up(program, changes, holds)),
        tuple(withheld),
        tuple(remarks),
        tuple(defects),
    )


def _findings(
    program: Program, proposed: Iterable[tuple[Transform, Change]], pause: Callable[[], None]
) -> tuple[list[Finding], list[str]]:
    """The findings of the restrictions that guard some changes, and the error messages of those that failed.

    Restrictions on loops check the whole program, once.
    """
    found: list[Finding] = []
    defects: list[str] = []
    codes: dict[Program, set[str]] = {}
    for rule, change in proposed:
        for code in GUARDING.intersection(guard.code for guard in rule.guards):
            asked = program if code in ON_LOOPS else _file_of(program, change)
            codes.setdefault(asked, set()).add(code)
    for each, wanted in codes.items():
        judgement = find(each, wanted, pause)
        start = 0 if each is program else program.start_of(each)
        found += (_moved(one, start) for one in judgement.found)
        defects += judgement.defects
    return found, defects


def _moved(finding: Finding, distance: int) -> Finding:
    def moved(span: Span) -> Span:
        return Span(span.start + distance, span.end + distance)

    return replace(finding, span=moved(finding.span), concerns=tuple(map(moved, finding.concerns)))


def _file_of(program: Program, change: Change) -> Program:
    return program.linked(program.script.at(change.target.start)[0])


def _set_up(program: Program, changes: list[Change], holds: Holds) -> list[Change]:
    """The changes with their prerequisites in each file: Horovod's import, its start and the flags.

    All changes of a file rely on the same prerequisites, and on those of the start file.  A file whose
    changed functions this program `holds` relies on the start file's `hvd.init()`.
    """
    alone = all(change.rule in _SETTING_UP for change in changes)
    if alone and (all(file.fact(Prerequisites).is_set_up for file in program.files) or _is_started(program)):
        return []
    by_file: dict[Program, list[Change]] = {file: [] for file in program.files}
    for change in changes:
        by_file[_file_of(program, change)].append(change)
    first = next(iter(by_file))
    needed: dict[Program, tuple[Edit, ...]] = {}
    kept: list[Change] = []
    started: set[Program] = set()
    for file, own in by_file.items():
        others = [change for change in own if change.rule not in _SETTING_UP]
        named = file is first or file.fact(Prerequisites).is_named_in(_words(others))
        late = named and file is not first and _relies(program, file, edited_code(program, others), holds)
        if not late:
            started.add(file)
        setup = _setup_of(program, file, own, starts=not late) if named else ()
        needed[file] = setup if file is first else needed[first] + setup
        kept += own if setup else others
    wanted = {id(change) for change in kept}
    placed = [(change, _file_of(program, change)) for change in changes if id(change) in wanted]
    return [_with_set_up(change, needed[file], file in started) for change, file in placed]


def _relies(program: Program, file: Program, code: Edited, holds: Holds) -> bool:
    """Return whether edited code of a module can rely on the start file's `hvd.init()`."""
    spans = frozenset(file.script.span(each.node, each) for each in code.functions if each.node is not None)
    return not runs_early(program, code) and holds(file.script.path, spans)


def _with_set_up(change: Change, edits: tuple[Edit, ...], is_start: bool) -> Change:
    title = change.title if is_start or change.rule not in _SETTING_UP else _IMPORTED
    return replace(change, title=title, requires=(*edits, *change.requires))


def _is_started(program: Program) -> bool:
    """Return whether a program's files start Horovod and choose GPUs before they are needed."""
    if not program.fact(Horovod).calls("init"):
        return False
    return not hazards_of(program, ("HZ01", "HZ02")).found


def _setup_of(program: Program, file: Program, changes: list[Change], *, starts: bool) -> tuple[Edit, ...]:
    said = None if file is program else _words(changes)
    start = program.start_of(file)
    return tuple(edit.moved(start) for edit in file.fact(Prerequisites).edits(said, starts=starts))


def _words(changes: Iterable[Change]) -> frozenset[str]:
    """The words in all code that some changes insert."""
    texts = (edit.text for change in changes for edit in (*change.edits, *change.requires))
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))
