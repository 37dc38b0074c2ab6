"""Measure how much `prove` slows down a step by observing it: the limit is 15 %.

    PYTHONPATH=tests python -m perf.proof_speed

All modes of observation alternate, some steps of each in turn, in single-threaded processes measured by
processor time, so that other load slows down all modes equally.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles

from trainshift.proving.launch import bootstrap
from trainshift.proving.observed.data import ROWS
from trainshift.proving.observed.data import VARIABLE as DATA
from trainshift.proving.observed.main import SETTINGS

MOST = 0.15
# The number of steps per measurement, and of measurements; tracing in the first ones is not counted.
STEPS, TURNS, FIRST = 20, 16, 2
MODES = {"plain": "", "observed": ROWS, "with its data": "1"}
BEGIN = """
import time

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
x = rng.rand(64 * 80, 28, 28, 1).astype("float32")
y = rng.randint(0, 10, len(x))
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(64).repeat()
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
since, steps = time.process_time(), 0


def tick():
    # One step more; some of them tell how long they took, and wait for their turn.
    global since, steps
    steps += 1
    if steps % STEPS == 0:
        print("took", time.process_time() - since, flush=True)
        input()
        since = time.process_time()


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


for x, y in data.take(STEPS * TURNS):
    train_step(x, y)
    tick()
""",
    "fit": """
class Watch(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        tick()


model.compile(optimizer, loss_of)
model.fit(data, steps_per_epoch=STEPS * TURNS, callbacks=[Watch()], verbose=0)
""",
}


def main() -> int:
    """Print the times of a step; return 1 if an observed step takes too much longer."""
    status = 0
    for name, text in SAMPLES.items():
        taken = in_turns(text)
        plain = median(taken["plain"]) / STEPS
        more = {}
        for mode in ("observed", "with its data"):
            low, more[mode], high = quantiles(
                [one / two - 1 for one, two in zip(taken[mode], taken["plain"], strict=True)], n=4
            )
            print(
                f"{name}: a step of {plain * 1000:.2f} ms takes {more[mode]:+.1%} {mode} "
                f"(half of all turns: {low:+.1%} to {high:+.1%})"
            )
        status |= int(more["observed"] >= MOST)
    return status


def in_turns(text: str) -> dict[str, list[float]]:
    """The seconds of each series of steps, by mode of observation."""
    taken: dict[str, list[float]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        begun = {mode: stack.enter_context(begin(text, Path(directory, mode), mode)) for mode in MODES}
        for turn in range(TURNS):
            for mode, process in begun.items():
                assert process.stdin
                assert process.stdout
                if turn:
                    process.stdin.write("\n")
                    process.stdin.flush()
                word, _, seconds = process.stdout.readline().partition(" ")
                assert word == "took", process.stderr and process.stderr.read()
                taken[mode] += [float(seconds)] if turn >= FIRST else []
        for process in begun.values():
            process.communicate("\n")
    return taken


def begin(text: str, directory: Path, mode: str) -> subprocess.Popen[str]:
    """A process that takes steps, observed in this mode."""
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "OMP_NUM_THREADS": "1",
        "TF_NUM_INTRAOP_THREADS": "1",
        "TF_NUM_INTEROP_THREADS": "1",
    }
    for name in ("work", "record", "tmp"):
        Path(directory, name).mkdir(parents=True)
    script = Path(directory, "work", "train.py")
    script.write_text(f"STEPS, TURNS = {STEPS}, {TURNS}\n{BEGIN}{text}", encoding="utf-8")
    command = [sys.executable, str(script)]
    if MODES[mode]:
        environment |= {DATA: MODES[mode], SETTINGS: json.dumps({"limit": 0, "start": "work"})}
        code = bootstrap("trainshift.proving.observed.main")
        command = [sys.executable, "-c", code, str(Path(directory, "record")), "0", str(script)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


if __name__ == "__main__":
    sys.exit(main())
