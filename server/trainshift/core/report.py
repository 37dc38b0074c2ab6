"""Report: what a rule says of places in a program; it knows the rule's code and how to underline a place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from trainshift.core.finding import Finding, Related, Verdict
from trainshift.core.program import Program
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.source.edit import Change, Edit, Remark, Suits, Withheld
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Site, Statement

Place: TypeAlias = Span | Occurrence | Site | Statement
"""Code in a program: a statement stands for its first line."""


class Report:
    """Make the findings, changes, refusals and remarks of one code in one program."""

    __slots__ = ("code", "program")

    def __init__(self, program: Program, code: str) -> None:
        self.program = program
        self.code = code

    def violated(
        self,
        place: Place,
        message: str,
        related: tuple[Related, ...] = (),
        fix: Change | None = None,
        concerns: tuple[Span, ...] = (),
        settled: bool = False,
        asks: bool = False,
    ) -> Finding:
        """Report that a place breaks the restriction, with the remaining fields of a finding."""
        return self.finding(Verdict.VIOLATED, place, message, related, fix, concerns, settled, asks)

    def harmless(self, place: Place, message: str, related: tuple[Related, ...] = ()) -> Finding:
        """Report that a place breaks the letter of the restriction only."""
        return self.finding(Verdict.HARMLESS, place, message, related)

    def unknown(self, place: Place, message: str, related: tuple[Related, ...] = ()) -> Finding:
        """Report that the script does not show whether a place keeps to the restriction."""
        return self.finding(Verdict.UNKNOWN, place, message, related)

    def finding(
        self,
        verdict: Verdict,
        place: Place,
        message: str,
        related: tuple[Related, ...] = (),
        fix: Change | None = None,
        concerns: tuple[Span, ...] = (),
        settled: bool = False,
        asks: bool = False,
    ) -> Finding:
        """Report a place with a verdict; only a finding with a fix `asks`."""
        span, asks = self.span_of(place), asks and fix is not None
        return Finding(self.code, verdict, span, message, related, fix, concerns, settled, asks)

    def change(
        self,
        title: str,
        target: Span,
        edits: Iterable[Edit],
        requires: tuple[Edit, ...] = (),
        doubts: tuple[str, ...] = (),
        decisions: tuple[str, ...] = (),
        optional: bool = False,
        suits: Suits = Suits.ONE,
        former: Span | None = None,
    ) -> Change:
        """Propose a change of a statement, with the remaining fields of a change."""
        code, parts = self.code, tuple(edits)
        return Change(code, title, target, parts, requires, doubts, decisions, optional, suits, former)

    def withheld(self, place: Place, reason: str, essential: bool = False) -> Withheld:
        """Report a change that is not made; without an essential one nothing else may be changed."""
        return Withheld(self.code, self.span_of(place), reason, essential)

    def remark(self, place: Place, text: str, is_doubt: bool = False) -> Remark:
        """Report code that is left alone on purpose."""
        return Remark(self.code, self.span_of(place), text, is_doubt)

    def span_of(self, place: Place) -> Span:
        """The code to underline for a place."""
        return span_of(self.program, place)


def span_of(program: Program, place: Place) -> Span:
    """The code to underline for a place of a program."""
    if isinstance(place, Span):
        return place
    if isinstance(place, Statement):
        return program.script.header_span(place)
    if isinstance(place, Site):
        place = of_call(place)
    return program.script.span(place.node, place.scope)
