"""The fixes of `check`: text in, fixed text and what remains out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from trainshift.engine.cells import Body, Plain
from trainshift.engine.checking import CheckReport, Demanded, check, defect
from trainshift.engine.finishing.compiling import compiles
from trainshift.engine.finishing.finish import laid_out
from trainshift.engine.own_codes import (
    SYNTAX_ERROR,
)
from trainshift.engine.settings import (
    Settings,
    Severity,
)
from trainshift.engine.workspace import ParsedFiles
from trainshift.python.names.script import read_script
from trainshift.python.source.edit import Edit, merge
from trainshift.python.source.source import BOM
from trainshift.python.syntax.chunks import ParseFailure

B = TypeVar("B", bound=Body)

_MOST_PASSES = 10


class Fixed(Struct, Generic[B], frozen=True):
    """A program after its fixes: the number of fixes by code, and the reports after and `before` them."""

    body: B
    applied: Mapping[str, int]
    report: CheckReport
    before: CheckReport

    @property
    def text(self) -> str:
        """The program's text."""
        return self.body.text


def fix(
    text: str,
    settings: Settings | None = None,
    path: str = "",
    files: ParsedFiles | None = None,
    least: Severity = Severity.WARNING,
) -> Fixed[Plain]:
    """`fixed` for the text of a script, which may have a byte order mark."""
    body = text.removeprefix(BOM)
    result = fixed(Plain(body), settings, path, files, least)
    return result if body == text else replace(result, body=Plain(BOM + result.text))


def fixed(
    body: B,
    settings: Settings | None = None,
    path: str = "",
    files: ParsedFiles | None = None,
    least: Severity = Severity.WARNING,
    demanded: Demanded = lambda: None,
) -> Fixed[B]:
    """The program after the fixes of `check`, applied repeatedly until none is left.

    Violated findings, and findings of severity `least` or above, are fixed.  If the result would not parse or
    compile, the body is unchanged, and the report says so.
    """
    first = report = check(body.text, settings, path, files, demanded)
    applied: Counter[str] = Counter()
    now = body
    for _ in range(_MOST_PASSES):  # Findings after the last statement remain in the report.
        plan = merge(
            each.fix for each in report.diagnostics if each.fix is not None and each.is_mended(least)
        )
        after = now.edited(_laid_out(now, plan.edits, settings or Settings()))
        if after == now:
            break
        report = check(after.text, settings, path, files, demanded)
        if any(each.code == SYNTAX_ERROR.code for each in report.diagnostics) or (
            compiles(body.text) and not compiles(after.text)
        ):
            codes = ", ".join(sorted({change.rule for change in plan.changes}))
            broken = defect(f"the fixes of {codes} break the script")
            return Fixed(body, {}, CheckReport(path, (broken, *first.diagnostics), first.suppressed), first)
        applied.update(change.rule for change in plan.changes)
        now = after
    return Fixed(now, applied, report, first)


def _laid_out(body: Body, edits: tuple[Edit, ...], settings: Settings) -> tuple[Edit, ...]:
    script = read_script(body.text) if edits else None
    if script is None or isinstance(script, ParseFailure):
        return edits
    return laid_out(script, edits, settings.choices.line_length, body.starts)
