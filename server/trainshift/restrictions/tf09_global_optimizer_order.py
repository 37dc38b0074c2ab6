"""A global optimizer is defined before the functions that use it and not changed afterwards.

Seeds: S1.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.restrictions.restriction import Findings, Restriction


def check(program: Program) -> Findings:
    """One finding for each ..."""
    yield from ()


RULE = Restriction("TF09", "global-optimizer-order", check)
