"""Time an epoch on one process and, converted, on two ranks, which must take less than 0.65 of the time.

    PYTHONPATH=tests python -m perf.epoch_speed

The script computes nearly all of the time, and each process has one thread.  Both elapsed time and processor
time are printed: on a shared machine, only the latter is meaningful.
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

x = tf.random.stateless_normal([1024, 256], seed=(1, 2))
data = tf.data.Dataset.from_tensor_slices((x, x)).shuffle(1024).batch(64)
layers = [tf.keras.layers.Dense(width, "relu") for width in (512, 512, 256)]
model = tf.keras.Sequential(layers)
optimizer = tf.keras.optimizers.SGD(1e-4)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        for _ in range(120):
            loss += 1e-3 * tf.reduce_mean(tf.square(model(x, training=True)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


for epoch in range(5):
    began, computed = time.time(), time.process_time()
    for x, y in data:
        train_step(x, y)
    print("epoch", time.time() - began, time.process_time() - computed)
"""


def main() -> int:
    """Print the times and their ratios; return 1 if the ratio of elapsed times is too high."""
    conversion = convert(SCRIPT)
    assert conversion.status is Status.CONVERTED, conversion.reason
    runner = [str(Path(sys.executable).with_name("horovodrun")), "--gloo", "-np", "2"]
    alone, shared = epoch(SCRIPT, []), epoch(conversion.text, runner)
    for what, one, two in zip(("an epoch", "its computing"), alone, shared, strict=True):
        print(f"{what}: {one:.2f} s on one process, {two:.2f} s on two ranks, {two / one:.2f} of it")
    return int(shared[0] / alone[0] >= MOST)


def epoch(script: str, runner: list[str]) -> tuple[float, float]:
    """The shortest times of an epoch after the first: elapsed time, and processor time."""
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
    lines = [line.split() for line in done.stdout.splitlines() if "epoch " in line]
    passed, computed = zip(*((float(line[-2]), float(line[-1])) for line in lines[1:]), strict=True)
    return min(passed), min(computed)


if __name__ == "__main__":
    sys.exit(main())
