"""Sessions without visible training: only computing, or training in unknown code."""

from __future__ import annotations

import pytest

from trainshift.engine.conversion import Status, convert

GRAPH = """\
import numpy as np
import tensorflow as tf

x = tf.placeholder(tf.float32, [None, 4])
w = tf.Variable(tf.ones([4, 1]))
out = tf.matmul(x, w)


def distance(a, b):
    return tf.reduce_sum(tf.abs(tf.subtract(a, b)))


class Net:
    def __init__(self, size=3):
        self.size = size
        self.logits, self.state = tf.nn.dynamic_rnn(tf.contrib.rnn.GRUCell(size), x)
        self.out = tf.nn.softmax(self.logits)


both = [out, distance(x, x)]
"""
SESSION = "with tf.Session() as sess:\n    sess.run(tf.global_variables_initializer())\n"


@pytest.mark.parametrize(
    "run",
    [
        "sess.run(out, {x: np.ones((2, 4))})",
        "print(sess.run(out + 1, feed_dict={x: unknown.read()}))",
        "sess.run(fetches=both, feed_dict={x: 1})",
        "for each in both:\n        sess.run(each)",
        "out.eval({x: 1})",
        "tf.train.Saver().restore(sess, 'weights')\n    sess.run(distance(out, x))",
        "tf.train.import_meta_graph('m.meta').restore(sess, 'm')\n    sess.run('out:0', {'x:0': 1})",
        "sess.run(tf.get_default_graph().get_tensor_by_name('out:0'))",
        "sess.run(sess.graph.get_operation_by_name('out').outputs[0])",
        "sess.run(tf.data.Dataset.range(3).make_one_shot_iterator().get_next())",
        # Variables that are loaded, unpacked values, callbacks of the script, layers of contrib.
        "sess.run(w.assign(np.load('w.npy')))",
        "for name, given in np.load('all.npy').item().items():\n        sess.run(w.assign(given))",
        "sess.run(tf.assign(w, tf.placeholder(tf.float32)), {x: 1})",
        "size = w.shape.as_list()\n    sess.run(w.assign(np.fromfile('w', count=len(size)).reshape(size)))",
        "fed = tf.placeholder(tf.float32, w.get_shape(), w.name[:-2])\n    sess.run(w.assign(fed), {fed: 1})",
        "kept = []\n    for v in tf.trainable_variables():\n        kept.append((v, v.eval(session=sess)))\n"
        "    for v, was in kept:\n        sess.run(tf.assign(v, was * 2))",
        "a, b = tf.trainable_variables()\n    sess.run(a.assign(b))",
        "mean, var = tf.nn.moments(out, 0)\n    sess.run([mean, var])",
        "sess.run(tf.nn.softmax(tf.constant(unknown.read())))",
        "sess.run(tf.py_func(distance, [x, x], tf.float32))",
        "sess.run(tf.contrib.layers.fully_connected(x, 3))",
        "cell = tf.contrib.rnn.LSTMCell(3)\n    sess.run(cell.zero_state(1, tf.float32))",
        "sess.run(Net().out)",
        "unknown.run(port=80)\n    sess.run(out)",
        "every = []\n    every.append(tf.FIFOQueue(3, tf.float32).enqueue(x))\n    sess.run(every)",
    ],
)
def test_a_session_that_only_computes_trains_nothing(run: str) -> None:
    assert convert(f"{GRAPH}import unknown\n{SESSION}    {run}\n").status is Status.NOTHING_FOUND


@pytest.mark.parametrize(
    "run",
    [
        "sess.run(w.assign(w * 2))",
        "sess.run(tf.assign(w, w * 2))",
        "sess.run(unknown.op)",
        "sess.run(unknown.make(out))",
        "sess.run('step')",
        "sess.run(['out:0', 'step'])",
        "sess.run(tf.get_default_graph().get_collection('train_op')[0])",
        "unknown.train(sess)",
        "sess.run(out)\n    unknown.train(session=sess)",
        "tf.train.import_meta_graph('m.meta').restore(sess, 'm')\n    sess.run('step')",
        "sess.run(tf.get_default_graph().get_operation_by_name('step'))",
        "sess.run(tf.py_func(unknown.step, [x], tf.float32))",
        "sess.run(tf.get_collection('train_op')[0])",
        "sess.run(tf.assign_sub(w, 0.1 * tf.gradients(out, w)[0]))",
        "given = w.eval(session=sess) - sess.run(tf.gradients(out, w)[0])\n    sess.run(tf.assign(w, given))",
        "a, b = tf.trainable_variables()\n    sess.run(a.assign(a - b))",
        "sess.run(w.assign_add(tf.matmul(x, out, transpose_a=True)))",
        "with tf.control_dependencies([w.assign(w * 2)]):\n        y = tf.identity(out)\n    sess.run(y)",
        "sess.run(tf.contrib.factorization.KMeans(x, 3).training_graph()[3])",
        "first, step = unknown.make(out)\n    sess.run(step)",
        "step = [None]\n    unknown.fill(step)\n    sess.run(unknown.steps[0])",
        "sess.run(tf.group(unknown.step))",
    ],
)
def test_a_session_in_which_something_may_train_is_refused(run: str) -> None:
    result = convert(f"{GRAPH}import unknown\n{SESSION}    {run}\n")
    assert result.status is Status.REFUSED
    assert "cannot find what trains" in result.reason


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ("sess.run(unknown.make(out))", "it cannot follow unknown.make(out)"),
        ("sess.run('step')", "'step' may name a training operation"),
        ("sess.run(tf.assign(w, w * 2))", "tf.assign(w, w * 2) may train"),
        ("unknown.train(sess)", "it cannot follow unknown.train(sess)"),
    ],
)
def test_a_refusal_names_what_it_cannot_follow(run: str, told: str) -> None:
    assert told in convert(f"{GRAPH}import unknown\n{SESSION}    {run}\n").reason


def test_a_session_in_which_nothing_runs_trains_nothing_unless_unknown_code_may_use_it() -> None:
    session = "import tensorflow as tf\nsess = tf.Session()\ntf.train.Saver().restore(sess, 'm')\n"
    assert convert(session).status is Status.NOTHING_FOUND
    assert convert(f"import unknown\n{session}unknown.train()\n").status is Status.REFUSED


def test_a_session_beside_a_step_that_it_does_not_run_trains_nothing() -> None:
    step = "step = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(out))\n"
    run = "    sess.run(tf.global_variables_initializer())\n    sess.run(out, {x: 1})\n"
    result = convert(f"{GRAPH}{step}with tf.Session() as sess:\n{run}")
    assert result.status is Status.NOTHING_FOUND


def test_a_function_of_the_backend_that_trains_is_refused_by_its_name() -> None:
    step = "tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(out))"
    result = convert(f"{GRAPH}from tensorflow.keras import backend as K\nstep = K.function([x], [{step}])\n")
    assert result.status is Status.REFUSED
    assert "K.function(...) runs this training operation" in result.reason


CHOSEN = """\
import importlib
import sys

import tensorflow as tf

module = importlib.import_module({name})
"""


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("sys.argv[1]", "module.train(tf.ones)"),
        ("f'models.{sys.argv[1]}'", "module.main()"),
        ("sys.argv[1]", "module.Trainer(tf.ones(3)).run_training()"),
    ],
)
def test_a_module_that_a_run_chooses_may_train(name: str, call: str) -> None:
    result = convert(f"{CHOSEN.format(name=name)}{call}\n")
    assert result.status is Status.REFUSED
    assert f"{call.rpartition('(')[0]}(...) trains, as importlib.import_module({name})" in result.reason
    assert "import it by its name" in result.reason


@pytest.mark.parametrize("call", ["module.build(3)", "print(module.VERSION)", "module.evaluate(tf.ones(3))"])
def test_a_module_that_a_run_chooses_does_not_train_by_other_names(call: str) -> None:
    assert convert(f"{CHOSEN.format(name='sys.argv[1]')}{call}\n").status is Status.NOTHING_FOUND
    apart = CHOSEN.replace("import tensorflow as tf\n", "").format(name="sys.argv[1]")
    assert convert(f"{apart}module.main()\n").status is Status.NOTHING_FOUND


def test_a_model_of_a_module_that_a_run_chooses_is_converted_with_a_doubt() -> None:
    fit = "model.compile('adam', 'mse')\nx = tf.ones((64, 4))\nmodel.fit(x, x)\n"
    result = convert(f"{CHOSEN.format(name='sys.argv[1]')}model = module.build()\n{fit}")
    assert result.status is Status.CONVERTED
    assert any("assumed to be a Keras model" in str(each) for each in result.doubts)


def test_a_model_of_tensorflows_private_copy_of_keras_is_refused_by_its_name() -> None:
    model = "from tensorflow.python.keras.models import Sequential\nmodel = Sequential()\n"
    result = convert(f"{model}model.compile('adam', 'mse')\nmodel.fit([1.0], [1.0])\n")
    assert result.status is Status.REFUSED
    assert "model.fit(...) trains a model of tensorflow.python.keras" in result.reason
    assert "import Keras from tensorflow.keras" in result.reason


def test_a_script_that_predicts_on_several_gpus_is_left_alone() -> None:
    model = (
        "from keras.models import load_model\nfrom keras.utils import multi_gpu_model\n"
        "model = multi_gpu_model(load_model('m.h5'), gpus=2)\n"
    )
    assert convert(f"{model}print(model.predict([1.0]))\n").status is Status.NOTHING_FOUND
    trained = (
        "model.compile('sgd', 'mse')\nmodel.fit([1.0], [1.0])\n",
        "import lib\nlib.Trainer(model).start()\n",
    )
    for training in trained:
        result = convert(f"{model}{training}")
        assert result.status is Status.REFUSED
        assert "multi_gpu_model splits" in result.reason
