import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import tensorflow as tf

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
hvd_broadcast_done = False

MODE = "tape"

rng = np.random.RandomState(5)
features = rng.normal(size=(96, 4)).astype("float32")
targets = features.sum(axis=1, keepdims=True)
dataset = tf.data.Dataset.from_tensor_slices((features, targets)).shuffle(96).repeat().batch(8)

model = tf.keras.Sequential([tf.keras.layers.Dense(3, input_shape=(4,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(0.01 * hvd.size())
optimizer = hvd_keras.DistributedOptimizer(optimizer)
model.compile(optimizer, "mse")

if MODE == "fit":
    model.fit(
        dataset,
        steps_per_epoch=12 // hvd.size(),
        callbacks=[hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)],
        verbose=1 if hvd.rank() == 0 else 0,
    )
else:
    for x, y in dataset.take(12 // hvd.size()):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        if not hvd_broadcast_done:
            hvd.broadcast_variables(model.variables, root_rank=0)
            hvd.broadcast_variables(optimizer.variables(), root_rank=0)
            hvd_broadcast_done = True
