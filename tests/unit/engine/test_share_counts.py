"""Shares of data of any length, counted: every rank takes equally many steps, and no element is taken twice.

Converted scripts run here as each rank in turn, on stand-ins for TensorFlow and Horovod that do not train.
Real runs, with divisible lengths, are in `proof`.
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from trainshift.engine.conversion import Status, convert

HEAD = """\
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)
x = np.arange(LENGTH)
y = np.arange(LENGTH)
"""
STEP = """
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(model(a) - b)
grads = tape.gradient(loss, model.trainable_variables)
optimizer.apply_gradients(zip(grads, model.trainable_variables))
"""
SLICES = "ds = tf.data.Dataset.from_tensor_slices((x, y))"
LOOP = "\nfor epoch in range(2):\n    for a, b in {}:\n        STEP\n"
MINIBATCHES = """
def minibatches(inputs, targets, size, shuffle=False):
    order = np.arange(len(inputs))
    if shuffle:
        np.random.shuffle(order)
    for i in range(0, len(order), size):
        yield inputs[order[i:i + size]], targets[order[i:i + size]]

"""
SEQUENCE = """
class Batches(tf.keras.utils.Sequence):
    def __len__(self):
        return len(x) // 4

    def __getitem__(self, i):
        if i >= len(self):
            raise IndexError(i)
        return x[i * 4:i * 4 + 4], y[i * 4:i * 4 + 4]

data = Batches()
"""
COMPILED = 'model.compile(optimizer, "mse")\n'

# A script to append to HEAD, by the iterable of its loop.
SCRIPTS = {
    "a dataset": f"{SLICES}.shuffle(99).batch(4)\n{LOOP.format('ds')}",
    "batches in their order": f"{SLICES}.batch(4)\n{LOOP.format('ds')}",
    "whole batches": f"{SLICES}.shuffle(99).batch(4, drop_remainder=True)\n{LOOP.format('ds')}",
    "an enumerated dataset": f"{SLICES}.batch(4)\n"
    + LOOP.format("enumerate(ds)").replace("a, b", "i, (a, b)"),
    "two datasets": "one = tf.data.Dataset.from_tensor_slices(x)\n"
    + "two = tf.data.Dataset.from_tensor_slices(y)\n"
    + f"ds = tf.data.Dataset.zip((one, two)).shuffle(99).batch(4)\n{LOOP.format('ds')}",
    "what is skipped": f"{SLICES}.skip(3).batch(4)\n{LOOP.format('ds')}",
    "a length that is told": f"{SLICES}.filter(lambda a, b: True)"
    + f".apply(tf.data.experimental.assert_cardinality(LENGTH)).batch(4)\n{LOOP.format('ds')}",
    "numbers of batches": LOOP.format("range(len(x) // 4)")
    .replace("a, b in", "i in")
    .replace("STEP", "a, b = x[i * 4:i * 4 + 4], y[i * 4:i * 4 + 4]\n        STEP"),
    "starts of batches": LOOP.format("range(0, len(x), 4)")
    .replace("a, b in", "i in")
    .replace("STEP", "a, b = x[i:i + 4], y[i:i + 4]\n        STEP"),
    "from slice to slice": LOOP.format("while i < len(x):")
    .replace("    for a, b in while i < len(x)::", "    i = 0\n    while i < len(x):")
    .replace("STEP", "a, b = x[i:i + 4], y[i:i + 4]\n        STEP\n        i += 4"),
    "from slice to whole slice": LOOP.format("while i + 4 <= len(x):")
    .replace("    for a, b in while i + 4 <= len(x)::", "    i = 0\n    while i + 4 <= len(x):")
    .replace("STEP", "j = i + 4\n        a, b = x[i:j], y[i:j]\n        STEP\n        i = i + 4"),
    "a permutation": LOOP.format("range(len(x) // 4)")
    .replace("    for a, b in", "    order = np.random.permutation(len(x))\n    for i in")
    .replace("STEP", "part = order[i * 4:i * 4 + 4]\n        a, b = x[part], y[part]\n        STEP"),
    "lists side by side": "xs, ys = np.array_split(x, 9), np.array_split(y, 9)\n"
    + LOOP.format("zip(xs, ys)"),
    "lists of slices": "xs = [x[i:i + 4] for i in range(0, len(x), 4)]\n"
    + "ys = [y[i:i + 4] for i in range(0, len(y), 4)]\n"
    + LOOP.format("zip(xs, ys)"),
    "a generator": MINIBATCHES + LOOP.format("minibatches(x, y, 4)"),
    "a generator that shuffles": MINIBATCHES + LOOP.format("minibatches(x, y, 4, shuffle=True)"),
    "a sequence": SEQUENCE + LOOP.format("data"),
    "arrays": COMPILED + "model.fit(x, y, batch_size=4, epochs=2)\n",
    "a dataset for fit": f"{COMPILED}{SLICES}.shuffle(99).batch(4)\nmodel.fit(ds, epochs=2)\n",
    "parts of arrays": COMPILED + "model.fit(x[3:], y[3:], batch_size=4, epochs=2)\n",
}


class Dataset:
    """A dataset of `tf.data`: its elements, created anew by each iteration, and their number."""

    def __init__(self, make: Callable[[], Iterable[Any]], length: int | None) -> None:
        self.make, self.length = make, length

    @staticmethod
    def from_tensor_slices(given: Any) -> Dataset:
        rows = list(zip(*given, strict=True)) if isinstance(given, tuple) else list(given)
        return Dataset(lambda: rows, len(rows))

    @staticmethod
    def zip(given: tuple[Dataset, ...]) -> Dataset:
        return Dataset(lambda: zip(*given, strict=True), min(map(len, given)))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.make())

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError("The length is unknown.")
        return self.length

    def take(self, count: int) -> Dataset:
        return Dataset(lambda: itertools.islice(self, count), min(len(self), count))

    def skip(self, count: int) -> Dataset:
        return Dataset(lambda: itertools.islice(self, count, None), len(self) - count)

    def shard(self, number: int, index: int) -> Dataset:
        length = None if self.length is None else len(range(index, self.length, number))
        return Dataset(lambda: itertools.islice(self, index, None, number), length)

    def shuffle(self, *_: Any, **__: Any) -> Dataset:
        return self

    def filter(self, test: Any) -> Dataset:
        return Dataset(self.make, None)

    def apply(self, change: Callable[[Dataset], Dataset]) -> Dataset:
        return change(self)

    def batch(self, size: int, drop_remainder: bool = False) -> Dataset:
        def batches() -> Iterator[Any]:
            rows = iter(self)
            while (some := list(itertools.islice(rows, size))) and len(some) > drop_remainder * (size - 1):
                yield tuple(map(np.array, zip(*some, strict=True)))

        return Dataset(batches, len(self) // size if drop_remainder else -(-len(self) // size))


def told(count: int) -> Callable[[Dataset], Dataset]:
    """`assert_cardinality`."""
    return lambda dataset: Dataset(dataset.make, count)


class Model:
    """A model that records the batches with which it is called or fitted."""

    def __init__(self, seen: list[list[int]]) -> None:
        self.seen = seen
        self.compile = self.variables = self.trainable_variables = MagicMock()

    def __call__(self, batch: Any) -> Any:
        self.seen.append([int(each) for each in batch])
        return batch

    def fit(self, x: Any, y: Any = None, batch_size: int = 32, epochs: int = 1, **_: Any) -> None:
        if y is None:
            epoch = [[int(each) for each in a] for a, _ in x]
        else:
            assert len(x) == len(y)
            epoch = [[int(each) for each in x[i : i + batch_size]] for i in range(0, len(x), batch_size)]
        self.seen += epoch * epochs


def walked(text: str, length: int, rank: int, size: int, sent: list[Any]) -> list[list[int]]:
    """The batches on which a rank trains; fills `sent` with the values that rank 0 sends."""
    seen: list[list[int]] = []
    horovod, tensorflow, turns = MagicMock(), MagicMock(), iter(sent)

    def broadcast(given: Any, root_rank: int = 0) -> Any:
        if rank:
            return next(turns)
        sent.append(given)
        return given

    horovod.rank.return_value, horovod.size.return_value, horovod.local_rank.return_value = rank, size, 0
    horovod.broadcast_object = broadcast
    tensorflow.data.Dataset, tensorflow.data.experimental.assert_cardinality = Dataset, told
    tensorflow.keras.Sequential = lambda *_: Model(seen)
    tensorflow.keras.utils.Sequence = object
    tensorflow.config.experimental.list_physical_devices.return_value = []
    np.random.seed(rank)

    def imported(name: str, *given: Any, **words: Any) -> Any:
        package = name.partition(".")[0]
        return fakes[package] if package in fakes else __import__(name, *given, **words)

    horovod.keras = horovod
    fakes = {"tensorflow": tensorflow, "horovod": MagicMock(tensorflow=horovod)}
    own = {**vars(builtins), "__import__": imported}
    exec(compile(text, "script.py", "exec"), {"__name__": "__main__", "__builtins__": own, "LENGTH": length})
    return seen


@pytest.mark.parametrize("name", SCRIPTS)
def test_ranks_take_equally_many_steps_through_shares(name: str) -> None:
    lines = SCRIPTS[name].replace("STEP", STEP.strip().replace("\n", "\n        "))
    script = HEAD + lines
    conversion = convert(script)
    assert conversion.status is Status.CONVERTED, conversion.reason
    for length, size in itertools.product((36, 37, 41), (2, 3)):
        whole, sent = walked(script, length, 0, 1, []), list[Any]()
        ranks = [walked(conversion.text, length, rank, size, sent) for rank in range(size)]
        steps = {len(own) for own in ranks}
        assert len(steps) == 1, conversion.text
        epoch, (share,) = len(whole) // 2, (count // 2 for count in steps)
        assert epoch // size <= share <= -(-epoch // size), conversion.text
        for start in (0, share):
            taken = [each for own in ranks for batch in own[start : start + share] for each in batch]
            assert len(set(taken)) == len(taken)
            assert set(taken) <= set(range(length))
            assert sum(map(len, whole[:epoch])) - len(taken) <= size * max(map(len, whole))
