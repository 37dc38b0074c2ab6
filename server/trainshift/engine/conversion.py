"""The entry point of the transformation core: text in, conversion out.  No IO, no LSP, no printing."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from trainshift.core.choices import Choices
from trainshift.core.layout import Layout
from trainshift.engine.analysis import Analysis, analyze_script
from trainshift.engine.cells import Cells
from trainshift.engine.claims import KeptClaims, analyze_program
from trainshift.engine.finishing.compiling import compiles
from trainshift.engine.finishing.edited_text import Manner
from trainshift.engine.finishing.finish import finished
from trainshift.engine.finishing.lines import longest_line
from trainshift.engine.own_codes import SYNTAX_ERROR, UNSUPPORTED_VERSION
from trainshift.engine.versions.runtime import Runtime, settled
from trainshift.engine.workspace import ParsedFiles, read_linked
from trainshift.libraries.common import is_common
from trainshift.python.garbage import uncollected
from trainshift.python.names.script import Script, read_script
from trainshift.python.names.workspace import MOST_CONVERTED
from trainshift.python.source.edit import Change, Edit, Plan, Remark, apply, merge
from trainshift.python.source.source import BOM, Source, Span, one_line
from trainshift.python.syntax.chunks import ParseFailure
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.keras_version.target import Target
from trainshift.training.loops.loop_kinds import Pattern
from trainshift.training.loops.loops import Loops

_TOGETHER = "the strategy is used in several files; convert the whole program"
MAGIC_IN_THE_WAY = "a statement that has to change shares its line with a magic; give it a line of its own"


class Status(Enum):
    """The outcome of a conversion."""

    CONVERTED = "converted"
    ALREADY_DISTRIBUTED = "already distributed"
    NOTHING_FOUND = "nothing found"
    REFUSED = "refused"


class Note(Struct, frozen=True):
    """One line of the report.

    `line` and `column` are 1-based; the column counts code points.  `rule` is a code such as ``HV05``, or an
    empty string without a rule (such as for a syntax error).  In a notebook, line and column are relative to
    a `cell`, counted from 1.  `path` is the file of the program, "" for the start file.  With `optional`, all
    other changes are valid without this one.
    """

    rule: str
    line: int
    column: int
    text: str
    cell: int | None = None
    path: str = ""
    optional: bool = False


class Rewritten(Struct, frozen=True):
    """One file of a program: its path, its text before and after, and the edits between the two.

    The path is absolute, or "" for a text without a file; texts have no byte order mark.
    """

    path: str
    before: str
    text: str
    edits: tuple[Edit, ...]


class Conversion(Struct, frozen=True):
    """The outcome of converting one program.

    `text` is the new text of the start file; it equals the input in every status but CONVERTED. `applied`:
    one note for each change made, in source order, whose text is the change's title. `decisions`: choices
    that the user may want to change (the change was made). `doubts`: assumptions that the script does not
    confirm (the change was made). `withheld`: changes that were not made, with the reason. `reason`: one
    sentence with the reason for a refusal, or the patterns that were not found; empty when converted.
    `position` is its 1-based (line, column), if any, in the file at `path`, "" for the start file.  The page
    of `code` explains it. `plan`: the changes made and their edits, when converted, in the offsets of the
    analysis. `files`: every file of the program, the start file first. `unresolved`: the imports that could
    not be followed, and belong to no known library; for a converted program, only those that belong to no
    library at all. `loops`: the training loops of a program that is or was converted; their text is the
    pattern. `hazards`: the violated hazards of a program that already uses Horovod, and that no change fixes;
    the rule of a note is the hazard's code.
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
    path: str = ""
    files: tuple[Rewritten, ...] = ()
    unresolved: tuple[Note, ...] = ()
    loops: tuple[Note, ...] = ()
    code: str = ""
    hazards: tuple[Note, ...] = ()


def convert(
    text: str,
    *,
    line: int | None = None,
    runtime: Runtime | None = None,
    choices: Choices | None = None,
    apart: Sequence[int] = (),
) -> Conversion:
    """Convert a script (any newline style, kept) or only the statement at 1-based `line`, by `choices`.

    Text at the offsets in `apart`, where the cells of a notebook begin, is never joined with the text before
    it.  If `runtime` says that the result could not run, the conversion is refused.

    Never raises for bad input: a script that does not parse is REFUSED with its position.
    """
    at = ("", line) if line is not None else None
    choices = _settled(choices, runtime)
    return _convert(
        text,
        read_script,
        at,
        None,
        runtime,
        None,
        lambda script: analyze_script(script, choices=choices),
        apart,
    )


def convert_program(
    text: str,
    path: str,
    files: ParsedFiles,
    *,
    at: tuple[str, int] | None = None,
    only: str = "",
    runtime: Runtime | None = None,
    claims: KeptClaims | None = None,
    choices: Choices | None = None,
    apart: Sequence[int] = (),
) -> Conversion:
    """Convert the program that the file at the absolute `path`, with the text `text`, starts.

    Its other files are read from `files`.  `at` is a path ("" for the start file) and a 1-based line, to
    convert a single statement; `only`, unless it is "", is the path of the only file to convert. `claims` are
    those of other programs, kept for a run that converts many; `choices` are those for this program. A
    notebook also starts a program: its cells, which begin at the offsets in `apart`, are never joined.
    """
    choices = _settled(choices, runtime)
    rivals = claims or KeptClaims(files, lambda path: choices or Choices())
    return _convert(
        text,
        lambda body: read_linked(body, path, files, MOST_CONVERTED),
        at,
        only or None,
        runtime,
        files,
        lambda script: analyze_program(script, files, claims=rivals.of, choices=choices),
        apart,
    )


def _settled(choices: Choices | None, runtime: Runtime | None) -> Choices | None:
    """The choices for the declared or chosen versions."""
    is_asked = runtime is not None or (choices is not None and choices.tensorflow)
    return settled(choices or Choices(), runtime) if is_asked else choices


@uncollected()
def _convert(
    text: str,
    read: Callable[[str], Script | ParseFailure],
    at: tuple[str, int] | None,
    only: str | None,
    runtime: Runtime | None,
    files: ParsedFiles | None,
    analyze: Callable[[Script], Analysis],
    apart: Sequence[int] = (),
) -> Conversion:
    body = text.removeprefix(BOM)
    script = read(body)
    if isinstance(script, ParseFailure):
        where = (script.line, script.column)
        reason = f"not Python: {script.message}"
        return Conversion(Status.REFUSED, text, reason=reason, position=where, code=SYNTAX_ERROR.code)
    try:
        analysis = analyze(script)
        conversion = carry_out(analysis, at=at, only=only, runtime=runtime, apart=apart)
        if files is not None:
            conversion = without_gaps(conversion, script, files)
        for program in analysis.programs:
            program.forget() if files is None else program.forget_facts()
    except RecursionError:
        return Conversion(Status.REFUSED, text, reason="the code is nested too deeply to be read")
    bom = BOM if body is not text and len(body) < len(text) else ""
    return replace(conversion, text=bom + conversion.text)


def without_gaps(conversion: Conversion, script: Script, files: ParsedFiles) -> Conversion:
    """The conversion of a program; refused if some of its files, which may train, could not be read."""
    missing = next(iter(script.workspace.left_out), None) if script.workspace is not None else None
    if missing is None or conversion.status is Status.ALREADY_DISTRIBUTED:
        return conversion
    failure = files.failure(missing)
    reason, code = "the program imports this file, which cannot be read", SYNTAX_ERROR.code
    if failure is not None:
        reason = f"not Python: {failure.message}"
    elif files.read(missing) is not None:
        code = ""
        reason = f"the program has more than {MOST_CONVERTED} files; convert a part of it that imports fewer"
    return replace(
        conversion,
        status=Status.REFUSED,
        text=script.source.text,
        plan=None,
        reason=reason,
        code=code,
        path=missing,
        position=(failure.line, failure.column) if failure is not None else None,
        files=tuple(replace(each, text=each.before, edits=()) for each in conversion.files),
        applied=(),
        decisions=(),
        doubts=(),
    )


def hindrance(cells: Cells, edits: Iterable[Edit]) -> tuple[str, int] | None:
    """The reason why the cells of a notebook cannot be edited, with its offset; None if they can."""
    at = cells.dependent()
    if at is not None:
        return "this cell is not Python by itself", at
    spoilt = cells.spoilt(edits)
    return (MAGIC_IN_THE_WAY, spoilt.start) if spoilt is not None else None


def whole(conversion: Conversion, cells: Cells) -> Conversion:
    """The conversion of a notebook's cells; refused if one is not Python, or would lose a magic."""
    if conversion.plan is None:
        return conversion
    edits = conversion.files[0].edits
    found = hindrance(cells, edits)
    if found is not None:
        reason, at = found
        return _unchanged(conversion, cells, reason, cells.source.position(at))
    if not compiles(cells.edited(edits).text) and compiles(cells.text):
        reason = "an internal error, please report it: the cells do not compile"
        return _unchanged(conversion, cells, reason)
    return conversion


def _unchanged(
    conversion: Conversion, cells: Cells, reason: str, position: tuple[int, int] | None = None
) -> Conversion:
    files = tuple(replace(each, text=each.before, edits=()) for each in conversion.files)
    return Conversion(Status.REFUSED, cells.text, reason=reason, position=position, files=files)


def carry_out(
    analysis: Analysis,
    *,
    at: tuple[str, int] | None = None,
    only: str | None = None,
    chosen: Sequence[Change] | None = None,
    without: Collection[Note] = (),
    runtime: Runtime | None = None,
    apart: Sequence[int] = (),
) -> Conversion:
    """The conversion that results from an analysis, of the whole program, or of a part.

    The part is the statement `at` a path and a 1-based line, or the `chosen` changes of the analysis with
    their prerequisites in other files; or the changes of the one file `only`.  The whole may be `without`
    optional changes, identified by their notes.  The cells of a notebook, which begin at the offsets in
    `apart`, are never joined.
    """
    found = obstacle(analysis, runtime)
    if found is not None:
        return found
    if at is not None:
        path, line = at
        chosen = at_line(analysis, path, line)
        if not chosen:
            reason = f"no statement at line {line} needs a change"
            return _result(analysis, Status.NOTHING_FOUND, reason, path=path)
    wrong = next((each for each in analysis.faults if each.certain), None)
    if wrong is not None:
        reason = f"the result would be wrong: {wrong.text}"
        return _result(analysis, Status.REFUSED, reason, wrong.span, code=wrong.code)
    if chosen is not None:
        return _apply(analysis, chosen, (), only, apart)
    changes = [
        each for each in analysis.changes if not each.optional or _applied(analysis, each) not in without
    ]
    return _apply(analysis, changes, analysis.remarks, only, apart)


def obstacle(analysis: Analysis, runtime: Runtime | None = None) -> Conversion | None:
    """The outcome of an analysis that allows or needs no change; None if there is something to change."""
    outlook = analysis.outlook
    if analysis.defects:
        reason = f"an internal error, please report it: {'; '.join(analysis.defects)}"
        return _result(analysis, Status.REFUSED, reason)
    if not outlook.convertible:
        status = Status.REFUSED if outlook.refused else Status.NOTHING_FOUND
        return _result(analysis, status, outlook.reason, outlook.at, code=outlook.code)
    essential = [each for each in analysis.withheld if each.essential]
    if essential:
        first = min(essential, key=lambda each: each.target)
        reason = one_line(f"{first.rule}: {first.reason}")
        withheld = _withheld(analysis)
        return _result(analysis, Status.REFUSED, reason, first.target, withheld=withheld, code=first.rule)
    if not analysis.changes:
        withheld = _withheld(analysis)
        reason = "every training step, print and write is distributed already"
        if withheld:
            reason = "nothing more is converted; see what is withheld"
        if analysis.hazards:
            reason = "it uses Horovod incorrectly; run `trainshift check` for the list"
        return _result(analysis, Status.ALREADY_DISTRIBUTED, reason, withheld=withheld)
    patterns = {loop.pattern for loop in analysis.read.fact(Loops).own} if runtime is not None else set()
    refusal = (
        runtime.refusal(
            estimator=Pattern.ESTIMATOR in patterns,
            fit=Pattern.OPTIMIZER in patterns,
            newer=analysis.read.fact(Target).is_newer,
        )
        if runtime is not None
        else ""
    )
    return _result(analysis, Status.REFUSED, refusal, code=UNSUPPORTED_VERSION.code) if refusal else None


def _result(
    analysis: Analysis,
    status: Status,
    reason: str,
    at: Span | None = None,
    path: str = "",
    withheld: tuple[Note, ...] = (),
    code: str = "",
) -> Conversion:
    """The conversion of a program that stays unchanged."""
    position = None
    if at is not None:
        path, row, column = _place(analysis, at)
        position = row, column
    return Conversion(
        status,
        analysis.scripts[0].source.text,
        withheld=withheld,
        reason=reason,
        position=position,
        path=path,
        files=tuple(
            Rewritten(each.path, each.source.text, each.source.text, ()) for each in analysis.scripts
        ),
        unresolved=_unresolved(analysis) if status is Status.NOTHING_FOUND else (),
        loops=_loops(analysis) if status is Status.ALREADY_DISTRIBUTED else (),
        code=code,
        hazards=_hazards(analysis) if status is Status.ALREADY_DISTRIBUTED else (),
    )


def _loops(analysis: Analysis) -> tuple[Note, ...]:
    """The training loops of a program, each with its pattern and its place."""
    loops = sorted(analysis.read.fact(Loops).own, key=lambda loop: loop.span.start)
    return tuple(_note(analysis, "", analysis.given(loop.span), loop.pattern.value) for loop in loops)


def _withheld(analysis: Analysis) -> tuple[Note, ...]:
    return tuple(_note(analysis, each.rule, each.target, each.reason) for each in analysis.withheld)


def _unresolved(analysis: Analysis, relative: bool = False) -> tuple[Note, ...]:
    """The imports of a program that lead to no file and to no known library.

    With `relative`, only those that cannot belong to a library.
    """
    found: dict[Note, None] = {}
    for script in analysis.scripts if analysis.program.script.workspace is not None else ():
        workspace = script.workspace
        for binding in script.imports:
            inside = binding.full_name.startswith(".")
            known = not inside and (relative or is_common(binding.full_name))
            if known or binding.statement is None or workspace is None:
                continue
            path, names = workspace.locate(script, binding.full_name)
            # The last name may be a member of the module.
            if not path or len(names) > 1 or (names and not path.endswith(".py")):
                start = script.statement_span(binding.statement).start
                where = "" if script is analysis.scripts[0] else script.path
                text = script.text(binding.statement.node, binding.statement)
                found[Note("", *script.source.position(start), one_line(text), path=where)] = None
    return tuple(found)


def _apply(
    analysis: Analysis,
    changes: Iterable[Change],
    remarks: Iterable[Remark],
    only: str | None,
    apart: Sequence[int],
) -> Conversion:
    if only is not None and len(analysis.taken_out_of) > 1:
        return _result(analysis, Status.REFUSED, _TOGETHER, path=only)
    plan = merge(changes)
    if plan.dropped:
        first = plan.dropped[0]
        reason = f"an internal error, please report it: {first.rule} overlaps another change"
        return _result(analysis, Status.REFUSED, reason, first.target)
    plan = finished_plan(analysis, plan, apart)
    rewritten = []
    for script, edits in analysis.edits_by_file(plan.edits):
        edits = edits if only in (None, script.path) else ()
        text = apply(script.source.text, edits)
        defect = _defect(script, edits, text)
        if defect:
            reason = f"an internal error, please report it: the result does not {defect}"
            return _result(analysis, Status.REFUSED, reason)
        rewritten.append(Rewritten(script.path, script.source.text, text, edits))

    def is_wanted(target: Span) -> bool:
        return only in (None, analysis.file_at(target.start)[0].path)

    unsure = [
        _note(analysis, each.code, each.span, each.text) for each in analysis.faults if is_wanted(each.span)
    ]
    unsure += [_note(analysis, "", Span(0, 0), each) for each in analysis.doubts]
    ordered = sorted(plan.changes, key=lambda change: (change.target.start, change.rule))
    ordered = [change for change in ordered if is_wanted(change.target)]
    remarks = [remark for remark in remarks if is_wanted(remark.target)]
    return Conversion(
        Status.CONVERTED,
        rewritten[0].text,
        applied=tuple(_applied(analysis, each) for each in ordered),
        decisions=_decisions(analysis, ordered, [each for each in remarks if not each.is_doubt]),
        doubts=(
            *_notes(analysis, ordered, analysis.doubts_of),
            *_parting(analysis, remarks),
            *unsure,
        ),
        withheld=_withheld(analysis),
        plan=plan,
        files=tuple(rewritten),
        unresolved=_unresolved(analysis, relative=True),
        loops=_loops(analysis),
        hazards=tuple(note for note in _hazards(analysis) if only in (None, note.path or _first(analysis))),
    )


def finished_plan(analysis: Analysis, plan: Plan, apart: Sequence[int] = ()) -> Plan:
    """A plan whose edits write no overlong lines, and merge neighbouring guards."""
    edits: list[Edit] = []
    every = {script.path: own for script, own in analysis.edits_by_file(merge(analysis.changes).edits)}
    for script, own in analysis.edits_by_file(plan.edits):
        if own:
            start = analysis.start_of(script.path)
            manner = _manner(analysis, script, every[script.path])
            done = finished(script.source.text, own, manner, [at - start for at in apart])
            edits += (each.moved(start) for each in done)
    return replace(plan, edits=tuple(edits))


def _manner(analysis: Analysis, script: Script, every: tuple[Edit, ...]) -> Manner:
    program = analysis.program.linked(script)
    longest = analysis.program.choices.line_length
    if not longest:
        longest = longest_line(script, every, program.fact(Prerequisites).modules.values())
    return Manner(program.fact(Layout).unit, longest, every)


def _parting(analysis: Analysis, remarks: Iterable[Remark]) -> tuple[Note, ...]:
    """Notes on unchanged code that may make the ranks diverge or wait."""
    return tuple(_note(analysis, each.rule, each.target, each.text) for each in remarks if each.is_doubt)


def _first(analysis: Analysis) -> str:
    return analysis.scripts[0].path


def _hazards(analysis: Analysis) -> tuple[Note, ...]:
    return tuple(_note(analysis, each.code, each.span, each.message) for each in analysis.hazards)


def _decisions(analysis: Analysis, changes: list[Change], remarks: Iterable[Remark]) -> tuple[Note, ...]:
    """The decisions of the changes, and the remarks, file by file in text order."""
    decided = [(change.rule, change.target, text) for change in changes for text in change.decisions]
    left = [(each.rule, each.target, each.text) for each in remarks]
    ordered = sorted((*decided, *left), key=lambda each: (each[1].start, each[0]))
    return tuple(_note(analysis, *each) for each in ordered)


def at_line(analysis: Analysis, path: str, line: int) -> list[Change]:
    """The changes of the innermost statement at the 1-based `line` of a file ("": the start file)."""
    path = path or analysis.scripts[0].path
    home = next((each for each in analysis.scripts if each.path == path), None)
    if home is None:
        return []
    placed = [(change, *analysis.place(change.target)) for change in analysis.changes]
    found = [(change, target) for change, script, target in placed if script is home]
    wanted = innermost(home.source, (target for _, target in found), line)
    return [change for change, target in found if target == wanted]


def innermost(source: Source, targets: Iterable[Span], line: int) -> Span | None:
    """The span of the innermost of some statements that covers the 1-based `line` of their text."""
    covering = [
        each for each in targets if source.position(each.start)[0] <= line <= source.position(each.end)[0]
    ]
    return max(covering, key=lambda each: (each.start, -each.end), default=None)


def _defect(script: Script, edits: Sequence[Edit], after: str) -> str:
    """The check that a result fails although its original passed: "parse" or "compile"; empty if none."""
    # Only imports from `__future__` depend on the rest of the file.
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


def _applied(analysis: Analysis, change: Change) -> Note:
    note = _note(analysis, change.rule, change.target, change.title)
    return replace(note, optional=change.optional)


def _notes(
    analysis: Analysis, changes: Iterable[Change], texts: Callable[[Change], Iterable[str]]
) -> tuple[Note, ...]:
    return tuple(
        _note(analysis, change.rule, change.target, text) for change in changes for text in texts(change)
    )


def _note(analysis: Analysis, rule: str, target: Span, text: str) -> Note:
    path, line, column = _place(analysis, target)
    return Note(rule, line, column, one_line(text), path=path)


def _place(analysis: Analysis, target: Span) -> tuple[str, int, int]:
    """The file ("" for the start file), the line and the column of a place in a program's text."""
    script, offset = analysis.file_at(target.start)
    return ("" if script is analysis.scripts[0] else script.path, *script.source.position(offset))
