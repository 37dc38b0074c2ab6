import numpy as np
import tensorflow as tf

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
optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)
model.compile(
    optimizer=optimizer,
    loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=["accuracy"],
)


history = model.fit(
    dataset,
    steps_per_epoch=12,
    epochs=4,
    callbacks=[
        tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5 if epoch == 2 else rate),
        tf.keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=1, min_delta=10.0, factor=0.1),
        tf.keras.callbacks.EarlyStopping(monitor="loss", min_delta=10.0, patience=2),
        tf.keras.callbacks.ModelCheckpoint("model.{epoch}.h5"),
        tf.keras.callbacks.CSVLogger("log.csv"),
    ],
)
loss, accuracy = model.evaluate(features, labels)
print("loss", loss)
