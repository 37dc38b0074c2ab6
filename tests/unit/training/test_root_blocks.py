"""A loop or a `with` is for rank 0 as a whole only if no rank needs its header, or what it binds."""

from __future__ import annotations

import pytest

from trainshift.engine.conversion import convert

SCRIPT = """\
import collections
import os
import random
import shutil
import zipfile

import numpy as np
import tensorflow as tf

(x, y), _ = tf.keras.datasets.mnist.load_data()
model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
losses = [1.0, 2.0]
drawn = np.argmax(model.predict(x), axis=-1)
counts = collections.defaultdict(int)
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
        ("for one, other in zip(drawn, y.flatten()):", "print(one, other)"),
        ("for loss in losses:", "text = str(np.round(loss, 2)); print(text)"),
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
        pytest.param("for turn in sorted(turns):", "print(turn)", "", id="an iterator is sorted"),
        pytest.param("for one in made():", "print(one)", "", id="a generator"),
        pytest.param("for loss in losses:", "print(loss)", "x = x * loss", id="read later"),
        pytest.param("for loss in losses:", "print(loss)\n    total = loss", "x = x * total", id="sums up"),
        pytest.param("for loss in losses:", "print(loss)\n    counts[loss] = 1", "", id="sets an element"),
        pytest.param("for loss in losses:", "print(loss)\n    one = random.random()", "", id="draws"),
        pytest.param(
            "for loss in losses:", "print(loss)\n    one = model(x)", "", id="a model draws its weights"
        ),
        pytest.param("for loss in losses:", "print(loss)\n    one = tf.Variable(loss)", "", id="a variable"),
        pytest.param("for loss in losses:", "print(loss)\n    one = made()", "", id="calls the script"),
        pytest.param("for one in np.nditer(y):", "print(one)", "", id="an iterator of NumPy"),
        pytest.param("with tf.device('/cpu:0'):", "print(losses)", "", id="no file"),
    ],
)
def test_a_block_with_a_header_for_all_ranks_is_not(header: str, body: str, later: str) -> None:
    found = convert(SCRIPT.format(code=f"{header}\n    {body}\n{later}")).text
    assert f"\n{header}\n    if hvd.rank() == 0:\n" in found


def test_a_block_may_draw_after_all_training() -> None:
    loop = "for loss in losses: one = random.random(); print(loss, one)\n"
    assert convert(SCRIPT.format(code="") + loop).text.endswith(f"{UNDER}{loop}")


def test_an_if_with_an_else_is_under_one_guard() -> None:
    code = "if len(x) > 9:\n    print(1)\nelif len(x) > 8:\n    print(2)\nelse:\n    print(3)"
    found = convert(SCRIPT.format(code=code)).text
    assert UNDER + code.replace("\n", "\n    ") in found


def test_no_guard_stands_around_an_elif() -> None:
    code = "if len(x) > 9:\n    x = x + 1\nelif len(x) > 8:\n    print(2)\nelse:\n    print(3)"
    found = convert(SCRIPT.format(code=code)).text
    assert "elif len(x) > 8:\n    if hvd.rank() == 0:\n        print(2)\nel" in found


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
