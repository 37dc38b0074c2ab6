"""Values: the results of terms, and their display.

A real is a number of Python (`Real`), or a dual number; `UNIT` is itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from trainshift.calculus.layout import LINE, Text, group, nested, set_in_lines, together
from trainshift.calculus.printer import real
from trainshift.calculus.syntax import UNIT, Real, Term
from trainshift.calculus.trampoline import Work, run

Value: TypeAlias = Any


@dataclass(slots=True, eq=False, repr=False)
class Couple:
    """A pair."""

    first: Value
    second: Value


@dataclass(slots=True, eq=False, repr=False)
class Kind:
    """A value of the left or the right kind."""

    is_left: bool
    of: Value


@dataclass(slots=True, eq=False, repr=False)
class Cell:
    """A mutable reference."""

    content: Value


@dataclass(slots=True, eq=False, repr=False)
class Dual:
    """A real with its derivative along the direction that was chosen."""

    primal: Real
    tangent: Real


class Environment:
    """The values of names; it is extended, and never mutated.

    Names are kept in small tables one above the other, so that neither a new name nor a lookup costs much.
    """

    __slots__ = ("_below", "_names")
    _MOST = 12

    def __init__(self, names: dict[str, Value], below: Environment | None = None) -> None:
        self._names, self._below = names, below

    def extended(self, name: str, value: Value) -> Environment:
        """Extend the environment by one name."""
        if len(self._names) < self._MOST:
            return Environment({**self._names, name: value}, self._below)
        return Environment({name: value}, self)

    def get(self, name: str) -> Value:
        """The value of a name; raises KeyError."""
        table: Environment | None = self
        while table is not None:
            if name in table._names:
                return table._names[name]
            table = table._below
        raise KeyError(name)


@dataclass(slots=True, eq=False, repr=False)
class Closure:
    """A function, with the values of its names."""

    name: str
    body: Term
    environment: Environment


@dataclass(slots=True, eq=False, repr=False)
class Continuation:
    """A captured continuation: the frames up to the reset."""

    frames: Any


def show_value(value: Value) -> str:
    """A value in the notation of terms, if it has one; dual numbers as pairs."""
    return set_in_lines(run(_shown(value, set())))


def is_real(value: Value) -> bool:
    """Return whether it is a number, dual or not."""
    return isinstance(value, int | float | Fraction | Dual)


def _shown(value: Value, around: set[int], tight: bool = False) -> Work[Text]:
    """The text of a value inside the references `around` it; `tight` after a word."""
    text: Text
    if value == UNIT:
        return "()"
    if isinstance(value, Dual):
        return f"({real(value.primal)}, {real(value.tangent)})"
    if isinstance(value, int | float | Fraction):
        return real(value)
    if isinstance(value, Couple):
        first: Text = yield _shown(value.first, around)
        second: Text = yield _shown(value.second, around)
        return group("(", nested(first, ",", LINE, second), ")")
    if isinstance(value, Kind):
        if value.of == UNIT:
            return "true" if value.is_left else "false"
        inside: Text = yield _shown(value.of, around, tight=True)
        text = together("inl " if value.is_left else "inr ", inside)
    elif isinstance(value, Cell):
        if id(value) in around:
            return "..."
        content: Text = yield _shown(value.content, around | {id(value)}, tight=True)
        text = together("ref ", content)
    else:
        return "a function"
    return together("(", text, ")") if tight else text
