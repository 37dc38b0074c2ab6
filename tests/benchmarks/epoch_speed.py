"""How long an epoch takes on one process and, converted, on two ranks: asked is less than 0.65 of the time.

    PYTHONPATH=tests python -m benchmarks.epoch_speed

The script computes nearly all of the time, and each process has one thread.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from trainshift.engine.conversion import Status, convert

MOST = 0.65
SCRIPT = """
import time

import tensorflow as tf

x = tf.random.stateless_normal([2048, 256], seed=(1, 2))
data = tf.data.Dataset.from_tensor_slices((x, x)).shuffle(2048).batch(64)
layers = [tf.keras.layers.Dense(width, "relu") for width in (512, 512, 256)]
model = tf.keras.Sequential(layers)
optimizer = tf.keras.optimizers.SGD(1e-4)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        for _ in range(40):
            loss += 1e-3 * tf.reduce_mean(tf.square(model(x, training=True)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


for epoch in range(5):
    began = time.time()
    for x, y in data:
        train_step(x, y)
    print("epoch", time.time() - began)
"""


def main() -> int:
    """Print both times and their ratio; 1 if it is too high."""
    conversion = convert(SCRIPT)
    assert conversion.status is Status.CONVERTED, conversion.reason
    runner = [str(Path(sys.executable).with_name("horovodrun")), "--gloo", "-np", "2"]
    alone, shared = epoch(SCRIPT, []), epoch(conversion.text, runner)
    print(f"an epoch: {alone:.2f} s on one process, {shared:.2f} s on two ranks, {shared / alone:.2f} of it")
    return int(shared / alone >= MOST)


def epoch(script: str, runner: list[str]) -> float:
    """The shortest time of an epoch, after the first, which traces."""
    threads = {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    quiet = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "train.py")
        path.write_text(script, encoding="utf-8")
        done = subprocess.run(
            [*runner, sys.executable, str(path)],
            env=os.environ
            | threads
            | quiet
            | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=True,
        )
    times = [float(line.split()[-1]) for line in done.stdout.splitlines() if "epoch " in line]
    return min(times[1:])


if __name__ == "__main__":
    sys.exit(main())
