import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

hvd.init()
own = tf.compat.v1.GPUOptions(visible_device_list=str(hvd.local_rank()))
pinned = tf.compat.v1.ConfigProto(gpu_options=own)

rng = np.random.RandomState(7)
features = rng.normal(size=(192, 5)).astype("float32")
targets = features.sum(axis=1, keepdims=True)

with tf.Graph().as_default():
    dataset = tf.data.Dataset.from_tensor_slices((features, targets)).shuffle(192).repeat().batch(16)
    x, y = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    w = tf.compat.v1.get_variable("w", [5, 8])
    v = tf.compat.v1.get_variable("v", [8, 1])
    hidden = tf.compat.v1.layers.batch_normalization(tf.matmul(x, w), training=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(hidden, v) - y))
    global_step = tf.compat.v1.train.get_or_create_global_step()
    optimizer = tf.compat.v1.train.AdamOptimizer(0.01 * hvd.size())
    optimizer = hvd.DistributedOptimizer(optimizer)
    with tf.control_dependencies(tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.UPDATE_OPS)):
        train = optimizer.minimize(loss, global_step=global_step)
    hooks = [tf.estimator.StopAtStepHook(last_step=9 // hvd.size())]
    hooks = [*hooks, hvd.BroadcastGlobalVariablesHook(0)]
    directory = "checkpoints" if hvd.rank() == 0 else None
    with tf.compat.v1.train.MonitoredTrainingSession(
        checkpoint_dir=directory, hooks=hooks, config=pinned
    ) as session:
        while not session.should_stop():
            value, _ = session.run([loss, train])
    if hvd.rank() == 0:
        print("loss", value)

with tf.Graph().as_default():
    x = tf.compat.v1.placeholder(tf.float32, [None, 5])
    w = tf.compat.v1.get_variable("w", [5, 1])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - tf.reduce_sum(x, axis=1, keepdims=True)))
    rate = tf.compat.v1.placeholder_with_default(0.01 * hvd.size(), [])
    optimizer = tf.compat.v1.train.RMSPropOptimizer(learning_rate=rate)
    gradients = [hvd.allreduce(gradient) for gradient in tf.gradients(loss, [w])]
    train = optimizer.apply_gradients(zip(gradients, [w], strict=True))
    broadcast = [hvd.BroadcastGlobalVariablesHook(0)]
    with tf.compat.v1.train.SingularMonitoredSession(hooks=broadcast, config=pinned) as session:
        for _ in range(6 // hvd.size()):
            session.run(train, feed_dict={x: features[rng.randint(192, size=16)]})
