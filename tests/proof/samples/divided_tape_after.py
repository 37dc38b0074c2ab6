# mypy: ignore-errors
# ruff: noqa: I001, B905
import tensorflow as tf
import horovod.tensorflow as hvd

hvd.init()
gpus = tf.config.experimental.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")
hvd_broadcast_done = False

tf.random.set_seed(22)
features = tf.random.stateless_normal([197, 5], seed=(1, 2))
labels = tf.reduce_sum(features, axis=1, keepdims=True)
train = tf.data.Dataset.from_tensor_slices((features, labels))
train = train.shard(hvd.size(), hvd.rank()).take(len(train) // hvd.size())
train = train.shuffle(197).batch(8)
test = tf.data.Dataset.from_tensor_slices((features[:60], labels[:60])).batch(8)
EPOCHS = 3

model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
decay = tf.keras.optimizers.schedules.CosineDecay(0.02 * hvd.size(), decay_steps=EPOCHS * len(train))
optimizer = tf.keras.optimizers.SGD(decay, momentum=0.9)

for epoch in range(EPOCHS):
    for x, y in train:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        if not hvd_broadcast_done:
            hvd.broadcast_variables(model.variables, root_rank=0)
            hvd.broadcast_variables(optimizer.variables, root_rank=0)
            hvd_broadcast_done = True
    losses = [float(tf.reduce_mean(tf.square(model(x) - y))) for x, y in test]
    if hvd.rank() == 0:
        print("epoch", epoch, sum(losses) / len(losses))
