import numpy as np
import tensorflow.compat.v1 as tf

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
rate = tf.train.exponential_decay(0.05, step, 25, 0.5, staircase=True)
train = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for epoch in range(EPOCHS):
        for start in range(0, len(features) - BATCH + 1, BATCH):
            rows = slice(start, start + BATCH)
            _, value = session.run([train, loss], feed_dict={x: features[rows], y: labels[rows]})
        print("epoch", epoch, value)
