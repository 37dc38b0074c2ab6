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
    ],
)
def test_a_session_in_which_something_may_train_is_refused(run: str) -> None:
    result = convert(f"{GRAPH}import unknown\n{SESSION}    {run}\n")
    assert result.status is Status.REFUSED
    assert "cannot find what trains" in result.reason


def test_a_session_beside_a_step_that_it_does_not_run_trains_nothing() -> None:
    step = "step = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(out))\n"
    run = "    sess.run(tf.global_variables_initializer())\n    sess.run(out, {x: 1})\n"
    result = convert(f"{GRAPH}{step}with tf.Session() as sess:\n{run}")
    assert result.status is Status.NOTHING_FOUND
