"""Refusals and run-time checks that no fixture shows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from support.derived import Trial, loaded, made
from trainshift.derivatives import Derived, Refused, derive
from trainshift.derivatives.reading.result import Mode

ROW = """\
import numpy as np


def scaled(xs, w):
    row = xs[1]
    row *= w
    return np.sum(row * xs[0]) * xs[1]
"""
STORED = """\
import numpy as np


def kept(v, items):
    w = v * 2.0
    items[0] = w
    items[0] *= 3.0
    return np.sum(w * w) + np.sum(items[0])
"""
JOINED = """\
import numpy as np


def joined(xs, ys):
    zs = xs + ys
    return np.prod(zs) * zs[0]
"""
SCALED = """\
import numpy as np


def scale(a, k):
    a *= k


def both(w, rows, k):
    scale(w, k)
    rows[0] -= k


def total(x, w):
    rows = [w, x]
    both(w, rows, x)
    return np.sum(w) * x
"""
MOVED = """\
import numpy as np


def moved(x, v, dt):
    x += v * dt
    return x[0] * x[1]
"""
ADDED = """\
import numpy as np


def added(queue, u):
    queue += queue
    return sum(queue) * u.sum()
"""
TYPES = """\
import math


def total(x):
    return x * math.gamma(x) + sum({x, 2.0})
"""

PICKED = """\
import numpy as np


def put(a, v):
    a[0] = a[0] * v


def picked(x, t, i):
    put(x[i], t)
    return np.sum(x * x)


def stored(x, t, i):
    x[i][0] = t * x[1, 1, 2]
    return np.sum(x * x)


def picked_by_a_tuple(x, t):
    i = (0, slice(None))
    put(x[i], t)
    return np.sum(x * x)
"""
ARRAY = np.arange(12.0).reshape(2, 2, 3) + 0.3
VIEWS = [1, np.int64(1), slice(0, 1), (0, 1), (0, slice(None)), (slice(None), np.int32(1))]
COPIES = [np.array(0), np.array([0, 1]), [0, 1], True, np.True_, (0, [0, 1]), (0, True)]


@pytest.mark.parametrize("index", VIEWS, ids=repr)
def test_an_index_of_numbers_and_slices_picks_what_is_changed(index: Any) -> None:
    for name in ("picked", "stored"):
        Trial(PICKED, name, {"x": ARRAY, "t": 1.3, "i": index}, ("i",)).reverse()


def test_a_tuple_that_is_an_index_has_a_name() -> None:
    Trial(PICKED, "picked_by_a_tuple", {"x": ARRAY, "t": 1.3}).reverse()


@pytest.mark.parametrize("index", COPIES, ids=repr)
def test_an_index_that_copies_is_refused_at_run_time(index: Any) -> None:
    for name in ("picked", "stored"):
        grad = getattr(loaded(made(PICKED, name, "reverse", ["x", "t"]).text), f"{name}_grad")
        with pytest.raises(AssertionError, match="is an array or a condition, so"):
            grad(ARRAY.copy(), 1.3, index)


def test_what_may_be_part_of_an_array_is_asked_whether_it_is_a_number() -> None:
    modes: tuple[Mode, ...] = ("forward", "reverse")
    for mode in modes:
        found = derive(ROW, "scaled", mode)
        assert isinstance(found, Derived)
        assert "np.ndim(row)), 'row and xs are one array, which is changed'" in found.text
    array = derive(ROW.replace("row = xs[1]", "row = xs[1:]"), "scaled")
    assert isinstance(array, Refused)
    (refusal,) = array.refusals
    assert (refusal.line, refusal.message) == (
        5,
        "two names may share an object that is changed: row, xs (line 6)",
    )


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_what_is_stored_is_asked_whether_an_array_copies_it(mode: Mode) -> None:
    found = derive(STORED, "kept", mode)
    assert isinstance(found, Derived)
    said = "items and w are one array, which is changed"
    number = "not (isinstance(items[0], np.ndarray) or np.ndim(items[0]))"
    assert f"assert hasattr(items, 'shape') or {number}, {said!r}" in found.text


def test_all_that_has_no_derivative_is_told_at_once() -> None:
    found = derive(TYPES, "total")
    assert isinstance(found, Refused)
    assert [(each.line, each.message) for each in found.refusals] == [
        (5, "no derivative of math.gamma is known"),
        (5, "a set cannot be differentiated: use a list or a tuple"),
    ]


@pytest.mark.parametrize(
    "made", ["np.array([x, 2.0 * x], dtype=object)", "np.asarray(x, complex)", "np.full(2, x, np.complex64)"]
)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_arrays_of_other_things_than_real_numbers_are_refused(made: str, mode: Mode) -> None:
    found = derive(
        f"import numpy as np\n\n\ndef f(x):\n    a = {made}\n    return np.sum(a * a)\n", "f", mode
    )
    assert isinstance(found, Refused)
    assert (5, True) in [
        (each.line, "not make an array of real numbers" in each.message) for each in found.refusals
    ]


def test_a_type_that_is_asked_for_makes_no_array() -> None:
    text = "def f(x):\n    if isinstance(x, complex):\n        return x\n    return x * 3.0\n"
    assert isinstance(derive(text, "f"), Derived)


def test_what_may_be_lists_that_are_joined_is_asked_for_going_back() -> None:
    found = derive(JOINED, "joined")
    assert isinstance(found, Derived)
    for name in ("xs", "ys"):
        said = f"{name} is a list: write list({name}) where it is added or repeated"
        assert f"assert not isinstance({name}, (list, tuple)), {said!r}" in found.text
    forward = derive(JOINED, "joined", "forward")
    assert isinstance(forward, Derived)
    assert "assert" not in forward.text


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_call_whose_value_nobody_reads_is_asked_whether_it_changes_an_array(mode: Mode) -> None:
    found = derive(SCALED, "total", mode)
    assert isinstance(found, Derived)
    said = "{} and the value that it gets are one array, which is changed"
    assert said.format("a") in found.text
    # A tangent that is updated like its value has the same aliases.
    assert (said.format("rows") in found.text) == (mode == "reverse")
    assert ("scale_vjp(w, k)" if mode == "reverse" else "scale_jvp(w, k") in found.text


def test_what_a_list_is_multiplied_by_is_asked_whether_it_is_an_array() -> None:
    """A count repeats the list, an array multiplies it elementwise."""
    text = "import numpy as np\n\n\ndef f(x, v):\n    return np.sum([x, 2.0] * v) + np.sum(v)\n"
    found = derive(text, "f", "reverse", ["x"])
    assert isinstance(found, Derived)
    here: dict[str, Any] = {}
    exec(found.text, here)
    assert here["f_grad"](0.5, 3) == (10.5, (3.0,))
    with pytest.raises(AssertionError, match=r"v is an array: write np.array\(\[x, 2.0\]\)"):
        here["f_grad"](0.5, [3.0, 1.0])


def test_a_store_into_a_part_that_an_array_of_indices_picks_is_lost() -> None:
    """NumPy stores into a copy there, so that no gradient may pass."""
    text = "import numpy as np\n\n\ndef f(x: np.ndarray, v, i):\n    x[i][0] = v\n    return np.sum(x * x)\n"
    found = derive(text, "f", "reverse", ["v"])
    assert isinstance(found, Derived)
    here: dict[str, Any] = {}
    exec(found.text, here)
    assert here["f_grad"](np.ones((2, 1)), 3.0, 1) == (10.0, (6.0,))
    with pytest.raises(AssertionError, match=r"i is an array or a condition, so x\[i\] is a copy"):
        here["f_grad"](np.ones((2, 1)), 3.0, np.array([1, 1]))


PUT = """import numpy as np


def put(v):
    v[0] = v[0] * v[1]
    return v[0] * v[1]


def f(x: np.ndarray, i):
    return put(x[{}]) * x[0]
"""


@pytest.mark.parametrize(
    ("index", "is_copy"),
    [
        ("[0, 0, 1]", True),
        ("[2, 0, 1]", True),
        ("x > 0", True),
        ("np.array([0, 0, 1])", True),
        ("np.array([0, 0, 1])][1:", True),
        ("1:", True),
        ("i", False),
        ("i][:2", False),
        ("i + 1", False),
    ],
)
def test_a_call_that_changes_what_an_index_picks_is_right_or_asks(index: str, is_copy: bool) -> None:
    """A copy for certain has an adjoint of its own; of another index it is asked whether it is an array."""
    text = PUT.format(index)
    found = derive(text, "f", "reverse", ["x"])
    assert isinstance(found, Derived)
    here: dict[str, Any] = {}
    exec(found.text, here)
    x, i = np.array([0.7, 1.3, 0.4]), np.array([0, 0, 1])
    if not is_copy:
        with pytest.raises(
            AssertionError, match=r"is an array or a condition, so x\[.*\] is a copy, which the call changes"
        ):
            here["f_grad"](x.copy(), i)
        return
    value, (gradient,) = here["f_grad"](x.copy(), i)
    assert value == here["f"](x.copy(), i)
    for place in range(3):
        step = np.eye(3)[place] * 1e-6
        slope = (here["f"](x + step, i) - here["f"](x - step, i)) / 2e-6
        assert gradient[place] == pytest.approx(slope, abs=1e-7)


def test_what_has_elements_and_is_calculated_with_is_an_array_where_the_file_knows_them() -> None:
    found = derive(MOVED, "moved")
    assert isinstance(found, Derived)
    args = (np.array([0.3, 0.4]), np.array([1.0, 2.0]), 0.1)
    value, (x_bar, v_bar, dt_bar) = loaded(found.text).moved_grad(*args)
    x = np.array([0.3, 0.4]) + np.array([1.0, 2.0]) * 0.1
    assert value == x[0] * x[1]
    assert np.allclose(x_bar, x[::-1], 1e-12)
    assert np.allclose(v_bar, x[::-1] * 0.1, 1e-12)
    assert math.isclose(dt_bar, x[::-1] @ [1.0, 2.0])


def test_what_may_be_a_list_that_is_lengthened_in_place_is_asked_for_going_back() -> None:
    found = derive(ADDED, "added")
    assert isinstance(found, Derived)
    said = "queue is a list: write queue.extend where it is added to"
    assert f"assert not isinstance(queue, (list, tuple)), {said!r}" in found.text
    of_numbers = derive(ADDED.replace(" * u.sum()", " * u"), "added")
    assert isinstance(of_numbers, Refused)
    said = "queue may be a list, or a number or array: write list(queue) if it is a list"
    assert [(each.line, each.message) for each in of_numbers.refusals] == [(5, said), (5, said)]


def test_what_is_put_into_sets_and_used_as_an_index_is_no_parameter_to_differentiate_by() -> None:
    text = """
def smoothed(points, edges, rate):
    near = {place: set() for place in range(len(points))}
    for one, other in edges:
        near[one] |= {other}
        near[other].add(one)
    return [p + rate * sum(points[each] - p for each in sorted(near[i])) for i, p in enumerate(points)]
"""
    found = derive(text, "smoothed")
    assert isinstance(found, Derived)
    assert found.wrt == ("points", "rate")


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_an_expression_that_is_too_deep_is_refused_with_its_place(mode: Mode) -> None:
    found = derive(
        f"def near(x):\n    return x\n\n\ndef f(x):\n    return {' + '.join(['x'] * 900)}\n", "f", mode
    )
    assert isinstance(found, Refused)
    said = "f is nested too deeply to be read: split its longest expression"
    assert [(each.line, each.message) for each in found.refusals] == [(5, said)]
