"""The arguments of a print do nothing but compute a value.

Seeds: S1.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.restrictions.restriction import Findings, Restriction


def check(program: Program) -> Findings:
    """One finding for each ..."""
    yield from ()


RULE = Restriction("TF04", "print-side-effect", check)
