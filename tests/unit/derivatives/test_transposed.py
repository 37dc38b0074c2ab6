"""Gradients by transposed tangents: their arguments, and the messages about them (AD37)."""

from __future__ import annotations

import pytest

from support.derived import loaded
from trainshift.derivatives import Derived, Refused, derive
from trainshift.derivatives.reading.result import Mode

PARAMETERS = '''\
def shares(x, rows, /, d, *, key="s", n=2, w=None):
    """Shares a row."""
    out = []
    for i in range(n):
        out.append(rows)  # twice
    out[0][0] = x * x / d["a"]
    if w is not None:
        out[1][1] = w * out[0][0]
    return {"row": out[1][0], "others": (out[1][1], d["b"])}
'''
RECURSIVE = """\
def power(x, n):
    a = [x]
    b = a
    if n == 0:
        return x
    b[0] = power(a[0], n - 1) * x
    return a[0]
"""
ROUNDS = """\
def turned(x, n):
    a, b = [x], [0.5]
    for i in range(n):
        both = [a, b, a]
        both[0][0] = both[2][0] * 0.999 + both[1][0] * 0.001
    return a[0]
"""


def made(text: str, name: str) -> Derived:
    found = derive(text, name)
    assert isinstance(found, Derived), found
    assert found.shared
    return found


def test_parameters_of_all_sorts_keep_their_structure() -> None:
    found = made(PARAMETERS, "shares")
    shares_grad = loaded(found.text).shares_grad
    rows, bar = [1.5, 2.5], {"row": 1.0, "others": (1.0, 1.0)}
    value, bars = shares_grad(2.0, rows, {"a": 4, "b": 3.0}, w=3.0, value_bar=bar)
    assert value == {"row": 1.0, "others": (3.0, 3.0)}
    assert rows == [1.0, 3.0]  # In the state that the function leaves.
    assert found.wrt == ("x", "rows", "d", "key", "w")
    assert bars == (4.0, [0.0, 0.0], {"a": -1.0, "b": 1.0}, None, 1.0)
    assert shares_grad(2.0, rows, {"a": 4, "b": 3.0}, value_bar=bar)[1][1:] == (
        [0.0, 1.0],
        {"a": -0.25, "b": 1.0},
        None,
        None,
    )


def test_made_again_nothing_changes() -> None:
    text = made(PARAMETERS, "shares").text
    assert made(text, "shares").edits == ()


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_such_a_gradient_is_not_differentiated_again(mode: Mode) -> None:
    found = derive(made(PARAMETERS, "shares").text, "shares_grad", mode)
    assert isinstance(found, Refused)
    (refusal,) = found.refusals
    assert refusal.message == "a gradient that transposes tangents cannot be differentiated again"


def test_a_function_may_call_itself() -> None:
    value, bars = loaded(made(RECURSIVE, "power").text).power_grad(1.5, 3)
    assert (value, *bars) == pytest.approx((1.5**4, 4 * 1.5**3))


def test_many_rounds_need_no_deeper_stack() -> None:
    value, bars = loaded(made(ROUNDS, "turned").text).turned_grad(2.0, 20_000)
    assert (value, *bars) == pytest.approx((0.5, 0.999**20_000))
