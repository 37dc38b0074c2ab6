"""The one traversal of graphs that are given by their successors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)


def reachable(
    starts: Iterable[T],
    successors: Callable[[T], Iterable[T]],
    key: Callable[[T], Hashable] | None = None,
) -> Iterator[T]:
    """Yield `starts` and all that follow from them, depth first, each once.

    Nodes with equal keys are one node.  Successors are asked for when the next node is wanted, so
    that a caller may stop early.
    """
    waiting = list(starts)
    seen: set[Hashable] = set()
    while waiting:
        node = waiting.pop()
        known = node if key is None else key(node)
        if known not in seen:
            seen.add(known)
            yield node
            waiting += successors(node)


def closure(starts: Iterable[H], following: Mapping[H, Iterable[H]]) -> set[H]:
    """`starts`, and all that follow from them by a mapping, directly or not."""
    return set(reachable(starts, lambda node: following.get(node, ())))
