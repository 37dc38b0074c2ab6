import numpy as np
import tensorflow as tf

rng = np.random.default_rng(7)
features = rng.normal(size=(197, 5)).astype("float32")
labels = features.sum(axis=1, keepdims=True)
held = rng.normal(size=(60, 5)).astype("float32")

model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
decay = tf.keras.optimizers.schedules.PolynomialDecay(0.02, decay_steps=75, end_learning_rate=0.002)
model.compile(optimizer=tf.keras.optimizers.SGD(decay, momentum=0.9), loss="mse")
model.fit(
    features,
    labels,
    validation_data=(held, held.sum(axis=1, keepdims=True)),
    batch_size=8,
    epochs=3,
    verbose=2,
)
