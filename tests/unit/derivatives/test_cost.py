"""The cost of derivatives: the length of their text, arithmetic operations and steps."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest

from support.derived import FOLDER, loaded, made, numbers
from trainshift.derivatives.reading.kinds import Kind
from trainshift.derivatives.reading.reader import Reader

SEQUENTIAL = "    if x > {0}:\n        x = x * y + {0}\n"
EARLY = "    if x > {0}:\n        if y > {0}:\n            return x * y + {0}\n        x = x * y\n"
CALLED = "    x = g(x, y + {0})\n"
READING = """\
def g(xs, i):
    return xs[i] * xs[i]


def f(xs):
    total = 0.0
    for i in range(len(xs)):
        total += g(xs, i)
    return total
"""


def _repeated(part: str, times: int) -> str:
    body = "".join(part.format(each) for each in range(times))
    return f"def g(x, y):\n    return x * y\n\n\ndef f(x, y):\n{body}    return x\n"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("part", [SEQUENTIAL, EARLY, CALLED])
def test_the_text_grows_with_the_function_and_no_faster(part: str, mode: str) -> None:
    texts = [made(_repeated(part, n), "f", mode, ["x", "y"]).text for n in (5, 10, 20, 40, 80)]
    steps = [b - a for a, b in pairwise(text.count("\n") for text in texts)]
    assert all(b <= 2.1 * a for a, b in pairwise(steps)), steps
    assert loaded(texts[-1])


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_each_of_many_lines_may_read_what_the_one_before_it_gave(mode: str) -> None:
    lines = "".join(f"    a{n + 1} = a{n} * x + {n}\n" for n in range(300))
    text = f"def f(x):\n    a0 = x\n{lines}    return a300\n"
    given = {"x_dot": 1.0} if mode == "forward" else {}
    derivative = made(text, "f", mode, ["x"])
    _, slope = getattr(loaded(derivative.text), derivative.made)(0.5, **given)
    assert numbers(slope) == pytest.approx(
        [sum((299 - n) * n * 0.5 ** (298 - n) for n in range(299)) + 301 * 0.5**300]
    )


@pytest.mark.parametrize("operator", ["+", "-", "*", "/"])
def test_a_long_expression_is_read_once(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, kind = 0, Reader.kind

    def counting(reader: Reader, node: ast.expr) -> Kind:
        nonlocal asked
        asked += 1
        return kind(reader, node)

    monkeypatch.setattr(Reader, "kind", counting)
    sizes = []
    for n in (4, 8):
        asked = 0
        made(f"def f(x, y):\n    return {f' {operator} '.join(['x', 'y'] * n)}\n", "f", "reverse", ["x"])
        sizes.append(asked)
    assert sizes[1] <= 4.5 * sizes[0], sizes


class Counting:
    """A number that counts the operations done with it."""

    done = 0

    def __init__(self, value: float) -> None:
        self.value = value

    def with_other(self, other: Any, work: Callable[[float, float], float]) -> Counting:
        Counting.done += 1
        return Counting(work(self.value, other.value if isinstance(other, Counting) else other))

    def __add__(self, other: Any) -> Counting:
        return self.with_other(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Counting:
        return self.with_other(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Counting:
        return self.with_other(other, lambda a, b: a * b)

    def __truediv__(self, other: Any) -> Counting:
        return self.with_other(other, lambda a, b: a / b)

    def __rsub__(self, other: float) -> Counting:
        return self.with_other(other, lambda a, b: b - a)

    def __rtruediv__(self, other: float) -> Counting:
        return self.with_other(other, lambda a, b: b / a)

    def __neg__(self) -> Counting:
        return Counting(-self.value)

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > (other.value if isinstance(other, Counting) else other))

    __radd__, __rmul__ = __add__, __mul__


def _operations(function: Callable[..., object], args: dict[str, Any]) -> int:
    Counting.done = 0
    function(**args)
    return Counting.done


def _lifted(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_lifted, value))
    return Counting(value) if isinstance(value, float) else value


COUNTED: dict[str, tuple[str, dict[str, Any]]] = {
    "horner": ("numbers", {"coeffs": [1.0, 2.0, 3.0, 0.5], "x": 0.5}),
    "rk4": ("numbers", {"x": 1.0, "v": 0.2, "k": 2.0, "dt": 0.1, "n": 5}),
    "kalman": ("numbers", {"zs": [1.0, 0.9, 1.2], "q": 0.1, "r": 0.5}),
    "eliminate": ("numbers", {"a": [[4.0, 1.0], [1.0, 3.0]], "b": [1.0, 2.0]}),
    "fib_like": ("numbers", {"a": 0.5, "b": 0.8, "n": 6}),
    "inner_loops": ("numbers", {"x": 0.9, "n": 4}),
    "gd": ("more", {"x0": 0.3, "y0": 0.4, "lr": 0.1, "steps": 5}),
    "lorenz": (
        "more",
        {"state": (1.0, 2.0, 3.0), "sigma": 10.0, "rho": 28.0, "beta": 2.0, "dt": 0.01, "n": 4},
    ),
    "matmul": ("more", {"a": [[1.0, 2.0], [3.0, 4.0]], "b": [[0.5, 0.6], [0.2, 0.3]]}),
    "thomas": ("changed", {"x": 0.7, "y": 0.3, "zs": [0.4, 1.1, 0.6], "n": 3}),
}


@pytest.mark.parametrize("name", COUNTED)
def test_operations(name: str) -> None:
    file, values = COUNTED[name]
    text = (FOLDER / f"{file}.py").read_text(encoding="utf-8")
    args = {key: _lifted(value) for key, value in values.items()}
    wrt = [key for key, value in values.items() if not isinstance(value, int)]
    own = _operations(getattr(loaded(text), name), args)
    assert own
    grad = getattr(loaded(made(text, name, "reverse", wrt).text), f"{name}_grad")
    value = getattr(loaded(text), name)(**args)
    bar = type(value)([1.0] * len(value)) if isinstance(value, list | tuple) else 1.0
    if name == "matmul":
        bar = [[1.0, 1.0], [1.0, 1.0]]
    assert _operations(grad, {**args, "value_bar": bar}) <= 6 * own
    jvp = getattr(loaded(made(text, name, "forward", wrt).text), f"{name}_jvp")
    assert _operations(jvp, {**args, **{f"{key}_dot": args[key] for key in wrt}}) <= 4 * own


def test_a_read_of_one_element_costs_the_same_for_any_length() -> None:
    grad = loaded(made(READING, "f", "reverse", ["xs"]).text).f_grad

    def steps(size: int) -> int:
        count = 0

        def tell(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal count
            count += 1
            return tell

        before = sys.gettrace()
        sys.settrace(tell)
        try:
            grad([0.5] * size)
        finally:
            sys.settrace(before)
        return count

    assert 1.9 < steps(200) / steps(100) < 2.1
