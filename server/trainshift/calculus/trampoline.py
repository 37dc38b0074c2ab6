"""Recursion that is as deep as memory, and not as Python's stack; with shift and reset.

A piece of work is a generator.  It yields the work whose result it needs, and returns its own result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Work: TypeAlias = Generator[Any, Any, T]
Resume: TypeAlias = Callable[[Any], Work[Any]]


def run(work: Work[T]) -> T:
    """The result of a piece of work; raises its exceptions."""
    stack: list[Any] = [_RESET, work]
    value: Any = None
    while stack:
        top = stack[-1]
        if top is _RESET:
            stack.pop()
            continue
        try:
            asked = top.send(value)
        except StopIteration as end:
            stack.pop()
            value = end.value
            continue
        value = None
        if asked.__class__ is not _Control:
            stack.append(asked)
        else:
            value = asked.change(stack)
    result: T = value
    return result


def done(value: T) -> Work[T]:
    """Work that only returns its result."""
    return value
    yield


def reset(work: Work[T]) -> Work[T]:
    """Run work whose shifts capture no further than this call."""

    def change(stack: list[Any]) -> None:
        stack += (_RESET, work)

    result: T = yield _Control(change)
    return result


def shift(body: Callable[[Resume], Work[T]]) -> Work[T]:
    """Capture the continuation up to the nearest reset, and pass it to `body` as a function.

    The result of `body` takes the place of that.  The function may be called once: `yield resume(value)`
    gives the result of what follows for `value`.
    """

    def change(stack: list[Any]) -> None:
        start = len(stack)
        while stack[start - 1] is not _RESET:
            start -= 1
        follows = stack[start:]
        del stack[start:]
        stack.append(body(lambda value: _resumed(follows, value)))

    result: T = yield _Control(change)
    return result


def _resumed(follows: list[Any], value: Any) -> Work[Any]:
    def change(stack: list[Any]) -> Any:
        stack.append(_RESET)
        stack += follows
        return value

    return (yield _Control(change))


_RESET: Any = object()


class _Control:
    """A change of the stack of work; returns the value with which the topmost work continues."""

    __slots__ = ("change",)

    def __init__(self, change: Callable[[list[Any]], Any]) -> None:
        self.change = change
