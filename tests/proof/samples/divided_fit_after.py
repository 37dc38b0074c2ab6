# mypy: ignore-errors
# ruff: noqa: I001
import numpy as np
import tensorflow as tf
import horovod.tensorflow.keras as hvd

hvd.init()
gpus = tf.config.experimental.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")

rng = np.random.default_rng(7)
features = rng.normal(size=(197, 5)).astype("float32")
labels = features.sum(axis=1, keepdims=True)
held = rng.normal(size=(60, 5)).astype("float32")

model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
decay = tf.keras.optimizers.schedules.PolynomialDecay(
    0.02 * hvd.size(), decay_steps=75 / hvd.size(), end_learning_rate=0.002 * hvd.size()
)
model.compile(optimizer=hvd.DistributedOptimizer(tf.keras.optimizers.SGD(decay, momentum=0.9)), loss="mse")
share = len(features) // hvd.size()
mine = slice(hvd.rank() * share, (hvd.rank() + 1) * share)
model.fit(
    features[mine],
    labels[mine],
    validation_data=(held, held.sum(axis=1, keepdims=True)),
    batch_size=8,
    epochs=3,
    callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)],
    verbose=2 if hvd.rank() == 0 else 0,
)
