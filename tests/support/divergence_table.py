"""The table source x sink: values that differ between ranks, or not, and where they matter.

A cell is a script: `HEAD`, `value = ` a source, and a sink, which uses `value`.
"""

from __future__ import annotations

HEAD = """import glob
import os
import random
import secrets
import socket
import time
import urllib.request
import uuid
import numpy as np
import tensorflow as tf

x, y = np.load("x.npy"), np.load("y.npy")
"""
SOURCES = {
    "random": "random.randint(1, 5)",
    "numpy": "np.random.randint(1, 5)",
    "a generator": "int(np.random.default_rng().integers(1, 5))",
    "tensorflow": "int(tf.random.uniform([], 1, 5, tf.int32))",
    "a choice": "random.choice([1, 2, 4])",
    "secrets": "secrets.randbelow(4) + 1",
    "uuid": "uuid.uuid4().int % 4 + 1",
    "the clock": "int(time.time()) % 4 + 1",
    "the machine": "os.cpu_count()",
    "the name of the machine": "len(socket.gethostname().split('-')) + os.getpid() % 2",
    "files": "len(glob.glob('*.npy'))",
    "a list of files": "len(os.listdir('data'))",
    "a service": "int(urllib.request.urlopen('http://settings/units').read())",
    "rows of a shape": "np.shape(x[: random.randint(1, 9)])[0]",
    "rows of an attribute": "x[: random.randint(1, 9)].shape[0]",
    "rows of files": "int(tf.shape(np.array(os.listdir('data')))[0])",
    "a launcher": "int(os.environ['SLURM_PROCID']) + 1",
}
ALIKE = {
    "a constant": "3",
    "an argument": "int(os.environ['UNITS'])",
    "a shape of what is drawn": "np.random.rand(8, 4).shape[1]",
    "axes of what is drawn": "len(np.shape(x[np.random.rand(len(x)) < 0.8]))",
    "a length of what is shuffled": "len(random.sample(range(100), 4))",
    "a seeded generator": "int(np.random.default_rng(7).integers(1, 5))",
    "a seeded draw": "random.Random(3).randint(1, 5)",
}
LOOP = """net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1)
for a, b in tf.data.Dataset.from_tensor_slices((x, y)).batch(8):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(a) - b) ** 2)
    grads = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables))
"""
FIT = """model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, epochs=value)
"""
BUILD = """def build(units):
    return tf.keras.Sequential([tf.keras.layers.Dense(units)])


net = build(value)"""


def changed(old: str, new: str, text: str = LOOP) -> str:
    """A text with one of its parts replaced."""
    assert old in text
    return text.replace(old, new)


SINKS = {
    "a rate": changed("SGD(0.1)", "SGD(0.1 * value)"),
    "a momentum": changed("SGD(0.1)", "SGD(0.1, momentum=0.1 * value)"),
    "a width": changed("[tf.keras", "[tf.keras.layers.Dense(value), tf.keras"),
    "a width of a function": changed("net = tf.keras.Sequential([tf.keras.layers.Dense(1)])", BUILD),
    "a number of layers": changed(
        "opt =", "for _ in range(value):\n    net.add(tf.keras.layers.Dense(4))\nopt ="
    ),
    "a layer or not": changed("opt =", "if value > 2:\n    net.add(tf.keras.layers.Dense(4))\nopt ="),
    "variables": changed("(loss, net.trainable_variables)", "(loss, net.trainable_variables[:value])"),
    "turns": changed("\n    ", "\n        ").replace("for a, b", "for epoch in range(value):\n    for a, b"),
    "a skipped step": changed("    with tf.Grad", "    if value > 2:\n        continue\n    with tf.Grad"),
    "the end of a loop": LOOP + "    if value > 3:\n        break\n",
    "a number of rows": changed("(x, y)).batch", "(x, y)).take(value * 8).batch"),
    "rows of an array": changed("(x, y)).batch", "(x[:value * 8], y[:value * 8])).batch"),
    "layers that are frozen": changed(
        "[tf.keras.layers.Dense(1)])", "[tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])"
    ).replace("opt =", "net.layers[0].trainable = value > 2\nopt ="),
    "rows to train on and to test on": changed(
        "(x, y)).batch", "(x[order[8:]], y[order[8:]])).batch"
    ).replace("net =", "order = np.argsort([(row * value) % 7 for row in range(len(x))])\nnet =")
    + "print(float(tf.reduce_sum(net(x[order[:8]]))))\n",
    "gradients that are changed": changed(
        "    opt.apply", "    grads = [g * value for g in grads]\n    opt.apply"
    ),
    "weights that are set": LOOP + "    net.set_weights([each * value for each in net.get_weights()])\n",
    "epochs of fit": FIT,
    "a rate that is set": LOOP + "    opt.learning_rate = 0.1 * value\n",
    "a rate that is set or not": LOOP + "    if value > 3:\n        opt.learning_rate.assign(0.01)\n",
}


def cell(value: str, sink: str) -> str:
    """The script of a cell; the value is an expression, the sink a name in `SINKS`."""
    return f"{HEAD}value = {value}\n{SINKS[sink]}"


ROWS = {
    "rows of a batch": "len(a)",
    "rows of a tensor": "float(tf.shape(a)[0])",
    "a shape of a batch": "a.shape[0]",
}
"""Numbers of rows, which a rank has of its own if the ranks share whole batches."""
OWN_SOURCES = {
    "a loss": "float(loss)",
    "a batch": "float(tf.reduce_mean(a))",
    "targets of a batch": "np.mean(b)",
    "a prediction": "float(tf.reduce_mean(net(a)))",
    "a metric": "float(m.result())",
    **ROWS,
}
"""Values that a rank has of its own within its loop."""
UNIFORM_SOURCES = {
    "a count": "epoch + 1",
    "columns of a batch": "a.shape[1]",
    "all columns of a batch": "np.prod(a.shape[1:])",
    "axes of a batch": "a.shape.ndims",
    "a number of a batch": "number + 1",
    "a rate": "float(opt.learning_rate)",
}
OWN_LOOP = """net = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(3,))])
opt, other = tf.keras.optimizers.SGD(0.1), tf.keras.optimizers.SGD(0.01)
m = tf.keras.metrics.Mean()
ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(7)
kept, best = tf.Variable(1.0), 1.0
for epoch in range(2):
    for number, (a, b) in enumerate(ds):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(a) - b) ** 2)
        m.update_state(loss)
        grads = tape.gradient(loss, net.trainable_variables)
        value = VALUE
        opt.apply_gradients(zip(grads, net.trainable_variables))
        # after a step
    # after an epoch
"""
_APPLY = "        opt.apply_gradients(zip(grads, net.trainable_variables))\n"
_STEP, _EPOCH = "        # after a step\n", "    # after an epoch\n"


def own(old: str, new: str) -> str:
    """The loop of a rank's own values, with one of its parts replaced."""
    return changed(old, new, OWN_LOOP)


OWN_SINKS = {
    "a rate": own(_STEP, "        opt.learning_rate = 0.1 / (1 + value)\n"),
    "a rate that is assigned": own(_STEP, "        opt.learning_rate.assign(0.1 * value)\n"),
    "a rate after an epoch": own(_EPOCH, "    opt.learning_rate = 0.1 / (1 + value)\n"),
    "a rate if it is better": own(
        _EPOCH, "    if value < best:\n        best = value\n        opt.learning_rate = 0.01\n"
    ),
    "the end of the epochs": own(_EPOCH, "    if value < 0.1:\n        break\n"),
    "the end by a variable": own(
        _EPOCH, "    kept.assign(0.5 * kept + value)\n    if kept < 0.1:\n        break\n"
    ),
    "a skipped step": own(_APPLY, "        if value > 3:\n            continue\n" + _APPLY),
    "a step or not": own(_APPLY, "        if value < 3:\n    " + _APPLY),
    "one optimizer or the other": own(
        _APPLY, "        (opt if value > 3 else other).apply_gradients(zip(grads, net.trainable_variables))\n"
    ),
    "gradients": own(_APPLY, "        grads = [g / value for g in grads]\n" + _APPLY),
    "gradients by a variable": own(
        _APPLY, "        kept.assign(value)\n        grads = [g * kept for g in grads]\n" + _APPLY
    ),
    "weights": own(_STEP, "        net.set_weights([w * value for w in net.get_weights()])\n"),
    "one of the weights": own(
        _STEP,
        "        w = net.get_weights()\n        w[1] = w[1] * value\n        net.set_weights(w)\n",
    ),
    "a bias": own(_STEP, "        net.layers[0].bias.assign([value])\n"),
    "weights if it is better": own(
        _EPOCH, "    if value < best:\n        best = value\n        net.set_weights(net.get_weights())\n"
    ),
    "frozen layers": own(_EPOCH, "    net.layers[0].trainable = value > 0.1\n"),
    "a number of more steps": own(
        _EPOCH,
        "    for _ in range(int(value)):\n"
        "        with tf.GradientTape() as tape:\n            loss = tf.reduce_mean((net(x) - y) ** 2)\n"
        "        grads = tape.gradient(loss, net.trainable_variables)\n"
        "        opt.apply_gradients(zip(grads, net.trainable_variables))\n",
    ),
    "a new optimizer": own(_EPOCH, "    opt = tf.keras.optimizers.SGD(0.1 * value)\n"),
    "rows of the next epoch": own(_EPOCH, "    ds = ds.take(int(value) + 1)\n"),
}
"""The uses of such a value there."""


def own_cell(value: str, sink: str) -> str:
    """The script of a cell whose value a rank has of its own."""
    return HEAD + OWN_SINKS[sink].replace("VALUE", value)
