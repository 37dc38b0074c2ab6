"""Scripts for Keras 3: after conversion they are distributed, and contain no code for Keras 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.keras3 import SCRIPTS, converted, is_of_graphs, wrong
from trainshift.core.choices import KERAS_3, Choices
from trainshift.engine.conversion import Status, convert


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_for_keras_3_is_converted(path: Path) -> None:
    result = converted(path)
    assert (result.status, result.reason) == (Status.CONVERTED, "")
    assert "horovod.tensorflow.keras" not in result.text
    assert "hvd.BroadcastGlobalVariablesHook" not in result.text
    if is_of_graphs(result.text):
        assert "hvd.DistributedOptimizer" in result.text or "hvd.allreduce" in result.text
        assert "hvd.broadcast_global_variables" in result.text
    else:
        assert "hvd.allreduce" in result.text
        assert "hvd.broadcast_variables" in result.text
        assert "Distributed" not in result.text
    # A CPU does without XLA anyway: only the text shows that it is turned off.
    compiled = [each for each in result.text.splitlines() if ".compile(" in each and "super()" not in each]
    assert result.text.count("jit_compile = False") >= bool(compiled)
    assert convert(result.text).status is Status.ALREADY_DISTRIBUTED
    assert [*wrong(result.text)]


def test_there_are_enough_scripts_and_each_mistake_is_made() -> None:
    assert len(SCRIPTS) >= 18
    made = {name for path in SCRIPTS for name, _ in wrong(converted(path).text)}
    asked = {
        "not averaged",
        "averaged twice",
        "broadcast before build",
        "flag that a trace sets",
        "Boolean flag",
        "left to XLA",
    }
    assert asked <= made


def test_weights_that_are_read_back_are_broadcast_without_the_state_of_seeds() -> None:
    text = """import keras
import tensorflow as tf
model = keras.Sequential([keras.layers.Dropout(0.5), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, y, callbacks=[keras.callbacks.ModelCheckpoint("best.weights.h5", save_weights_only=True)])
model.load_weights("best.weights.h5")
"""
    lines = convert(text, choices=Choices(keras=KERAS_3, line_length=120)).text.splitlines()
    after = lines.index('    model.load_weights("best.weights.h5")') + 1
    known = "[v if isinstance(v, tf.Variable) else v.value for v in model.weights]"
    assert lines[after] == f"hvd.broadcast_variables({known}, root_rank=0)"


def test_the_drawn_input_of_a_gradient_penalty_is_no_variable_that_ranks_train() -> None:
    text = """import keras
import tensorflow as tf
class Critic(keras.Model):
    def __init__(self, net):
        super().__init__()
        self.net, self.opt = net, keras.optimizers.Adam(1e-3)
    def penalty(self, real):
        mixed = real + tf.random.normal([8, 1])
        with tf.GradientTape() as inner:
            inner.watch(mixed)
            judged = self.net(mixed)
        return tf.reduce_mean(inner.gradient(judged, [mixed])[0] ** 2)
    def train_step(self, real):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self.net(real)) + self.penalty(real)
        gradients = tape.gradient(loss, self.net.trainable_variables)
        self.opt.apply_gradients(zip(gradients, self.net.trainable_variables))
        return {"loss": loss}
critic = Critic(keras.Sequential([keras.layers.Dense(1)]))
critic.compile()
critic.fit(x, epochs=2)
"""
    result = convert(text, choices=Choices(keras=KERAS_3))
    assert (result.status, result.reason) == (Status.CONVERTED, "")
    assert result.text.count("hvd.allreduce(") == 1
