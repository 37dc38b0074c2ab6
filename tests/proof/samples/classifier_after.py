# mypy: ignore-errors
# ruff: noqa: I001, B905
"""A classifier with batch normalization, a schedule, a summary writer and an eager loop around the step."""

import numpy as np
import tensorflow as tf
import horovod.tensorflow as hvd

hvd.init()
gpus = tf.config.experimental.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")
hvd_broadcast_done = False

STEPS = 12

rng = np.random.default_rng(7)
images = rng.normal(size=(240, 6)).astype("float32")
labels = (images.sum(axis=1) > 0).astype("int64")
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().shuffle(240, seed=3).batch(20)

model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(8, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=1)),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.ReLU(),
        tf.keras.layers.Dense(2),
    ]
)
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay(
    [4 // hvd.size(), 8 // hvd.size()], [0.1 * hvd.size(), 0.05 * hvd.size(), 0.01 * hvd.size()]
)
optimizer = tf.keras.optimizers.SGD(schedule, momentum=0.9)
writer = tf.summary.create_file_writer("logs") if hvd.rank() == 0 else tf.summary.create_noop_writer()


def compute_gradients(x, y):
    with tf.GradientTape() as tape:
        loss = loss_object(y, model(x, training=True))
    tape = hvd.DistributedGradientTape(tape)
    return tape.gradient(loss, model.trainable_variables), loss


for step, (x, y) in enumerate(dataset.take(STEPS // hvd.size())):
    gradients, loss = compute_gradients(x, y)
    z = list(zip(gradients, model.trainable_variables))
    optimizer.apply_gradients(z)
    if not hvd_broadcast_done:
        hvd.broadcast_variables(model.variables, root_rank=0)
        hvd.broadcast_variables(optimizer.variables(), root_rank=0)
        hvd_broadcast_done = True
    with writer.as_default():
        tf.summary.scalar("loss", loss, step=step)
    if step % 4 == 0 and hvd.rank() == 0:
        tf.print("step", step, "loss", loss)

if hvd.rank() == 0:
    print("done")
if hvd.rank() == 0:
    model.save_weights("weights.h5")
