"""Whatever differs between ranks, and wherever it arrives: mended, doubted or refused, and never silent.

The table source x sink of what is uniform over the ranks and what is not.
"""

from __future__ import annotations

import pytest

from trainshift.core.program import Program
from trainshift.core.ranks.uniformity import Uniformity
from trainshift.engine.analysis import Analysis, analyze
from trainshift.engine.audit import faults_of
from trainshift.engine.conversion import Status, convert
from trainshift.libraries.divergence import CauseKind
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import Script, read_script

HEAD = """import glob
import os
import random
import secrets
import socket
import time
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
}
ALIKE = {
    "a constant": "3",
    "an argument": "int(os.environ['UNITS'])",
    "a shape of what is drawn": "np.random.rand(8, 4).shape[1]",
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
    "epochs of fit": FIT,
    "a rate that is set": LOOP + "    opt.learning_rate = 0.1 * value\n",
    "a rate that is set or not": LOOP + "    if value > 3:\n        opt.learning_rate.assign(0.01)\n",
}


@pytest.mark.sampled
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("source", SOURCES)
def test_no_divergent_value_arrives_in_silence(source: str, sink: str) -> None:
    found = convert(f"{HEAD}value = {SOURCES[source]}\n{SINKS[sink]}")
    told = [note for note in (*found.decisions, *found.doubts) if note.rule == "HV19"]
    assert found.status is Status.REFUSED or told, found.text


@pytest.mark.sampled
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("source", ALIKE)
def test_no_word_is_lost_on_what_is_uniform(source: str, sink: str) -> None:
    found = convert(f"{HEAD}value = {ALIKE[source]}\n{SINKS[sink]}")
    assert found.status is Status.CONVERTED, found.reason
    assert not [note for note in (*found.decisions, *found.doubts) if note.rule == "HV19"]


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ("random.random()", {CauseKind.DRAW}),
        ("time.time() - 5", {CauseKind.CLOCK}),
        ("os.getpid() + random.random()", {CauseKind.HOST, CauseKind.DRAW}),
        ("hvd.broadcast_object(random.random())", set()),
        ("hvd.allreduce(float(time.time()))", set()),
        ("2 if random.random() < 0.5 else 3", {CauseKind.DRAW}),
        ("[random.random() for _ in range(3)][1]", {CauseKind.DRAW}),
        ("hvd.size() * 2", set()),
        ("len(random.sample(range(9), 3)) + len(os.listdir('.'))", {CauseKind.DISK}),
        ("len(x[np.random.rand(len(x)) < 0.8])", {CauseKind.DRAW}),
        ("len(x[~(np.random.rand(len(x)) < 0.8)])", {CauseKind.DRAW}),
        ("len(x[np.random.permutation(len(x))])", set()),
        ("len(x[np.random.permutation(len(x))][:40])", set()),
        ("len(np.random.rand(8, 4))", set()),
        ("len(np.random.rand(random.randint(8, 9), 4))", {CauseKind.DRAW}),
        ("len([row for row in x if random.random() < 0.5])", {CauseKind.DRAW}),
        ("len([random.random() for row in x])", set()),
    ],
)
def test_causes_are_of_their_kinds(value: str, kinds: set[CauseKind]) -> None:
    script = read_script(f"{HEAD}import horovod.tensorflow as hvd\nvalue = {value}\nprint(value)\n")
    assert isinstance(script, Script)
    (site,) = script.sites_named("print")
    at = Occurrence(site.node.args[0], site.scope, site.statement)
    assert {each.kind for each in Program(script).fact(Uniformity).causes(at)} == kinds


@pytest.mark.sampled
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("source", SOURCES)
def test_a_mend_that_is_dropped_is_seen_in_the_result(source: str, sink: str) -> None:
    analysis = analyze(f"{HEAD}value = {SOURCES[source]}\n{SINKS[sink]}")
    assert isinstance(analysis, Analysis)
    kept = tuple(each for each in analysis.changes if each.rule != "HV19")
    if kept != analysis.changes:
        assert any(each.certain and each.code == "HZ13" for each in faults_of(analysis.program, kept))


def test_a_length_that_is_made_of_itself_is_no_endless_question() -> None:
    text = f"{HEAD}count = 3\nfor _ in range(4):\n    count = len(names[:count])\nprint(count)\n"
    script = read_script(text.replace("count = 3", "count, names = 3, glob.glob('*')"))
    assert isinstance(script, Script)
    (site,) = script.sites_named("print")
    at = Occurrence(site.node.args[0], site.scope, site.statement)
    assert {each.kind for each in Program(script).fact(Uniformity).causes(at)} == {CauseKind.DISK}
