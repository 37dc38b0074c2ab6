"""Gradients against those of autograd and JAX, which do not read source code.

They are installed in a folder of their own: otherwise TensorFlow would load JAX in every process.
"""

from __future__ import annotations

import copy
import sys
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy
import pytest

from support.derived import FOLDER, loaded, made, names_of

PEERS = Path(sys.prefix) / "peers"
BATCHES = (FOLDER / "batches.py").read_text(encoding="utf-8")
LAYERS = ["X", "W1", "b1", "W2", "b2"]
# Code that stores into arrays, or branches on values: the peer does not support it (the latter if JAX
# compiles).
BEYOND = {
    "jax": {
        "diffusion2d",
        "aug2d",
        "aug2d_swap",
        "ema",
        "inplace_relu",
        "clipnorm",
        "ifexp",
        "lists_and_arrays",
        "sums_that_start_with_zeros",
    },
    "autograd": {
        "diffusion2d",
        "aug2d",
        "aug2d_swap",
        "ema",
        "inplace_relu",
        "lists_and_arrays",
        "mha",
        "momentum",
        "padconv",
        "poly",
    },
}
NAMES = [each for each in names_of(BATCHES) if f"def {each}(X, W1, b1, W2, b2, Y)" in BATCHES]
pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def peers() -> Iterator[dict[str, Any]]:
    """The modules that replace NumPy, with the function that computes a gradient."""
    sys.path.insert(0, str(PEERS))
    import_module("jax").config.update("jax_enable_x64", True)
    jax, autograd = import_module("jax"), import_module("autograd")
    yield {
        "jax": (import_module("jax.numpy"), lambda function: jax.jit(jax.grad(function))),
        "autograd": (import_module("autograd.numpy"), autograd.grad),
    }
    sys.path.remove(str(PEERS))


@pytest.fixture(scope="module")
def point() -> dict[str, Any]:
    draw = numpy.random.RandomState(5).randn
    args = {"X": draw(5, 3), "W1": draw(3, 4), "b1": draw(4), "W2": draw(4, 3), "b2": draw(3)}
    return {**args, "Y": numpy.eye(3)[[0, 1, 2, 0, 1]]}


def of(peer: Any, text: str, name: str) -> Callable[..., Any]:
    """A function of a file with another module as NumPy."""
    module = types.ModuleType("peer_file")
    lines = [each for each in text.splitlines() if each != "import numpy as np"]
    module.__dict__["np"] = peer
    exec(compile("\n".join(lines), "peer_file", "exec"), module.__dict__)
    found: Callable[..., Any] = getattr(module, name)
    return found


@pytest.mark.parametrize(
    ("peer", "name"), [(peer, name) for peer in BEYOND for name in NAMES if name not in BEYOND[peer]]
)
def test_gradients_are_those_of_peers(
    peer: str, name: str, peers: dict[str, Any], point: dict[str, Any]
) -> None:
    other, gradient = peers[peer]
    found = made(BATCHES, name, "reverse", LAYERS)
    value = getattr(loaded(BATCHES), name)(**copy.deepcopy(point))
    bar = numpy.ones(numpy.shape(value)) if numpy.shape(value) else 1.0
    _, bars = getattr(loaded(found.text), found.made)(**copy.deepcopy(point), value_bar=bar)
    function = of(other, BATCHES, name)

    def total(given: list[Any]) -> Any:
        return other.sum(function(**dict(zip(LAYERS, given, strict=True)), Y=point["Y"]))

    wanted = gradient(total)([other.array(point[each]) for each in LAYERS])
    for one, expected in zip(bars, wanted, strict=True):
        assert numpy.allclose(one, expected, rtol=1e-8, atol=1e-9)
