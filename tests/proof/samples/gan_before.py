# mypy: ignore-errors
# ruff: noqa: B905
import os

import numpy as np
import tensorflow as tf

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

generator_optimizer = tf.keras.optimizers.Adam(1e-3)
discriminator_optimizer = tf.keras.optimizers.legacy.SGD(learning_rate=0.01, momentum=0.9)
checkpoint = tf.train.Checkpoint(generator=generator, discriminator=discriminator)


@tf.function
def train_step(real):
    noise = tf.random.normal([tf.shape(real)[0], NOISE])
    with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
        fake_score = discriminator(generator(noise, training=True), training=True)
        real_score = discriminator(real, training=True)
        gen_loss = cross_entropy(tf.ones_like(fake_score), fake_score)
        disc_loss = cross_entropy(tf.ones_like(real_score), real_score)
        disc_loss += cross_entropy(tf.zeros_like(fake_score), fake_score)
    gen_gradients = gen_tape.gradient(gen_loss, generator.trainable_variables)
    disc_gradients = disc_tape.gradient(disc_loss, discriminator.trainable_variables)
    generator_optimizer.apply_gradients(zip(gen_gradients, generator.trainable_variables))
    discriminator_optimizer.apply_gradients(zip(disc_gradients, discriminator.trainable_variables))
    return gen_loss, disc_loss


for epoch in range(EPOCHS):
    for real in dataset:
        gen_loss, disc_loss = train_step(real)
    print("epoch", epoch, "generator", float(gen_loss), "discriminator", float(disc_loss))
    checkpoint.save(os.path.join("checkpoints", "gan"))
