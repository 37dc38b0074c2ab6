"""Helpers: those that derivatives call are in the file once, and do not clash with other names (AD40,
AD41).
"""

from __future__ import annotations

import re

from trainshift.derivatives import Derived, Refused, derive

BOTH = """\
import numpy as np
import tensorflow as tf


def of_arrays(w, x):
    return np.mean((x * w + np.ones(3)) ** 2)


def of_tensors(w, x):
    return tf.reduce_mean((x * w + tf.ones([3])) ** 2)
"""
OWN = """\
def _add(a, b):
    return a + b + 1


def scaled(p):
    q = dict(p)
    q["a"] = q["a"] * 2
    return q["a"] * q["b"] + _add(q["a"], q["b"])
"""
NUMBERS = """\


def squares(xs):
    total = 0.0
    for x in xs:
        total += x * x
    return total
"""


def derived(text: str, *functions: str) -> str:
    for function in functions:
        found = derive(text, function)
        assert isinstance(found, Derived), found
        text = found.text
    return text


def test_arrays_and_tensors_have_helpers_of_their_own() -> None:
    for order in (("of_arrays", "of_tensors"), ("of_tensors", "of_arrays")):
        text = derived(BOTH, *order)
        bodies = dict(re.findall(r"^def (\w+)\(.*\n((?:    .*\n|\n)+)", text, re.M))
        used = {name: set(re.findall(r"_unbroadcast\w*", bodies[f"{name}_grad"])) for name in order}
        assert used == {order[0]: {"_unbroadcast"}, order[1]: {"_unbroadcast_1"}}
        for name, library in (("of_arrays", "np."), ("of_tensors", "tf.")):
            (helper,) = used[name]
            assert library in bodies[helper]
        assert derived(text, *order) == text
        again = derive(text, f"{order[1]}_grad", "forward")
        assert isinstance(again, Derived), again


def test_numbers_do_with_the_helpers_of_arrays() -> None:
    text = derived(BOTH + NUMBERS, "of_arrays", "squares")
    assert derived(text, "of_arrays", "squares") == text
    one_by_one = derived(BOTH + NUMBERS, "squares", "of_arrays")
    assert sorted(one_by_one.splitlines()) == sorted(text.splitlines())


def test_a_function_of_somebody_else_is_never_replaced() -> None:
    found = derive(OWN, "scaled")
    assert isinstance(found, Refused)
    (refusal,) = found.refusals
    assert (refusal.line, refusal.column) == (1, 1)
    assert refusal.message == "the derivative needs a function called _add: rename this one"
    assert isinstance(derive(OWN, "_add"), Derived)
