"""Evidence: the observations of files behind an answer, and whether they are still the same.

An observation is one question about the files of a project: the content of a file, the entries of a folder,
the importers of a file. An answer is still valid if all of its observations have the same results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from typing import NamedTuple

from msgspec import Struct, field

from trainshift.python.flow.traversal import reachable

TEXT = "text"
"""The kind of an observation that asks what a file says."""
OF_NAMES = frozenset({"folder", "has notebooks", "searches all"})
"""The kinds of observations that no text changes: they ask for the names of files."""


class Observation(NamedTuple):
    """A question about files: its kind, the path concerned, and perhaps a name."""

    kind: str
    path: str
    name: str = ""


class Noted(Struct, eq=False):
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

    def flat(self) -> Noted:
        """The same observations, with those of all known answers among its own."""
        found = Noted()
        for each in reachable([self], lambda noted: noted.once.values()):
            found.paths |= each.paths
            found.others |= each.others
        return found

    def depends_on(self, path: str, known: dict[int, bool]) -> bool:
        """Return whether the text of the file at `path` may have been observed; `known` keeps the answers.

        Which files import which others depends on the texts of all.
        """
        if id(self) not in known:
            known[id(self)] = (
                path in self.paths
                or any(each.kind not in OF_NAMES for each in self.others)
                or any(each.depends_on(path, known) for each in self.once.values())
            )
        return known[id(self)]

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
