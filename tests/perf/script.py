"""Generates training scripts of any length for the benchmarks: the same text for the same number of lines.

A script has the shape of those found in the wild: a header, then pipelines, layers, models, losses,
callbacks and loops, and a `main`.  Its middle holds a function for the benchmark to edit, its header an
unused import, which linters offer to remove.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from random import Random

GAP = "\n\n\n"

HEADER = '''\
"""Trains what the benchmark measures."""

import argparse
import os
import shutil

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers'''

# Every line is edited by some server's probe; no linter reports any of them before that.
PROBE = '''\
def probe_schedule(probe_steps, t=1):
    """What the benchmark edits."""
    probe_alias = t
    probe_scale = probe_steps
    probe_label = "probe"
    return probe_alias, probe_scale, probe_label'''

FOOTER = """\
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    print("schedule", probe_schedule(arguments.epochs))


if __name__ == "__main__":
    main()"""

# NAME is replaced by a name that no other block has, CLASS by its class name, SIZE by a number.
BLOCKS = [
    '''\
def make_NAME_dataset(paths, batch_size=SIZE, training=True):
    """Reads the records of NAME."""

    def parse(record):
        example = tf.io.parse_single_example(
            record,
            {
                "x": tf.io.FixedLenFeature([SIZE], tf.float32),
                "y": tf.io.FixedLenFeature([], tf.int64),
            },
        )
        return tf.cast(example["x"], tf.float32) / 255.0, tf.one_hot(example["y"], SIZE)

    dataset = tf.data.TFRecordDataset(paths, num_parallel_reads=tf.data.AUTOTUNE)
    if training:
        dataset = dataset.shuffle(SIZE, seed=SIZE).repeat()
    dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(batch_size, drop_remainder=training).prefetch(tf.data.AUTOTUNE)''',
    '''\
class CLASSLayer(layers.Layer):
    """Projects, normalizes and drops."""

    def __init__(self, units=SIZE, rate=0.1, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.norm = layers.LayerNormalization(epsilon=1e-6)
        self.drop = layers.Dropout(rate)
        self.project = layers.Dense(units, activation="gelu", name="project")

    def build(self, input_shape):
        self.kernel = self.add_weight(
            name="kernel",
            shape=(int(input_shape[-1]), self.units),
            initializer="glorot_uniform",
            trainable=True,
        )
        super().build(input_shape)

    def call(self, inputs, training=None, mask=None):
        hidden = self.project(tf.matmul(inputs, self.kernel))
        if mask is not None:
            hidden *= tf.cast(mask[..., tf.newaxis], hidden.dtype)
        return self.norm(self.drop(tf.nn.relu(hidden), training=training))''',
    '''\
def build_NAME_model(input_shape=(SIZE, SIZE, 3), classes=SIZE):
    """A convolutional network for NAME."""
    inputs = keras.Input(shape=input_shape, name="inputs")
    x = layers.Rescaling(1.0 / 255)(inputs)
    # two stages, the second one twice as wide
    for filters in (SIZE, SIZE):
        shortcut = layers.Conv2D(filters, 1, padding="same")(x)
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization(momentum=0.9)(x)
        x = layers.Add()([layers.Activation("relu")(x), shortcut])
    x = layers.GlobalAveragePooling2D()(x)
    outputs = layers.Dense(classes, activation="softmax", dtype="float32")(x)
    model = keras.Model(inputs=inputs, outputs=outputs, name="NAME")
    model.compile(
        optimizer=keras.optimizers.Adam(learning_rate=3e-4),
        loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
        metrics=["accuracy", keras.metrics.TopKCategoricalAccuracy(k=5)],
    )
    return model''',
    '''\
def NAME_loss(y_true, y_pred, gamma=2.0, alpha=0.25):
    """A focal loss for NAME."""
    y_pred = tf.clip_by_value(y_pred, keras.backend.epsilon(), 1.0 - keras.backend.epsilon())
    cross = -y_true * tf.math.log(y_pred)
    return tf.reduce_mean(tf.reduce_sum(alpha * tf.pow(1.0 - y_pred, gamma) * cross, axis=-1))''',
    '''\
class CLASSCallback(tf.keras.callbacks.Callback):
    """Logs NAME and stops early."""

    def __init__(self, patience=SIZE, logdir="/tmp/NAME"):
        super().__init__()
        self.patience = patience
        self.best, self.wait = np.inf, 0
        self.writer = tf.summary.create_file_writer(logdir)

    def on_epoch_end(self, epoch, logs=None):
        logs = logs or {}
        with self.writer.as_default():
            for key, value in logs.items():
                tf.summary.scalar(key, value, step=epoch)
        self.wait = 0 if logs.get("loss", 0.0) < self.best else self.wait + 1
        self.best = min(self.best, logs.get("loss", 0.0))
        if self.wait >= self.patience:
            self.model.stop_training = True''',
    '''\
def train_NAME(model, dataset, epochs=SIZE, steps_per_epoch=SIZE):
    """A loop of its own over the batches of NAME."""
    optimizer = tf.keras.optimizers.SGD(0.01)
    loss_fn = tf.keras.losses.CategoricalCrossentropy(from_logits=True)
    history = []
    for epoch in range(epochs):
        running = 0.0
        for step, (batch, labels) in enumerate(dataset.take(steps_per_epoch)):
            with tf.GradientTape() as tape:
                logits = model(batch, training=True)
                loss = loss_fn(labels, logits)
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
            running += float(loss)
            if step % SIZE == 0:
                print(f"epoch {epoch} step {step}: loss={running / (step + 1):.4f}")
        history.append({"epoch": epoch, "loss": running})
    model.save_weights(os.path.join("/tmp", "NAME.weights.h5"))
    return history''',
    '''\
def fit_NAME(model, train_ds, val_ds=None, epochs=SIZE, logdir="/tmp/NAME"):
    """Fits a compiled model to NAME."""
    callbacks = [
        tf.keras.callbacks.ModelCheckpoint(os.path.join(logdir, "NAME.keras"), save_best_only=True),
        tf.keras.callbacks.EarlyStopping(patience=SIZE, restore_best_weights=True),
        tf.keras.callbacks.TensorBoard(logdir, histogram_freq=1),
    ]
    history = model.fit(train_ds, validation_data=val_ds, epochs=epochs, callbacks=callbacks, verbose=2)
    for key, value in history.history.items():
        print("NAME", key, round(float(value[-1]), 4))
    return model, min(history.history["loss"])''',
]

ADJECTIVES = [
    "small",
    "deep",
    "wide",
    "fast",
    "dense",
    "sparse",
    "gated",
    "local",
    "global",
    "masked",
    "noisy",
]
NOUNS = [
    "image",
    "text",
    "audio",
    "token",
    "patch",
    "frame",
    "price",
    "query",
    "item",
    "click",
    "video",
    "pose",
]


def script(lines: int, variant: int = 0) -> str:
    """A training script of exactly `lines` lines, 100 at least; each variant has other blocks."""
    free = lines - 1 - GAP.join([HEADER, PROBE, FOOTER]).count("\n")
    blocks: list[str] = []
    for block in endless_blocks(Random(lines + 1_000_003 * variant)):
        taken = (GAP + block).count("\n")
        if taken > free:
            break
        blocks.append(block)
        free -= taken
    middle = len(blocks) // 2
    # Comments fill the script up to the exact length.
    parts = ["\n".join([HEADER, *["#"] * free]), *blocks[:middle], PROBE, *blocks[middle:], FOOTER]
    return GAP.join(parts) + "\n"


def program(files: int, lines: int) -> dict[str, str]:
    """The texts of a program of so many files of about `lines` lines, by name; `train.py` starts it.

    The start file calls a function of each other file, which trains in one loop and leaves the file's other
    ones alone, and each of those files imports the next one.
    """
    names = [f"part_{number}" for number in range(1, files)]
    texts = {}
    for number, name in enumerate(names):
        body = script(lines, number + 1).partition("def main():")[0]
        loop = re.search(r"^def ((?:train|fit)_\w+)", body, re.M)
        call = f"    {loop[1]}(model, dataset)" if loop is not None else "    pass"
        imports = "".join(f"\nimport {following}" for following in names[number + 1 : number + 2])
        text = "\n".join([f"{body}def run_all(model, dataset):", call, ""])
        texts[f"{name}.py"] = text.replace("import shutil", f"import shutil{imports}")
    head, _, main = script(lines).partition("def main():\n")
    head = head.replace("import shutil", "\n".join(["import shutil", *(f"import {name}" for name in names)]))
    model = "    model = keras.Sequential([layers.Dense(1)])\n"
    model += '    model.compile(keras.optimizers.Adam(1e-3), "mse")\n'
    model += "    dataset = tf.data.Dataset.range(9).batch(3)\n"
    calls = "".join(f"    {name}.run_all(model, dataset)\n" for name in names)
    start, guard, end = main.partition("\n\nif __name__")
    return {"train.py": f"{head}def main():\n{model}{calls}{start}{guard}{end}", **texts}


def endless_blocks(random: Random) -> Iterator[str]:
    """Blocks in any order, each with names and numbers of its own."""
    for number in count(1):
        name = f"{random.choice(ADJECTIVES)}_{random.choice(NOUNS)}_{number}"
        first, *others = random.choice(BLOCKS).split("SIZE")
        text = first + "".join(f"{random.randint(2, 256)}{other}" for other in others)
        yield text.replace("NAME", name).replace("CLASS", name.title().replace("_", ""))
