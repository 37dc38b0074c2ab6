"""Effects: ask the conversion of a program for the consequences of findings.

A finding is a warning if the conversion refuses, withholds or doubts something because of it.  The conversion
itself answers that: the rules that rely on the restriction, at the place of the finding.
"""

from __future__ import annotations

import posixpath
from collections.abc import Hashable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from trainshift.core.choices import Choices
from trainshift.core.finding import Effect
from trainshift.core.program import Program
from trainshift.engine.analysis import Analysis, analyze_script
from trainshift.engine.audit import Fault
from trainshift.engine.claims import (
    Claims,
    Wanted,
    analyze_program,
    claims_alone,
    claims_from,
    made_by,
    rivals_of,
)
from trainshift.engine.conversion import Conversion, Status, obstacle, without_gaps
from trainshift.engine.effects.outcomes import Outcome
from trainshift.engine.findings import ON_LOOPS
from trainshift.engine.own_codes import UNSUPPORTED_VERSION
from trainshift.engine.programs import Programs
from trainshift.engine.workspace import ParsedFiles, linked
from trainshift.python.names.script import Script
from trainshift.python.names.workspace import MOST_CONVERTED
from trainshift.python.source.source import Span, one_line
from trainshift.restrictions import RESTRICTIONS
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.loops import Loops
from trainshift.transforms import TRANSFORMS

if TYPE_CHECKING:
    from trainshift.engine.versions.runtime import Runtime

# The number of programs containing a file that are searched for one that trains.
MOST_STARTS = 4
_WRONG = "the result would be wrong: {}"
_SEEN = frozenset(rule.code for rule in RESTRICTIONS if rule.seen_by_rules)
# The restrictions that a rule reports in its own words, as the causes of what it withholds.
_OWN_CAUSES = {rule.code: _SEEN.intersection(guard.code for guard in rule.guards) for rule in TRANSFORMS}


class Forecast(NamedTuple):
    """The outcomes of converting a program, and `text`, a summary in one line."""

    outcomes: tuple[Outcome, ...]
    text: str = ""


class Alone(NamedTuple):
    """A program's forecast while no other program disagrees with it.

    `made` are its edits to shared files, `claims` those that other programs have to respect.  `meeting` are
    the places where its ranks meet, even if it is refused.
    """

    forecast: Forecast | None
    made: Mapping[tuple[str, Span, str], Wanted]
    claims: Claims | None
    meeting: Claims | None


def outcomes_of(analysis: Analysis, fault: Fault | None = None, gap: str = "") -> tuple[Outcome, ...]:
    """The refusals, withheld changes and doubts of a program's conversion, by place.

    `fault` is the defect for which a result is refused, `gap` the message about a file that cannot be read.
    """
    found = [
        Outcome(script.path, place, codes, effect, told)
        for span, codes, effect, told in _done(analysis, fault)
        if codes or told
        for script, place in (analysis.place(span),)
    ]
    if analysis.outlook.refused or fault or gap or any(each.essential for each in analysis.withheld):
        elsewhere = [each for each in found if each.effect is Effect.REFUSES and each.told]
        start = analysis.scripts[0]
        if all(each.path != start.path for each in elsewhere):
            found += _of_start(analysis, elsewhere, gap)
        paths = {script.path for script in analysis.program.script.scripts}
        found += [Outcome(path, Span(0, 0), frozenset(), Effect.REFUSES) for path in sorted(paths)]
    return tuple(found)


def _of_start(analysis: Analysis, elsewhere: list[Outcome], gap: str) -> Iterator[Outcome]:
    """Report a refusal without a place, or with one in another file, at the start file's first statement."""
    start = analysis.scripts[0]
    told = gap or (analysis.outlook.reason if analysis.outlook.code != UNSUPPORTED_VERSION.code else "")
    if elsewhere:
        first = elsewhere[0]
        other = next(each for each in analysis.scripts if each.path == first.path)
        line, column = other.source.position(first.span.start)
        told = f"{posixpath.basename(first.path)}:{line}:{column}: {first.told}"
    if told and start.statements:
        yield Outcome(start.path, start.statement_span(start.statements[0]), ON_LOOPS, Effect.REFUSES, told)


def _done(analysis: Analysis, fault: Fault | None) -> Iterator[tuple[Span, frozenset[str], Effect, str]]:
    outlook = analysis.outlook
    if outlook.refused and outlook.at is not None:
        for span in (outlook.at, *outlook.causes):
            yield span, ON_LOOPS, Effect.REFUSES, outlook.reason if span == outlook.at else ""
    for withheld in analysis.withheld:
        effect = Effect.REFUSES if withheld.essential else Effect.WITHHOLDS
        causes = frozenset(withheld.causes) or _OWN_CAUSES[withheld.rule]
        yield withheld.target, causes, effect, one_line(f"{withheld.rule}: {withheld.reason}")
    if fault is not None:
        yield fault.span, frozenset({fault.code} - {""}), Effect.REFUSES, _WRONG.format(fault.text)
    for change in analysis.changes:
        if change.doubts:
            yield change.target, frozenset(change.causes) or _OWN_CAUSES[change.rule], Effect.DOUBTS, ""


def forecast_around(program: Program, files: ParsedFiles | None, runtime: Runtime | None) -> Forecast | None:
    """Forecast the conversion of a script, by the choices of its program.

    `files` are searched for the programs that contain it, and the first one that trains is converted. None
    if there are more than `MOST_STARTS`, and none of the first ones trains.  The text is only for a
    program that the script starts.
    """
    script, choices = program.script, program.choices
    # A file that nothing imports starts the only program that contains it.
    is_part = files is not None and files.naming(script.path)
    starts = Programs(files).starts(script.path) if files is not None and is_part else ()
    for start in starts[:MOST_STARTS]:
        if files is None or start == script.path:
            continue
        key = start, choices
        found = files.once(("forecast", *key), partial(_of_file, *key, files))
        if found is not None:
            return Forecast(tuple(each for each in found.outcomes if each.path == script.path))
    if len(starts) > MOST_STARTS:
        return None  # One of the programs that were not searched may train.
    if files is not None and len(script.linked) > 1 and _is_as_for_others(script, files, runtime):
        key = script.path, choices
        found = files.once(("forecast", *key), partial(_of_file, *key, files)) or Forecast(())
    else:
        found = _forecast(script, choices, files, runtime, program) or Forecast(())
    return Forecast(tuple(each for each in found.outcomes if each.path == script.path), found.text)


def _is_as_for_others(script: Script, files: ParsedFiles, runtime: Runtime | None) -> bool:
    """Return whether the forecast of a script is that of the program for the checks of its other files."""
    code = files.read(script.path)
    is_read = code is not None and code.source.text == script.source.text
    is_whole = script.workspace is None or not script.workspace.left_out
    return is_read and is_whole and (runtime is None or not runtime.too_new)


def ask_alone(start: str, choices: Choices, files: ParsedFiles) -> Hashable | None:
    """Forecast the program that a file starts, if it may share files; return the answered question."""
    code = files.read(start)
    if code is None or not Programs(files).may_share(start):
        return None
    script = linked(code, start, files, MOST_CONVERTED)
    is_alone = len(script.linked) == 1
    Program(script).forget()
    if is_alone:
        return None
    _alone(start, choices, files)
    return _alone_key(start, choices)


def _alone(start: str, choices: Choices, files: ParsedFiles) -> Alone | None:
    """The program that a file starts, by itself; None if the file is not Python."""
    return files.once(_alone_key(start, choices), partial(_find_alone, start, choices, files))


def _alone_key(start: str, choices: Choices) -> tuple[str, str, Choices]:
    return "alone", start, choices


def _find_alone(start: str, choices: Choices, files: ParsedFiles) -> Alone | None:
    code = files.read(start)
    if code is None:
        return None
    script = linked(code, start, files, MOST_CONVERTED)
    holds = partial(Programs(files).holds, start)
    analysis = analyze_script(script, choices=choices, is_shared=True, holds=holds)
    try:
        return Alone(_forecast_of(analysis, files, None), made_by(analysis), *claims_alone(analysis))
    finally:
        _forget(analysis, None)


def _of_file(start: str, choices: Choices, files: ParsedFiles) -> Forecast | None:
    alone = _alone(start, choices, files)
    if alone is None or not alone.made:
        return alone.forecast if alone is not None else None
    rivals = rivals_of(start, alone.made, Programs(files), partial(_claims, choices, files))
    is_agreed = not any(rival.disputes(alone.made) for rival in rivals)
    if is_agreed and all(files.searches_all(path) for path, _, _ in alone.made):
        return alone.forecast
    code = files.read(start)
    return _forecast(linked(code, start, files, MOST_CONVERTED), choices, files) if code else None


def _forecast(
    script: Script,
    choices: Choices,
    files: ParsedFiles | None,
    runtime: Runtime | None = None,
    known: Program | None = None,
) -> Forecast | None:
    """Forecast the conversion of the program that a script starts; None if it trains nothing."""
    if files is None:
        analysis = analyze_script(script, choices=choices, is_shared=True, known=known)
    else:
        claims = partial(_claims, choices, files)
        analysis = analyze_program(script, files, claims=claims, choices=choices, is_shared=True, known=known)
    try:
        return _forecast_of(analysis, files, runtime)
    finally:
        _forget(analysis, known)


def _forecast_of(analysis: Analysis, files: ParsedFiles | None, runtime: Runtime | None) -> Forecast | None:
    if not (analysis.outlook.convertible or analysis.outlook.refused):
        return None
    conversion = obstacle(analysis, runtime)
    gap = _gap(conversion, analysis.scripts[0], files)
    fault = next((each for each in analysis.faults if each.certain), None) if conversion is None else None
    refused = (
        bool(gap) or fault is not None or (conversion is not None and conversion.status is Status.REFUSED)
    )
    is_done = conversion is not None and conversion.status is Status.ALREADY_DISTRIBUTED
    number, is_begun = len(analysis.read.fact(Loops).own), analysis.read.fact(Horovod).is_used
    text = _text(number, is_refused=refused, is_done=is_done, is_begun=is_begun)
    return Forecast(outcomes_of(analysis, fault, gap), text)


def _forget(analysis: Analysis, known: Program | None) -> None:
    """Free what the analysis knows, but not the program that its owner keeps."""
    if analysis.read is not analysis.program:
        analysis.read.forget()
    if analysis.program is not known:
        analysis.program.forget_facts()


def _gap(conversion: Conversion | None, script: Script, files: ParsedFiles | None) -> str:
    """Name the file that cannot be read and for which a program is refused."""
    if files is None or (conversion is not None and conversion.status is Status.REFUSED):
        return ""
    found = without_gaps(conversion or Conversion(Status.CONVERTED, ""), script, files)
    is_gap = found.status is Status.REFUSED and found.path
    return f"{posixpath.basename(found.path)}: {found.reason}" if is_gap else ""


def _claims(choices: Choices, files: ParsedFiles, start: str, rules: frozenset[str]) -> Claims | None:
    if files.knows(_alone_key(start, choices)):
        alone = _alone(start, choices, files)
        return (alone.claims if rules else alone.meeting) if alone is not None else None
    find = partial(claims_from, start, files, choices, rules=rules)
    return files.once(("claims", start, choices, rules), find)


def _text(number: int, *, is_refused: bool, is_done: bool, is_begun: bool) -> str:
    loops, them = ("1 loop", "it") if number == 1 else (f"{number} loops", "them")
    if not number:
        return ""
    if is_done:
        return f"{loops}, distributed already"
    if is_begun and not is_refused:
        return f"{loops}, distributed in part; `convert` distributes the rest"
    return f"{loops}; `convert` {'refuses' if is_refused else 'distributes'} {them}"
