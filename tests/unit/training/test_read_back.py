"""Tests of `read_back`: what all ranks read after rank 0 has written it."""

from __future__ import annotations

import pytest

from trainshift.engine.conversion import Status, convert

FOLDERS = """\
import os
import shutil

import numpy as np
import tensorflow as tf

for name in ["a", "b"]:
    shutil.move(name, os.path.join("data", name))
noise = []
for name in os.listdir("data"):
    noise += os.listdir(os.path.join("data", name))
names = os.listdir("data")
paths = []
for label, name in enumerate(names):
    folder = os.path.join("data", name)
    paths += [os.path.join(folder, each) for each in os.listdir(folder)]
x = np.array([np.load(each) for each in paths])
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(3,))])
model.compile("adam", "mse")
model.fit(x, x[:, 0], epochs=2)
"""
WAIT = "hvd.broadcast(0, root_rank=0)  # wait for rank 0\n"
WRITTEN = """\
import numpy as np
import tensorflow as tf
import horovod.tensorflow.keras as hvd

hvd.init()
{wait}
for turn in range(3):
    if hvd.rank() == 0:
        np.save("x.npy", np.ones((8, 3)) * turn)
    x = np.load("x.npy")
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(3,))])
model.compile("adam", "mse")
model.fit(x, x[:, 0], epochs=2)
"""


def test_one_wait_serves_all_reads_below_it() -> None:
    first = convert(FOLDERS)
    assert first.text.count(WAIT) == 1
    assert convert(first.text).status is Status.ALREADY_DISTRIBUTED


@pytest.mark.parametrize("wait", ["", WAIT])
def test_a_wait_before_a_write_does_not_serve_the_read_after_it(wait: str) -> None:
    assert convert(WRITTEN.format(wait=wait)).text.count(f"    {WAIT}") == 1
