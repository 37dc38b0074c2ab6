"""The backward slice of an expression: all possible sources of its value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Protocol

from trainshift.python.flow.traversal import reachable
from trainshift.python.names.occurrence import Occurrence, Step


class Provenance(Protocol):
    """Names with `steps_back`: the sources of a value, one step back."""

    def steps_back(self, at: Occurrence) -> Step | None:
        """The possible sources of an expression's value; None if it is created in place."""


def backward_slice(
    names: Provenance, start: Occurrence, stop: Callable[[Occurrence], bool] = lambda at: False
) -> Iterator[Occurrence]:
    """Yield an expression, then all possible sources of its value through names, attributes, calls and files.

    The sources of an occurrence for which `stop` holds are not followed; it is still part of the slice.
    """
    return sliced(start, lambda at: () if stop(at) else sources(names, at))


def sliced(start: Occurrence, behind: Callable[[Occurrence], Iterable[Occurrence]]) -> Iterator[Occurrence]:
    """Yield an occurrence and everything that leads to it, each expression once; `behind` returns one step
    back.
    """
    return reachable([start], behind, _key)


def sources(names: Provenance, at: Occurrence) -> tuple[Occurrence, ...]:
    """The possible sources of an expression's value, as far as they are known."""
    step = names.steps_back(at)
    return step.sources if step is not None else ()


def _key(at: Occurrence) -> Hashable:
    return id(at.node)
