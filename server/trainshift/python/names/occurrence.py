"""An expression at its place, and one step back to the possible sources of its value."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement


class Occurrence(NamedTuple):
    """An expression at the place where it is read, which decides its value.

    `site` is the call that receives it, if it was reached as an argument.  With `tested`, its own truth
    decides whether it is used: ``lr or 0.1``.
    """

    node: ast.expr
    scope: Scope
    statement: Statement | None
    site: Site | None = None
    tested: bool = False

    def part(self, node: ast.expr) -> Occurrence:
        """Another expression, read at the same place."""
        return Occurrence(node, self.scope, self.statement)


Keyed: TypeAlias = tuple[tuple[int, int], Occurrence]
"""An occurrence, behind what it is known by while its script lives."""


def of_call(site: Site) -> Occurrence:
    """The occurrence of a call at its place."""
    return Occurrence(site.node, site.scope, site.statement)


class Step(NamedTuple):
    """One step back: the possible sources of a value, and whether there may be unknown ones.

    `within` are the known occurrences from which an unknown value is taken.
    """

    sources: tuple[Occurrence, ...] = ()
    unseen: bool = False
    within: tuple[Occurrence, ...] = ()


UNSEEN = Step(unseen=True)


def unseen_in(at: Occurrence) -> Step:
    """An unknown value that is taken from an occurrence."""
    return Step((), True, (at,))


def joined(steps: Iterable[Step]) -> Step:
    """Join the steps of several alternative paths."""
    every = list(steps)
    if len(every) == 1:
        return every[0]
    sources: dict[Occurrence, None] = {}
    within: dict[Occurrence, None] = {}
    unseen = False
    for step in every:
        sources.update(dict.fromkeys(step.sources))
        within.update(dict.fromkeys(step.within))
        unseen = unseen or step.unseen
    return Step(tuple(sources), unseen, tuple(within))
