"""The TensorFlow module is bound by imports only.

Seeds: S1.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.restrictions.restriction import Findings, Restriction


def check(program: Program) -> Findings:
    """One finding for each ..."""
    yield from ()


RULE = Restriction("TF02", "tensorflow-rebound", check)
