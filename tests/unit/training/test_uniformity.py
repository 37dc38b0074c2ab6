"""All differences between ranks, wherever they arrive, are fixed, doubted or refused, and never silent.

The table source x sink of values that are uniform over the ranks, and values that are not.
"""

from __future__ import annotations

import pytest

from support.divergence_table import (
    ALIKE,
    HEAD,
    OWN_SINKS,
    OWN_SOURCES,
    ROWS,
    SINKS,
    SOURCES,
    UNIFORM_SOURCES,
    cell,
    own_cell,
)
from support.finding_fixtures import program_of
from trainshift.core.program import Program
from trainshift.engine.analysis import Analysis, analyze
from trainshift.engine.audit import faults_of
from trainshift.engine.conversion import Status, convert
from trainshift.libraries.divergence import CauseKind
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import Script, read_script
from trainshift.training.ranks.sinks import Sinks
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.verdict import Divergent, Uniform, Unknown


@pytest.mark.sampled
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("source", SOURCES)
def test_no_divergent_value_arrives_in_silence(source: str, sink: str) -> None:
    found = convert(cell(SOURCES[source], sink))
    told = [note for note in (*found.decisions, *found.doubts) if note.rule == "HV19"]
    assert found.status is Status.REFUSED or told, found.text


@pytest.mark.sampled
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("source", ALIKE)
def test_no_word_is_lost_on_what_is_uniform(source: str, sink: str) -> None:
    found = convert(cell(ALIKE[source], sink))
    assert found.status is Status.CONVERTED, found.reason
    assert not [note for note in (*found.decisions, *found.doubts) if note.rule == "HV19"]


@pytest.mark.sampled
@pytest.mark.parametrize("sink", OWN_SINKS)
@pytest.mark.parametrize("source", OWN_SOURCES)
def test_no_value_of_a_ranks_own_batch_arrives_in_silence(source: str, sink: str) -> None:
    found = convert(own_cell(OWN_SOURCES[source], sink))
    told = [note for note in (*found.decisions, *found.doubts) if note.rule == "HV19"]
    assert found.status is Status.REFUSED or told, found.text


# Steps that ranks skip by their batches are skipped together, whatever the batches share.
TOGETHER = {"a skipped step", "a step or not", "one optimizer or the other", "rows of the next epoch"}


@pytest.mark.sampled
@pytest.mark.parametrize("sink", sorted(OWN_SINKS.keys() - TOGETHER))
@pytest.mark.parametrize("source", ROWS)
def test_no_word_is_lost_on_the_size_of_batches_of_equal_shares(source: str, sink: str) -> None:
    text = own_cell(ROWS[source], sink).replace(".batch(7)", ".shuffle(9).batch(7)")
    found = convert(text)
    assert found.status is Status.CONVERTED, found.reason
    assert not [note for note in (*found.decisions, *found.doubts) if note.rule == "HV19"]


@pytest.mark.sampled
@pytest.mark.parametrize("sink", sorted(OWN_SINKS.keys() - {"one optimizer or the other"}))
@pytest.mark.parametrize("source", UNIFORM_SOURCES)
def test_no_word_is_lost_on_what_batches_share(source: str, sink: str) -> None:
    found = convert(own_cell(UNIFORM_SOURCES[source], sink))
    assert found.status is Status.CONVERTED, found.reason
    assert not [note for note in (*found.decisions, *found.doubts) if note.rule == "HV19"]


@pytest.mark.parametrize(
    "text",
    [
        "rows, value = a.shape",
        "shape = tf.shape(a)\n        value = shape[1]",
        "rows, *value = a.shape.as_list()",
        "value = 1 if a.shape[0] is None else 2",
    ],
)
def test_the_columns_of_a_batch_are_alike(text: str) -> None:
    found = convert(own_cell("1.0", "gradients").replace("value = 1.0", text))
    assert found.status is Status.CONVERTED, found.reason
    assert not [note for note in (*found.decisions, *found.doubts) if note.rule == "HV19"]


STEP = """class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.last = tf.keras.layers.Dense(1)

    def call(self, inputs):
        return self.last(inputs)

    def train_step(self, data):
        a, b = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(a) - b) ** 2)
        grads = tape.gradient(loss, self.trainable_variables)
        grads = [g / tf.cast(tf.shape(a)[0], tf.float32) for g in grads]
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return {"loss": loss}


net = Net()
net.compile("sgd", "mse")
net.fit(DATA)
"""


@pytest.mark.parametrize(
    ("data", "is_equal"),
    [
        ("x, y, batch_size=7", True),
        ("tf.data.Dataset.from_tensor_slices((x, y)).shuffle(9).batch(7)", True),
        ("tf.data.Dataset.from_tensor_slices((x, y)).batch(7)", False),
    ],
)
def test_batches_of_equal_shares_have_one_size(data: str, is_equal: bool) -> None:
    found = convert(HEAD + STEP.replace("DATA", data))
    assert (found.status is Status.CONVERTED) is is_equal, found.reason
    assert not is_equal or not [each for each in found.doubts if each.rule == "HV19"]


@pytest.mark.parametrize(
    "value", ["len(a[b > 0])", "np.unique(b).shape[0]", "len([row for row in a if row[0] > 0])"]
)
def test_rows_that_are_chosen_from_batches_of_one_size_differ(value: str) -> None:
    text = own_cell(value, "gradients").replace(".batch(7)", ".shuffle(9).batch(7)")
    found = convert(text)
    assert found.status is Status.REFUSED or [each for each in found.doubts if each.rule == "HV19"]


NUMBERS = """values = VALUES
for step in range(0, len(x), 8):
    a, b = x[step : step + 8], y[step : step + 8]
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(a) - b) ** 2)
    grads = tape.gradient(loss, net.trainable_variables)
    opt.learning_rate = RATE
    opt.apply_gradients(zip(grads, net.trainable_variables))
"""
MADE = """net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1)


def decaying():
    rate = 0.1
    while True:
        yield rate
        rate *= 0.9


def rows():
    for row in x:
        yield row[0]


class Rows:
    def __init__(self):
        self.at = 0

    def __next__(self):
        self.at += 1
        return x[self.at, 0]


kept = []
for row in x:
    kept.append(row[0])
"""


@pytest.mark.parametrize(
    ("values", "rate", "is_told"),
    [
        ("iter([0.1, 0.2, 0.3])", "next(values)", False),
        ("itertools.cycle([0.1, 0.2])", "next(values)", False),
        ("decaying()", "next(values)", False),
        ("(0.1 / (1 + each) for each in range(9))", "next(values)", False),
        ("net.layers", "0.1 * next(each.units for each in values)", False),
        ("np.linspace(0.1, 0.01, 900)", "np.mean(values[step : step + 5])", False),
        ("rows()", "next(values)", True),
        ("Rows()", "next(values)", True),
        ("iter(kept)", "next(values)", True),
        ("iter(x)", "next(values)[0]", True),
        ("np.linspace(0.1, 0.01, 900)", "np.mean(b[step : step + 5])", True),
        ("x[:, 0]", "np.mean(values[step : step + 5])", True),
    ],
)
def test_only_what_may_come_from_data_is_taken_for_rows(values: str, rate: str, is_told: bool) -> None:
    found = convert(
        "import itertools\n" + HEAD + MADE + NUMBERS.replace("VALUES", values).replace("RATE", rate)
    )
    told = [note for note in (*found.decisions, *found.doubts) if note.rule == "HV19"]
    assert bool(told or found.status is Status.REFUSED) is is_told, found.text


def test_a_layer_that_reads_its_batch_twice_is_told_of_once() -> None:
    text = LAYER.replace("READ", "out = z - self.codes").replace(
        "tf.reduce_mean(z, 0)", "tf.reduce_mean(z * z, 0)"
    )
    told = [each.text for each in convert(HEAD + text).doubts if each.rule == "HV19"]
    assert len(told) == len(set(told)) == 1


@pytest.mark.parametrize("then", [".shuffle(5)", ".map(lambda a, b: (a[b > 0], b[b > 0]))"])
def test_batches_that_are_changed_may_differ_in_size_at_each_step(then: str) -> None:
    text = own_cell("len(a)", "gradients").replace(".batch(7)", f".shuffle(9).batch(7){then}")
    assert convert(text).status is Status.REFUSED


def test_a_function_of_the_script_gives_no_shape() -> None:
    text = cell("shape(4)", "epochs of fit").replace(
        "value =", "def shape(of):\n    return random.randint(1, of)\n\n\nvalue ="
    )
    assert [note for note in convert(text).decisions if note.rule == "HV19"]


def test_batches_of_one_size_have_one_length() -> None:
    whole = own_cell("len(a)", "gradients").replace(".batch(7)", ".batch(7, drop_remainder=True)")
    found = convert(whole)
    assert found.status is Status.CONVERTED, found.reason
    assert not [note for note in (*found.decisions, *found.doubts) if note.rule == "HV19"]


def test_a_memory_of_gradients_gets_a_ranks_own_loss() -> None:
    text = own_cell("1.0", "gradients").replace(
        "grads = [g / value for g in grads]\n",
        "for s, g in zip(acc, grads):\n            s.assign(0.9 * s + g * loss)\n        grads = acc\n",
    )
    found = convert(
        text.replace(
            "kept, best", "acc = [tf.Variable(tf.zeros((4, 1))), tf.Variable(tf.zeros(1))]\nkept, best"
        )
    )
    assert found.status is Status.REFUSED
    assert "comes from a rank's own data: ranks would apply different gradients" in found.reason


LAYER = """class Codes(tf.keras.layers.Layer):
    def build(self, shape):
        self.codes = self.add_weight(name="codes", shape=shape[-1:], trainable=False)

    def call(self, z, training=None):
        out = z
        if training:
            self.codes.assign(0.9 * self.codes + 0.1 * tf.reduce_mean(z, 0))
        READ
        return out


net = tf.keras.Sequential([Codes(), tf.keras.layers.Dense(1)])
net.compile("sgd", "mse")
net.fit(x, y)
"""


@pytest.mark.parametrize(
    ("read", "is_told"),
    [
        ("out = z - self.codes", True),
        ("else:\n            out = z - self.codes", False),
        ("out = 2 * z", False),
    ],
)
def test_values_that_a_layer_sets_and_trains_with_differ(read: str, is_told: bool) -> None:
    found = convert(HEAD + LAYER.replace("READ", read))
    assert found.status is Status.CONVERTED, found.reason
    told = [each for each in found.doubts if "a layer would keep other values on each rank" in each.text]
    assert bool(told) is is_told


def test_rows_that_steps_have_added_up_divide_gradients() -> None:
    text = own_cell("len(a)", "gradients").replace(
        "        grads = [g / value for g in grads]\n",
        "        for s, g in zip(acc, grads):\n            s.assign_add(g)\n"
        "        kept.assign_add(float(value))\n        grads = [s / kept for s in acc]\n",
    )
    found = convert(
        text.replace("kept, best", "acc = [tf.Variable(tf.zeros((4, 1))), tf.Variable([0.0])]\nkept, best")
    )
    assert found.status is Status.REFUSED
    assert "len(a) comes from a rank's own data" in found.reason


BY_NUMBER = """net = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
opt = tf.keras.optimizers.SGD(0.1)
for epoch in range(3):
    for i in range(0, len(x), 8):
        a, b = x[i : i + 8], y[i : i + 8]
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(a) - b) ** 2)
        grads = tape.gradient(loss, net.trainable_variables)
        CHANGE
        opt.apply_gradients(zip(grads, net.trainable_variables))
"""
NEXT = BY_NUMBER.replace("    a, b = x[i : i + 8], y[i : i + 8]", "    a, b = next(rows)").replace(
    "opt =", "rows = iter(tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8))\nopt ="
)


@pytest.mark.parametrize(("loop", "cause"), [(BY_NUMBER, "y[i : i + 8]"), (NEXT, "next(rows)")])
def test_rows_that_a_number_or_an_iterator_gives_are_a_ranks_own(loop: str, cause: str) -> None:
    found = convert(HEAD + loop.replace("CHANGE", "grads = [g * (1 + np.mean(b)) for g in grads]"))
    assert found.status is Status.REFUSED or found.doubts
    told = "\n".join([found.reason, *(each.text for each in found.doubts)])
    assert cause in told
    assert "ranks would apply different gradients" in told
    alike = convert(HEAD + loop.replace("CHANGE", "grads = [g * (1 + epoch) for g in grads]"))
    assert alike.status is Status.CONVERTED, alike.reason
    assert "different gradients" not in "\n".join(each.text for each in alike.doubts)


@pytest.mark.parametrize(("head", "rate"), [("import lazy", "lazy.rate"), ("from lazy import rate", "rate")])
def test_a_module_gives_what_it_draws_for_a_name(head: str, rate: str) -> None:
    lazy = "import random\n\n\ndef __getattr__(name):\n    return random.uniform(0.001, 0.1)\n"
    main = f"{head}\n{HEAD}net = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
    main += f"net.compile(tf.keras.optimizers.SGD({rate}), 'mse')\nnet.fit(x, y)\n"
    causes = [each.cause for each in program_of(main, {"lazy.py": lazy}).fact(Sinks).divergences]
    assert {each.kind for each in causes} == {CauseKind.DRAW}


def test_a_callback_sets_weights_by_the_loss_of_its_ranks_batch() -> None:
    found = convert(
        f"{HEAD}\n\nclass Shrink(tf.keras.callbacks.Callback):\n"
        "    def on_train_batch_end(self, batch, logs=None):\n"
        "        kernel = self.model.layers[0].kernel\n"
        "        kernel.assign(kernel / (1 + logs['loss']))\n\n\n"
        "net = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nnet.compile('sgd', 'mse')\n"
        "net.fit(x, y, callbacks=[Shrink()])\n"
    )
    assert "kernel.assign(hvd.broadcast_object(kernel / (1 + logs['loss']), root_rank=0))" in found.text


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
        ("np.shape(x[np.random.rand(len(x)) < 0.8])[0]", {CauseKind.DRAW}),
        ("int(tf.shape(x[np.random.rand(len(x)) < 0.8])[0])", {CauseKind.DRAW}),
        ("np.size(x[np.random.rand(len(x)) < 0.8])", {CauseKind.DRAW}),
        ("x[np.random.rand(len(x)) < 0.8].shape", {CauseKind.DRAW}),
        ("x[np.random.rand(len(x)) < 0.8].shape[1]", set()),
        ("x[np.random.rand(len(x)) < 0.8].shape[1:]", set()),
        ("x[np.random.rand(len(x)) < 0.8].ndim", set()),
        ("x[np.random.permutation(len(x))].shape[0]", set()),
        ("np.size(np.random.rand(8, 4))", set()),
        ("np.array(os.listdir('.')).shape[0]", {CauseKind.DISK}),
        ("len(x[np.random.permutation(len(x))][:40])", set()),
        ("len(np.random.rand(8, 4))", set()),
        ("len(np.random.rand(random.randint(8, 9), 4))", {CauseKind.DRAW}),
        ("len([row for row in x if random.random() < 0.5])", {CauseKind.DRAW}),
        ("len([random.random() for row in x])", set()),
        ("len(x[np.random.binomial(1, 0.8, len(x)).astype(bool)])", {CauseKind.DRAW}),
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
    analysis = analyze(cell(SOURCES[source], sink))
    assert isinstance(analysis, Analysis)
    kept = tuple(each for each in analysis.changes if each.rule != "HV19")
    if kept != analysis.changes:
        assert any(
            each.certain and each.code in ("HZ12", "HZ13") for each in faults_of(analysis.program, kept)
        )


def test_what_layers_are_called_on_is_no_batch_while_a_model_is_built() -> None:
    text = """\
import numpy as np
import tensorflow as tf


class Doubling(tf.keras.layers.Layer):
    def call(self, inputs):
        doubled = inputs * 2.0
        return doubled


def gathered(inputs):
    found = []
    for each in inputs:
        found.append(Doubling()(each))
    return found


def joined(parts):
    if len(parts) > 1:
        return tf.keras.layers.Concatenate()(parts)
    return parts[0]


inputs = [tf.keras.Input((1,)), tf.keras.Input((1,))]
model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(joined(gathered(inputs))))
model.compile("sgd", "mse")
rows = np.ones((64, 1), "float32")
model.fit([rows, rows], rows, batch_size=8, epochs=2)
"""
    result = convert(text)
    assert result.status is Status.CONVERTED
    assert "broadcast_object" not in result.text


def test_a_length_that_is_made_of_itself_is_no_endless_question() -> None:
    text = f"{HEAD}count = 3\nfor _ in range(4):\n    count = len(names[:count])\nprint(count)\n"
    script = read_script(text.replace("count = 3", "count, names = 3, glob.glob('*')"))
    assert isinstance(script, Script)
    (site,) = script.sites_named("print")
    at = Occurrence(site.node.args[0], site.scope, site.statement)
    assert {each.kind for each in Program(script).fact(Uniformity).causes(at)} == {CauseKind.DISK}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("int(os.environ['BATCHES'])", Uniform),
        ("os.environ['OMPI_COMM_WORLD_RANK']", Divergent),
        ("int(os.environ.get('PMI_RANK', 0)) + 1", Divergent),
        ("foreign.WORLD.Get_rank()", Divergent),
        ("max(3, len(sys.argv))", Uniform),
        ("time.time()", Divergent),
        ("int(os.environ['BATCHES']) + random.random()", Divergent),
        ("foreign.number()", Unknown),
        ("given", Unknown),
        ("'x'.join(names)", Uniform),
    ],
)
def test_a_value_is_uniform_divergent_or_unknown(value: str, expected: type) -> None:
    text = f"import os, random, sys, time\nimport foreign\nnames = ['a']\ndef f(given):\n    return {value}\n"
    script = read_script(text)
    assert isinstance(script, Script)
    program = Program(script)
    returned, statement = program.script.scopes[0].returns[0]
    verdict = program.fact(Uniformity).verdict(Occurrence(returned, program.script.scopes[0], statement))
    assert isinstance(verdict, expected)


@pytest.mark.parametrize(
    ("row", "drawn"),
    [
        ("value in np.random.rand(3)", True),
        ("value in list(np.random.permutation(9))", True),
        ("_, value in enumerate(np.random.rand(3))", True),
        ("value, _ in enumerate(np.random.rand(3))", False),
        ("value, _ in tf.data.Dataset.from_tensor_slices(np.random.rand(3)).enumerate()", False),
        ("_, value in tf.data.Dataset.from_tensor_slices(np.random.rand(3)).enumerate()", True),
        ("value in ParameterSampler({}, n_iter=3)", True),
        ("value in ParameterSampler({}, n_iter=3, random_state=1)", False),
        ("value in range(3)", False),
    ],
)
def test_what_a_loop_takes_differs_as_what_it_goes_through(row: str, drawn: bool) -> None:
    imported = "from sklearn.model_selection import ParameterSampler\n"
    script = read_script(f"{HEAD}{imported}for {row}:\n    print(value)\n")
    assert isinstance(script, Script)
    (site,) = script.sites_named("print")
    at = Occurrence(site.node.args[0], site.scope, site.statement)
    found = {each.kind for each in Program(script).fact(Uniformity).causes(at)}
    assert found == ({CauseKind.DRAW} if drawn else set())


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        ("np.random.RandomState(int(time.time())).permutation(9)", Divergent),
        ("np.random.RandomState(7).permutation(9)", Uniform),
        ("np.random.default_rng(None).permutation(9)", Divergent),
        ("np.random.RandomState(foreign.number()).permutation(9)", Unknown),
        ("np.random.permutation(9)", Unknown),
        ("np.random.RandomState(seed).permutation(9)", Uniform),
        ("train_test_split(range(9), random_state=0)", Uniform),
    ],
)
def test_a_draw_is_the_same_where_its_seed_is(drawn: str, expected: type) -> None:
    imported = "import foreign\nfrom sklearn.model_selection import train_test_split\n"
    seeded = "np.random.seed(3)\nnp.random.seed(foreign.number())\n"
    script = read_script(
        f"{HEAD}{imported}{seeded}def f(seed):\n    return {drawn}\nforeign.run(lambda: f(1) + f(2))\n"
    )
    assert isinstance(script, Script)
    draws = Program(script).fact(Uniformity).draws
    (site,) = (each for each in script.sites if draws.shuffles(each))
    assert isinstance(draws.of(site), expected)


_FREED = "np.random.seed(None)"
_FREEING = "def free():\n    np.random.seed(None)\n"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("np.random.seed(3)", _FREED, Uniform),
        (_FREED, "np.random.seed(3)", Divergent),
        (f"np.random.seed(3)\n{_FREED}", "", Divergent),
        ("if True:\n    np.random.seed(3)\n    print(1)\nprint(2)", _FREED, Unknown),
        (f"{_FREEING}np.random.seed(3)\nfree()", "", Unknown),
        (f"{_FREEING}free()\nnp.random.seed(3)\nprint(1)", "free()", Uniform),
    ],
)
def test_the_last_seed_before_a_draw_decides(before: str, after: str, expected: type) -> None:
    script = read_script(f"{HEAD}import numpy as np\n{before}\nprint(np.random.permutation(9))\n{after}\n")
    assert isinstance(script, Script)
    draws = Program(script).fact(Uniformity).draws
    (site,) = script.sites_named("permutation")
    assert isinstance(draws.of(site), expected)


def test_a_draw_in_a_loop_after_its_seed_may_be_freed_by_the_last_turn() -> None:
    loop = f"np.random.seed(3)\nfor _ in range(2):\n    print(np.random.permutation(9))\n    {_FREED}\n"
    script = read_script(f"{HEAD}import numpy as np\n{loop}")
    assert isinstance(script, Script)
    (site,) = script.sites_named("permutation")
    assert isinstance(Program(script).fact(Uniformity).draws.of(site), Unknown)


def test_a_number_that_is_counted_up_alike_is_uniform() -> None:
    script = read_script("import sys\nn = 0\nfor _ in range(int(sys.argv[1])):\n    n += 1\nprint(n)\n")
    assert isinstance(script, Script)
    (site,) = script.sites_named("print")
    at = Occurrence(site.node.args[0], site.scope, site.statement)
    assert Program(script).fact(Uniformity).is_uniform(at)


_CALLBACK = "class Own(tf.keras.callbacks.Callback):\n"
_DRAWN = "self.model.layers[-1].bias.assign(hvd.broadcast(tf.random.normal([1]), root_rank=0))"
_KERNEL = "self.model.layers[-1].kernel"


@pytest.mark.parametrize(
    ("hooks", "drawn"),
    [
        ("    def on_epoch_end(self, epoch, logs=None):\n        {}\n", _DRAWN),
        ("    def on_test_end(self, logs=None):\n        {}\n", _DRAWN),
        ("    def on_test_batch_begin(self, batch, logs=None):\n        {}\n", _DRAWN),
        (
            "    def on_epoch_end(self, epoch, logs=None):\n        self.jitter()\n\n"
            "    def jitter(self):\n        {}\n",
            _DRAWN,
        ),
        *(
            ("    def on_epoch_begin(self, epoch, logs=None):\n        {}\n", f"{_KERNEL}.assign({sent})")
            for sent in (
                f"hvd.broadcast(tf.keras.initializers.HeNormal()({_KERNEL}.shape), root_rank=0)",
                f"hvd.broadcast(tf.keras.initializers.get('he_normal')({_KERNEL}.shape), root_rank=0)",
                f"hvd.broadcast(tf.random_normal_initializer()({_KERNEL}.shape), root_rank=0)",
                f"hvd.broadcast(self.model.layers[-1].kernel_initializer({_KERNEL}.shape), root_rank=0)",
                f"tf.keras.initializers.HeNormal(3)({_KERNEL}.shape)",
                f"tf.keras.initializers.RandomNormal(0.0, 0.1, seed=3)({_KERNEL}.shape)",
                f"tf.keras.initializers.Zeros()({_KERNEL}.shape)",
                f"tf.keras.initializers.get('zeros')({_KERNEL}.shape)",
            )
        ),
    ],
)
def test_rank_0_draws_what_callbacks_put_into_weights(hooks: str, drawn: str) -> None:
    own = drawn.replace("hvd.broadcast(", "").replace(", root_rank=0)", "")
    text = (
        "import numpy as np\nimport tensorflow as tf\nx, y = np.load('x.npy'), np.load('y.npy')\n\n\n"
        f"{_CALLBACK}{hooks.format(own)}\n\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\nmodel.fit(x, y, callbacks=[Own()])\n"
    )
    found = convert(text)
    assert found.status is Status.CONVERTED, found.reason
    assert drawn.replace(" ", "") in "".join(found.text.split()).replace(",)", ")")


def test_a_draw_in_the_function_of_a_callback_is_doubted() -> None:
    found = convert(
        "import numpy as np\nimport tensorflow as tf\nx, y = np.load('x.npy'), np.load('y.npy')\n"
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.compile('sgd', 'mse')\n"
        "own = tf.keras.callbacks.LambdaCallback(\n    on_epoch_end=lambda epoch, logs: model.layers[-1].bias"
        ".assign([np.random.rand()])\n)\nmodel.fit(x, y, callbacks=[own])\n"
    )
    assert [each.rule for each in found.doubts] == ["HV19"], found.doubts


def test_a_listing_that_is_sorted_and_filtered_splits_alike_on_all_ranks() -> None:
    text = """import os
import tensorflow as tf
def load(d):
    files = os.listdir(d)
    first = [f for f in files if "train" in f][0]
    with open(first) as f:
        return [float(line) for line in f]
rows = load("data")
train, test = rows[:100], rows[100:]
net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1)
for start in range(0, 100, 8):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(net(tf.constant([train[start:start + 8]])) ** 2)
    opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
print(net(tf.constant([test])))
"""
    found = convert(text)
    assert (found.status, found.reason) == (Status.CONVERTED, "")
    assert "files = sorted(os.listdir(d))" in found.text
    assert convert(found.text).status is Status.ALREADY_DISTRIBUTED
