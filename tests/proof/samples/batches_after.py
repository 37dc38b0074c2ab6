import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import tensorflow as tf

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

rng = np.random.RandomState(7)
features = rng.normal(size=(96, 5)).astype("float32")
labels = features.sum(axis=1, keepdims=True)
EPOCHS = 3
hvd_broadcast_done = False

model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
sgd = tf.keras.optimizers.SGD(0.01 * hvd.size(), momentum=0.9)
model.compile(optimizer=hvd_keras.DistributedOptimizer(sgd), loss="mse")
for epoch in range(EPOCHS):
    for _ in range(5 // hvd.size()):
        rows = rng.randint(96, size=16)
        loss = model.train_on_batch(features[rows], labels[rows])
        if not hvd_broadcast_done:
            hvd.broadcast_variables(model.variables, root_rank=0)
            hvd.broadcast_variables(model.optimizer.variables(), root_rank=0)
            hvd_broadcast_done = True
    if hvd.rank() == 0:
        print("epoch", epoch, loss)
if hvd.rank() == 0:
    model.save_weights("weights.h5")


class Regressor(tf.keras.Model):  # type: ignore[misc]
    def train_step(self, data):  # type: ignore[no-untyped-def]
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compiled_loss(y, self(x, training=True))
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


inputs = tf.keras.Input(shape=(5,))
regressor = Regressor(inputs, tf.keras.layers.Dense(1)(inputs))
decay = tf.keras.optimizers.schedules.ExponentialDecay(0.02 * hvd.size(), 2, 0.5)
optimizer = tf.keras.optimizers.Adam(decay)
regressor.compile(optimizer=optimizer, loss="mse")
callbacks = [hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)]
verbose = 2 if hvd.rank() == 0 else 0
regressor.fit(features, labels, batch_size=16, epochs=1, verbose=verbose, callbacks=callbacks)
