"""A strategy shared by a program's files is removed from all of them, or from none."""

from __future__ import annotations

import random

import pytest

from support.programs import ROOT, analyzed, changed, converted, with_change
from trainshift.engine.conversion import Status, convert

DIST = """\
import tensorflow as tf

BATCH = 8


def make_strategy():
    return tf.distribute.MirroredStrategy()


strategy = make_strategy()
GLOBAL = BATCH * strategy.num_replicas_in_sync
"""
MODEL = """\
import tensorflow as tf

from dist import GLOBAL, strategy


def build():
    with strategy.scope():
        return tf.keras.Sequential([tf.keras.layers.Dense(1)])


class Trainer:
    def __init__(self, strategy):
        self.strategy = strategy
        with strategy.scope():
            self.model = build()
            self.optimizer = tf.keras.optimizers.SGD(0.1)

    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((self.model(x) - y) ** 2) / GLOBAL
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        return loss

    @tf.function
    def train(self, batch):
        return self.strategy.reduce("sum", self.strategy.run(self.step, args=batch), axis=None)
"""
TRAIN = """\
import tensorflow as tf

import dist
from model import Trainer

trainer = Trainer(dist.strategy)
data = tf.data.Dataset.from_tensor_slices((tf.ones((64, 2)), tf.ones((64, 1)))).batch(dist.GLOBAL)
for batch in dist.strategy.experimental_distribute_dataset(data):
    print("loss", trainer.train(batch))
"""
PROGRAM = {"dist.py": DIST, "model.py": MODEL, "train.py": TRAIN}
CHOSEN = """\
import tensorflow as tf

if many:
    strategy = {first}
else:
    strategy = {second}
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(x, y)
"""


def test_a_strategy_goes_from_all_files() -> None:
    conversion = converted(PROGRAM, "train.py")
    assert conversion.status is Status.CONVERTED, conversion.reason
    after = changed(conversion)
    assert after.keys() == PROGRAM.keys()
    assert not any("strategy." in text or "Strategy(" in text for text in after.values())
    assert "from dist import GLOBAL\n" in after["model.py"]
    assert "        return self.step(*batch)\n" in after["model.py"]
    assert "def __init__(self):\n        self.model" in after["model.py"]
    assert "trainer = Trainer()\n" in after["train.py"]
    again = converted(after, "train.py")
    assert again.status is Status.ALREADY_DISTRIBUTED


@pytest.mark.parametrize("seed", [1, 2])
def test_each_change_takes_it_out_of_all_files(seed: int) -> None:
    order, current = random.Random(seed), dict(PROGRAM)
    while changes := analyzed(current, "train.py").changes:
        analysis = analyzed(current, "train.py")
        current = with_change(current, analysis, order.choice(changes))
        assert not any("strategy.scope" in text for text in current.values())
    assert current == PROGRAM | changed(converted(PROGRAM, "train.py"))


def test_one_file_alone_is_refused() -> None:
    conversion = converted(PROGRAM, "train.py", "dist.py")
    assert (conversion.status, conversion.path) == (Status.REFUSED, f"{ROOT}dist.py")
    assert "several files" in conversion.reason


def test_a_file_that_imports_only_the_strategy_still_runs_the_other() -> None:
    alone = PROGRAM | {"model.py": MODEL.replace("GLOBAL, strategy", "strategy")}
    assert "\nimport dist\n" in changed(converted(alone, "train.py"))["model.py"]
    taken = {"model.py": alone["model.py"] + "\ndist = 3\n"}
    assert "imports only strategy" in converted(alone | taken, "train.py").reason


def test_all_choices_must_be_strategies_that_can_go() -> None:
    mirrored, tpu = "tf.distribute.MirroredStrategy()", "tf.distribute.TPUStrategy()"
    default = "tf.distribute.get_strategy()"
    for first, second in ((mirrored, default), (default, mirrored), (mirrored, mirrored)):
        assert convert(CHOSEN.format(first=first, second=second)).status is Status.CONVERTED
    for first, second in ((mirrored, tpu), (tpu, mirrored), (tpu, default), (mirrored, "None")):
        refused = convert(CHOSEN.format(first=first, second=second))
        assert (refused.status, refused.code) == (Status.REFUSED, "HV17")


def test_one_statement_brings_all_of_it() -> None:
    text = CHOSEN.format(first="tf.distribute.MirroredStrategy()", second="tf.distribute.get_strategy()")
    for line in (4, 6, 7, 9):
        conversion = convert(text, line=line)
        assert conversion.status is Status.CONVERTED
        assert "strategy" not in conversion.text
        assert convert(conversion.text).text == convert(text).text


def test_a_strategy_in_an_attribute_that_another_file_sets_is_seen() -> None:
    model = MODEL.replace("(self, strategy)", "(self)").replace(
        "self.strategy = strategy", "self.strategy = None"
    )
    train = TRAIN.replace("Trainer(dist.strategy)", "Trainer()\ntrainer.strategy = dist.strategy")
    result = converted(PROGRAM | {"model.py": model, "train.py": train}, "train.py")
    assert result.status is Status.REFUSED
    assert "self.strategy.run" in result.reason
