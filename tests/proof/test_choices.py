"""The options of a conversion have their effect, on two real processes of Horovod.

For Adasum, only that it is requested: the tests' Horovod is built without MPI, and lacks it.
"""

from __future__ import annotations

import pytest

from proof.harness import Run, judge, run_converted, run_original
from trainshift.core.choices import Choices
from trainshift.engine.conversion import Status, convert

pytestmark = pytest.mark.proof

DATA = """\
import tensorflow as tf

x = tf.random.uniform([32, 3])
y = tf.reduce_sum(x, axis=1, keepdims=True)
dataset = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(4)
"""
TAPE = f"""{DATA}
model = tf.keras.Sequential([tf.keras.layers.Dense(2), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
for images, labels in dataset.take(8):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(images) - labels) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
"""
FIT = f"""{DATA}
model = tf.keras.Sequential([tf.keras.layers.Dense(2), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
model.compile(optimizer, "mse")
model.fit(dataset, epochs=4, steps_per_epoch=8, verbose=0)
"""
MONITORED = """\
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
x = tf.random.uniform([4, 3])
w = tf.get_variable("w", [3, 1])
loss = tf.reduce_mean((tf.matmul(x, w) - 1.0) ** 2)
optimizer = tf.train.GradientDescentOptimizer(0.01)
train = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
hooks = [tf.train.StopAtStepHook(last_step=16)]
with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
    while not session.should_stop():
        session.run(train)
"""


def proved(script: str, choices: Choices) -> tuple[list[str], tuple[Run, ...], str]:
    """The ids of the judge's faults in a converted script, its two runs, and its text."""
    conversion = convert(script, choices=choices)
    assert conversion.status is Status.CONVERTED, conversion.reason
    runs = run_converted(conversion.text)
    faults = judge(run_original(script), runs)
    print(*faults, sep="\n")
    return [each.partition(":")[0] for each in faults], runs, conversion.text


def rates(run: Run) -> list[float]:
    """The rates that the first optimizer stepped with."""
    assert run.record is not None
    return list(run.record.optimizers[0].rates)


@pytest.mark.parametrize("script", [TAPE, FIT], ids=["tape", "fit"])
def test_compressed_gradients(script: str) -> None:
    faults, _, text = proved(script, Choices(compression="fp16"))
    assert "compression=hvd.Compression.fp16" in text
    assert faults == []


def test_a_rate_that_rises_over_the_first_epochs() -> None:
    """From the rate of one rank to that of two, step by step, and the ranks end with equal weights."""
    faults, runs, _ = proved(FIT, Choices(warmup_epochs=2))
    assert faults == ["rate-not-scaled"]
    rising = [0.01 + 0.01 * step / 8 for step in range(1, 9)]
    for run in runs:
        assert rates(run) == pytest.approx([*rising, *[0.02] * 8])


@pytest.mark.parametrize("script", [FIT, MONITORED], ids=["fit", "monitored"])
def test_several_batches_before_a_step(script: str) -> None:
    """Half as many steps, each with the average of all batches of both ranks."""
    before, _, _ = proved(script, Choices())
    faults, runs, _ = proved(script, Choices(backward_passes_per_step=2))
    assert before == []
    assert faults == ["steps-differ"]
    expected = 8 if script is FIT else 4
    for run in runs:
        assert rates(run) == pytest.approx([0.02] * expected)


@pytest.mark.parametrize("is_shared", [True, False])
def test_statistics_of_all_batches(is_shared: bool) -> None:
    """The ranks have the same moving average of different batches, and a different one without the option."""
    script = FIT.replace("Dense(2),", "Dense(2), tf.keras.layers.BatchNormalization(),")
    conversion = convert(script, choices=Choices(sync_batch_norm=is_shared))
    runs = run_converted(conversion.text + "print(model.layers[1].moving_mean.numpy().tolist())\n")
    faults = judge(run_original(script), runs)
    assert [each.partition(":")[0] for each in faults] == ["rank1-printed"]
    first, second = (run.stdout for run in runs)
    assert (first == second) is is_shared
    assert len(first.split(",")) == 2


def test_adasum_is_not_in_a_horovod_with_gloo_alone() -> None:
    """It stops at the first step, as the report predicts."""
    conversion = convert(TAPE, choices=Choices(op="adasum"))
    runs = run_converted(conversion.text)
    for run in runs:
        assert run.exit_code != 0
        assert run.record is not None
        assert "No Adasum operation enabled" in run.record.error
    assert any("with Gloo alone, it stops" in note.text for note in conversion.decisions)


def test_seeds_by_rank() -> None:
    """Horovod has started where the seeds ask for the rank, and the ranks end alike."""
    script = TAPE.replace("tf.random.uniform([32, 3])", "tf.reshape(tf.linspace(0.0, 1.0, 96), [32, 3])")
    script = script.replace("\nx =", "\ntf.random.set_seed(22)\nx =").replace(
        "Dense(2),", "Dropout(0.5, seed=3),"
    )
    script = script.replace("model(images)", "model(images, True)").replace(
        "take(8)", "shuffle(4, seed=5).take(8)"
    )
    faults, _, text = proved(script, Choices(seed_by_rank=True))
    assert text.count(" + hvd.rank()") == 3
    assert faults == []
