"""A finding: the result of a restriction for one place of a script, with a fix if there is one."""

from __future__ import annotations

from enum import Enum, IntEnum

from msgspec import Struct

from trainshift.python.names.script import Script
from trainshift.python.source.edit import Change
from trainshift.python.source.source import Span


class Verdict(Enum):
    """The verdict on a finding (spec.md 1 and 3); code that is fine gives no finding.

    VIOLATED breaks the restriction; HARMLESS breaks its letter, but changes no rewrite; UNKNOWN means that
    the script does not show enough.
    """

    VIOLATED = "violated"
    HARMLESS = "harmless"
    UNKNOWN = "unknown"

    # Enum's own `__hash__` is written in Python, and every finding of every edit is looked up by its
    # verdict.
    __hash__ = object.__hash__


class Effect(IntEnum):
    """The effect of a finding on the conversion of its program, the worst last."""

    NONE = 0
    DOUBTS = 1
    WITHHOLDS = 2
    REFUSES = 3


class Line(Struct, frozen=True):
    """A line, counted from 1, of a file that is not a script."""

    path: str
    number: int


class Related(Struct, frozen=True):
    """Another place that a finding is about: `span` in `script`, None for the finding's own script.

    In a file that is not a script, the place is a line, and the span is ignored.
    """

    span: Span
    message: str
    script: Script | Line | None = None


class Finding(Struct, frozen=True):
    """One place where a script does not keep to a restriction.

    `span` is the code to underline, in code points of the script.  `message` states the problem and its
    consequence, in the script's own names.  `fix` is a change of the core that fixes it.  `concerns` is other
    code that is rewritten on the assumption that the restriction holds: a step, for a loop. `settled` means
    that no change can be wrong because of it here, although it is violated.  `asks` means that the fix
    changes the results of a run, so the user has to choose it.  `problem` is the part of the message that
    states the problem, where others repeat it.
    """

    code: str
    verdict: Verdict
    span: Span
    message: str
    related: tuple[Related, ...] = ()
    fix: Change | None = None
    concerns: tuple[Span, ...] = ()
    settled: bool = False
    asks: bool = False
    problem: str = ""

    def at(self, span: Span, related: tuple[Related, ...]) -> Finding:
        """Move the finding to its place in a changed text; `replace` takes three times as long."""
        return Finding(
            self.code,
            self.verdict,
            span,
            self.message,
            related,
            self.fix,
            self.concerns,
            self.settled,
            self.asks,
            self.problem,
        )
