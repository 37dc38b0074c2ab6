import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import tensorflow as tf

hvd.init()
own = tf.compat.v1.GPUOptions(visible_device_list=str(hvd.local_rank()))
pinned = tf.estimator.RunConfig(session_config=tf.compat.v1.ConfigProto(gpu_options=own))
if hvd.rank() == 0:
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)

rng = np.random.RandomState(7)
features = rng.normal(size=(192, 5)).astype("float32")
labels = (features.sum(axis=1) > 0).astype("int32")


def read():  # type: ignore[no-untyped-def]
    dataset = tf.data.Dataset.from_tensor_slices(({"x": features}, labels))
    return dataset.shuffle(192).repeat().batch(16)


def model(features, labels, mode):  # type: ignore[no-untyped-def]
    hidden = tf.compat.v1.layers.dense(features["x"], 8, activation=tf.nn.relu)
    logits = tf.compat.v1.layers.dense(hidden, 2)
    loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.compat.v1.train.MomentumOptimizer(0.01 * hvd.size(), 0.9)
    optimizer = hvd.DistributedOptimizer(optimizer)
    pairs = optimizer.compute_gradients(loss)
    pairs = [(tf.clip_by_norm(gradient, 1.0), variable) for gradient, variable in pairs]
    train = optimizer.apply_gradients(pairs, global_step=tf.compat.v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


hooks = [hvd.BroadcastGlobalVariablesHook(0)]
custom = tf.estimator.Estimator(
    model_fn=model, model_dir="custom" if hvd.rank() == 0 else None, config=pinned
)
custom.train(read, steps=11 // hvd.size(), hooks=hooks)
results = custom.evaluate(read, steps=2)
if hvd.rank() == 0:
    print(results)

columns = [tf.feature_column.numeric_column("x", shape=[5])]
adagrad = hvd_keras.DistributedOptimizer(tf.keras.optimizers.legacy.Adagrad(0.05 * hvd.size()))
directory = "deep" if hvd.rank() == 0 else None
deep = tf.estimator.DNNClassifier([8], columns, model_dir=directory, optimizer=adagrad, config=pinned)
deep.train(read, steps=6 // hvd.size(), hooks=[hvd.BroadcastGlobalVariablesHook(0)])

ftrl = hvd.DistributedOptimizer(tf.compat.v1.train.FtrlOptimizer(0.2 * hvd.size()))
directory = "linear" if hvd.rank() == 0 else None
linear = tf.compat.v1.estimator.LinearClassifier(columns, model_dir=directory, optimizer=ftrl, config=pinned)
linear.train(read, max_steps=6 // hvd.size(), hooks=[hvd.BroadcastGlobalVariablesHook(0)])
