# mypy: ignore-errors
# ruff: noqa: B905
"""A classifier with batch normalization, a schedule, a summary writer and an eager loop around the step."""

import numpy as np
import tensorflow as tf

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
schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay([4, 8], [0.1, 0.05, 0.01])
optimizer = tf.keras.optimizers.SGD(schedule, momentum=0.9)
writer = tf.summary.create_file_writer("logs")


def compute_gradients(x, y):
    with tf.GradientTape() as tape:
        loss = loss_object(y, model(x, training=True))
    return tape.gradient(loss, model.trainable_variables), loss


for step, (x, y) in enumerate(dataset.take(STEPS)):
    gradients, loss = compute_gradients(x, y)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    with writer.as_default():
        tf.summary.scalar("loss", loss, step=step)
    if step % 4 == 0:
        tf.print("step", step, "loss", loss)

print("done")
model.save_weights("weights.h5")
