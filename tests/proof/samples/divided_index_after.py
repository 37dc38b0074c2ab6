# mypy: ignore-errors
# ruff: noqa: I001, B905
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

rng = np.random.RandomState(3)
features = rng.normal(size=(203, 5)).astype("float32")
labels = (features.sum(axis=1) > 0).astype("int64")
BATCH, EPOCHS = 8, 3

model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(2)])
model.build((None, 5))
optimizer = tf.keras.optimizers.Adam(
    tf.keras.optimizers.schedules.PiecewiseConstantDecay(
        [20 // hvd.size(), 40 // hvd.size()], [0.02 * hvd.size(), 0.01 * hvd.size(), 0.005 * hvd.size()]
    )
)
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    global hvd_broadcast_done
    with tf.GradientTape() as tape:
        loss = loss_object(y, model(x, training=True))
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    with tf.init_scope():
        if not hvd_broadcast_done:
            hvd.broadcast_variables(model.variables, root_rank=0)
            hvd.broadcast_variables(optimizer.variables, root_rank=0)
            hvd_broadcast_done = True
    return loss


for epoch in range(EPOCHS):
    order = rng.permutation(len(features))
    steps = len(features) // BATCH // hvd.size() * hvd.size()
    for i in range(hvd.rank(), steps, hvd.size()):
        rows = order[i * BATCH : (i + 1) * BATCH]
        loss = train_step(features[rows], labels[rows])
    if hvd.rank() == 0:
        print("epoch", epoch, float(loss))
