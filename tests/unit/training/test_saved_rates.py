"""A rate that a script reads from its optimizer and saves is scaled already when a run resumes."""

from __future__ import annotations

import pytest

from trainshift.engine.conversion import Status, convert

SCRIPT = """import json
import os
import pickle
from pathlib import Path
import numpy as np
import tensorflow as tf

x, y = np.load("x.npy"), np.load("y.npy")
net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1)
if os.path.exists("state"):
    READ
    opt.learning_rate = state["rate"]
net.compile(opt, "mse")
for epoch in range(9):
    net.fit(x, y)
    opt.learning_rate = opt.learning_rate * 0.5
    WRITE
"""
DUMP = 'with open("state", "w") as file:\n        json.dump({}, file)'
SAVED = {
    "json": ('state = json.load(open("state"))', DUMP.format('{"rate": float(opt.learning_rate)}')),
    "a name": (
        'with open("state") as file:\n        state = json.load(file)',
        "rate = float(opt.lr.numpy())\n    kept = dict(rate=rate)\n    " + DUMP.format("kept"),
    ),
    "text": (
        'state = json.loads(Path("state").read_text())',
        'Path("state").write_text(json.dumps({"rate": float(tf.keras.backend.get_value(opt.lr))}))',
    ),
    "pickle": (
        'state = pickle.load(open("state", "rb"))',
        'pickle.dump({"rate": opt.learning_rate.numpy()}, open("state", "wb"))',
    ),
    "arrays": ('state = np.load("state.npz")', 'np.savez("state.npz", rate=opt.learning_rate.numpy())'),
}
OTHERS = {
    "a number": ('state = json.load(open("state"))', DUMP.format('{"rate": 0.1 / (1 + epoch)}')),
    "another item": ('state = json.load(open("state"))', DUMP.format('{"best": float(opt.learning_rate)}')),
    "another file": (
        'state = json.load(open("config.json"))',
        DUMP.format('{"rate": float(opt.learning_rate)}'),
    ),
    "a dictionary": ('state = {"rate": 0.01}', DUMP.format('{"rate": float(opt.learning_rate)}')),
}


@pytest.mark.parametrize(("read", "write"), SAVED.values(), ids=SAVED)
def test_a_saved_rate_is_not_scaled_again(read: str, write: str) -> None:
    found = convert(SCRIPT.replace("READ", read).replace("WRITE", write))
    assert found.status is Status.CONVERTED, found.reason
    assert 'opt.learning_rate = state["rate"]\n' in found.text


@pytest.mark.parametrize(("read", "write"), OTHERS.values(), ids=OTHERS)
def test_another_rate_of_a_file_is_scaled(read: str, write: str) -> None:
    found = convert(SCRIPT.replace("READ", read).replace("WRITE", write))
    assert found.status is Status.CONVERTED, found.reason
    assert 'opt.learning_rate = state["rate"]\n' not in found.text
    assert "hvd.size()" in found.text.partition("net.compile")[0].rpartition("tf.keras.optimizers")[2]


def test_a_rate_that_may_be_saved_or_new_is_told_of() -> None:
    read = 'state = json.load(open("state")) if os.path.getsize("state") else {"rate": 0.1}'
    write = DUMP.format('{"rate": float(opt.learning_rate)}')
    found = convert(SCRIPT.replace("READ", read).replace("WRITE", write))
    assert found.status is Status.REFUSED or found.withheld or '{"rate": 0.1 * hvd.size()}' in found.text


def test_a_rate_of_a_file_that_may_be_another_one_is_told_of() -> None:
    read = "state = json.load(open(os.environ['CONFIG']))"
    found = convert(SCRIPT.replace("READ", read).replace("WRITE", DUMP.format('{"rate": float(opt.lr)}')))
    assert found.status is Status.REFUSED or found.withheld
