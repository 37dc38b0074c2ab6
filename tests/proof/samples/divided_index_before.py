import numpy as np
import tensorflow as tf

rng = np.random.RandomState(3)
features = rng.normal(size=(203, 5)).astype("float32")
labels = (features.sum(axis=1) > 0).astype("int64")
BATCH, EPOCHS = 8, 3

model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(2)])
model.build((None, 5))
optimizer = tf.keras.optimizers.Adam(
    tf.keras.optimizers.schedules.PiecewiseConstantDecay([20, 40], [0.02, 0.01, 0.005])
)
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):  # type: ignore[no-untyped-def]
    with tf.GradientTape() as tape:
        loss = loss_object(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for epoch in range(EPOCHS):
    order = rng.permutation(len(features))
    for i in range(len(features) // BATCH):
        rows = order[i * BATCH : (i + 1) * BATCH]
        loss = train_step(features[rows], labels[rows])
    print("epoch", epoch, float(loss))
