"""Arguments that are one object, or contain one object twice, of a function that mutates them."""

from __future__ import annotations

import copy
import math
import re
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from support.derived import loaded
from trainshift.derivatives import Derived, Refused, derive
from trainshift.derivatives.reading.result import Mode

TEXT = """\
TABLE = [1.0, 2.0]
ROWS = [TABLE, TABLE]
HALF = 0.5


def of_table(i):
    return TABLE[i] * HALF


def with_table(v, x):
    v[0] = x * v[0]
    return v[0] * of_table(0)


def with_rows(v, x):
    v[0] = x * v[0]
    return v[0] * ROWS[0][0]


def turned(v, w):
    both = [v, w, v]
    both[0][0] = v[0] * 2.0
    both[2][0] = both[0][0] * w[0]
    return v[0] + w[0]


def doubled(v, w):
    v[0] = v[0] * 2.0
    return v[0] * w[0]


def first(rows):
    rows[0][0] = rows[0][0] * 2.0
    return rows[0][0] * rows[1][0]


def scaled(v, n):
    if n == 0:
        return v[0] * v[1]
    v[0] = v[0] * v[1]
    return scaled(v, n - 1)


def kept(x, v):
    v[0] = x * v[0]
    return v


def read(v, w):
    both = [v[0], w[0]]
    same = both
    same[1] = both[0] * w[0]
    return both[0] * both[1]
"""
ARRAYS = """\
import numpy as np


def stored(v, w):
    v[0] = v[0] * 2.0
    return np.sum(v * w)


def added(v, w):
    v += w
    return np.sum(v * w)
"""


LISTS = """\
def rows_swapped(v):
    v[0], v[1] = v[1], v[0]
    return v[0][0] * v[1][1] * v[0][1]


def copied(v):
    w = v.copy()
    w[0] = w[1]
    return w[0][0] * w[1][1] * v[0][0]


def sliced(v):
    w = v[1:]
    w[0][0] = w[0][1] * 2.0
    v[0] = w[0]
    return w[0][0] * v[1][0]


def ordered(v):
    v = v.copy()
    v.sort()
    return v[0] * v[0] * v[1]


def shown_by_a_slice(v):
    w = v[1:]
    v[1] = v[0] * 2.0
    return w[0] * v[1]


def moved_on(v):
    for i in range(1, len(v)):
        v[i] = v[i - 1] * v[i]
    v[0], v[1] = v[1], v[0]
    return v[0] * v[1]
"""


def made(name: str, mode: Mode = "reverse", text: str = TEXT) -> Any:
    found = derive(text, name, mode)
    assert isinstance(found, Derived), found
    return getattr(loaded(found.text), found.made)


@pytest.mark.parametrize("name", ["turned", "doubled"])
@pytest.mark.parametrize(
    ("other", "said"), [(lambda v: v, "v and w are one list"), (lambda v: (v,), "v and w[0] are one list")]
)
def test_two_arguments_that_are_one_list(name: str, other: Any, said: str) -> None:
    v = [1.5, 2.5]
    with pytest.raises(ValueError, match=re.escape(f"{said}: pass a copy of one")):
        made(name)(v, other(v))
    assert v == [1.5, 2.5]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize(("name", "place"), [("with_table", "TABLE"), ("with_rows", "ROWS[0]")])
def test_an_argument_that_is_a_list_of_the_file(name: str, place: str, mode: Mode) -> None:
    found = derive(TEXT, name, mode)
    assert isinstance(found, Derived)
    assert "HALF" not in found.text.partition("_apart(")[2].partition(", v=v")[0]
    module = loaded(found.text)
    dots = {"v_dot": [1.0, 0.0], "x_dot": 0.0} if mode == "forward" else {}
    with pytest.raises(ValueError, match=re.escape(f"v and {place} are one list: pass a copy of one")):
        getattr(module, found.made)(module.TABLE, 3.0, **dots)
    value, slopes = getattr(module, found.made)([1.0, 2.0], 3.0, **dots)
    assert value in (1.5, 3.0)
    assert (slopes if mode == "forward" else slopes[0][0]) == value


def test_a_parameter_with_the_name_of_what_the_file_has_is_refused() -> None:
    found = derive(
        TEXT.replace("def with_table(v, x)", "def with_table(TABLE, x)").replace("v[0] ", "TABLE[0] "),
        "with_table",
    )
    assert isinstance(found, Refused)
    assert (
        found.refusals[0].message
        == "TABLE is also a variable of the file, which the derivative reads: rename it"
    )


def test_one_argument_that_holds_a_list_twice() -> None:
    row = [1.5, 2.5]
    with pytest.raises(ValueError, match=re.escape("rows[0] and rows[1] are one list: pass a copy of one")):
        made("first")([row, row])
    assert made("first")([[1.5], [2.5]]) == (7.5, ([[5.0], [3.0]],))


@pytest.mark.parametrize("name", ["stored", "added"])
def test_arrays_that_share_memory(name: str) -> None:
    table = np.arange(1.0, 7.0).reshape(2, 3)
    with pytest.raises(ValueError, match="v and w share an array: pass a copy of one"):
        made(name, text=ARRAYS)(table[0], table[0, ::-1])
    assert table[0].tolist() == [1.0, 2.0, 3.0]
    value, bars = made(name, text=ARRAYS)(table[:, 0], table[:, 1])
    twin, twin_bars = made(name, text=ARRAYS)(np.array([1.0, 4.0]), np.array([2.0, 5.0]))
    assert value == twin
    np.testing.assert_array_equal(bars, twin_bars)


@pytest.mark.parametrize("name", ["doubled", "turned"])
def test_tangents_that_are_one_list(name: str) -> None:
    jvp, dot = made(name, "forward"), [1.0, 0.0]
    with pytest.raises(ValueError, match="v_dot and w_dot are one list"):
        jvp([1.5, 2.5], [3.5, 4.5], v_dot=dot, w_dot=dot)
    with pytest.raises(ValueError, match="v and v_dot are one list"):
        jvp(dot, [3.5, 4.5], v_dot=dot, w_dot=[0.0, 0.0])


def test_a_function_that_calls_itself_asks_once() -> None:
    jvp, v = made("scaled", "forward"), [2.0, 3.0]
    with pytest.raises(ValueError, match="v and v_dot are one list"):
        jvp(v, 2, v_dot=v)
    assert jvp(v, 2, v_dot=[1.0, 0.0]) == (54.0, 27.0)


def test_an_adjoint_may_be_an_argument_or_hold_a_list_twice() -> None:
    v = [1.0, 2.0]
    assert made("kept")(3.0, v, value_bar=v) == ([3.0, 2.0], (1.0, [3.0, 2.0]))
    row, rows = [1.0], [[1.5], [2.5]]
    text = TEXT.replace("return rows[0][0] * rows[1][0]", "return rows")
    assert made("first", text=text)(rows, value_bar=[row, row])[1] == ([[2.0], [1.0]],)


def test_what_is_not_changed_may_be_given_twice() -> None:
    v = [1.5, 2.5]
    value, (v_bar, w_bar) = made("read")(v, v)
    assert value == 1.5**3
    assert (v_bar[0], w_bar[0]) == (2 * 1.5 * 1.5, 1.5**2)


@pytest.mark.parametrize("name", ["doubled", "first"])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_what_asks_is_differentiated_again(name: str, mode: Mode) -> None:
    found = derive(TEXT, name, mode)
    assert isinstance(found, Derived)
    assert isinstance(derive(found.text, found.made, "forward"), Derived)


@pytest.mark.parametrize("start", ["", "import numpy as np\n\n"])
@pytest.mark.parametrize("ring", ["RING.append(RING)", "RING.append((RING, {0: RING}))"])
def test_what_the_file_has_may_hold_itself(start: str, ring: str) -> None:
    text = f"""\
{start}RING = [[1.0, 2.0]]
{ring}


def with_ring(v, x):
    v[0] = x * v[0]
    return v[0] * RING[0][0]
"""
    found = made("with_ring", text=text)
    assert found([3.0], 2.0) == (6.0, ([2.0], 3.0))


ROWS = [[1.5, 2.5], [0.5, 3.5]]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows_swapped", ROWS),
        ("copied", ROWS),
        ("sliced", ROWS),
        ("ordered", ROWS[0]),
        ("shown_by_a_slice", ROWS[0]),
    ],
)
def test_an_array_where_the_function_changes_a_list(name: str, value: Any) -> None:
    made(name, text=LISTS)(copy.deepcopy(value))
    said = "v is an array, not a list: annotate the parameter with np.ndarray"
    with pytest.raises(ValueError, match=re.escape(said)):
        made(name, text=LISTS)(np.array(value))


def test_an_array_of_numbers_is_changed_as_a_list_is() -> None:
    of_list = made("moved_on", text=LISTS)([1.5, 2.5, 0.5])
    of_array = made("moved_on", text=LISTS)(np.array([1.5, 2.5, 0.5]))
    assert of_array[0] == of_list[0]
    np.testing.assert_array_equal(of_array[1][0], of_list[1][0])


def test_a_copy_of_an_array_of_numbers_is_changed_as_that_of_a_list_is() -> None:
    text = "def copied(v):\n    w = v.copy()\n    w[0] = w[1] * 3.0\n    return w[0] * v[0]\n"
    of_list = made("copied", text=text)([1.5, 2.5, 0.5])
    of_array = made("copied", text=text)(np.array([1.5, 2.5, 0.5]))
    assert of_array[0] == of_list[0]
    np.testing.assert_array_equal(of_array[1][0], of_list[1][0])


@pytest.mark.parametrize(
    "lines",
    ["w[0] = w[1]", "w[0][0] = w[1][1] * 3.0", "u = w[1:]\n    u[0] = w[0]"],
)
def test_a_copy_of_rows_where_the_function_changes_a_list(lines: str) -> None:
    text = f"def copied(v):\n    w = v.copy()\n    {lines}\n    return w[0][0] * v[0][0] * w[1][0]\n"
    made("copied", text=text)(copy.deepcopy(ROWS))
    with pytest.raises(ValueError, match="v is an array, not a list"):
        made("copied", text=text)(np.array(ROWS))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("def f(x, w):\n    s = 0.0\n    for i, a in enumerate(w):\n        s += a * x\n    return s\n", "w"),
        ("def f(x, w):\n    out = [a * x for a, b in zip(w, [1.0, 2.0])]\n    return sum(out)\n", "w"),
        ("def f(x, w):\n    o = [0]\n    for a in list(w):\n        o += [a * x]\n    return sum(o)\n", "w"),
        ("def f(x, w):\n    s = 0.0\n    for a in tuple(w)[::-1]:\n        s += a * x\n    return s\n", "w"),
        ("def f(x, w):\n    out = [a * x for a in list(w)[:2]]\n    return sum(out)\n", "w"),
        ("def f(x, w):\n    return sum(a * x for a in w[0])\n", "w[0]"),
        (
            "def g(w, y):\n    s = 0.0\n    for i, a in enumerate(w):\n        s += a * y\n    return s\n\n\n"
            "def f(x, w):\n    return g(w[0], x)\n",
            "w[0]",
        ),
    ],
)  # fmt: skip
def test_an_argument_that_can_be_gone_through_only_once(text: str, place: str) -> None:
    answer = derive(text, "f", "reverse", ["x"])
    assert isinstance(answer, Derived), answer
    f = loaded(answer.text).f_grad
    inner = place != "w"
    assert f(2.0, [[1.5, 2.5]] if inner else [1.5, 2.5])[1] == (4.0,)
    said = f"{place} can be gone through only once: pass a list"
    with pytest.raises(ValueError, match=re.escape(said)):
        f(2.0, [iter([1.5, 2.5])] if inner else (each for each in [1.5, 2.5]))


class Box:
    """An object that keeps something, with a property that gives it."""

    def __init__(self, held: Any) -> None:
        self.held = held
        self.own = self

    @property
    def shown(self) -> Any:
        return self.held

    @property
    def anew(self) -> Any:
        return iter(list(self.held))


@pytest.mark.parametrize(
    ("lines", "held", "place"),
    [
        ("for i, a in enumerate(box.held):\n        s += a * x", [1.5, 2.5], "box.held"),
        ("for i, a in enumerate(box.shown):\n        s += a * x", [1.5, 2.5], "box.shown"),
        ("for a in list(box.held['k']):\n        s += a * x", {"k": [1.5, 2.5]}, "box.held['k']"),
        ("for a in list(box.own.own.held):\n        s += a * x", [1.5, 2.5], "box.held"),
        ("kept = box.held\n    for a, b in zip(kept, [1, 1]):\n        s += a * x", [1.5, 2.5], "box.held"),
        ("for a in list(box.anew):\n        s += a * x", [1.5, 2.5], ""),
    ],
)
def test_an_object_that_keeps_what_can_be_gone_through_only_once(lines: str, held: Any, place: str) -> None:
    answer = derive(f"def f(x, box):\n    s = 0.0\n    {lines}\n    return s\n", "f", "reverse", ["x"])
    assert isinstance(answer, Derived), answer
    f = loaded(answer.text).f_grad
    assert f(2.0, Box(held)) == (8.0, (4.0,))
    if place:
        once = {"k": iter(held["k"])} if isinstance(held, dict) else iter(held)
        with pytest.raises(ValueError, match=re.escape(f"{place} can be gone through only once")):
            f(2.0, Box(once))


@pytest.mark.parametrize(
    ("start", "source", "place"),
    [
        ("from rows import ROWS", "enumerate(ROWS)", "ROWS"),
        ("from rows import BOX as box", "enumerate(box.held)", "box.held"),
        ("import rows", "enumerate(rows.ROWS)", "rows.ROWS"),
    ],
)
def test_an_imported_value_that_can_be_gone_through_only_once(
    start: str, source: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ModuleType("rows")
    monkeypatch.setitem(sys.modules, "rows", rows)
    text = (
        f"{start}\n\n\ndef f(x):\n    s = 0.0\n    for i, v in {source}:\n        s += v * x\n    return s\n"
    )
    answer = derive(text, "f", "reverse", ["x"])
    assert isinstance(answer, Derived), answer
    vars(rows).update(ROWS=[1.5, 2.5], BOX=Box([1.5, 2.5]))
    assert loaded(answer.text).f_grad(2.0) == (8.0, (4.0,))
    vars(rows).update(ROWS=iter([1.5, 2.5]), BOX=Box(iter([1.5, 2.5])))
    with pytest.raises(ValueError, match=re.escape(f"{place} can be gone through only once")):
        loaded(answer.text).f_grad(2.0)


@pytest.mark.parametrize(
    ("start", "source"),
    [
        ("KEPT = zip([1.0], [2.0])", "KEPT"),
        ("KEPT, COUNT = iter([1.0]), 2", "KEPT"),
        (
            "class Box:\n    def __init__(self, held):\n        self.held = held\n\n\nBOX = Box(iter([1.0]))",
            "BOX.held",
        ),
        ("def two():\n    yield 2.0\n\n\nKEPT = two()", "KEPT"),
        ("def two():\n    return map(float, [1])\n\n\nKEPT: object = two()", "KEPT"),
        ("KEPT = [1.0, 2.0]", ""),
        ("def two():\n    return [2.0]\n\n\nKEPT = two()", ""),
    ],
)
def test_a_value_of_the_file_that_can_be_gone_through_only_once(start: str, source: str) -> None:
    loop = f"    for i, v in enumerate({source or 'KEPT'}):\n        s += v * x\n"
    answer = derive(f"{start}\n\n\ndef f(x):\n    s = 0.0\n{loop}    return s\n", "f", "reverse", ["x"])
    if not source:
        assert isinstance(answer, Derived), answer
        return
    assert isinstance(answer, Refused)
    said = f"{source} can be gone through only once if it is an iterator: decide where its values are taken"
    assert [each.message for each in answer.refusals] == [said]


@pytest.mark.parametrize(
    "lines",
    [
        "y = [] if y is None else y\n    y.append(x * x)\n    return y[-1] * len(y)",
        "if y is None:\n        y = [x, 2.0]\n    y[-1] = y[-1] * x\n    return y[-1] * x",
        "if y is not None:\n        y.append(x)\n    else:\n        y = [x]\n    return y[-1] * x",
        "if y is None:\n        y = {}\n    y[0] = y.get(0, 1.0) * x\n    return y[0] * x * x",
    ],
)
def test_an_argument_that_may_be_none_and_is_changed(lines: str) -> None:
    text = f"def f(x, y=None):\n    {lines}\n"
    answer = derive(text, "f", "reverse", ["x"])
    assert isinstance(answer, Derived), answer
    made_again = loaded(answer.text)
    for given in (None, {0: 3.0} if "{}" in lines else [3.0]):
        was = copy.deepcopy(given)
        value, (x_bar,) = made_again.f_grad(2.0, given)
        after = copy.deepcopy(was)
        assert value == made_again.f(2.0, after)
        assert given == after
        up, down = (made_again.f(2.0 + step, copy.deepcopy(was)) for step in (1e-6, -1e-6))
        assert math.isclose(x_bar, (up - down) / 2e-6, rel_tol=1e-6)


@pytest.mark.parametrize(
    "lines",
    [
        "w = list(w)\n    s = 0.0\n    for i, a in enumerate(w):\n        s += a * x\n    return s",
        "s = 0.0\n    for a in {each for each in w}:\n        s += a * x\n    return s",
        "s = 0.0\n    for a in {each: 1 for each in w}:\n        s += a * x\n    return s",
    ],
)
def test_an_iterator_whose_values_are_taken_once(lines: str) -> None:
    answer = derive(f"def f(x, w):\n    {lines}\n", "f", "reverse", ["x"])
    assert isinstance(answer, Derived), answer
    assert "_lasting" not in answer.text
    assert loaded(answer.text).f_grad(2.0, iter([1.5, 2.5]))[1] == (4.0,)
