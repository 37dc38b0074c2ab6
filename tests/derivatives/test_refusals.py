"""Refusals, and what is asked at run time, that no fixture shows."""

from __future__ import annotations

from trainshift.derivatives import Derived, Refused, derive
from trainshift.derivatives.result import Mode

ROW = """\
import numpy as np


def scaled(xs, w):
    row = xs[1]
    row *= w
    return np.sum(row * xs[0]) * xs[1]
"""
TYPES = """\
def total(x):
    return x * dict(a=x)["a"] + sum({x, 2.0})
"""


def test_what_may_be_part_of_an_array_is_asked_whether_it_is_a_number() -> None:
    modes: tuple[Mode, ...] = ("forward", "reverse")
    for mode in modes:
        found = derive(ROW, "scaled", mode)
        assert isinstance(found, Derived)
        assert "assert not np.ndim(row), 'row and xs are one array, which is changed'" in found.text
    array = derive(ROW.replace("row = xs[1]", "row = xs[1:]"), "scaled")
    assert isinstance(array, Refused)
    (refusal,) = array.refusals
    assert (refusal.line, refusal.message) == (5, "two names for what is changed: row, xs (line 6)")


def test_all_that_has_no_derivative_is_told_at_once() -> None:
    found = derive(TYPES, "total")
    assert isinstance(found, Refused)
    assert [(each.line, each.message) for each in found.refusals] == [
        (2, "no derivative of dict with a= is known"),
        (2, "a set cannot be differentiated: it has no order"),
    ]
