"""A loop or a `with` is for rank 0 as a whole only if no rank needs its header, or what it binds."""

from __future__ import annotations

import pytest

from trainshift.engine.conversion import convert

SCRIPT = """\
import os
import shutil
import zipfile

import tensorflow as tf

(x, y), _ = tf.keras.datasets.mnist.load_data()
model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
losses = [1.0, 2.0]
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(9, seed=1)
turns = iter([1, 2, 3])
made = lambda: (each for each in [1, 2])
{code}
model.fit(x, y, verbose=0)
"""
UNDER = "if hvd.rank() == 0:\n    "


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("for name in os.listdir('a'):", "shutil.move(name, 'b')"),
        ("for layer in model.layers:", "print(layer.name)"),
        ("for i, loss in enumerate(losses):", "print(i, loss)"),
        ("with zipfile.ZipFile('a.zip') as archive:", "archive.extractall('b')"),
    ],
)
def test_a_block_is_for_rank_0_as_a_whole(header: str, body: str) -> None:
    found = convert(SCRIPT.format(code=f"{header}\n    {body}")).text
    assert f"{UNDER}{header}\n        {body}\n" in found


@pytest.mark.parametrize(
    ("header", "body", "later"),
    [
        pytest.param("for pair in data:", "print(pair)", "", id="a data set draws its next order"),
        pytest.param("for turn in turns:", "print(turn)", "", id="an iterator is used up"),
        pytest.param("for one in made():", "print(one)", "", id="a generator"),
        pytest.param("for loss in losses:", "print(loss)", "x = x * loss", id="read later"),
        pytest.param("for loss in losses:", "print(loss)\n    total = loss", "", id="another statement"),
        pytest.param("with tf.device('/cpu:0'):", "print(losses)", "", id="no file"),
    ],
)
def test_a_block_with_a_header_for_all_ranks_is_not(header: str, body: str, later: str) -> None:
    found = convert(SCRIPT.format(code=f"{header}\n    {body}\n{later}")).text
    assert f"\n{header}\n    if hvd.rank() == 0:\n" in found


@pytest.mark.parametrize(
    "write",
    [
        'pickle.dump(x, open("x.pkl", "wb"))',
        'json.dump([1], open("x.json", "w"))',
        'open("x.txt", "w").write("x")',
    ],
)
def test_a_file_that_is_opened_where_it_is_written_is_written_by_rank_0(write: str) -> None:
    found = convert(
        "import json\nimport pickle\nimport numpy as np\nimport tensorflow as tf\n\n"
        'x, y = np.load("x.npy"), np.load("y.npy")\n'
        'model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.compile("sgd", "mse")\n'
        f"model.fit(x, y)\n{write}\n"
    )
    assert f"if hvd.rank() == 0:\n    {write}\n" in found.text
    assert not [each for each in found.doubts if each.rule == "HZ20"]
