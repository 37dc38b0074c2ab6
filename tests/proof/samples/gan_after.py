# mypy: ignore-errors
# ruff: noqa: I001, B905
import os

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
hvd_broadcast_done_2 = False

EPOCHS = 3
BATCH = 16
NOISE = 4

points = np.random.normal(size=(64, 2)).astype("float32") @ np.array([[1.0, 0.5], [0.0, 0.3]], "float32")
dataset = tf.data.Dataset.from_tensor_slices(points).shuffle(64).batch(BATCH)

generator = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(2)])
discriminator = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])
generator.build((None, NOISE))
discriminator.build((None, 2))
cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)

generator_optimizer = tf.keras.optimizers.Adam(1e-3 * hvd.size())
discriminator_optimizer = tf.keras.optimizers.legacy.SGD(learning_rate=0.01 * hvd.size(), momentum=0.9)
checkpoint = tf.train.Checkpoint(generator=generator, discriminator=discriminator)


@tf.function
def train_step(real):
    global hvd_broadcast_done, hvd_broadcast_done_2
    noise = tf.random.normal([tf.shape(real)[0], NOISE])
    with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
        fake_score = discriminator(generator(noise, training=True), training=True)
        real_score = discriminator(real, training=True)
        gen_loss = cross_entropy(tf.ones_like(fake_score), fake_score)
        disc_loss = cross_entropy(tf.ones_like(real_score), real_score)
        disc_loss += cross_entropy(tf.zeros_like(fake_score), fake_score)
    gen_tape = hvd.DistributedGradientTape(gen_tape)
    disc_tape = hvd.DistributedGradientTape(disc_tape)
    gen_gradients = gen_tape.gradient(gen_loss, generator.trainable_variables)
    disc_gradients = disc_tape.gradient(disc_loss, discriminator.trainable_variables)
    z = list(zip(gen_gradients, generator.trainable_variables))
    generator_optimizer.apply_gradients(z)
    if not hvd_broadcast_done:
        with tf.init_scope():
            hvd.broadcast_variables([x[1] for x in z], root_rank=0)
            hvd.broadcast_variables(generator_optimizer.variables(), root_rank=0)
        hvd_broadcast_done = True
    z_2 = list(zip(disc_gradients, discriminator.trainable_variables))
    discriminator_optimizer.apply_gradients(z_2)
    if not hvd_broadcast_done_2:
        with tf.init_scope():
            hvd.broadcast_variables([x[1] for x in z_2], root_rank=0)
            hvd.broadcast_variables(discriminator_optimizer.variables(), root_rank=0)
        hvd_broadcast_done_2 = True
    return gen_loss, disc_loss


for epoch in range(EPOCHS):
    for real in dataset:
        gen_loss, disc_loss = train_step(real)
    if hvd.rank() == 0:
        print("epoch", epoch, "generator", float(gen_loss), "discriminator", float(disc_loss))
    if hvd.rank() == 0:
        checkpoint.save(os.path.join("checkpoints", "gan"))
