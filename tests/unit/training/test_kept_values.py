"""Values that a rank keeps beside its weights: centers of classes in a loss, and weights of inner steps."""

from __future__ import annotations

import pytest

from trainshift.engine.conversion import Status, convert

HEAD = """import random
import numpy as np
import tensorflow as tf

x, y = np.load("x.npy"), np.load("y.npy")
"""
OWN_LOOP = """net = tf.keras.Sequential([tf.keras.layers.Dense(4)])
opt = tf.keras.optimizers.SGD(0.1)
centers = tf.Variable(tf.zeros([4, 4]), trainable=False)
for epoch in range(2):
    for a, b in tf.data.Dataset.from_tensor_slices((x, y)).batch(8):
        with tf.GradientTape() as tape:
            features = net(a)
            own = tf.gather(centers, b)
            loss = tf.reduce_mean((features - own) ** 2)
        opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
        SET
"""
OWN_LOSS = """class Center(tf.keras.losses.Loss):
    def __init__(self):
        super().__init__()
        self.centers = tf.Variable(tf.zeros([4, 4]), trainable=False)

    def call(self, y_true, y_pred):
        own = tf.gather(self.centers, y_true)
        self.centers.scatter_sub(tf.IndexedSlices(own - y_pred, y_true))
        return tf.reduce_mean((y_pred - own) ** 2, axis=-1)


net = tf.keras.Sequential([tf.keras.layers.Dense(4)])
net.compile("sgd", Center())
net.fit(x, y)
"""
OWN_FUNCTION = """mean = tf.Variable(0.0, trainable=False)


def centered(y_true, y_pred):
    mean.assign(0.9 * mean + 0.1 * tf.reduce_mean(y_true))
    return tf.reduce_mean((y_pred - y_true - mean) ** 2)


net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
net.compile("sgd", loss=centered)
net.fit(x, y)
"""
OLD_LAYER = """from tensorflow.keras import backend as K


class Centers(tf.keras.layers.Layer):
    def build(self, shape):
        self.centers = self.add_weight(name="centers", shape=(4, 4), trainable=False)

    def call(self, inputs):
        features, hot = inputs
        own = K.dot(hot, self.centers)
        SET
        return K.sum((features - own) ** 2, axis=1)


first, second = tf.keras.Input((8,)), tf.keras.Input((4,))
out = Centers()([tf.keras.layers.Dense(4)(first), second])
net = tf.keras.Model([first, second], out)
net.compile("sgd", "mse")
net.fit([x, y], np.zeros(len(x)))
"""
OWN_GRAPH = """tf = tf.compat.v1
a = tf.placeholder(tf.float32, [None, 8])
b = tf.placeholder(tf.int64, [None])
features = tf.layers.dense(a, 4)
centers = tf.get_variable("centers", [4, 4], trainable=False)
own = tf.gather(centers, b)
move = tf.scatter_sub(centers, b, own - features)
train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean((features - own) ** 2))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(0, len(x), 8):
        session.run([train, move], {a: x[step : step + 8], b: y[step : step + 8]})
"""
_MOVED = "tf.IndexedSlices(own - features, b)"
LOSSES = {
    "a method": OWN_LOOP.replace("SET", f"centers.scatter_sub({_MOVED})"),
    "indices and updates": OWN_LOOP.replace("SET", "centers.scatter_nd_sub(b[:, None], own - features)"),
    "a function": OWN_LOOP.replace("SET", "tf.compat.v1.scatter_sub(centers, b, own - features)"),
    "a whole value": OWN_LOOP.replace("SET", "centers.assign(0.9 * centers + 0.1 * tf.reduce_mean(own))"),
    "the backend": OWN_LOOP.replace("SET", "tf.keras.backend.set_value(centers, np.mean(a))"),
    "a class of Keras": OWN_LOSS,
    "a function for Keras": OWN_FUNCTION,
    "a layer": OLD_LAYER.replace(
        "SET", "K.update_sub(self.centers, K.dot(K.transpose(hot), own - features))"
    ),
    "a layer of old Keras": OLD_LAYER.replace(
        "SET", "self.add_update((self.centers, own - features), inputs)"
    ),
    "a graph": OWN_GRAPH,
}
UNIFORM = {
    "a count": OWN_LOOP.replace("SET", "centers.assign_add(tf.ones([4, 4]))"),
    "an epoch": OWN_LOOP.replace("SET", "centers.assign(tf.ones([4, 4]) * epoch)"),
    "what ranks have averaged": HEAD.replace("import random", "import horovod.tensorflow as hvd")
    + "hvd.init()\n"
    + OWN_LOOP.replace("SET", "centers.assign(hvd.allreduce(tf.gather(features, b)))"),
    "another variable": OWN_LOOP.replace("centers = ", "seen = tf.Variable(0.0)\ncenters = ").replace(
        "SET", "seen.assign(tf.reduce_mean(a))"
    ),
}


@pytest.mark.parametrize("text", LOSSES.values(), ids=LOSSES)
def test_a_loss_whose_state_each_rank_keeps_is_told(text: str) -> None:
    found = convert(HEAD + text)
    told = [each for each in found.doubts if "would use other values on each rank" in each.text]
    told += [each for each in found.doubts if "would keep other values on each rank" in each.text]
    assert found.status is Status.CONVERTED, found.reason
    assert told, found.text


@pytest.mark.parametrize("text", UNIFORM.values(), ids=UNIFORM)
def test_no_word_is_lost_on_other_states(text: str) -> None:
    found = convert(HEAD + text)
    assert not [each for each in found.doubts if "other values on each rank" in each.text]


META = """net, fast = (
    tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)]) for _ in range(2)
)
opt = tf.keras.optimizers.SGD(0.1)


def task(number):
    kept = [row * number for row in range(32)]
    return tf.data.Dataset.from_tensor_slices((x[kept], y[kept])).shuffle(9).batch(8)


class Task:
    def __init__(self):
        self.number = random.choice([2, 3])

    def rows(self):
        return task(self.number)


def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(a) - b) ** 2)
    opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))


for turn in range(20):
"""
INNER = "    for a, b in rows:\n        step(a, b)\n"
BACK = "    net.set_weights([s + 0.1 * (f - s) for s, f in zip(slow, net.get_weights())])\n"
DRAWN = "    rows = task(random.choice([2, 3]))\n    slow = net.get_weights()\n"
COPIED = "    fast.set_weights(net.get_weights())\n"
MIXED = {
    "the weights move": DRAWN + INNER + BACK,
    "each variable moves": DRAWN.replace("net.get_weights()", "[w.numpy() for w in net.weights]")
    + INNER
    + "    for w, s in zip(net.weights, slow):\n        w.assign(s + 0.1 * (w - s))\n",
    "the weights are put back": DRAWN + INNER + "    net.set_weights(slow)\n    step(x[:8], y[:8])\n",
    "a copy trains": "    rows = task(random.choice([2, 3]))\n"
    + COPIED
    + INNER.replace("step(", "fit(")
    + "    net.set_weights([s + f for s, f in zip(net.get_weights(), fast.get_weights())])\n",
    "an object draws": "    slow = net.get_weights()\n    one = Task()\n    rows = one.rows()\n"
    + INNER
    + BACK,
}
ALIKE = {
    "rows in another order": DRAWN.replace("random.choice([2, 3])", "2") + INNER + BACK,
    "each task in turn": DRAWN.replace("random.choice([2, 3])", "turn % 2 + 2") + INNER + BACK,
    "another model": DRAWN + INNER + BACK.replace("net.set", "fast.set").replace("zip(slow", "zip(x"),
}


def _meta(body: str) -> str:
    text = HEAD + META + body
    copy = META[META.index("def step") : META.index("for turn")].replace("net", "fast")
    return text.replace("for turn", copy.replace("def step", "def fit") + "for turn")


@pytest.mark.parametrize("body", MIXED.values(), ids=MIXED)
def test_inner_steps_of_meta_learning_are_told_of(body: str) -> None:
    found = convert(_meta(body))
    told = [each for each in found.doubts if "would average over different tasks" in each.text]
    assert found.status is Status.CONVERTED, found.reason
    assert len(told) == 1, found.text


@pytest.mark.parametrize("body", ALIKE.values(), ids=ALIKE)
def test_no_word_is_lost_on_weights_that_go_back_after_the_same_data(body: str) -> None:
    found = convert(_meta(body))
    assert not [each for each in found.doubts if "would average over different tasks" in each.text]


HEADER = """import csv


def rows():
    return iter(csv.reader(open("d.csv")))


def lines():
    for line in open("d.csv"):
        yield line.split(",")


kept = rows()


def train(path):
    with open(path) as file:
        FIRST
        data = np.array(list(csv.reader(file)), dtype="float32")
    net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    net.compile(tf.keras.optimizers.SGD(0.1 / len(header)), "mse")
    net.fit(data[:, 1:], data[:, :1])


for path in ("a.csv", "b.csv"):
    train(path)
"""


@pytest.mark.parametrize(
    ("first", "is_told"),
    [
        ("header = next(csv.reader(file))", False),
        ("read = csv.reader(file)\n        header = next(read)", False),
        ("read = lines()\n        header = next(read)", False),
        ("header = next(kept)", True),
        ("read = csv.reader(file)\n        for _ in range(3):\n            header = next(read)", True),
    ],
)
def test_the_first_line_of_a_new_reader_is_the_same_on_all_ranks(first: str, is_told: bool) -> None:
    found = convert(HEAD + HEADER.replace("FIRST", first))
    told = [each for each in (*found.decisions, *found.doubts) if each.rule == "HV19"]
    assert found.status is Status.REFUSED or bool(told) is is_told, (told, found.text)


PSEUDO = """from sklearn.model_selection import train_test_split

a, rest, b, _ = train_test_split(x, y, test_size=0.5MORE)
net = tf.keras.Sequential([tf.keras.layers.Dense(1, activation="sigmoid")])
net.compile("sgd", "mse")
for turn in range(2):
    net.fit(a, b)
    found = net.predict(rest)
    sure = found[:, 0] > 0.9
    a, b = np.concatenate([a, rest[sure]]), np.concatenate([b, found[sure]])
    rest = rest[~sure]
"""


@pytest.mark.parametrize(("more", "is_told"), [("", False), (", random_state=int(time.time())", True)])
def test_predictions_on_a_split_that_is_made_alike_are_alike(more: str, is_told: bool) -> None:
    found = convert(f"import time\n{HEAD}{PSEUDO.replace('MORE', more)}")
    told = [each for each in found.doubts if each.rule == "HV19"]
    assert found.status is Status.REFUSED or bool(told) is is_told, (told, found.text)


@pytest.mark.parametrize(
    ("given", "divided"),
    [
        ("{n: x[:, :4] for n in names}", "x[:, :4][hvd.rank() :: hvd.size()][: len(x[:, :4]) // hvd.size()]"),
        ("{k: v for k, v in data.items()}", "v[hvd.rank() :: hvd.size()][: len(v) // hvd.size()]"),
        ("{k: np.array(v) for k, v in data.items()}", "np.array(v)[hvd.rank() :: hvd.size()][: len(y) //"),
    ],
)
def test_arrays_of_a_comprehension_that_fit_gets_are_divided(given: str, divided: str) -> None:
    body = (
        "names = ['a', 'b']\ndata = {name: x for name in names}\n"
        "net = tf.keras.models.load_model('net')\nnet.compile(tf.keras.optimizers.SGD(0.1), 'mse')\n"
        f"net.fit({given}, y)\n"
    )
    found = convert(HEAD + body)
    assert "".join(divided.split()) in "".join(found.text.split()), found.text


AXES = """kept = KEPT
net = tf.keras.Sequential([tf.keras.layers.Dense(kept.shape[-1]), tf.keras.layers.Dense(1)])
net.compile("sgd", "mse")
net.fit(x, y)
"""


@pytest.mark.parametrize(
    ("kept", "is_told"),
    [
        ("np.flatnonzero(np.random.rand(len(x)) < 0.5)", True),
        ("np.arange(len(x))[np.random.rand(len(x)) < 0.5]", True),
        ("np.where(np.random.rand(len(x)) < 0.5)[0]", True),
        ("x[np.random.rand(len(x)) < 0.5].ravel()", True),
        ("np.arange(len(x))[np.random.rand(len(x)) < 0.5]" + "[1:]" * 12, True),
        ("np.array([len(row) for row in x])[np.random.rand(len(x)) < 0.5]", True),
        ("np.array([row for row in x])[np.random.rand(len(x)) < 0.5]", False),
        ("x[np.random.rand(len(x)) < 0.5]", False),
        ("np.random.rand(len(x), 4)", False),
        ("np.random.rand(8)", False),
    ],
)
def test_the_last_axis_of_an_array_with_one_counts_its_rows(kept: str, is_told: bool) -> None:
    found = convert(HEAD + AXES.replace("KEPT", kept))
    told = [each for each in (*found.decisions, *found.doubts) if each.rule == "HV19"]
    assert found.status is Status.CONVERTED, found.reason
    assert bool(told) is is_told, (told, found.text)


WEIGHTED = """net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1)
weight, state, best = 1.0, tf.zeros([8, 1]), 9.0
for step, (a, b) in enumerate(tf.data.Dataset.from_tensor_slices((x, y)).batch(8)):
    with tf.GradientTape() as tape:
        found = net(a)
        loss = tf.reduce_mean((found - b) ** 2) * LOSS
    opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
    AFTER
"""


METHOD = """class Trainer:
    def __init__(self):
        self.weight, self.seen, self.losses = 1.0, 0, [1.0]

    def step(self, a, b):
        own = tf.reduce_mean(a)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(a) - b) ** 2) * LOSS
        opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
        AFTER


trainer = Trainer()
for a, b in tf.data.Dataset.from_tensor_slices((x, y)).batch(8):
    trainer.step(a, b)
"""


@pytest.mark.parametrize(
    ("body", "loss", "after", "is_told"),
    [
        (WEIGHTED, "weight", "weight = min(1.0, weight + 0.1 * float(loss))", True),
        (WEIGHTED, "weight", "weight *= float(tf.reduce_mean(found))", True),
        (WEIGHTED, "weight", "weight = 1 / (1 + step)", False),
        (WEIGHTED, "2", "best = min(best, float(loss))", False),
        (WEIGHTED, "tf.reduce_mean(state)", "state = tf.stop_gradient(found)", False),
        (METHOD, "self.weight", "self.weight = 0.9 * self.weight + 0.1 * float(loss)", True),
        (METHOD, "np.mean(self.losses)", "self.losses.append(float(loss))", True),
        (METHOD, "self.weight", "self.weight *= 0.9", False),
        (METHOD, "own", "self.losses.append(float(loss))", False),
        (METHOD, "2", "self.seen += float(loss)", False),
    ],
)
def test_a_weight_of_a_loss_by_a_ranks_own_losses_is_told(
    body: str, loss: str, after: str, is_told: bool
) -> None:
    found = convert(HEAD + body.replace("LOSS", loss).replace("AFTER", after))
    told = [each for each in found.doubts if "would use other values on each rank" in each.text]
    assert found.status is Status.CONVERTED, found.reason
    assert bool(told) is is_told, (told, found.text)


@pytest.mark.parametrize(
    ("rows", "limit"),
    [("len(a)", "500 // hvd.size()"), ("a.shape[0]", "500 // hvd.size()"), ("len(x)", "500")],
)
def test_a_number_of_rows_that_ends_a_training_is_divided(rows: str, limit: str) -> None:
    after = f"best += {rows}\n    if best > 500:\n        break"
    text = WEIGHTED.replace("LOSS", "2").replace("AFTER", after).replace(".batch(8)", ".shuffle(9).batch(8)")
    found = convert(HEAD + text)
    assert f"if best > {limit}:" in found.text, found.text
