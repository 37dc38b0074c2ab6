"""The shape of a hazard: a mistake of a program that uses Horovod already."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from trainshift.core.rule import Restriction


class InResult(Enum):
    """The consequence of a serious hazard in a conversion's result whose source did not have it."""

    REFUSED = "the conversion is refused"
    DOUBTED = "it is a doubt: it wastes work, or writes a file twice"
    AUDITED = "the audit answers it by its own reader"


@dataclass(frozen=True, slots=True)
class Hazard(Restriction):
    """A mistake in a script that already uses Horovod; `check` takes a whole program.

    Scripts without Horovod load nothing of it.

    `kind` has letters for what follows from it: D for ranks that diverge, or a wrong result, H for a
    hang, C for a crash, W for wasted work.  `mended_by` are the rules of a conversion that fix it, if any
    do.  `in_result` says what it means for the result of a conversion; remarks of the rules `said_by` may
    have said it already.
    """

    kind: str = "D"
    mended_by: tuple[str, ...] = ()
    in_result: InResult = InResult.REFUSED
    said_by: tuple[str, ...] = ()

    @property
    def is_serious(self) -> bool:
        """Return whether more than work is lost by it."""
        return self.kind != "W"
