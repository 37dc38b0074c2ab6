/** A small, typical project of training scripts. */

export const TRAIN = `"""Trains a small convolutional network on Fashion-MNIST."""
import time

import tensorflow as tf

from data import load_images

BATCH_SIZE = 64
EPOCHS = 5

Adam = tf.keras.optimizers.Adam
optimizer = Adam(learning_rate=1e-3)
model = tf.keras.Sequential([
    tf.keras.layers.Conv2D(32, 3, activation="relu"),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(10),  # logits
])
cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
manager = tf.train.CheckpointManager(checkpoint, "checkpoints", max_to_keep=3)


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        loss = cross_entropy(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


start = time.time()
dataset = tf.data.Dataset.from_tensor_slices(load_images("train")).batch(BATCH_SIZE)
for epoch in range(EPOCHS):
    for images, labels in dataset:
        loss = train_step(images, labels)
    print(f"epoch {epoch}: loss {loss:.3f}, saved {manager.save()}")

model.save("model.keras")
print(f"{time.time() - start:.1f} s in all")
`;

export const DATA = `"""Fashion-MNIST as it comes from Keras."""
import numpy as np
from tensorflow import keras


def load_images(part):
    train, test = keras.datasets.fashion_mnist.load_data()
    images, labels = train if part == "train" else test
    return images[..., np.newaxis].astype("float32") / 255, labels.astype("int64")
`;

/** A script of its own, with one warning. */
export const FINETUNE = `"""Fits a classifier on top of a network that is trained already."""
import tensorflow as tf

keras = tf.keras
base = keras.applications.MobileNetV2(include_top=False, pooling="avg")
base.trainable = False
model = keras.Sequential([base, keras.layers.Dense(5, activation="softmax")])
model.compile(optimizer=keras.optimizers.Adam(1e-4), loss="sparse_categorical_crossentropy")
pictures = keras.utils.image_dataset_from_directory("pictures")
model.fit(pictures, epochs=3)
`;

export const PROJECT = {
  "train.py": TRAIN,
  "data.py": DATA,
  "finetune.py": FINETUNE,
  "requirements.txt": "tensorflow==2.15.1\nhorovod==0.28.1\n",
};
