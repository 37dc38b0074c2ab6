"""Time derivatives against their functions and against peers, in one run; print ratios.

Peers do the same by tracing: autograd, JAX (without jit, and with it beside) and an eager GradientTape.  Each
runs the same text with its own module instead of NumPy.  Peers that are not installed are left out.
"""

from __future__ import annotations

import importlib.util
import math
import random
import sys
import time
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from trainshift.derivatives import Derived, derive
from trainshift.derivatives.reading.result import Mode

TEXT = """\
import math
import numpy as np


def newton(a, x):
    for _ in range(50):
        x = x - (x * x * x - a) / (3.0 * x * x + 0.1)
    return x


def pendulum(angle, speed):
    for _ in range(200):
        speed = speed - 0.01 * math.sin(angle) - 0.001 * speed * speed
        angle = angle + 0.01 * speed
    return angle * angle + speed


def smoothed(xs, rate):
    out = []
    level = 0.0
    for x in xs:
        level = rate * x + (1.0 - rate) * level
        out.append(level * level)
    return sum(out)


def logistic(w, b, features, labels):
    p = 1 / (1 + np.exp(-(features @ w + b)))
    return -np.mean(labels * np.log(p) + (1 - labels) * np.log(1 - p))


def mlp(w1, b1, w2, b2, features, labels):
    hidden = np.tanh(features @ w1 + b1)
    return np.mean((hidden @ w2 + b2 - labels) ** 2)


def rnn(wx, wh, b, xs):
    h = np.zeros(b.shape)
    for t in range(len(xs)):
        h = np.tanh(wx @ xs[t] + wh @ h + b)
    return np.sum(h * h)


def tree(node, w, u):
    if node is None:
        return 0.0, 0.0
    left, value, right = node
    h1, c1 = tree(left, w, u)
    h2, c2 = tree(right, w, u)
    i = 1 / (1 + math.exp(-w * value - u * (h1 + h2)))
    f1 = 1 / (1 + math.exp(-w * value - u * h1))
    f2 = 1 / (1 + math.exp(-w * value - u * h2))
    c = i * math.tanh(w * value + u * (h1 - h2)) + f1 * c1 + f2 * c2
    return i * math.tanh(c), c


def tree_lstm(node, w, u):
    h, c = tree(node, w, u)
    return h * h + c


def calls(x, n):
    if n < 2:
        return x * n
    return calls(x, n - 1) * 0.5 + calls(x, n - 2) * x
"""


def _tree(depth: int) -> Any:
    return (_tree(depth - 1), random.Random(depth).random(), _tree(depth - 1)) if depth else None


def points() -> dict[str, tuple[dict[str, Any], list[str], float, float]]:
    """The arguments, the parameters to differentiate by, and the time limits of reverse and forward mode."""
    import numpy

    draw = numpy.random.RandomState(0).randn
    data = {"features": draw(256, 20), "labels": (draw(256) > 0) * 1.0}
    cell = {"wx": draw(16, 8), "wh": draw(16, 16), "b": draw(16)}
    layers = {"w1": draw(20, 32), "b1": draw(32), "w2": draw(32), "b2": 0.1}
    return {
        "newton": ({"a": 2.0, "x": 1.5}, ["a", "x"], 7, 5),
        "pendulum": ({"angle": 1.0, "speed": 0.2}, ["angle", "speed"], 7, 5),
        "smoothed": ({"xs": [0.3] * 200, "rate": 0.4}, ["xs", "rate"], math.inf, 5),
        "logistic": ({"w": draw(20), "b": 0.3, **data}, ["w", "b"], 7, 5),
        "mlp": ({**layers, **data}, list(layers), 7, 5),
        "rnn": ({**cell, "xs": draw(30, 8)}, list(cell), 12, 5),
        "tree_lstm": ({"node": _tree(6), "w": 0.7, "u": 0.4}, ["node", "w", "u"], 12, 5),
        "calls": ({"x": 0.7, "n": 10}, ["x"], 40, 5),
    }


def seconds(work: Callable[[], object]) -> float:
    """The shortest time of one call, of several tries."""
    work()
    best, began = math.inf, time.perf_counter()
    while time.perf_counter() - began < 0.4:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def loaded(text: str, module: str = "numpy") -> Any:
    """The functions, with another module for NumPy."""
    made = types.ModuleType("timed")
    text = text.replace("import numpy as np", f"import {module} as np")
    # Only NumPy's own numbers work with Python's functions of numbers.
    scalars = text if module == "numpy" else text.replace("import math", f"import {module} as math")
    exec(scalars, made.__dict__)
    return made


def peers(name: str, args: dict[str, Any], by: list[str]) -> dict[str, Callable[[], object]]:
    """The gradients by the installed peers."""
    found: dict[str, Callable[[], object]] = {}
    order, values = list(args), list(args.values())
    places = tuple(order.index(each) for each in by)
    if _has("autograd"):
        grad: Any = importlib.import_module("autograd").grad
        function = getattr(loaded(TEXT, "autograd.numpy"), name)
        slope = grad(lambda given: function(**{**args, **dict(zip(by, given, strict=True))}))
        found["autograd"] = lambda: slope(tuple(args[each] for each in by))
        jax: Any = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        function_of_jax = getattr(loaded(TEXT, "jax.numpy"), name)
        eager = jax.grad(function_of_jax, argnums=places)
        found["JAX"] = lambda: jax.block_until_ready(eager(*values))
        # Counts are not traced.
        fast = jax.jit(eager, static_argnums=[i for i, each in enumerate(values) if isinstance(each, int)])
        found["JAX, jit"] = lambda: jax.block_until_ready(fast(*values))
    if _has("tensorflow"):
        tf: Any = importlib.import_module("tensorflow")
        tf.experimental.numpy.experimental_enable_numpy_behavior()
        function_of_tf = getattr(loaded(TEXT, "tensorflow.experimental.numpy"), name)

        def lifted(value: Any) -> Any:
            if isinstance(value, list | tuple):
                return type(value)(map(lifted, value))
            return value if value is None or isinstance(value, int) else tf.constant(value, tf.float64)

        given = {each: lifted(value) for each, value in args.items()}

        def taped() -> object:
            with tf.GradientTape() as tape:
                for part in tf.nest.flatten([given[each] for each in by]):
                    if part is not None:
                        tape.watch(part)
                value = function_of_tf(**given)
            return tape.gradient(value, [p for p in tf.nest.flatten([given[e] for e in by]) if p is not None])

        found["GradientTape"] = taped
    return found


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def ours(name: str, args: dict[str, Any], by: list[str], mode: Mode) -> float:
    """The seconds that our derivative takes."""
    made = derive(TEXT, name, mode, by)
    assert isinstance(made, Derived), made
    more = {} if mode == "reverse" else {f"{each}_dot": args[each] for each in by}
    return seconds(partial(getattr(loaded(made.text), made.made), **args, **more))


def main() -> None:
    """Time each function, its derivatives and the peers; print the ratios to the original."""
    if _has("tensorflow"):
        importlib.import_module("tensorflow")
    # They are in a folder of their own: otherwise TensorFlow would load JAX in every process.
    sys.path.append(str(Path(sys.prefix) / "peers"))
    print("How many times as long as the function; of peers: how many times as long as our gradient.")
    for name, (args, by, most_back, most_ahead) in points().items():
        own = seconds(partial(getattr(loaded(TEXT), name), **args))
        back, ahead = ours(name, args, by, "reverse"), ours(name, args, by, "forward")
        row = f"{name:<10} {own * 1e6:7.1f} µs   reverse {back / own:5.1f} (at most {most_back})"
        row += f"   forward {ahead / own:4.1f} (at most {most_ahead})"
        for peer, work in peers(name, args, by).items():
            try:
                row += f"   {peer} {seconds(work) / back:.1f}"
            except Exception as wrong:  # Unsupported cases of a peer are listed.
                row += f"   {peer} cannot: {type(wrong).__name__}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
