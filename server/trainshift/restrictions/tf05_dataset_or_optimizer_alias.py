"""Each dataset and optimizer is created by one assignment and has one name.

Seeds: S1.
"""

from __future__ import annotations

from trainshift.core.creations import Kind
from trainshift.core.program import Program
from trainshift.restrictions import holding
from trainshift.restrictions.restriction import Findings, Restriction


def check(program: Program) -> Findings:
    """One finding for each creation that no plain name holds first, each second creation, each alias."""
    yield from holding.check(program, "TF05", Kind.DATASET, Kind.OPTIMIZER)


RULE = Restriction("TF05", "dataset-or-optimizer-alias", check)
