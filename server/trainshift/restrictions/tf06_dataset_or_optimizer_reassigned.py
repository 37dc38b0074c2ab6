"""A name that holds a dataset or an optimizer holds nothing else later.

Seeds: S1.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.restrictions.restriction import Findings, Restriction


def check(program: Program) -> Findings:
    """One finding for each ..."""
    yield from ()


RULE = Restriction("TF06", "dataset-or-optimizer-reassigned", check)
