"""Datasets and optimizers are created unconditionally.

Seeds: S1.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.restrictions.restriction import Findings, Restriction


def check(program: Program) -> Findings:
    """One finding for each ..."""
    yield from ()


RULE = Restriction("TF07", "conditional-creation", check)
