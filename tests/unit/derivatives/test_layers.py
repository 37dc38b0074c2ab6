"""Functions of tensors against GradientTape and ForwardAccumulator, and gradients again."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support.derived import FOLDER, loaded, made

TEXT = (FOLDER / "layers.py").read_text(encoding="utf-8")
WRT = ["x", "w", "b", "v"]


@pytest.fixture(scope="module")
def point() -> dict[str, Any]:
    import numpy
    import tensorflow as tf

    draw = numpy.random.RandomState(5).randn
    args = {"x": draw(4, 3), "w": draw(3, 4), "b": draw(4), "v": draw(4, 3), "y": numpy.eye(3)[[0, 1, 2, 0]]}
    return {name: tf.constant(value) for name, value in args.items()}


@pytest.mark.proof
@pytest.mark.parametrize("name", re.findall(r"^def (\w+)\(x, w, b, v, y\)", TEXT, re.MULTILINE))
def test_against_tensorflow(name: str, point: dict[str, Any]) -> None:
    import numpy
    import tensorflow as tf

    def same(one: Any, other: Any) -> bool:
        wanted = tf.convert_to_tensor(other)
        return numpy.shape(one) == wanted.shape and bool(numpy.allclose(one, wanted, 1e-8, 1e-9))

    function = getattr(loaded(TEXT), name)
    inputs = [point[each] for each in WRT]
    draw = numpy.random.RandomState(1).randn
    dots = {f"{each}_dot": tf.constant(draw(*point[each].shape)) for each in WRT}
    with tf.autodiff.ForwardAccumulator(inputs, list(dots.values())) as forward:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(inputs)
            value = function(**point)
        slopes = tape.gradient(value, inputs, unconnected_gradients="zero")
    wanted = forward.jvp(value)

    _, dot = getattr(loaded(made(TEXT, name, "forward", WRT).text), f"{name}_jvp")(**point, **dots)
    assert same(dot, wanted)
    first = made(TEXT, name, "reverse", WRT)
    again, bars = getattr(loaded(first.text), first.made)(**point, value_bar=tf.ones_like(value))
    assert numpy.array_equal(again, value)
    assert all(map(same, bars, slopes))
    second = made(first.text, first.made, "forward", WRT)
    hvp = getattr(loaded(second.text), second.made)
    _, (_, curves) = hvp(**point, value_bar=tf.ones_like(value), **dots)
    for curve, slope in zip(curves, slopes, strict=True):
        if isinstance(slope, tf.Tensor):
            along = forward.jvp(slope)
            assert same(curve, tf.zeros_like(slope) if along is None else along)
