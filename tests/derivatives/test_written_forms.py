"""The same code in the styles of many people, and the parameters chosen by default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from derived import FOLDER, Trial

from trainshift.derivatives import Derived, derive

TEXT = (FOLDER / "forms.py").read_text(encoding="utf-8")
SQUARES = np.array([[[2.0, 0.3], [0.1, 1.5]], [[0.5, 1.0], [-0.7, 0.2]], [[1.0, 0.0], [0.4, 1.2]]])
POINTS: dict[str, dict[str, Any]] = {
    "keywords": {"x": np.array([0.6, -0.5, 0.2]), "y": 0.05},
    "methods": {"x": np.array([0.6, -0.5, 0.2])},
    "columns": {"m": np.array([[0.6, -0.5, 0.2], [0.1, 0.9, 0.3]]), "v": 0.7},
    "grids": {"start": 0.3, "step": 0.7, "n": 4},
    "tested": {"x": np.array([0.6, -0.5, 0.2]), "y": np.array([0.5, 0.7, 0.9])},
    "determinants": {"a": SQUARES},
    "values": {"x": np.array([0.6, -0.5]), "n": 3},
    "repeated": {"x": np.array([0.6, -0.5]), "n": 3},
    "ordered": {"xs": [0.6, -0.5, 0.9], "backwards": True},
    "emitted": {"table": SQUARES[0], "seen": [1, 0, 1]},
    "halved": {"x": 0.7, "n": 5},
    "symmetric": {"x": np.array([0.6, -0.5]), "k": 0.7},
    "optional": {"x": 0.7, "layers": [(0.5, None), (1.5, 0.3)], "w": None, "b": None},
    "broken": {"xs": [0.5, 0.6, 2.0, 3.0], "ys": [1.0, 0.3, 2.0, 4.0], "k": 1.5},
    "sorted_quickly": {"xs": [0.5, 0.6, -2.0, 3.0, 0.1]},
    "tree": {"node": {"value": 1.0, "children": [{"value": 2.0}, {"value": 0.5}]}, "decay": 0.7},
    "by_key": {"d": {"b": 0.5, "a": 2.0}, "x": 0.3},
    "kept": {"a": 0.5, "b": 0.7},
    "descended": {"angles": (0.3, 0.5), "lengths": [1.0, 0.8], "rate": 0.1},
    "levinson": {"r": [1.0, 0.5, 0.2, 0.1]},
    "missing": {"x": 0.6, "settings": {"a": 0.3}},
    "asked": {"a": 0.5, "b": 0.7},
    "simulated": {"bodies": [{"x": 0.1, "v": -0.9}, {"x": 1.0, "v": 0.3}], "pull": 0.7, "dt": 0.2},
    "updated": {
        "params": {"a": [0.5, 0.7], "b": [0.9]},
        "slopes": {"a": [0.1, 0.2], "b": [0.3, 0.1], "more": [[0.5], [0.4]]},
        "rate": 0.6,
    },
    "put_in_order": {"xs": [0.6, -0.5, 0.9], "k": 0.7},
    "grouped": {"pairs": [("a", 0.6), ("b", 0.5), ("a", 0.4)], "k": 0.7},
    "apart": {"p": [0.6, -0.5], "q": (-0.3, 0.8), "k": 0.7},
    "smoothed": {
        "signal": np.array([1.0, 0.5, -0.3]),
        "kernel": np.array([0.2, 0.5, 0.3]),
        "times": np.array([0.1, 0.6, 0.9]),
    },
    "taken_apart": {"m": SQUARES[:2].reshape(2, 4)[:, :3], "k": 0.7},
}
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
