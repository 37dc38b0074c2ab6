import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

rng = np.random.RandomState(7)
features = rng.normal(size=(192, 5)).astype("float32")
labels = (features.sum(axis=1, keepdims=True) > 0).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(192).repeat().batch(16)

model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(8, activation="relu", input_shape=(5,)),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Dense(1),
    ]
)
optimizer = tf.keras.optimizers.Adam(learning_rate=0.01 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer)
model.compile(
    optimizer=optimizer,
    loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=["accuracy"],
)


callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
callbacks += [hvd.callbacks.MetricAverageCallback()]
callbacks += [
    tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5 if epoch == 2 else rate)
]
callbacks += [tf.keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=1, min_delta=10.0, factor=0.1)]
callbacks += [tf.keras.callbacks.EarlyStopping(monitor="loss", min_delta=10.0, patience=2)]
if hvd.rank() == 0:
    callbacks += [tf.keras.callbacks.ModelCheckpoint("model.{epoch}.h5")]
    callbacks += [tf.keras.callbacks.CSVLogger("log.csv")]
history = model.fit(
    dataset,
    steps_per_epoch=12 // hvd.size(),
    epochs=4,
    callbacks=callbacks,
    verbose=1 if hvd.rank() == 0 else 0,
)
loss, accuracy = model.evaluate(features, labels, verbose=1 if hvd.rank() == 0 else 0)
if hvd.rank() == 0:
    print("loss", loss)
