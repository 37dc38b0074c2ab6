"""Verdicts: whether a value is the same on all ranks, the lattice of the analysis of uniformity.

`Uniform` is its bottom and `Divergent` its top.  A value is `Unknown` if the text does not show it, such as
the result of a library, or if a bound is reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from msgspec import Struct

from trainshift.libraries.divergence import CauseKind
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.syntax.chunk_syntax import Site


class Cause(NamedTuple):
    """The reason why a value may diverge, and the expression that causes it; `site` if that is a call."""

    kind: CauseKind
    at: Occurrence
    site: Site | None


class Verdict(Struct, frozen=True):
    """The answer to the question whether all ranks have the same value at a place."""

    is_uniform: ClassVar[bool] = False
    diverges: ClassVar[bool] = False


class Uniform(Verdict, frozen=True):
    """All ranks certainly have the same value."""

    is_uniform: ClassVar[bool] = True


class Unknown(Verdict, frozen=True):
    """The text does not show whether ranks have the same value."""


class Divergent(Verdict, frozen=True):
    """Ranks may have different values, for these causes."""

    diverges: ClassVar[bool] = True

    causes: tuple[Cause, ...]


def joined(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the least upper bound of some verdicts: that of a value with all of them as parts."""
    found = list(verdicts)
    causes = dict.fromkeys(cause for each in found if isinstance(each, Divergent) for cause in each.causes)
    if any(each.diverges for each in found):
        return Divergent(tuple(causes))
    return Uniform() if all(each.is_uniform for each in found) else Unknown()


def divergent(kind: CauseKind, site: Site) -> Divergent:
    """The verdict on the result of a call that differs between ranks for a reason of its own."""
    return Divergent((cause_of(kind, site),))


def cause_of(kind: CauseKind, site: Site) -> Cause:
    """Return the cause of divergence if a call is one."""
    return Cause(kind, of_call(site), site)
