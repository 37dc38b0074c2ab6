import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

rng = np.random.RandomState(7)
features = rng.normal(size=(96, 5)).astype("float32")
labels = features.sum(axis=1, keepdims=True)
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(96).repeat().batch(8)

tf.keras.mixed_precision.set_global_policy("mixed_float16")
half = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1, dtype="float32")])
decay = tf.keras.optimizers.schedules.ExponentialDecay(0.01 * hvd.size(), 4 / hvd.size(), 0.5)
half.compile(optimizer=hvd.DistributedOptimizer(tf.keras.optimizers.Adam(decay)), loss="mse")
broadcast = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
half.fit(dataset, steps_per_epoch=5 // hvd.size(), epochs=2, verbose=0, callbacks=broadcast)

scaled = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1, dtype="float32")])
inner = hvd.DistributedOptimizer(tf.keras.optimizers.legacy.Adam(0.01 * hvd.size()))
scaled.compile(optimizer=tf.keras.mixed_precision.LossScaleOptimizer(inner), loss="mse")
broadcast = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
scaled.fit(dataset, steps_per_epoch=6 // hvd.size(), epochs=1, verbose=0, callbacks=broadcast)

tf.keras.mixed_precision.set_global_policy("float32")
several = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
sgd = hvd.DistributedOptimizer(tf.keras.optimizers.legacy.SGD(0.01 * hvd.size(), momentum=0.9))
several.compile(optimizer=sgd, loss="mse", steps_per_execution=3)
broadcast = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
several.fit(dataset, steps_per_epoch=12 // hvd.size(), epochs=2, verbose=0, callbacks=broadcast)

eager = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.RMSprop(0.001 * hvd.size()))
eager.compile(optimizer=optimizer, loss="mse", run_eagerly=True)
broadcast = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
verbose = 1 if hvd.rank() == 0 else 0
eager.fit(features, labels, batch_size=16, epochs=2, verbose=verbose, callbacks=broadcast)

compiled = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adamax(0.01 * hvd.size()))
compiled.compile(optimizer=optimizer, loss="mse")
broadcast = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
compiled.fit(features, labels, batch_size=32, epochs=2, verbose=0, callbacks=broadcast)
