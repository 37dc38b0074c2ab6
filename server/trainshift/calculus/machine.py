"""Terms are evaluated by value, and their operands from left to right.

`@ f x` evaluates f, then x, then the body of the function. A call that is the last thing to do keeps nothing
behind it, so that a loop, written as a function that calls itself last, runs in constant space.

`shift k in e` takes what is left to do up to the nearest ⟨ ⟩, or up to the end, and gives it to e as the
function k, which may be called any number of times.

## What is counted

A step evaluates one construct, or goes on with a value that one has given. Arithmetic operations are `+` and
`*`. The stack holds one frame for each construct that waits for a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from trainshift.calculus.syntax import (
    UNIT,
    Add,
    App,
    Assign,
    Case,
    Const,
    Deref,
    Fst,
    Inl,
    Inr,
    Lam,
    Let,
    Mul,
    Pair,
    Real,
    Ref,
    Reset,
    Shift,
    Snd,
    Term,
    Var,
)
from trainshift.calculus.values import (
    Cell,
    Closure,
    Continuation,
    Couple,
    Environment,
    Kind,
    Value,
    is_real,
    show_value,
)

MOST_FRAMES = 1_000_000


class Stuck(Exception):
    """A term without a value: the reason, and the part of it that no rule applies to."""

    def __init__(self, reason: str, term: Term) -> None:
        super().__init__(reason)
        self.reason, self.term = reason, term


class Arithmetic(Protocol):
    """The arithmetic of reals: their representation, addition and multiplication."""

    def constant(self, value: Real) -> Value:
        """The number of a constant."""

    def add(self, left: Value, right: Value) -> Value:
        """The sum."""

    def multiply(self, left: Value, right: Value) -> Value:
        """The product."""


class Reals:
    """Numbers as they are."""

    def constant(self, value: Real) -> Value:
        """The number itself."""
        return value

    def add(self, left: Value, right: Value) -> Value:
        """The sum."""
        return left + right

    def multiply(self, left: Value, right: Value) -> Value:
        """The product."""
        return left * right


@dataclass(frozen=True)
class Run:
    """A value, and its cost: steps, arithmetic operations, and the most frames on the stack."""

    value: Value
    steps: int
    arithmetic: int
    frames: int


def evaluate(
    term: Term, arithmetic: Arithmetic | None = None, given: Mapping[str, Value] = MappingProxyType({})
) -> Run:
    """The value of a term, with `given` values for free names; raises Stuck."""
    machine = _Machine(arithmetic or Reals(), Environment(dict(given)))
    value = machine.evaluate(term)
    return Run(value, machine.steps, machine.arithmetic, machine.most)


class _Frame:
    """A frame of the stack: `go_on` continues a construct with a value and with the values it `held`."""

    __slots__ = ("below", "depth", "environment", "go_on", "held", "term")

    def __init__(
        self,
        go_on: Callable[[_Machine, _Frame, Value], None],
        term: Any,
        environment: Environment,
        held: Value,
        below: _Frame | None,
        depth: int,
    ) -> None:
        self.go_on, self.term, self.environment, self.held = go_on, term, environment, held
        self.below, self.depth = below, depth


_NOTHING: Any = object()


class _Machine:
    """The state: a term to evaluate in an environment, or a value for the topmost frame.

    `frames` are those up to the nearest reset; `resets` holds those below, for each reset.
    """

    def __init__(self, numbers: Arithmetic, environment: Environment) -> None:
        self.numbers = numbers
        self.steps = self.arithmetic = self.most = 0
        self.term: Term | None = None
        self.environment = environment
        self.value: Value = None
        self.frames: _Frame | None = None
        self.resets: list[tuple[_Frame, int]] = []
        self.below = 0

    def evaluate(self, term: Term) -> Value:
        self.term = term
        while True:
            self.steps += 1
            if self.term is not None:
                _ENTER[self.term.__class__](self, self.term)
            elif self.frames is not None:
                frame = self.frames
                self.frames = frame.below
                frame.go_on(self, frame, self.value)
            elif self.resets:
                self.frames, self.below = self.resets.pop()
            else:
                return self.value

    def give(self, value: Value) -> None:
        """Pass a value to the topmost frame."""
        self.term, self.value = None, value

    def wait(self, go_on: Callable[[_Machine, _Frame, Value], None], term: Term, held: Value = None) -> None:
        """Wait for the value of the construct's part, and then continue the construct."""
        frames = self.frames
        depth = frames.depth + 1 if frames is not None else 1
        self.frames = _Frame(go_on, term, self.environment, held, frames, depth)
        if self.below + depth > self.most:
            self.most = self.below + depth
            if self.most > MOST_FRAMES:
                raise Stuck("the stack is full, and nothing shows that it ends", term)

    def delimit(self) -> None:
        """Let shifts reach no further than here."""
        if self.frames is not None:
            self.resets.append((self.frames, self.below))
            self.below += self.frames.depth
            self.frames = None

    def apply(self, function: Value, argument: Value, call: Term) -> None:
        """Call a function, as a tail call."""
        if function.__class__ is Closure:
            self.environment = function.environment.extended(function.name, argument)
            self.term = function.body
        elif function.__class__ is Continuation:
            self.delimit()
            self.frames = function.frames
            self.give(argument)
        else:
            raise Stuck(f"{_short(function)} is not a function", call)


def _short(value: Value) -> str:
    text = " ".join(show_value(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _constant(machine: _Machine, term: Const) -> None:
    value = term.value
    machine.give(machine.numbers.constant(value) if value.__class__ is not tuple else UNIT)  # type: ignore[arg-type]


def _variable(machine: _Machine, term: Var) -> None:
    try:
        machine.give(machine.environment.get(term.name))
    except KeyError:
        raise Stuck(f"{term.name} has no value", term) from None


def _function(machine: _Machine, term: Lam) -> None:
    machine.give(Closure(term.name, term.body, machine.environment))


def _left(machine: _Machine, term: Any) -> None:
    machine.wait(_right, term)
    machine.term = term.left


def _right(machine: _Machine, frame: _Frame, value: Value) -> None:
    machine.environment = frame.environment
    machine.wait(_both, frame.term, value)
    machine.term = frame.term.right


def _both(machine: _Machine, frame: _Frame, value: Value) -> None:
    term, held = frame.term, frame.held
    kind = term.__class__
    if kind is App:
        machine.apply(held, value, term)
    elif kind is Pair:
        machine.give(Couple(held, value))
    elif kind is Assign:
        if held.__class__ is not Cell:
            raise Stuck(f"{_short(held)} is not a reference", term)
        held.content = value
        machine.give(UNIT)
    else:
        for each in (held, value):
            if not is_real(each):
                raise Stuck(f"{_short(each)} is not a number", term)
        machine.arithmetic += 1
        numbers = machine.numbers
        try:
            machine.give(numbers.add(held, value) if kind is Add else numbers.multiply(held, value))
        except OverflowError:
            raise Stuck("a number is too large for a floating-point number", term) from None


def _one(machine: _Machine, term: Any) -> None:
    machine.wait(_done, term)
    machine.term = term.of


def _done(machine: _Machine, frame: _Frame, value: Value) -> None:
    term = frame.term
    kind = term.__class__
    if kind is Fst or kind is Snd:
        if value.__class__ is not Couple:
            raise Stuck(f"{_short(value)} is not a pair", term)
        machine.give(value.first if kind is Fst else value.second)
    elif kind is Deref:
        if value.__class__ is not Cell:
            raise Stuck(f"{_short(value)} is not a reference", term)
        machine.give(value.content)
    elif kind is Ref:
        machine.give(Cell(value))
    else:
        machine.give(Kind(kind is Inl, value))


def _let(machine: _Machine, term: Let) -> None:
    machine.wait(_bound, term)
    machine.term = term.value


def _bound(machine: _Machine, frame: _Frame, value: Value) -> None:
    machine.environment = frame.environment.extended(frame.term.name, value)
    machine.term = frame.term.body


def _case(machine: _Machine, term: Case) -> None:
    machine.wait(_chosen, term)
    machine.term = term.of


def _chosen(machine: _Machine, frame: _Frame, value: Value) -> None:
    term = frame.term
    if value.__class__ is not Kind:
        raise Stuck(f"{_short(value)} is neither inl nor inr", term)
    name, branch = (term.left_name, term.left) if value.is_left else (term.right_name, term.right)
    machine.environment = frame.environment.extended(name, value.of)
    machine.term = branch


def _shift(machine: _Machine, term: Shift) -> None:
    machine.environment = machine.environment.extended(term.name, Continuation(machine.frames))
    machine.frames = None
    machine.term = term.body


def _reset(machine: _Machine, term: Reset) -> None:
    machine.delimit()
    machine.term = term.of


_ENTER: dict[type, Any] = {
    Const: _constant,
    Var: _variable,
    Lam: _function,
    Let: _let,
    Case: _case,
    Shift: _shift,
    Reset: _reset,
    **dict.fromkeys((Add, Mul, App, Pair, Assign), _left),
    **dict.fromkeys((Fst, Snd, Ref, Deref, Inl, Inr), _one),
}
