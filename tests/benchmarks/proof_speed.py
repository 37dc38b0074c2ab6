"""How much longer a step takes where `prove` observes it: asked is less than 15 %.

    PYTHONPATH=tests python -m benchmarks.proof_speed

Each process has one thread, and a step's time is that of the processor, since others may use
the machine, too; the shortest of a few runs' medians.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from trainshift.proving.launch import bootstrap
from trainshift.proving.observed.data import ROWS
from trainshift.proving.observed.data import VARIABLE as DATA
from trainshift.proving.observed.main import SETTINGS

MOST = 0.15
RUNS = 3
BEGIN = """
import statistics
import time

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
x = rng.rand(64 * 80, 28, 28, 1).astype("float32")
y = rng.randint(0, 10, len(x))
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(64)
layers = tf.keras.layers
model = tf.keras.Sequential(
    [
        layers.Conv2D(16, 3, activation="relu", input_shape=(28, 28, 1)),
        layers.Conv2D(32, 3, strides=2, activation="relu"),
        layers.Flatten(),
        layers.Dense(64, activation="relu"),
        layers.Dense(10),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
times = []
"""
END = """
print("a step", statistics.median(late - early for early, late in zip(times[5:], times[6:])))
"""
SAMPLES = {
    "a tape": """
@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for x, y in data:
    train_step(x, y)
    times.append(time.process_time())
""",
    "fit": """
class Watch(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        times.append(time.process_time())


model.compile(optimizer, loss_of)
model.fit(data, callbacks=[Watch()], verbose=0)
""",
}


def main() -> int:
    """Print the times of a step; 1 if one that is observed takes too much longer."""
    status = 0
    for name, text in SAMPLES.items():
        plain, rows, data = (step(text, mode) for mode in ("", ROWS, "1"))
        print(
            f"{name}: a step of {plain * 1000:.2f} ms takes {(rows / plain - 1):+.0%} when observed, "
            f"{(data / plain - 1):+.0%} with its data"
        )
        status |= int(rows / plain - 1 >= MOST)
    return status


def step(text: str, mode: str) -> float:
    """The time of a step, observed in this mode (not where there is none)."""
    return min(timed(text, mode) for _ in range(RUNS))


def timed(text: str, mode: str) -> float:
    """The median of one run."""
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "OMP_NUM_THREADS": "1",
        "TF_NUM_INTRAOP_THREADS": "1",
        "TF_NUM_INTEROP_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as directory:
        for name in ("work", "record", "tmp"):
            Path(directory, name).mkdir()
        script = Path(directory, "work", "train.py")
        script.write_text(BEGIN + text + END, encoding="utf-8")
        command = [sys.executable, str(script)]
        if mode:
            environment |= {DATA: mode, SETTINGS: json.dumps({"limit": 0, "start": "work"})}
            code = bootstrap("trainshift.proving.observed.main")
            command = [sys.executable, "-c", code, str(Path(directory, "record")), "0", str(script)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split("a step")[1])


if __name__ == "__main__":
    sys.exit(main())
