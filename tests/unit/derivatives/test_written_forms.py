"""The same code in the styles of many people, and the parameters chosen by default."""

from __future__ import annotations

import pytest

from support.derived import FOLDER, Trial, points
from trainshift.derivatives import Derived, derive

TEXT = (FOLDER / "forms.py").read_text(encoding="utf-8")
POINTS = points(TEXT)
CHOSEN = {
    "methods": ["x"],
    "columns": ["m", "v"],
    "ordered": ["xs"],
    "emitted": ["table"],
    "halved": ["x"],
    "gone_along": ["graph", "depth"],
    "shared_out": ["x", "width", "share"],
}


@pytest.mark.parametrize("name", POINTS)
def test_forms_have_derivatives(name: str) -> None:
    trial = Trial(TEXT, name, POINTS[name], ("n", "backwards", "seen", "settings"))
    trial.forward()
    trial.reverse()


@pytest.mark.parametrize("name", CHOSEN)
def test_counts_indices_and_conditions_are_not_chosen(name: str) -> None:
    found = derive(TEXT, name, "forward")
    assert isinstance(found, Derived)
    assert list(found.wrt) == CHOSEN[name]


@pytest.mark.slow
def test_gradients_of_loops_that_break_and_of_joined_calls_are_differentiated_again() -> None:
    for name in ("broken", "sorted_quickly", "simulated", "asked"):
        Trial(TEXT, name, POINTS[name]).twice()


def test_what_is_joined_is_not_worked_out_again() -> None:
    found = derive(TEXT, "sorted_quickly", "reverse")
    assert isinstance(found, Derived)
    assert "len(sorted_quickly(" not in found.text


def test_what_a_condition_calls_changes_nothing_that_it_keeps() -> None:
    for mode in ("forward", "reverse"):
        found = derive(TEXT, "asked_perhaps", mode)
        assert not isinstance(found, Derived)
        assert "changes its captured variables in a condition" in found.refusals[0].message


def test_a_part_of_a_tensor_that_is_given_to_a_function_is_not_assigned() -> None:
    text = """
import tensorflow as tf


def cell(x, h, w):
    return tf.tanh(tf.concat([x, h], axis=-1) @ w)


def rnn(xs, w):
    h = tf.zeros_like(xs[:, 0])
    for t in range(xs.shape[1]):
        h = cell(xs[:, t], h, w)
    return h
"""
    found = derive(text, "rnn")
    assert isinstance(found, Derived)
    assert "xs_bar[:, t]" not in found.text


def test_a_value_that_is_none_has_no_tangent() -> None:
    found = derive(TEXT, "nothing", "forward")
    assert isinstance(found, Derived)
    assert found.text.rstrip().count("return None, None") == 1


def test_a_derivative_is_found_again_under_any_name_of_numpy() -> None:
    text = "import numpy\n\n\ndef f(a, x):\n    return numpy.dot(a, x)\n"
    found = derive(text, "f")
    assert isinstance(found, Derived)
    assert derive(found.text, "f").edits == ()  # type: ignore[union-attr]


def test_what_is_stored_into_whole_numbers_is_refused() -> None:
    for value in ("np.zeros(2, dtype=int)", "np.array([[0, 1], [1, 0]])", "np.ones((2, 2), np.int64)"):
        text = f"import numpy as np\n\n\ndef f(x):\n    a = {value}\n    a[0] = x\n    return a * x\n"
        for mode in ("forward", "reverse"):
            found = derive(text, "f", mode)
            assert not isinstance(found, Derived)
            assert [(each.line, "truncate" in each.message) for each in found.refusals] == [(6, True)]
    text = "import numpy as np\n\n\ndef f(x):\n    a = np.array([0.0, 1])\n    a[0] = x\n    return a * x\n"
    assert isinstance(derive(text, "f"), Derived)


def test_what_only_seems_constant_is_refused() -> None:
    for value in (
        "np.meshgrid(x, x)[0]",
        "np.bincount([0, 1], x)",
        "np.linalg.norm(x, 1)",
        "np.pad(x, 1, 'mean')",
    ):
        found = derive(f"import numpy as np\n\n\ndef f(x):\n    return x + {value}\n", "f")
        assert not isinstance(found, Derived)
        assert "no derivative of np." in found.refusals[0].message


def test_what_a_call_leaves_out_its_derivative_leaves_out() -> None:
    numpy = "import numpy as np\n\n\ndef f(x):\n    return np.sum(x, axis=0)\n"
    tensorflow = "import tensorflow as tf\n\n\ndef f(x):\n    return tf.cumsum(x, reverse={})\n"
    forward = derive(numpy, "f", "forward")
    assert isinstance(forward, Derived)
    assert "np.sum(x_dot, axis=0)" in forward.text
    for text, wanted in (
        (numpy, "_spread(value_bar, x, 0)"),
        (tensorflow.format(False), "tf.cumsum(value_bar, axis=0, reverse=True)"),
        (tensorflow.format(True), "tf.cumsum(value_bar, axis=0)"),
    ):
        found = derive(text, "f")
        assert isinstance(found, Derived)
        assert wanted in found.text
