"""A file that loads a model and predicts does not train, even if the model's class could."""

from __future__ import annotations

import pytest

from support.programs import converted
from trainshift.engine.conversion import Status

NET = """\
import tensorflow as tf


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1)
        self.own = tf.keras.optimizers.SGD(0.1)

    def call(self, x):
        return self.dense(x)

    def train(self, data):
        for x in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self(x) ** 2)
            grads = tape.gradient(loss, self.trainable_variables)
            self.own.apply_gradients(zip(grads, self.trainable_variables))
"""
MADE = "import numpy as np\nfrom net import Net\n\nnet = Net()\n"
PREDICT = MADE + 'net.load_weights("net.h5")\nprint(net(np.ones((1, 4), "float32")))\n'
TRAIN = MADE + 'net.train(np.random.rand(20, 8, 4).astype("float32"))\n'
PROGRAM = {"net.py": NET, "predict.py": PREDICT, "train.py": TRAIN}


def test_what_predicts_is_left_alone() -> None:
    assert converted(PROGRAM, "predict.py").status is Status.NOTHING_FOUND
    assert converted(PROGRAM, "train.py").status is Status.CONVERTED


@pytest.mark.parametrize("base", ["", "(object)", "(abc.ABC)"])
def test_a_class_that_holds_a_model_is_left_alone_where_it_predicts(base: str) -> None:
    holder = f"""import abc
import tensorflow as tf
class Holder{base}:
    def __init__(self):
        self.net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    def train(self, x, y):
        self.net.compile("sgd", "mse")
        self.net.fit(x, y)
    def predict(self, x):
        return self.net.predict(x)
"""
    made = "from holder import Holder\nholder = Holder()\n"
    program = {
        "holder.py": holder,
        "p.py": made + "holder.predict(x)\n",
        "t.py": made + "holder.train(x, y)\n",
    }
    assert converted(program, "p.py").status is Status.NOTHING_FOUND
    assert converted(program, "t.py").status is Status.CONVERTED


def test_a_step_that_keras_calls_runs() -> None:
    step = NET.replace("def train(self, data):", "def train_step(self, data):")
    fit = PREDICT + 'net.compile()\nnet.fit(np.ones((8, 4), "float32"))\n'
    assert converted({"net.py": step, "fit.py": fit}, "fit.py").status is not Status.NOTHING_FOUND
