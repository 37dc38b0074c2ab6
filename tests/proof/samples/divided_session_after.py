# mypy: ignore-errors
# ruff: noqa: I001
import numpy as np
import tensorflow.compat.v1 as tf
import horovod.tensorflow as hvd

hvd.init()
tf.disable_eager_execution()

rng = np.random.RandomState(5)
features = rng.normal(size=(197, 4)).astype("float32")
labels = features.sum(axis=1, keepdims=True)
BATCH, EPOCHS = 8, 3

x = tf.placeholder(tf.float32, [None, 4])
y = tf.placeholder(tf.float32, [None, 1])
w = tf.get_variable("w", [4, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.05 * hvd.size(), step, 25 / hvd.size(), 0.5, staircase=True)
optimizer = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(rate))
train = optimizer.minimize(loss, global_step=step)

config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())
share = len(features) // hvd.size()
features = features[hvd.rank() * share : (hvd.rank() + 1) * share]
labels = labels[hvd.rank() * share : (hvd.rank() + 1) * share]
with tf.Session(config=config) as session:
    session.run(tf.global_variables_initializer())
    session.run(hvd.broadcast_global_variables(0))
    for epoch in range(EPOCHS):
        for start in range(0, len(features) - BATCH + 1, BATCH):
            rows = slice(start, start + BATCH)
            _, value = session.run([train, loss], feed_dict={x: features[rows], y: labels[rows]})
        if hvd.rank() == 0:
            print("epoch", epoch, value)
