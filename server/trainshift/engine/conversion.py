"""The one door of the transformation core: text in, conversion out.  No IO, no LSP, no printing."""

from __future__ import annotations

import ast
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from trainshift.core.names.script import Script, read_script
from trainshift.core.program import Program
from trainshift.core.text.edit import Change, Edit, Plan, Remark, Withheld, apply, merge
from trainshift.core.text.source import BOM, Source, Span, one_line
from trainshift.core.text.statements import FactsCache, ParseFailure
from trainshift.core.training.loop_kinds import Pattern
from trainshift.core.training.loops import Loops
from trainshift.engine.cells import Cells
from trainshift.engine.compiling import compiles
from trainshift.engine.findings import Judgement, find
from trainshift.engine.guards import GUARDING, guarded
from trainshift.engine.outlook import Outlook, look
from trainshift.engine.runtime import Runtime
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.transforms import TRANSFORMS

log = logging.getLogger(__name__)

MAGIC_IN_THE_WAY = "a statement that has to change shares its line with a magic; give it a line of its own"


class Status(Enum):
    """How a conversion ended."""

    CONVERTED = "converted"
    ALREADY_DISTRIBUTED = "already distributed"
    NOTHING_FOUND = "nothing found"
    REFUSED = "refused"


@dataclass(frozen=True)
class Note:
    """One line of the report.

    `line` and `column` are 1-based; the column counts code points.  `rule` is a code such as
    ``HV05``, or an empty string where no rule is concerned (a syntax error, say).  In a notebook they are
    those of a `cell`, counted from 1.
    """

    rule: str
    line: int
    column: int
    text: str
    cell: int | None = None


@dataclass(frozen=True)
class Conversion:
    """What became of one script.

    `text` is the new script; it equals the input in every status but CONVERTED.
    `applied`: one note for each change made, in source order, whose text is the change's title.
    `decisions`: what was decided that a person may want otherwise (the change was made).
    `doubts`: what was assumed where the script does not show it (the change was made).
    `withheld`: changes that were not made, with the reason.
    `reason`: one sentence that says why the script was refused, or what was looked for where
    nothing was found; empty when converted.  `position` is its 1-based (line, column), if it has one.
    `plan`: the changes made and their edits, when converted.
    """

    status: Status
    text: str
    applied: tuple[Note, ...] = ()
    decisions: tuple[Note, ...] = ()
    doubts: tuple[Note, ...] = ()
    withheld: tuple[Note, ...] = ()
    reason: str = ""
    position: tuple[int, int] | None = None
    plan: Plan | None = None


@dataclass(frozen=True)
class Analysis:
    """Every change that a script admits, and what is withheld; `defects` are rules that failed."""

    program: Program
    outlook: Outlook
    changes: tuple[Change, ...]
    withheld: tuple[Withheld, ...]
    remarks: tuple[Remark, ...]
    defects: tuple[str, ...]


def convert(text: str, *, line: int | None = None, runtime: Runtime | None = None) -> Conversion:
    """Convert a script (any newline style, kept) or only the statement at 1-based `line`.

    Where `runtime` says that the result could not run, what would be converted is refused.

    Never raises for bad input: a script that does not parse is REFUSED with its position.
    """
    body = text.removeprefix(BOM)
    script = read_script(body)
    if isinstance(script, ParseFailure):
        where = (script.line, script.column)
        return Conversion(Status.REFUSED, text, reason=f"not Python: {script.message}", position=where)
    try:
        conversion = carry_out(analyze_script(script), line=line, runtime=runtime)
    except RecursionError:
        return Conversion(Status.REFUSED, text, reason="the code is nested too deeply to be read")
    bom = BOM if body is not text and len(body) < len(text) else ""
    return replace(conversion, text=bom + conversion.text)


def whole(conversion: Conversion, cells: Cells) -> Conversion:
    """The conversion of a notebook's cells; refused where one is not Python, or would lose a magic."""
    if conversion.plan is None:
        return conversion
    reason = "this cell is not Python by itself"
    at = cells.dependent()
    if at is None:
        spoilt = cells.spoilt(conversion.plan.edits)
        reason, at = MAGIC_IN_THE_WAY, spoilt.start if spoilt is not None else None
    if at is not None:
        return Conversion(Status.REFUSED, cells.text, reason=reason, position=cells.source.position(at))
    if not compiles(cells.edited(conversion.plan.edits).text) and compiles(cells.text):
        reason = "an internal error, please report it: the cells do not compile"
        return Conversion(Status.REFUSED, cells.text, reason=reason)
    return conversion


def analyze(text: str, cache: FactsCache | None = None) -> Analysis | ParseFailure:
    """Every change of a script (without byte order mark), each with the edits of one statement."""
    script = read_script(text, cache)
    return script if isinstance(script, ParseFailure) else analyze_script(script)


def analyze_script(script: Script, pause: Callable[[], None] = lambda: None) -> Analysis:
    """Run every rule; one that fails is a defect in the report and does not sink the others.

    `pause` is called again and again, and may raise to give the analysis up.
    """
    program = Program(script)
    with program.names.memo.pausing(pause):
        return _analyze(program, pause)


def _analyze(program: Program, pause: Callable[[], None]) -> Analysis:
    outlook = look(program)
    changes: list[Change] = []
    withheld: list[Withheld] = []
    remarks: list[Remark] = []
    findings = find(program, GUARDING, pause) if outlook.convertible else Judgement(())
    defects = list(findings.defects)
    for rule in TRANSFORMS if outlook.convertible else ():
        pause()
        codes = {guard.code for guard in rule.guards}
        relevant = [each for each in findings.found if each.code in codes]
        try:
            for proposal in rule.propose(program):
                if isinstance(proposal, Change):
                    proposal = guarded(proposal, rule.guards, relevant)
                if isinstance(proposal, Change):
                    changes.append(_with_prerequisites(program, proposal))
                elif isinstance(proposal, Remark):
                    remarks.append(proposal)
                else:
                    withheld.append(proposal)
        except RecursionError:
            raise
        except Exception as error:
            log.exception("%s failed", rule.code)
            defects.append(f"{rule.code} failed on this script ({type(error).__name__}: {error})")
    return Analysis(program, outlook, tuple(changes), tuple(withheld), tuple(remarks), tuple(defects))


def _with_prerequisites(program: Program, change: Change) -> Change:
    """The change with what every change of a script relies on: Horovod's import, its start, the flags."""
    return replace(change, requires=(*program.fact(Prerequisites).edits, *change.requires))


def carry_out(
    analysis: Analysis,
    *,
    line: int | None = None,
    chosen: Sequence[Change] | None = None,
    runtime: Runtime | None = None,
) -> Conversion:
    """The conversion that an analysis leads to, of the whole script, or of one part of it.

    That part is the statement at the 1-based `line`, or those of the analysis' changes that are `chosen`.
    """
    found = obstacle(analysis, runtime)
    if found is not None:
        return found
    source = analysis.program.script.source
    if line is not None:
        chosen = at_line(source, analysis.changes, line)
        if not chosen:
            reason = f"no statement at line {line} needs a change"
            return Conversion(Status.NOTHING_FOUND, source.text, reason=reason)
    if chosen is not None:
        return _apply(analysis, chosen, ())
    return _apply(analysis, analysis.changes, analysis.remarks)


def obstacle(analysis: Analysis, runtime: Runtime | None = None) -> Conversion | None:
    """What an analysis comes to where nothing can or need be changed; None where something can."""
    source, outlook = analysis.program.script.source, analysis.outlook
    if analysis.defects:
        reason = f"an internal error, please report it: {'; '.join(analysis.defects)}"
        return Conversion(Status.REFUSED, source.text, reason=reason)
    if not outlook.convertible:
        status = Status.REFUSED if outlook.refused else Status.NOTHING_FOUND
        position = source.position(outlook.at.start) if outlook.at else None
        return Conversion(status, source.text, reason=outlook.reason, position=position)
    withheld = _withheld(analysis)
    essential = [each for each in analysis.withheld if each.essential]
    if essential:
        first = min(essential, key=lambda each: each.target)
        position = source.position(first.target.start)
        reason = one_line(f"{first.rule}: {first.reason}")
        return Conversion(Status.REFUSED, source.text, withheld=withheld, reason=reason, position=position)
    if not analysis.changes:
        reason = "every training step, print and write is distributed already"
        if withheld:
            reason = "nothing more is converted; see what is withheld"
        return Conversion(Status.ALREADY_DISTRIBUTED, source.text, withheld=withheld, reason=reason)
    estimator = any(loop.pattern is Pattern.ESTIMATOR for loop in analysis.program.fact(Loops).own)
    refusal = runtime.refusal(estimator=estimator) if runtime is not None else ""
    return Conversion(Status.REFUSED, source.text, reason=refusal) if refusal else None


def _withheld(analysis: Analysis) -> tuple[Note, ...]:
    source = analysis.program.script.source
    return tuple(_note(source, each.rule, each.target, each.reason) for each in analysis.withheld)


def _apply(analysis: Analysis, changes: Iterable[Change], remarks: Iterable[Remark]) -> Conversion:
    source = analysis.program.script.source
    plan = merge(changes)
    if plan.dropped:
        first = plan.dropped[0]
        reason = f"an internal error, please report it: {first.rule} overlaps another change"
        position = source.position(first.target.start)
        return Conversion(Status.REFUSED, source.text, reason=reason, position=position)
    text = apply(source.text, plan.edits)
    defect = _defect(analysis.program.script, plan.edits, text)
    if defect:
        reason = f"an internal error, please report it: the result does not {defect}"
        return Conversion(Status.REFUSED, source.text, reason=reason)
    ordered = sorted(plan.changes, key=lambda change: (change.target.start, change.rule))
    return Conversion(
        Status.CONVERTED,
        text,
        applied=_notes(source, ordered, lambda change: (change.title,)),
        decisions=_decisions(source, ordered, remarks),
        doubts=_notes(source, ordered, lambda change: change.doubts),
        withheld=_withheld(analysis),
        plan=plan,
    )


def _decisions(source: Source, changes: list[Change], remarks: Iterable[Remark]) -> tuple[Note, ...]:
    """What the changes decided, and what was left alone, in text order."""
    decided = _notes(source, changes, lambda change: change.decisions)
    left = (_note(source, each.rule, each.target, each.text) for each in remarks)
    return tuple(sorted((*decided, *left), key=lambda note: (note.line, note.column, note.rule)))


def at_line(source: Source, changes: Iterable[Change], line: int) -> list[Change]:
    """The changes of the innermost statement that covers the 1-based `line`."""
    covering = [
        change
        for change in changes
        if source.position(change.target.start)[0] <= line <= source.position(change.target.end)[0]
    ]
    if not covering:
        return []
    innermost = max(covering, key=lambda change: (change.target.start, -change.target.end)).target
    return [change for change in covering if change.target == innermost]


def _defect(script: Script, edits: Sequence[Edit], after: str) -> str:
    """What a result fails at that its original did not: "parse" or "compile"; empty if nothing."""
    # Only imports from the future mind what stands elsewhere in the file.
    alone = "__future__" not in after and all(compiles(piece) for piece in _rewritten(script, edits))
    if alone or compiles(after):
        return ""
    try:
        ast.parse(after)
    except (SyntaxError, ValueError):
        return "parse"
    return "compile" if compiles(script.source.text) else ""


def _rewritten(script: Script, edits: Sequence[Edit]) -> Iterator[str]:
    """The new texts of the chunks that edits touch; no edit reaches into two."""
    at = 0
    for start, text in script.chunks:
        end = start + len(text)
        first = at
        last = end == len(script.source.text)
        while at < len(edits) and (edits[at].start < end or last):
            at += 1
        if at > first:
            yield apply(text, (edit.moved(-start) for edit in edits[first:at]))


def _notes(
    source: Source, changes: Iterable[Change], texts: Callable[[Change], Iterable[str]]
) -> tuple[Note, ...]:
    return tuple(
        _note(source, change.rule, change.target, text) for change in changes for text in texts(change)
    )


def _note(source: Source, rule: str, target: Span, text: str) -> Note:
    return Note(rule, *source.position(target.start), one_line(text))
