import horovod.tensorflow as hvd
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
hvd.init()
pinned = tf.ConfigProto(gpu_options=tf.GPUOptions(visible_device_list=str(hvd.local_rank())))

rng = np.random.RandomState(7)
features = rng.normal(size=(192, 5)).astype("float32")
targets = features.sum(axis=1, keepdims=True)

x = tf.placeholder(tf.float32, [None, 5])
y = tf.placeholder(tf.float32, [None, 1])
w = tf.get_variable("w", [5, 8])
v = tf.get_variable("v", [8, 1], use_resource=True)
hidden = tf.nn.relu(tf.matmul(x, w))
loss = tf.reduce_mean(tf.square(tf.matmul(hidden, v) - y))
global_step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.01 * hvd.size(), global_step, 4, 0.5, staircase=True)
optimizer = tf.train.MomentumOptimizer(rate, 0.9)
optimizer = hvd.DistributedOptimizer(optimizer)
train = optimizer.minimize(loss, global_step=global_step)

saver = tf.train.Saver()
with tf.Session(config=pinned) as session:
    session.run(tf.global_variables_initializer())
    session.run(hvd.broadcast_global_variables(0))
    for step in range(12 // hvd.size()):
        rows = rng.randint(192, size=16)
        value, _ = session.run([loss, train], feed_dict={x: features[rows], y: targets[rows]})
        if step % 4 == 0 and hvd.rank() == 0:
            print(step, value)
    if hvd.rank() == 0:
        saver.save(session, "./model.ckpt")
