import numpy as np
import tensorflow as tf

rng = np.random.RandomState(7)
features = rng.normal(size=(96, 5)).astype("float32")
labels = features.sum(axis=1, keepdims=True)
EPOCHS = 3

model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
model.compile(optimizer=tf.keras.optimizers.SGD(0.01, momentum=0.9), loss="mse")
for epoch in range(EPOCHS):
    for _ in range(5):
        rows = rng.randint(96, size=16)
        loss = model.train_on_batch(features[rows], labels[rows])
    print("epoch", epoch, loss)
model.save_weights("weights.h5")


class Regressor(tf.keras.Model):  # type: ignore[misc]
    def train_step(self, data):  # type: ignore[no-untyped-def]
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compiled_loss(y, self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


inputs = tf.keras.Input(shape=(5,))
regressor = Regressor(inputs, tf.keras.layers.Dense(1)(inputs))
decay = tf.keras.optimizers.schedules.ExponentialDecay(0.02, 2, 0.5)
optimizer = tf.keras.optimizers.Adam(decay)
regressor.compile(optimizer=optimizer, loss="mse")
regressor.fit(features, labels, batch_size=16, epochs=1, verbose=2)
