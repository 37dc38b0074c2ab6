"""Run derivatives next to their functions: central differences, structures, arguments."""

from __future__ import annotations

import ast
import copy
import math
import random
import re
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from trainshift.derivatives import Derived, Refused, derive

# The differences of larger values are not exact.
LARGE = 1e4
ASKED = (
    "are one array, which is changed",
    "are one, which is changed",
    "where it is added or repeated",
    "where it is added to",
)
FOLDER = Path(__file__).parents[2] / "fixtures" / "derivatives"


def made(text: str, name: str, mode: Any, wrt: list[str]) -> Derived:
    """The derivative, which must not be refused."""
    found = _derived(text, name, mode, tuple(wrt))
    assert isinstance(found, Derived), found
    return found


@lru_cache(16)
def _derived(text: str, name: str, mode: Any, wrt: tuple[str, ...]) -> Derived | Refused:
    return derive(text, name, mode, wrt)


def alone(text: str, name: str) -> str:
    """The part of a file that a function needs: the functions that it names, and everything that is not a
    function.
    """
    lines, statements = _statements(text)
    functions = {each.name: each for each in statements if isinstance(each, ast.FunctionDef)}
    needed: set[str] = set()
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each in functions and each not in needed:
            needed.add(each)
            waiting += [node.id for node in ast.walk(functions[each]) if isinstance(node, ast.Name)]
    kept = [each for each in statements if not isinstance(each, ast.FunctionDef) or each.name in needed]
    return "\n\n\n".join("\n".join(lines[each.lineno - 1 : each.end_lineno]) for each in kept) + "\n"


@lru_cache(8)
def _statements(text: str) -> tuple[list[str], list[ast.stmt]]:
    return text.splitlines(), ast.parse(text).body


def loaded(text: str) -> Any:
    """A file as a module."""
    module = types.ModuleType("derived_file")
    exec(_compiled(text), module.__dict__)
    return module


@lru_cache(16)
def _compiled(text: str) -> types.CodeType:
    return compile(text, "derived_file", "exec")


def points(text: str) -> dict[str, dict[str, Any]]:
    """The arguments of each function that has some in a comment above it.

    The comment is ``# at: x=0.7, n=5``; further lines of it may follow.
    """
    noted = re.findall(r"^# at: (.*(?:\n# .*)*)\n(?:@.*\n)*def (\w+)", text, re.MULTILINE)
    return {name: point(at) for at, name in noted}


def point(noted: str) -> dict[str, Any]:
    """The arguments that the comment of a function notes."""
    import numpy

    arguments: dict[str, Any] = eval(f"dict({noted.replace('#', '')})", {"np": numpy})
    return arguments


def names_of(text: str) -> list[str]:
    """The functions of a file."""
    return re.findall(r"^def (\w+)\(", text, re.MULTILINE)


def numbers(value: Any) -> list[float]:
    """All numbers in a value, in order."""
    if value is None or isinstance(value, str | bool):
        return []
    if isinstance(value, dict):
        return [each for key in value for each in numbers(value[key])]
    if isinstance(value, list | tuple):
        return [each for part in value for each in numbers(part)]
    if hasattr(value, "numpy"):
        value = value.numpy()
    return [float(each) for each in value.ravel()] if hasattr(value, "shape") else [float(value)]


def moved(value: Any, by: Iterator[float], alone: bool = False) -> Any:
    """The value with each of its numbers moved, or the displacements in its structure."""
    if value is None or isinstance(value, str | bool):
        return None if alone else value
    if isinstance(value, dict):
        return {key: moved(each, by, alone) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([moved(each, by, alone) for each in value])
    if hasattr(value, "numpy"):
        return type(value)(moved(value.numpy(), by, alone))
    if getattr(value, "shape", ()):
        step = value * 0.0
        for place in range(value.size):
            step.ravel()[place] = next(by)
        return step if alone else value + step
    step = next(by)
    return step if alone else value + step


def alike(one: Any, other: Any) -> bool:
    """Return whether an adjoint has the containers and shapes of its argument."""
    if other is None or isinstance(other, str):
        return one is None
    if isinstance(other, dict):
        return (
            isinstance(one, dict) and list(one) == list(other) and all(alike(one[k], other[k]) for k in other)
        )
    if isinstance(other, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(alike, one, other))
    return tuple(getattr(one, "shape", ())) == tuple(getattr(other, "shape", ()))


def close(one: float, other: float, within: float = 1e-6) -> bool:
    """Return whether two numbers are equal as far as differences can tell."""
    return abs(one - other) <= within * (1 + abs(other))


class Trial:
    """A function of a file with a point, a direction and the difference along it."""

    def __init__(self, text: str, name: str, args: dict[str, Any], fixed: tuple[str, ...] = ()) -> None:
        self.text, self.name, self.args = alone(text, name), name, args
        self.wrt = [each for each in args if each not in fixed]
        self.random = random.Random(name)
        self.steps = {each: [self.random.uniform(-1, 1) for _ in numbers(args[each])] for each in self.wrt}
        self.value = getattr(loaded(self.text), name)(**copy.deepcopy(args))

    def along(self) -> dict[str, Any]:
        """The direction, as keywords of a jvp."""
        return {f"{each}_dot": moved(self.args[each], iter(self.steps[each]), True) for each in self.wrt}

    def differences(self, function: Any, step: float = 1e-5, **more: Any) -> list[float]:
        """Central differences of a function's numbers along the direction."""

        def at(scale: float) -> list[float]:
            args = copy.deepcopy(self.args)
            for each in self.wrt:
                args[each] = moved(args[each], iter([scale * step * one for one in self.steps[each]]))
            return numbers(function(**args, **more))

        near = [(a - b) / (2 * step) for a, b in zip(at(1), at(-1), strict=True)]
        far = [(a - b) / (4 * step) for a, b in zip(at(2), at(-2), strict=True)]
        return [(4 * a - b) / 3 for a, b in zip(near, far, strict=True)]

    def forward(self) -> None:
        """Check that the jvp has the value, bit for bit, and the derivative."""
        jvp = getattr(loaded(made(self.text, self.name, "forward", self.wrt).text), f"{self.name}_jvp")
        value, dot = jvp(**copy.deepcopy(self.args), **self.along())
        assert numbers(value) == numbers(self.value)
        wanted = self.differences(getattr(loaded(self.text), self.name))
        assert len(numbers(dot)) == len(wanted)
        assert all(map(close, numbers(dot), wanted)), (numbers(dot), wanted)

    def reverse(self) -> None:
        """Check that the gradient has the value, the structure of the arguments, and the derivative; and
        that arguments are unchanged.
        """
        grad = getattr(loaded(made(self.text, self.name, "reverse", self.wrt).text), f"{self.name}_grad")
        bar = moved(self.value, iter([self.random.uniform(-1, 1) for _ in numbers(self.value)]), True)
        args, after = copy.deepcopy(self.args), copy.deepcopy(self.args)
        getattr(loaded(self.text), self.name)(**after)
        value, bars = grad(**args, value_bar=bar)
        assert repr(args) == repr(after)
        assert numbers(value) == numbers(self.value)
        assert isinstance(bars, tuple)
        assert all(alike(one, self.args[name]) for name, one in zip(self.wrt, bars, strict=True)), bars
        wanted = self.differences(getattr(loaded(self.text), self.name))
        one = sum(a * b for a, b in zip(numbers(bar), wanted, strict=True))
        steps = [step for name in self.wrt for step in self.steps[name]]
        other = sum(a * b for a, b in zip(numbers(bars), steps, strict=True))
        assert close(other, one), (other, one, bars)

    def twice(self) -> None:
        """Check that the forward derivative of the gradient is the product with the Hessian."""
        first = made(self.text, self.name, "reverse", self.wrt)
        bar = moved(self.value, iter([1.0] * len(numbers(self.value))), True)
        second = made(first.text, first.made, "forward", self.wrt)
        jvp = getattr(loaded(second.text), second.made)
        _, (_, bars) = jvp(**copy.deepcopy(self.args), value_bar=bar, **self.along())
        grad = getattr(loaded(first.text), first.made)
        wanted = self.differences(lambda **args: list(grad(**args)[1]), value_bar=bar)
        assert len(numbers(list(bars))) == len(wanted)
        assert all(close(a, b, 1e-5) for a, b in zip(numbers(list(bars)), wanted, strict=True))


def trials(
    files: Iterable[tuple[str, dict[str, Any]]], fixed: tuple[str, ...] = ()
) -> Iterator[tuple[str, Trial, list[float]]]:
    """Texts with a trial at a point where the function is smooth, and the difference along its direction."""
    for text, args in files:
        try:
            trial = Trial(text, "f", args, fixed)
            found = trial.differences(loaded(text).f, 1e-4)
            again = trial.differences(loaded(text).f, 3e-5)
        except (ArithmeticError, LookupError, TypeError, ValueError, NameError):
            continue
        pairs = list(zip(found, again, strict=True))
        small = all(abs(each) < LARGE for each in numbers(trial.value))
        if (
            small
            and numbers(trial.value)
            and all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) for a, b in pairs)
        ):
            yield text, trial, found


def answer(trial: Trial, text: str, mode: Any, slopes: list[float]) -> str:
    """`refused` or `right`, for one mode."""
    made = derive(text, "f", mode, trial.wrt)
    if not isinstance(made, Derived):
        assert not any("mistake of Trainshift" in each.message for each in made.refusals), text
        return "refused"
    args, after = copy.deepcopy(trial.args), copy.deepcopy(trial.args)
    loaded(text).f(**after)
    given = trial.along() if mode == "forward" else {"value_bar": 1.0}
    try:
        value, found = getattr(loaded(made.text), made.made)(**args, **given)
    except AssertionError as asked:
        if str(asked).endswith(ASKED):
            return "refused"
        raise
    assert numbers(value) == numbers(trial.value), text
    assert repr(args) == repr(after), text
    if mode == "reverse":
        assert all(alike(bar, trial.args[name]) for name, bar in zip(trial.wrt, found, strict=True)), text
        steps = [step for name in trial.wrt for step in trial.steps[name]]
        found = sum(a * b for a, b in zip(numbers(list(found)), steps, strict=True))
    assert numbers(found) == pytest.approx(slopes, rel=1e-5, abs=1e-5), text
    return "right"
