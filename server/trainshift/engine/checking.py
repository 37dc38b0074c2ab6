"""The entry point of the checker: text in, diagnostics and fixed text out.  No IO, no LSP, no printing."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

from trainshift.core.finding import Effect, Finding, Line, Verdict
from trainshift.core.program import Program
from trainshift.engine.effects.outcomes import Effects, with_left_out
from trainshift.engine.findings import Judgement, find, may_train, uses_horovod
from trainshift.engine.own_codes import (
    INTERNAL_ERROR,
    NOT_CONVERTED,
    OWN_CODES,
    SYNTAX_ERROR,
    UNSEARCHED_FILES,
    UNSUPPORTED_VERSION,
)
from trainshift.engine.programs import Programs
from trainshift.engine.settings import (
    GRAPH_CODES,
    HAZARD_CODES,
    RESTRICTION_CODES,
    SUPPRESSIBLE_CODES,
    Settings,
    Severity,
)
from trainshift.engine.suppressions import problems, read_suppressions, suppress
from trainshift.engine.workspace import ParsedFiles, is_test, read_linked
from trainshift.pages import page_url
from trainshift.python.names.script import Script
from trainshift.python.source.edit import Change
from trainshift.python.source.source import BOM, Source, Span
from trainshift.python.syntax.chunks import ParseFailure
from trainshift.restrictions import RESTRICTIONS
from trainshift.static_graphs import codes as static_graphs
from trainshift.training.loops.loops import Loops

if TYPE_CHECKING:
    from trainshift.engine.effects.asking import Forecast
    from trainshift.engine.versions.runtime import Runtime

log = logging.getLogger(__name__)
Demanded: TypeAlias = "Callable[[], Runtime | None]"
"""Gives what a script's project demands of the versions that it runs on, if anything."""
Weigh: TypeAlias = "Callable[[], Effects]"
"""Gives what a conversion does in the file, as far as it is asked for that."""

COPES = "The conversion handles it."
"""The end of the message of a violated finding without consequences."""

_HAZARDS = frozenset(HAZARD_CODES)
_NAMES = {each.code: each.name for each in (*RESTRICTIONS, *static_graphs.STATIC_CODES, *OWN_CODES)}
# A script that contains none of these words and trains in no other file has no code that a rewrite could
# touch, so no restriction is asked: a print in some other program is not our concern.
_SIGNS = re.compile("tensorflow|keras|GradientTape|apply_gradients")
_MISSED = (
    "The project has too many files to search them all: "
    "programs that import this one may be missing, with their hazards."
)
_TOO_DEEP = "the code is nested too deeply to be read"


class Region(Struct, frozen=True):
    """A region of a file: 1-based lines and columns in code points; the end is exclusive.

    In a notebook they are relative to a `cell`, counted from 1.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    cell: int | None = None

    @classmethod
    def of(cls, source: Source, span: Span) -> Region:
        """The region of a span of `source`."""
        return cls(*source.position(span.start), *source.position(span.end))

    def span(self, source: Source) -> Span:
        """The span of the region in `source`, as far as it exists there."""
        starts, last = source.line_starts, len(source.text)
        start = min(starts[min(self.line, len(starts)) - 1] + self.column - 1, last)
        end = min(starts[min(self.end_line, len(starts)) - 1] + self.end_column - 1, last)
        return Span(start, max(start, end))

    def down(self, lines: int) -> Region:
        """The region moved down by a number of lines."""
        return Region(self.line + lines, self.column, self.end_line + lines, self.end_column, self.cell)

    def as_json(self) -> dict[str, int]:
        """The region for programs."""
        return {key: value for key, value in asdict(self).items() if value is not None}


class OtherPlace(Struct, frozen=True):
    """Another place that a diagnostic is about."""

    path: str
    region: Region
    message: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A reported finding.

    `code` is a restriction's (TF03) or the checker's own (TS01).  `effect` is None if the conversion was not
    asked.  `fix` is a change to the checked text, `span` the region as offsets in it; a failure has neither.
    Diagnostics are compared without them.
    """

    code: str
    name: str
    severity: Severity
    verdict: Verdict
    region: Region
    message: str
    related: tuple[OtherPlace, ...] = ()
    effect: Effect | None = None
    fix: Change | None = field(default=None, compare=False)
    asks: bool = field(default=False, compare=False)
    span: Span | None = field(default=None, compare=False)
    docs_url: str = ""

    def is_mended(self, least: Severity) -> bool:
        """Return whether the fixes from a severity on include its fix; not if it is harmless, or needs the
        user's choice.
        """
        is_broken = self.verdict is Verdict.VIOLATED and self.severity >= Severity.INFORMATION
        return self.fix is not None and not self.asks and (is_broken or self.severity >= least)

    @property
    def url(self) -> str:
        """The address of the code's page, on the site at `docs_url` if that is set; "" if it has no page."""
        return page_url(self.code, self.docs_url)

    @property
    def is_error_of_ours(self) -> bool:
        """Return whether the check itself failed: a syntax error, or a defect of a restriction."""
        return self.code in (SYNTAX_ERROR.code, INTERNAL_ERROR.code)

    def __hash__(self) -> int:
        """Hash only the fields that differ most often, because an edit looks up all diagnostics of a file."""
        return hash((self.code, self.region.line, self.region.column))

    def moved(self, region: Region, related: tuple[OtherPlace, ...], span: Span) -> Diagnostic:
        """Move the diagnostic to another place; `replace` takes three times as long."""
        return Diagnostic(
            self.code,
            self.name,
            self.severity,
            self.verdict,
            region,
            self.message,
            related,
            self.effect,
            self.fix,
            self.asks,
            span,
            self.docs_url,
        )


class Told:
    """The diagnostics created so far, by finding, so that repeated findings get the same object."""

    def __init__(self) -> None:
        # By identity: comparing findings is slow.
        self._by_finding: dict[int, tuple[Finding, Diagnostic]] = {}

    def of(self, finding: Finding) -> Diagnostic | None:
        """The diagnostic created earlier for a finding, if any."""
        known = self._by_finding.get(id(finding))
        return known[1] if known is not None else None

    def tell(self, finding: Finding, diagnostic: Diagnostic) -> None:
        """Record the diagnostic of a finding."""
        self._by_finding[id(finding)] = finding, diagnostic


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The diagnostics of one file, in text order, and the number of findings that its comments silence.

    `by_hand` summarizes how the started program is already distributed, and `forecast` its conversion. A
    syntax error is among the diagnostics even if it is OFF and not shown: the file was not checked.
    """

    path: str
    diagnostics: tuple[Diagnostic, ...]
    suppressed: int = 0
    by_hand: str = ""
    forecast: str = field(default="", compare=False)


def program_of(text: str, path: str = "", files: ParsedFiles | None = None) -> Program | ParseFailure:
    """The program that a script starts; `text` is its own, without byte order mark.

    With `files`, its imports are followed from `path`, which is absolute; otherwise it is read alone.
    """
    script = read_linked(text, path, files)
    return script if isinstance(script, ParseFailure) else Program(script)


def check(
    text: str,
    settings: Settings | None = None,
    path: str = "",
    files: ParsedFiles | None = None,
    demanded: Demanded = lambda: None,
) -> CheckReport:
    """Check a script against the restrictions, with its suppression comments, under `settings`.

    `path` and `files` are as for `program_of`; `demanded` is called if the script trains. Never raises for
    bad input: a script that does not parse, or on which a restriction fails, gets a diagnostic about it.
    """
    body = text.removeprefix(BOM)
    try:
        return _check(body, settings or Settings(), path, files, demanded)
    except Exception as error:
        return check_failed(error, path, settings or Settings())


def defect(what: str) -> Diagnostic:
    """The diagnostic about a fault of ours."""
    return _failure(INTERNAL_ERROR.code, f"{what}; please report this with the script")


def check_failed(error: Exception, path: str, settings: Settings) -> CheckReport:
    """The report on a file whose check failed, for the exception being handled."""
    if isinstance(error, RecursionError):
        return unread(ParseFailure(_TOO_DEEP, 1, 1), path, settings)
    log.exception("the check of %s failed", path)
    return CheckReport(path, (defect(_named(error)),))


def _check(
    text: str, settings: Settings, path: str, files: ParsedFiles | None, demanded: Demanded
) -> CheckReport:
    program = program_of(text, path, files)
    if isinstance(program, ParseFailure):
        return unread(program, path, settings)
    is_shared = files is not None and files.parsed(path, text) is program.script.code
    read = [] if is_shared else program.script.facts
    try:
        judgement = judge(program, settings, demanded=demanded, files=files)
        forecast = _forecast(program, judgement, settings, files, demanded)
        if forecast is None:
            return report_on(program.script, judgement, settings, path)
        effects = Effects(forecast.outcomes)
        weigh = (lambda: effects) if matter(judgement.found, settings) else None
        judgement = with_left_out(judgement, effects)
        report = report_on(program.script, judgement, settings, path, weigh)
        return dataclasses.replace(report, forecast=forecast.text)
    finally:
        program.forget()
        for facts in read:
            facts.dissolve()


def has_signs(text: str) -> bool:
    """Return whether a file seems to use TensorFlow; one that does not may still import code that trains."""
    return _SIGNS.search(text) is not None


def judge(
    program: Program,
    settings: Settings,
    pause: Callable[[], None] = lambda: None,
    demanded: Demanded = lambda: None,
    files: ParsedFiles | None = None,
) -> Judgement:
    """Judge a program by the restrictions that are on, before comments silence any finding.

    `pause` is called repeatedly, and may raise to abort the check.  With `files`, hazards are checked in the
    program that uses the script, if another file starts it.
    """
    text, codes = program.script.source.text, settings.checked_codes
    program.choices = settings.choices
    is_of_paddle = any(static_graphs.has_signs(facts.text) for facts in program.script.facts)
    is_asked = not codes.isdisjoint(RESTRICTION_CODES) or settings.is_on(UNSUPPORTED_VERSION.code)
    trains = has_signs(text) or (is_asked and not is_of_paddle and bool(program.fact(Loops).all))
    asked = codes.intersection(
        (*(RESTRICTION_CODES if trains else ()), *(GRAPH_CODES if is_of_paddle else ()))
    )
    if asked & static_graphs.OF_PADDLE_3 and (runtime := demanded()) is not None and runtime.is_paddle2:
        asked -= static_graphs.OF_PADDLE_3
    result = Judgement(())
    is_distributed = not _HAZARDS.isdisjoint(codes) and (
        uses_horovod(program) or _is_used_with_horovod(program, files)
    )
    if is_distributed:
        # The start files, the fixes and the Keras are computed only if Horovod is used.
        from trainshift.engine.effects.hazards import found_around
        from trainshift.engine.versions.runtime import settled

        program.choices = settled(settings.choices, demanded())
        result = found_around(program, asked | (codes & _HAZARDS), files, pause)
    elif asked:
        result = find(program, asked - _HAZARDS, pause)
    if files is not None and (trains or is_distributed):
        result = _with(result, _unsearched(program, settings, files))
    if not trains:
        return result
    if settings.is_on(UNSUPPORTED_VERSION.code) and program.fact(Loops).own:
        runtime = demanded()
        if runtime is not None and (runtime.too_new or runtime.problem):
            from trainshift.engine.versions.unsupported import told_of

            return _with(result, told_of(program, runtime, settings.choices))
    return result


def _with(result: Judgement, more: Iterable[Finding]) -> Judgement:
    found = sorted((*result.found, *more), key=lambda each: (each.span, each.code))
    return replace(result, found=tuple(found))


def _unsearched(program: Program, settings: Settings, files: ParsedFiles) -> list[Finding]:
    """Report that programs which contain a script may be missing, unless it starts one itself."""
    script = program.script
    is_asked = settings.is_on(UNSEARCHED_FILES.code) and not _HAZARDS.isdisjoint(settings.checked_codes)
    if not (is_asked and script.path) or files.searches_all(script.path) or not script.statements:
        return []
    if Programs(files).starts_training(script.path):
        return []
    where = script.statement_span(script.statements[0])
    return [Finding(UNSEARCHED_FILES.code, Verdict.UNKNOWN, where, _MISSED)]


def _is_used_with_horovod(program: Program, files: ParsedFiles | None) -> bool:
    """Return whether another file that imports Horovod may import the script."""
    path = program.script.path
    return files is not None and bool(path) and files.is_used_beside(path, "horovod")


def matter(findings: Iterable[Finding], settings: Settings) -> frozenset[str]:
    """The codes of the findings whose severity depends on their effect on the conversion."""
    kinds = {(each.code, each.verdict) for each in findings if each.verdict is not Verdict.HARMLESS}
    return frozenset(
        code
        for code, verdict in kinds
        if settings.severity_of(code, verdict) != settings.severity_of(code, verdict, Effect.DOUBTS)
    )


def _forecast(
    program: Program, judgement: Judgement, settings: Settings, files: ParsedFiles | None, demanded: Demanded
) -> Forecast | None:
    """Forecast the conversion of the script; None if that is not requested."""
    asks = bool(matter(judgement.found, settings))
    script = program.script
    # A test of other files starts no program; `convert` leaves those in a directory alone, too.
    if not settings.asks_conversion or (is_test(script.path) and _imports_others(script)):
        return None
    if not asks and not (settings.is_on(NOT_CONVERTED.code) and may_train(program)):
        return None
    # The conversion's rules are loaded only if they are needed.
    from trainshift.engine.effects.asking import forecast_around
    from trainshift.engine.versions.runtime import settled

    # No restriction depends on the choices, so the conversion can reuse the same facts.
    runtime = demanded()
    program.choices = settled(settings.choices, runtime)
    return forecast_around(program, files, runtime)


def forecast_ahead(path: str, settings: Settings, files: ParsedFiles, demanded: Demanded) -> Hashable | None:
    """Forecast the program that a file starts, before checks ask for it; for steady `files` only.

    Programs that change the same files ask for each other's changes: each is analyzed once that way, and
    several processes can share the work.  Returns the question to `files` that is answered now, if any.
    """
    if not settings.asks_conversion or is_test(path):
        return None
    from trainshift.engine.effects.asking import ask_alone
    from trainshift.engine.versions.runtime import settled

    return ask_alone(path, settled(settings.choices, demanded()), files)


def _imports_others(script: Script) -> bool:
    return script.workspace is not None and len(script.workspace.reachable) > 1


def unread(failure: ParseFailure, path: str, settings: Settings) -> CheckReport:
    """The report on a file that is not Python."""
    code, region = SYNTAX_ERROR.code, Region(failure.line, failure.column, failure.line, failure.column)
    severity = settings.severity_of(code, Verdict.VIOLATED)
    error = Diagnostic(
        code, _NAMES[code], severity, Verdict.VIOLATED, region, failure.message, docs_url=settings.docs_url
    )
    return CheckReport(path, (error,))


def report_on(
    script: Script,
    result: Judgement,
    settings: Settings,
    path: str,
    weigh: Weigh | None = None,
    told: Told | None = None,
) -> CheckReport:
    """Report the findings that no comment silences, with the severities of the settings.

    `weigh` returns the effect of a finding on the conversion; without it, effects are unknown. `told` records
    the diagnostics.
    """
    source = script.source
    comments = read_suppressions(source)
    found: Iterable[Finding] = result.found
    number = 0
    if comments:
        outcome = suppress(script, result.found, comments)
        number = outcome.number
        judged = settings.checked_codes - result.failed
        found = sorted(
            (*outcome.kept, *problems(source, comments, outcome.used, SUPPRESSIBLE_CODES, judged)),
            key=lambda each: (each.span, each.code),
        )
    return report_of(result, diagnostics_of(source, found, settings, path, weigh, told), path, number)


def report_of(
    result: Judgement, reported: Iterable[Diagnostic], path: str, suppressed: int = 0
) -> CheckReport:
    """The report on a file with the `reported` diagnostics, and the restrictions that failed."""
    failures = map(defect, result.defects)
    return CheckReport(path, (*failures, *reported), suppressed, result.by_hand)


def diagnostics_of(
    source: Source,
    found: Iterable[Finding],
    settings: Settings,
    path: str,
    weigh: Weigh | None = None,
    told: Told | None = None,
) -> list[Diagnostic]:
    """The diagnostics for findings that no comment silences, as in `report_on`."""
    loud: dict[tuple[str, Verdict, Effect], Severity] = {}
    reported = []
    for each in found:
        is_weighed = weigh is not None and each.verdict is not Verdict.HARMLESS
        effect = (
            weigh().of(each) if weigh is not None and is_weighed and each.code not in GRAPH_CODES else None
        )
        kind = each.code, each.verdict, effect or Effect.NONE
        if kind not in loud:
            loud[kind] = settings.severity_of(*kind)
        if loud[kind]:
            reported.append(_diagnostic(source, path, each, loud[kind], effect, settings.docs_url))
            if told is not None:
                told.tell(each, reported[-1])
    return reported


def _diagnostic(
    source: Source, path: str, finding: Finding, severity: Severity, effect: Effect | None, docs_url: str
) -> Diagnostic:
    related = []
    for each in finding.related:
        if isinstance(each.script, Line):
            number = each.script.number
            related.append(OtherPlace(each.script.path, Region(number, 1, number, 1), each.message))
            continue
        home = (each.script.path, each.script.source) if each.script else (path, source)
        related.append(OtherPlace(home[0], Region.of(home[1], each.span), each.message))
    weighed = finding.code in RESTRICTION_CODES and finding.code not in HAZARD_CODES
    is_broken = finding.verdict is Verdict.VIOLATED and weighed
    return Diagnostic(
        finding.code,
        _NAMES[finding.code],
        severity,
        finding.verdict,
        Region.of(source, finding.span),
        f"{finding.message} {COPES}" if is_broken and effect is Effect.NONE else finding.message,
        tuple(related),
        effect,
        finding.fix,
        finding.asks,
        finding.span,
        docs_url,
    )


def _failure(code: str, message: str) -> Diagnostic:
    return Diagnostic(code, _NAMES[code], Severity.ERROR, Verdict.VIOLATED, Region(1, 1, 1, 1), message)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
