"""2,000 random functions of the scalar subset, in both modes, against dual numbers."""

from __future__ import annotations

import copy
import math
import random
import types
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import pytest

from support.derived import alike, loaded, made, moved, numbers
from support.random_functions import Author

# The quick loop runs one item in ten.
ITEMS, EACH = 20, 100
WITHIN = 1e-10
# A comparison of numbers that are closer may have a different result; larger numbers are not accurate to
# `WITHIN`.
NEAR, LARGE = 1e-6, 1e3


class Unfit(Exception):
    """The point is near a kink of the function, or its derivative is too large to be compared."""


@dataclass(frozen=True, slots=True, eq=False)
class Dual:
    """A number with its derivatives by all inputs of the differentiation."""

    value: float
    dots: tuple[float, ...]

    def __post_init__(self) -> None:
        if not all(abs(each) < LARGE for each in (self.value, *self.dots)):
            raise Unfit

    def chained(self, value: float, slope: float) -> Dual:
        return Dual(value, tuple(slope * each for each in self.dots))

    def joined(self, value: float, slope: float, other: Any, its: float) -> Dual:
        if not isinstance(other, Dual):
            return self.chained(value, slope)
        both = zip(self.dots, other.dots, strict=True)
        return Dual(value, tuple(slope * a + its * b for a, b in both))

    def __add__(self, other: Any) -> Dual:
        return self.joined(self.value + plain(other), 1.0, other, 1.0)

    def __radd__(self, other: float) -> Dual:
        return self.chained(other + self.value, 1.0)

    def __sub__(self, other: Any) -> Dual:
        return self.joined(self.value - plain(other), 1.0, other, -1.0)

    def __rsub__(self, other: float) -> Dual:
        return self.chained(other - self.value, -1.0)

    def __mul__(self, other: Any) -> Dual:
        return self.joined(self.value * plain(other), plain(other), other, self.value)

    def __rmul__(self, other: float) -> Dual:
        return self.chained(other * self.value, other)

    def __truediv__(self, other: Any) -> Dual:
        a, b = self.value, plain(other)
        return self.joined(a / b, 1 / b, other, -a / (b * b))

    def __rtruediv__(self, other: float) -> Dual:
        return self.chained(other / self.value, -other / self.value**2)

    def __pow__(self, power: float) -> Dual:
        return self.chained(self.value**power, power * self.value ** (power - 1))

    def __rpow__(self, base: float) -> Dual:
        value = base**self.value
        return self.chained(value, value * math.log(base))

    def __mod__(self, other: float) -> Dual:
        if min(self.value % other, -self.value % other) < NEAR:
            raise Unfit
        return self.chained(self.value % other, 1.0)

    def __neg__(self) -> Dual:
        return self.chained(-self.value, -1.0)

    def __abs__(self) -> Dual:
        return -self if self < 0 else self

    def __lt__(self, other: Any) -> bool:
        if abs(self.value - plain(other)) < NEAR:
            raise Unfit
        return bool(self.value < plain(other))

    def __gt__(self, other: Any) -> bool:
        return not self < other


def plain(value: Any) -> Any:
    return value.value if isinstance(value, Dual) else value


def lifted(function: Callable[[float], float], slope: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of numbers that also accepts dual numbers."""
    return lambda x: x.chained(function(x.value), slope(x.value)) if isinstance(x, Dual) else function(x)


def atan2(a: Any, b: float) -> Any:
    return lifted(lambda x: math.atan2(x, b), lambda x: b / (x * x + b * b))(a)


def hypot(a: Any, b: float) -> Any:
    return lifted(lambda x: math.hypot(x, b), lambda x: x / math.hypot(x, b))(a)


DUAL_MATH = types.SimpleNamespace(
    sin=lifted(math.sin, math.cos),
    cos=lifted(math.cos, lambda x: -math.sin(x)),
    tanh=lifted(math.tanh, lambda x: 1 - math.tanh(x) ** 2),
    atan=lifted(math.atan, lambda x: 1 / (1 + x * x)),
    erf=lifted(math.erf, lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x)),
    exp=lifted(math.exp, math.exp),
    sqrt=lifted(math.sqrt, lambda x: 0.5 / math.sqrt(x)),
    log=lifted(math.log, lambda x: 1 / x),
    log1p=lifted(math.log1p, lambda x: 1 / (1 + x)),
    atan2=atan2,
    hypot=hypot,
)


def dual(text: str, args: dict[str, Any]) -> tuple[list[float], list[list[float]]]:
    """The numbers of the value, and the derivative of each by all active numbers in the arguments."""
    module = loaded(text)
    module.math = DUAL_MATH
    module.float = lambda x: x if isinstance(x, Dual) else float(x)
    size, place = 2 + len(args["zs"]), count()

    def unit(value: float) -> Dual:
        here = next(place)
        return Dual(value, tuple(float(each == here) for each in range(size)))

    found = module.f(unit(args["x"]), unit(args["y"]), [unit(each) for each in args["zs"]], args["n"])
    flat = list(found) if isinstance(found, list | tuple) else [found]
    zeros = [0.0] * size
    return [plain(each) for each in flat], [list(getattr(each, "dots", zeros)) for each in flat]


def functions(item: int) -> Any:
    """The functions of an item, with arguments at smooth points, the value and its derivatives."""
    for seed in count(item * 100_000):
        draw = random.Random(seed).uniform
        text = Author(seed).text()
        args = {"x": draw(0.2, 1.5), "y": draw(-1.5, 1.5), "zs": [draw(-1, 1.5) for _ in range(3)], "n": 3}
        try:
            value, slopes = dual(text, args)
        except Unfit:
            continue
        yield seed, text, args, value, slopes


def close(one: float, other: float, scale: float) -> bool:
    return abs(one - other) <= WITHIN * (1 + scale)


@pytest.mark.slow
@pytest.mark.in_turns(2)
@pytest.mark.parametrize("item", range(ITEMS))
def test_random_functions_against_dual_numbers(item: int) -> None:
    wrt = ["x", "y", "zs"]
    for seed, text, args, value, slopes in islice(functions(item), EACH):
        draw = random.Random(-seed).uniform
        dots = [draw(-1, 1) for _ in slopes[0]]
        bars = [draw(-1, 1) for _ in slopes]
        original = loaded(text).f(**copy.deepcopy(args))
        assert numbers(original) == value, text
        jvp = loaded(made(text, "f", "forward", wrt).text).f_jvp
        along = {"x_dot": dots[0], "y_dot": dots[1], "zs_dot": dots[2:]}
        again, dot = jvp(**copy.deepcopy(args), **along)
        assert numbers(again) == value, text
        wanted = [sum(a * b for a, b in zip(row, dots, strict=True)) for row in slopes]
        sizes = [sum(abs(a * b) for a, b in zip(row, dots, strict=True)) for row in slopes]
        assert len(numbers(dot)) == len(wanted)
        assert all(map(close, numbers(dot), wanted, sizes)), (seed, text, numbers(dot), wanted)
        grad = loaded(made(text, "f", "reverse", wrt).text).f_grad
        given = copy.deepcopy(args)
        again, found = grad(**given, value_bar=moved(original, iter(bars), True))
        assert given == args
        assert numbers(again) == value, text
        assert all(alike(one, args[name]) for name, one in zip(wrt, found, strict=True)), text
        wanted = [
            sum(a * b for a, b in zip(bars, column, strict=True)) for column in zip(*slopes, strict=True)
        ]
        sizes = [sum(map(abs, column)) for column in zip(*slopes, strict=True)]
        assert all(map(close, numbers(list(found)), wanted, sizes)), (seed, text, found, wanted)
        one = sum(a * b for a, b in zip(bars, numbers(dot), strict=True))
        other = sum(a * b for a, b in zip(numbers(list(found)), dots, strict=True))
        assert close(one, other, sum(map(sum, [[abs(each) for each in row] for row in slopes]))), text
