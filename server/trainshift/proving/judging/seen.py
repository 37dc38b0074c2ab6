"""Observations of a proof run, and the claims derived from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainshift.proving.judging.timeline import Reduction
from trainshift.proving.observed.record import Record, Run


@dataclass(frozen=True)
class Claim:
    """A claim: its verdict, the evidence, the remedy, the code to read, places (FILE:LINE, text, rank)."""

    id: str
    title: str
    verdict: str
    says: str
    do: str = ""
    code: str = ""
    places: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True)
class Seen:
    """All observations: the original, the ranks with different seeds, and with the script's own.

    `arrays` are the samples of each rank's values, `reductions` those of Horovod; `stuck` is the reason why
    the ranks had to be ended; `limit` is the number of steps to take; `gpus` is the number of GPUs; `hosts`
    are the hosts of the ranks, empty if all are here; `alone` are the ranks that ended by themselves;
    `samples` are those of the original's values. `untold` are the numbers of the steps by hand whose use of
    gradients is unknown.
    """

    original: Run
    ranks: Sequence[Run]
    data: Sequence[Run] = ()
    arrays: Sequence[Any] = ()
    reductions: Sequence[Reduction] = ()
    stuck: str = ""
    limit: int = 0
    gpus: int = 0
    is_converted: bool = True
    hosts: Sequence[str] = ()
    alone: Sequence[int] = ()
    samples: Any = field(default_factory=dict)
    untold: frozenset[int] = frozenset()

    @property
    def records(self) -> list[Record]:
        """The records of the ranks, if they have some."""
        return [run.record for run in self.ranks if run.record]

    @property
    def before(self) -> Record:
        """The record of the original; an empty one if it did not end well."""
        return self.original.record or Record()

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.ranks)

    @property
    def steps(self) -> int:
        """The number of steps that every rank has taken, for the optimizer with the most."""
        if len(self.records) < self.size:
            return 0
        steps = (max((each.steps for each in record.optimizers), default=0) for record in self.records)
        return min(steps, default=0)

    @property
    def is_cut(self) -> bool:
        """Return whether the training was ended before its end."""
        return any(record.stopped for record in [self.before, *self.records])

    @property
    def is_left(self) -> bool:
        """Return whether the code after the observed steps did not run to its end on all ranks."""
        return any(record.stopped and not record.finished for record in self.records)


@dataclass
class Found:
    """The findings for one claim."""

    fails: list[str] = field(default_factory=list)
    says: str = ""
    unseen: str = ""
    do: str = ""
    code: str = ""
    places: list[tuple[str, str, int]] = field(default_factory=list)


def sentences(faults: Iterable[str]) -> list[str]:
    """Faults without their ids, as sentences."""
    texts = (fault.partition(": ")[2] for fault in faults)
    return [f"{text[:1].upper()}{text[1:].rstrip('.')}." for text in texts]


def counted(count: int, what: str) -> str:
    """A number with its noun, in words."""
    return f"{count or 'no'} {what}{'s' * (count != 1)}"
