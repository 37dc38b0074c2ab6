"""The codes of static graphs, in the order of the docs; each is imported on first use."""

from __future__ import annotations

from dataclasses import dataclass

from trainshift.core.program import Program
from trainshift.core.rule import Findings, Restriction

_SIGN = "paddle"


@dataclass(frozen=True, slots=True)
class StaticCode(Restriction):
    """A check for code that Paddle's conversion rejects or gets wrong.

    `since` is the major version of Paddle that it came with.
    """

    since: int = 2

    def check(self, program: Program) -> Findings:
        """Yield the findings in the static functions of a program's file."""
        from trainshift.static_graphs.reporting import Judge

        found: Findings = self.module.check(Judge(program, self.code))
        return found


def has_signs(text: str) -> bool:
    """Return whether a file seems to use Paddle; other files are not checked for these codes."""
    return _SIGN in text


STATIC_CODES: tuple[StaticCode, ...] = (
    StaticCode("PD01", "shape-as-number"),
    StaticCode("PD02", "nested-tensor-list"),
    StaticCode("PD03", "tensor-to-numpy"),
    StaticCode("PD04", "tensor-recursion"),
    StaticCode("PD05", "tensor-exit"),
    StaticCode("PD06", "inner-break", since=3),
    StaticCode("PD07", "ignored-break"),
    StaticCode("PD08", "loop-variable"),
    StaticCode("PD09", "loop-else"),
    StaticCode("PD10", "loop-header"),
    StaticCode("PD11", "return-mismatch"),
    StaticCode("PD12", "branch-mismatch"),
    StaticCode("PD13", "half-bound"),
    StaticCode("PD14", "number-as-truth"),
    StaticCode("PD15", "logical-value"),
    StaticCode("PD16", "value-needed"),
    StaticCode("PD17", "unconverted-call"),
    StaticCode("PD18", "conditional-raise"),
    StaticCode("PD19", "effect-at-conversion"),
    StaticCode("PD20", "outer-name-in-branch"),
    StaticCode("PD21", "dropped-in-place"),
    StaticCode("PD22", "shared-tensor", since=3),
    StaticCode("PD23", "tensor-type-test"),
    StaticCode("PD24", "frozen-value"),
    StaticCode("PD25", "container-in-graph"),
    StaticCode("PD26", "static-options"),
    StaticCode("PD27", "no-gradient", since=3),
)

OF_PADDLE_3 = frozenset(each.code for each in STATIC_CODES if each.since == 3)
"""The codes that are off where a project demands an older Paddle."""
