"""The backward slice of an expression: everything that may give it its value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Protocol

from trainshift.python.flow.traversal import reachable
from trainshift.python.names.occurrence import Occurrence, Step


class Provenance(Protocol):
    """Names that tell where a value comes from, one step back."""

    def steps_back(self, at: Occurrence) -> Step | None:
        """The occurrences that may give an expression its value; None where it is made right there."""


def backward_slice(
    names: Provenance, start: Occurrence, stop: Callable[[Occurrence], bool] = lambda at: False
) -> Iterator[Occurrence]:
    """Yield an expression, then all that may give it its value through names, attributes, calls and files.

    Nothing is looked for behind an occurrence at which `stop` holds; it is still part of the slice.
    """
    return sliced(start, lambda at: () if stop(at) else sources(names, at))


def sliced(start: Occurrence, behind: Callable[[Occurrence], Iterable[Occurrence]]) -> Iterator[Occurrence]:
    """Yield an occurrence and all that leads to it, each expression once; `behind` gives one step back."""
    return reachable([start], behind, _key)


def sources(names: Provenance, at: Occurrence) -> tuple[Occurrence, ...]:
    """The occurrences that may give an expression its value, as far as they are seen."""
    step = names.steps_back(at)
    return step.sources if step is not None else ()


def _key(at: Occurrence) -> Hashable:
    return id(at.node)
