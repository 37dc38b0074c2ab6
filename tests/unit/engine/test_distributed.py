"""Scripts that were correctly distributed by hand: a conversion leaves them unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainshift.engine.conversion import Status, convert, convert_program
from trainshift.engine.workspace import files_in_memory

SCRIPTS = sorted((Path(__file__).parents[3] / "fixtures" / "distributed").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_right_script_is_left_alone(script: Path) -> None:
    text = script.read_bytes().decode()
    conversion = convert(text)
    assert (conversion.text, conversion.status) == (text, Status.ALREADY_DISTRIBUTED)
    assert conversion.withheld == conversion.hazards == ()


def test_hazards_are_listed_and_not_called_distributed() -> None:
    right = (SCRIPTS[0].parent / "root_only_model.py").read_text()
    text = right.replace("if hvd.rank() == 0:", "if hvd.rank == 0:")
    conversion = convert(text)
    assert (conversion.text, conversion.status) == (text, Status.ALREADY_DISTRIBUTED)
    assert [(each.rule, each.line) for each in conversion.hazards] == [("HZ25", 27)]
    assert "distributed" not in conversion.reason


def test_what_a_comment_ignores_is_not_listed() -> None:
    right = (SCRIPTS[0].parent / "root_only_model.py").read_text()
    text = right.replace("if hvd.rank() == 0:", "if hvd.rank == 0:  # trainshift: ignore[HZ25]")
    conversion = convert(text)
    assert (conversion.text, conversion.hazards) == (text, ())


def test_what_a_conversion_mends_is_no_hazard_of_its_result() -> None:
    text = (SCRIPTS[0].parent / "lr_keyword.py").read_text()
    bare = text.replace(
        "hvd.DistributedOptimizer(tf.keras.optimizers.legacy.Adam(lr=0.01 * hvd.size()))", '"adam"'
    )
    conversion = convert(bare)
    assert (conversion.status, conversion.hazards) == (Status.CONVERTED, ())
    kept = conversion.text.replace("    callbacks=[hvd", "    callbacks=[] if hvd.rank() else [hvd")
    assert {each.rule for each in convert(kept).hazards} == {"HZ12"}


def test_a_program_that_a_helper_starts_is_left_alone() -> None:
    helper = """import horovod.tensorflow.keras as hvd
import tensorflow as tf


class World:
    def __init__(self):
        hvd.init()
        gpus = tf.config.list_physical_devices("GPU")
        if gpus:
            tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
        self.start = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]

    def adam(self, rate):
        return hvd.DistributedOptimizer(tf.keras.optimizers.Adam(rate * hvd.size()))

    def share(self, steps):
        return steps // hvd.size()
"""
    script = """import tensorflow as tf
from world import World

world = World()
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
model.compile(world.adam(0.001), "mse")
model.fit(x, y, epochs=3, steps_per_epoch=world.share(500), callbacks=world.start, verbose=0)
"""
    files = files_in_memory({"/p/train.py": script, "/p/world.py": helper})
    conversion = convert_program(script, "/p/train.py", files)
    assert (conversion.text, conversion.status) == (script, Status.ALREADY_DISTRIBUTED)
    late = script.replace("world = World()\n", "").replace("model.compile", "world = World()\nmodel.compile")
    assert convert_program(late, "/p/train.py", files).hazards


DEAD = """import numpy as np
import tensorflow as tf

x, y = np.load("x.npy"), np.load("y.npy")


def build():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    return model
    model.summary()


model = build()
model.compile("sgd", "mse")
model.fit(x, y)
"""
COUNTED = """import os

import numpy as np
import tensorflow as tf


def words(path):
    if os.path.exists(path):
        return np.load(path)
    found = np.unique(np.load("all.npy"))
    np.save(path, found)
    return found


def batches(known):
    while True:
        for row in known:
            yield np.full((8, 4), row), np.ones((8, 1))


gen = batches(words("words.npy"))
first = next(gen)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(gen, steps_per_epoch=200, epochs=2)
"""


@pytest.mark.parametrize("text", [DEAD, COUNTED], ids=["after a return", "steps that are counted"])
def test_a_second_conversion_changes_nothing(text: str) -> None:
    once = convert(text)
    assert once.status is Status.CONVERTED
    again = convert(once.text)
    assert (again.text, again.status) == (once.text, Status.ALREADY_DISTRIBUTED)
