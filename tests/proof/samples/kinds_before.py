import numpy as np
import tensorflow as tf

rng = np.random.RandomState(7)
features = rng.normal(size=(96, 5)).astype("float32")
labels = features.sum(axis=1, keepdims=True)
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(96).repeat().batch(8)

tf.keras.mixed_precision.set_global_policy("mixed_float16")
half = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1, dtype="float32")])
decay = tf.keras.optimizers.schedules.ExponentialDecay(0.01, 4, 0.5)
half.compile(optimizer=tf.keras.optimizers.Adam(decay), loss="mse")
half.fit(dataset, steps_per_epoch=5, epochs=2, verbose=0)

scaled = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1, dtype="float32")])
inner = tf.keras.optimizers.legacy.Adam(0.01)
scaled.compile(optimizer=tf.keras.mixed_precision.LossScaleOptimizer(inner), loss="mse")
scaled.fit(dataset, steps_per_epoch=6, epochs=1, verbose=0)

tf.keras.mixed_precision.set_global_policy("float32")
several = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
sgd = tf.keras.optimizers.legacy.SGD(0.01, momentum=0.9)
several.compile(optimizer=sgd, loss="mse", steps_per_execution=3)
several.fit(dataset, steps_per_epoch=12, epochs=2, verbose=0)

eager = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
eager.compile(optimizer="rmsprop", loss="mse", run_eagerly=True)
eager.fit(features, labels, batch_size=16, epochs=2)

compiled = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
compiled.compile(optimizer=tf.keras.optimizers.Adamax(0.01), loss="mse", jit_compile=True)
compiled.fit(features, labels, batch_size=32, epochs=2, verbose=0)
