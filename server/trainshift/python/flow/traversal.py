"""The traversal of graphs that are defined by a successor function."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)
K = TypeVar("K", bound=Hashable)


def reachable(
    starts: Iterable[T],
    successors: Callable[[T], Iterable[T]],
    key: Callable[[T], K] | None = None,
    seen: set[K] | None = None,
) -> Iterator[T]:
    """Yield `starts` and all their direct and indirect successors, depth first, each once.

    Nodes with equal keys are one node; nodes with a key in `seen` are skipped, and new keys are added to it.
    Successors are computed lazily, so that a caller may stop early.
    """
    waiting = list(starts)
    seen = set[K]() if seen is None else seen
    while waiting:
        node = waiting.pop()
        known: Any = node if key is None else key(node)
        if known not in seen:
            seen.add(known)
            yield node
            waiting += successors(node)


def postorder(start: H, successors: Callable[[H], Iterable[H]]) -> list[H]:
    """Return a node and all its direct and indirect successors, each after its own successors, except along
    back edges.
    """
    found: list[H] = []
    seen = {start}
    stack = [(start, iter(successors(start)))]
    while stack:
        node, following = stack[-1]
        for then in following:
            if then not in seen:
                seen.add(then)
                stack.append((then, iter(successors(then))))
                break
        else:
            found.append(node)
            stack.pop()
    return found


def closure(starts: Iterable[H], following: Mapping[H, Iterable[H]]) -> set[H]:
    """`starts`, and everything that a mapping reaches from them, directly or indirectly."""
    return set(reachable(starts, lambda node: following.get(node, ())))


def least_fixed_point(start: frozenset[H], more: Callable[[frozenset[H]], Iterable[H]]) -> frozenset[H]:
    """Return the smallest set that contains `start` and the result of `more` for itself."""
    while True:
        grown = start.union(more(start))
        if grown == start:
            return start
        start = grown
