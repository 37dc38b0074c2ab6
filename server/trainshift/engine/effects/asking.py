"""Effects: what the conversion of a program does because of a finding.

A finding is worth a warning if the conversion refuses, withholds or doubts something because of it.  That
is asked of the conversion itself: of the rules that rely on the restriction, at the place of the finding.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trainshift.core.choices import Choices
from trainshift.core.finding import Effect
from trainshift.core.program import Program
from trainshift.engine.analysis import Analysis, analyze_script
from trainshift.engine.effects.outcomes import Outcome
from trainshift.engine.findings import ALL_CODES, ON_LOOPS
from trainshift.engine.programs import Programs
from trainshift.engine.workspace import ParsedFiles, linked
from trainshift.python.names.script import Script
from trainshift.python.names.workspace import MOST_CONVERTED
from trainshift.python.source.source import Span
from trainshift.transforms import TRANSFORMS

# So many programs that a file belongs to are looked at for one that trains.
MOST_STARTS = 4
# What rules see by themselves, and withhold or doubt a change for in words of their own.
_SEEN_BY_RULES = frozenset({"TF04", "TF06", "TF07", "TL02", "TL03", "TL04"})
_GUARDED = {rule.code: frozenset(guard.code for guard in rule.guards) for rule in TRANSFORMS}


def outcomes_of(analysis: Analysis) -> tuple[Outcome, ...]:
    """The refusals, withheld changes and doubts of a program's conversion, by place."""
    found = [
        Outcome(script.path, place, codes, effect)
        for span, codes, effect in _done(analysis)
        if codes
        for script, place in (analysis.place(span),)
    ]
    if analysis.outlook.refused or any(each.essential for each in analysis.withheld):
        paths = {script.path for script in analysis.program.script.scripts}
        found += [Outcome(path, Span(0, 0), frozenset(), Effect.REFUSES) for path in sorted(paths)]
    return tuple(found)


def _done(analysis: Analysis) -> Iterator[tuple[Span, frozenset[str], Effect]]:
    outlook = analysis.outlook
    if outlook.refused and outlook.at is not None:
        for span in (outlook.at, *outlook.causes):
            yield span, ON_LOOPS, Effect.REFUSES
    for withheld in analysis.withheld:
        effect = Effect.REFUSES if withheld.essential else Effect.WITHHOLDS
        yield withheld.target, _causes(withheld.rule, withheld.reason), effect
    for change in analysis.changes:
        for doubt in change.doubts:
            yield change.target, _causes(change.rule, doubt), Effect.DOUBTS


def _causes(rule: str, reason: str) -> frozenset[str]:
    """The codes of the restrictions that a withheld change or doubt names as its cause."""
    named = frozenset({reason.partition(":")[0]}) & ALL_CODES
    return named or _GUARDED[rule] & _SEEN_BY_RULES


def outcomes_around(
    program: Program, files: ParsedFiles | None, codes: Collection[str]
) -> tuple[Outcome, ...]:
    """The outcomes of converting a program, by its choices, that findings of the given `codes` cause.

    That is the conversion of the first program that trains of those which it is part of, as `files` tell.
    """
    script, choices = program.script, program.choices
    # What nothing imports starts the one program that it is part of.
    is_part = files is not None and files.naming(script.path)
    starts = Programs(files).starts(script.path) if files is not None and is_part else ()
    for start in starts[:MOST_STARTS]:
        code = files.read(start) if files is not None and start != script.path else None
        found = (
            _outcomes(linked(code, start, files, MOST_CONVERTED), codes, choices)
            if code is not None
            else None
        )
        if found is not None:
            return tuple(each for each in found if each.path == script.path)
    return tuple(
        each for each in _outcomes(script, codes, choices, program) or () if each.path == script.path
    )


def _outcomes(
    script: Script, codes: Collection[str], choices: Choices, known: Program | None = None
) -> tuple[Outcome, ...] | None:
    """The outcomes of converting the program that a script starts; None if it trains nothing."""
    analysis = analyze_script(
        script, choices=choices, relying_on=frozenset(codes), is_shared=True, known=known
    )
    trains = analysis.outlook.convertible or analysis.outlook.refused
    found = outcomes_of(analysis) if trains else None
    if analysis.read is not analysis.program:
        analysis.read.forget()
    if analysis.program is not known:
        analysis.program.forget_facts()
    return found
