"""Hazards: asked of the program that a script belongs to, with the changes of a conversion that mend them.

Loaded only for scripts that use Horovod, since it loads the rules of the conversion.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import replace

from trainshift.core.finding import Finding, Verdict
from trainshift.core.joined import Joined
from trainshift.core.names.workspace import MOST_CONVERTED
from trainshift.core.program import Program
from trainshift.core.text.edit import Change
from trainshift.core.text.source import Span
from trainshift.engine.analysis import analyze_script
from trainshift.engine.findings import Judgement, find
from trainshift.engine.programs import Programs
from trainshift.engine.workspace import ParsedFiles, linked
from trainshift.restrictions import HAZARDS

log = logging.getLogger(__name__)
_MENDING = {rule.code: rule.mended_by for rule in HAZARDS if rule.mended_by}
# What a rule of the conversion changes that somebody may want otherwise: how fast, and how long it trains.
_ASKING = frozenset({"HV02", "HV06", "HV15", "HV16"})


def found_around(
    program: Program, codes: Collection[str], files: ParsedFiles | None, pause: Callable[[], None]
) -> Judgement:
    """What `find` says of a program's script, as a part of the program that another file may start."""
    whole = _started_elsewhere(program, files)
    judgement = find(program, codes, pause, whole)
    if whole is not None:
        whole.forget()
        return judgement
    if any(_is_mended(each) for each in judgement.found):
        found = _with_fixes(program, judgement.found, pause)
        judgement = replace(judgement, found=found)
    return judgement


def _started_elsewhere(program: Program, files: ParsedFiles | None) -> Program | None:
    """The program that another file starts and that the script is a part of, if there is one that trains."""
    path = program.script.path
    if files is None or not path or not files.naming(path):
        return None
    for start in Programs(files).starts(path)[:1]:
        code = files.read(start) if start != path else None
        if code is None:
            continue
        script = linked(code, start, files, MOST_CONVERTED)
        reached = [script] if script.workspace is None else script.workspace.reachable
        if any(each.path == path for each in reached):
            return Program(Joined(reached) if len(reached) > 1 else script)
    return None


def _is_mended(finding: Finding) -> bool:
    return finding.fix is None and finding.verdict is Verdict.VIOLATED and finding.code in _MENDING


def _with_fixes(
    program: Program, found: tuple[Finding, ...], pause: Callable[[], None]
) -> tuple[Finding, ...]:
    """The findings, those that a rule of the conversion mends with its change of the same place."""
    analysis = analyze_script(program.script, pause)
    try:
        changes = [
            change
            for change in analysis.changes
            if analysis.read is analysis.program and _is_of_file(change, len(program.script.source.text))
        ]
        return tuple(_with_fix(each, changes) if _is_mended(each) else each for each in found)
    except Exception:
        log.exception("the changes that mend hazards could not be told")
        return found
    finally:
        if analysis.read is not analysis.program:
            analysis.read.forget()
        analysis.program.forget_facts()


def _is_of_file(change: Change, size: int) -> bool:
    """Whether a change is of the started file alone, which comes first in the text of a program."""
    return all(edit.end <= size for edit in (*change.edits, *change.requires))


def _with_fix(finding: Finding, changes: list[Change]) -> Finding:
    for change in changes:
        if change.rule in _MENDING[finding.code] and _meet(finding.span, change.target):
            # What mends two findings is made once: edits that are required are, where they are equal.
            edits = (*change.requires, *change.edits)
            fix = replace(change, rule=finding.code, edits=(), requires=edits)
            return replace(finding, fix=fix, asks=change.rule in _ASKING)
    return finding


def _meet(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end
