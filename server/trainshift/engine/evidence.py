"""Evidence: the observations of files behind an answer, and whether they are still the same.

An observation is one question about the files of a project: the content of a file, the entries of a folder,
the importers of a file. An answer is still valid if all of its observations have the same results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

TEXT = "text"
"""The kind of an observation that asks what a file says."""


class Observation(NamedTuple):
    """A question about files: its kind, the path concerned, and perhaps a name."""

    kind: str
    path: str
    name: str = ""


@dataclass(eq=False)
class Noted:
    """The observations of files during a period; `once` holds the answers that were known before."""

    paths: set[str] = field(default_factory=set)
    """The files that were read, or were searched for and do not exist."""
    others: set[Observation] = field(default_factory=set)
    once: dict[Hashable, Noted] = field(default_factory=dict)

    def add(self, other: Noted) -> None:
        """Add all observations of another record."""
        self.paths |= other.paths
        self.others |= other.others
        self.once |= other.once

    @property
    def observations(self) -> Iterable[Observation]:
        """All observations of its own, in an order that does not depend on the run."""
        return [*(Observation(TEXT, path) for path in sorted(self.paths)), *sorted(self.others)]


def digest(text: str) -> str:
    """A short digest of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def digest_of_names(names: Iterable[str]) -> str:
    """A digest of names in order; names contain no null byte."""
    return digest("\0".join(names))
