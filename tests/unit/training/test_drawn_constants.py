"""Numbers that are drawn once: what models compute with is drawn alike, what each row has is not."""

from __future__ import annotations

import pytest

from trainshift.engine.conversion import convert

SCRIPT = """\
import numpy as np
import tensorflow as tf

n = 100
xs = np.linspace(-3, 3, n)
images = np.load("images.npy")
{code}
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit(x, y)
"""
RANK_0_DRAWS = "hvd.broadcast_object("


@pytest.mark.parametrize(
    "code",
    [
        "x = images @ np.random.randn(784, 64)\ny = images.sum(1)",
        "x = images * np.random.rand(784)\ny = images.sum(1)",
        "x, y = images, images.sum(1) * np.random.rand()",
    ],
)
def test_what_all_rows_are_computed_with_is_drawn_by_rank_0(code: str) -> None:
    assert RANK_0_DRAWS in convert(SCRIPT.format(code=code)).text


@pytest.mark.parametrize(
    "code",
    [
        "x, y = xs, np.sin(xs) + np.random.uniform(-0.5, 0.5, n)",
        "x, y = xs, 2 * xs + np.random.randn(100)",
        "x = images + np.random.randn(*images.shape)\ny = images.sum(1)",
        "x, y = images, images.sum(1) + np.random.randn(len(images))",
    ],
)
def test_noise_of_each_row_is_its_own(code: str) -> None:
    converted = convert(SCRIPT.format(code=code))
    assert RANK_0_DRAWS not in converted.text
    assert not any("different functions" in each.text for each in converted.doubts)
