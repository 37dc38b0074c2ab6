"""Identification of training loops: pattern, place, model and optimizer."""

from __future__ import annotations

import ast

import pytest

from support.finding_fixtures import program_of
from trainshift.core.program import Program
from trainshift.training.loops.loop_kinds import Loop, Pattern
from trainshift.training.loops.loops import Loops

TAPE = """
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
"""
HEAD = "import tensorflow as tf\n"
MODEL = "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
OPTIMIZER = "optimizer = tf.keras.optimizers.Adam()\n"
V1 = "import tensorflow.compat.v1 as tf\ntrain_op = tf.train.AdamOptimizer().minimize(loss)\n"


def loops(text: str, **others: str) -> list[Loop]:
    """The loops of a script beside other modules, by name."""
    return program(text, **others).fact(Loops).all


def program(text: str, **others: str) -> Program:
    """The program of a script beside other modules, by name."""
    return program_of(text, {f"{name}.py": body for name, body in others.items()})


def where(loop: Loop) -> str:
    """The code that a loop's span covers."""
    return loop.script.source.text[loop.span.start : loop.span.end]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (f"{HEAD}{MODEL}{OPTIMIZER}for x, y in data:{TAPE}", Pattern.GRAD_TAPE),
        (f"{HEAD}{MODEL}model.fit(x, y)", Pattern.OPTIMIZER),
        (f"{HEAD}{MODEL}model.fit_generator(batches)", Pattern.OPTIMIZER),
        (f"{HEAD}{MODEL}model.train_on_batch(x, y)", Pattern.OPTIMIZER),
        (f"{HEAD}tf.keras.applications.VGG16().fit(x)", Pattern.OPTIMIZER),
        (f"{HEAD}class M(tf.keras.Model): ...\nM().fit(x)", Pattern.OPTIMIZER),
        (f"{HEAD}tf.keras.models.load_model('m').fit(x)", Pattern.OPTIMIZER),
        (f"{HEAD}class M(tf.keras.Model):\n    def fit(self, x):\n        super().fit(x)", Pattern.OPTIMIZER),
        (f"{HEAD}import sm\nm = sm.Net()\nm.compile('Adam', 'mse')\nm.fit(x)", Pattern.OPTIMIZER),
        (f"{HEAD}import sm\nclass M(sm.Net): ...\nM().fit(x, epochs=2)", Pattern.OPTIMIZER),
        (f"{HEAD}import sm\nt = sm.Trainer()\nt.model.fit(x, epochs=2)", Pattern.OPTIMIZER),
        (f"{HEAD}import config\nconfig.model.fit(x, epochs=2)", Pattern.OPTIMIZER),
        (f"{HEAD}import horovod.tensorflow.keras as hvd\nhvd.load_model('m').fit(x)", Pattern.OPTIMIZER),
        (
            f"{HEAD}class A(tf.keras.Model):\n    def run(self):\n        self.fit(x)\n"
            "class B(A):\n    def fit(self, x): ...",
            Pattern.OPTIMIZER,
        ),
        ("import keras_tuner as kt\nkt.Hyperband(build).search(x, y)", Pattern.LIBRARY),
        ("import keras_tuner as kt\nclass T(kt.Tuner): ...\nT(build).search(x, y)", Pattern.LIBRARY),
        ("from kerastuner.tuners import RandomSearch\nRandomSearch(build).search(x, y)", Pattern.LIBRARY),
        ("import autokeras as ak\nak.ImageClassifier().fit(x, y, epochs=2)", Pattern.LIBRARY),
        ("from scikeras.wrappers import KerasRegressor as K\nK(build).fit(x, y)", Pattern.LIBRARY),
        (f"{HEAD}K = tf.keras.wrappers.scikit_learn\nsearch(K.KerasClassifier(build))", Pattern.LIBRARY),
        (f"{HEAD}tf.estimator.Estimator(model_fn).train(input_fn)", Pattern.ESTIMATOR),
        (f"{HEAD}tf.estimator.train_and_evaluate(e, t, v)", Pattern.ESTIMATOR),
        (f"{V1}with tf.Session() as s:\n    s.run(train_op)", Pattern.SESSION),
        (f"{V1}s = tf.InteractiveSession()\ntrain_op.run()", Pattern.SESSION),
        (f"{V1}with tf.train.MonitoredSession() as s:\n    s.run(train_op)", Pattern.MONITORED_SESSION),
        (
            f"{V1}with tf.train.MonitoredTrainingSession() as s:\n    s.run([train_op])",
            Pattern.MONITORED_SESSION,
        ),
        (f"{HEAD}{OPTIMIZER}optimizer.minimize(lambda: f(w), [w])", Pattern.MINIMIZE),
        (f"{HEAD}s = tf.distribute.MirroredStrategy()\n{MODEL}model.fit(x)", Pattern.STRATEGY),
        (
            f"{HEAD}w = tf.Variable(1.0)\nwith tf.GradientTape() as t:\n    l = w * w\n"
            "w.assign_sub(t.gradient(l, w))",
            Pattern.BY_HAND,
        ),
        (f"{HEAD}{OPTIMIZER}optimizer.apply_gradients(unseen())", Pattern.UNKNOWN),
    ],
)
def test_the_pattern_of_a_loop(text: str, pattern: Pattern) -> None:
    assert [loop.pattern for loop in loops(text)] == [pattern]


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEAD,
        f"{HEAD}{MODEL}model.predict(x)",
        f"{HEAD}with tf.GradientTape() as t:\n    t.watch(x)\n    l = f(x)\ng = t.gradient(l, x)",
        "from sklearn.svm import SVC\nSVC().fit(x, y)",
        "import scipy.optimize as o\no.minimize(f, x)",
        f"{V1}with tf.Session() as s:\n    s.run(loss)",
        f"{HEAD}tf.keras.preprocessing.image.ImageDataGenerator().fit(x)",
        "import re, keras_tuner\nre.compile('a').search(x)",
    ],
)
def test_what_is_no_loop(text: str) -> None:
    assert loops(text) == []


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}def scale(scaler):\n    scaler.fit(x)",
        f"{HEAD}import sm\nsm.Net().fit(x)",
        f"{HEAD}from tensorflow.python.keras import Sequential\nSequential().fit(x, epochs=2)",
        f"{HEAD}class M(tf.keras.Model):\n    def fit(self, x):\n        tf.keras.Model.fit(self, x)",
    ],
)
def test_what_may_be_a_loop(text: str) -> None:
    assert loops(text) == []
    assert len(program(text).fact(Loops).possible) == 1


def test_a_tapes_loop_shows_its_place_model_optimizer_and_tape() -> None:
    (loop,) = loops(f"{HEAD}{MODEL}{OPTIMIZER}for x, y in data:{TAPE}")
    assert where(loop) == "for x, y in data"
    assert loop.model == "model"
    assert loop.call == "optimizer.apply_gradients(...)"
    assert [loop.script.text(place.node, place.scope) for place in loop.optimizers] == ["optimizer"]
    assert [tape.name for tape in loop.tapes] == ["tape"]
    assert loop.function is None


def test_a_fit_is_a_loop_in_itself_and_knows_what_its_model_is_compiled_with() -> None:
    fit = "model.compile(optimizer, 'mse')\nfor epoch in range(3):\n    model.fit(x, y)"
    (loop,) = loops(f"{HEAD}{MODEL}{OPTIMIZER}{fit}")
    assert loop.is_call
    assert where(loop) == "model.fit(x, y)"
    assert [loop.script.text(place.node, place.scope) for place in loop.optimizers] == ["optimizer"]


def test_a_step_in_a_function_is_the_loop_of_its_caller() -> None:
    step = f"def step(x, y):{TAPE}"
    (loop,) = loops(f"{HEAD}{MODEL}{OPTIMIZER}{step}\nfor x, y in data:\n    step(x, y)")
    assert isinstance(loop.statement.node, ast.For)
    assert where(loop) == "optimizer.apply_gradients(zip(grads, model.trainable_variables))"
    assert loop.function is not None
    assert loop.function.name == "step"


def test_steps_in_one_loop_are_one_loop_and_two_loops_are_two() -> None:
    twice = TAPE + TAPE.removeprefix("\n")
    assert [len(loop.sites) for loop in loops(f"{HEAD}{MODEL}{OPTIMIZER}for x, y in data:{twice}")] == [2]
    again = f"for x, y in data:{TAPE}"
    assert len(loops(f"{HEAD}{MODEL}{OPTIMIZER}{again}{again}")) == 2


def test_a_custom_train_step_is_part_of_its_fit() -> None:
    method = f"    def train_step(self, x, y):{TAPE}".replace("\n    ", "\n        ")
    (loop,) = loops(f"{HEAD}class M(tf.keras.Model):\n{method}\nM().fit(data)")
    assert loop.pattern is Pattern.OPTIMIZER


def test_an_unseen_model_makes_a_loop_uncertain() -> None:
    (loop,) = loops(f"{HEAD}from zoo import model\nmodel.fit(x, epochs=3)")
    assert not loop.certain


def test_the_loop_of_another_file_is_found_where_it_stands() -> None:
    found = loops("from train import train\ntrain()", train=f"{HEAD}{MODEL}def train():\n    model.fit(x)")
    assert [loop.script.path for loop in found] == ["/workspace/train.py"]
    assert [where(loop) for loop in found] == ["model.fit(x)"]


def test_what_does_not_run_is_not_the_programs_loop() -> None:
    guarded = "if __name__ == '__main__':\n    model.fit(y)\n    train()"
    other = f"{HEAD}{MODEL}def train():\n    model.fit(x)\n{guarded}"
    assert loops("import other", other=other) == []
    assert len(loops("import other\nother.train()", other=other)) == 1


def test_the_summary_of_a_function_is_the_join_of_what_it_runs() -> None:
    text = f"""{HEAD}{MODEL}{OPTIMIZER}
def by_fit():
    model.fit(x)

def by_tape(x, y):{TAPE}

def both():
    by_fit()
    by_tape(x, y)

def neither():
    model.predict(x)

if __name__ == "__main__":
    both()
"""
    found = program(text)
    summaries = {
        scope.name: found.fact(Loops).summary(scope)
        for scope in found.script.scopes
        if scope.kind == "function"
    }
    assert summaries == {
        "by_fit": {Pattern.OPTIMIZER},
        "by_tape": {Pattern.GRAD_TAPE},
        "both": {Pattern.OPTIMIZER, Pattern.GRAD_TAPE},
        "neither": frozenset(),
    }
    assert found.fact(Loops).summary(None) == {Pattern.OPTIMIZER, Pattern.GRAD_TAPE}


@pytest.mark.parametrize(
    "launch", ["app.run(main)", "tf.compat.v1.app.run()\nmain()", "Thread(target=main).start()"]
)
def test_what_is_launched_counts_as_called(launch: str) -> None:
    imports = f"from absl import app\nfrom threading import Thread\n{HEAD}"
    assert program(f"{imports}{MODEL}def main():\n    model.fit(x)\n{launch}").fact(Loops).summary(None) == {
        Pattern.OPTIMIZER
    }


def test_functions_that_reach_a_loop() -> None:
    text = f"{HEAD}{MODEL}def a():\n    model.fit(x)\ndef b():\n    a()\ndef c():\n    pass\nb()"
    assert {scope.name for scope in program(text).fact(Loops).functions} == {"a", "b"}


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("a = tf.keras.Sequential()", "b = a", True),
        ("a = tf.keras.Sequential()", "b = tf.keras.Sequential()", False),
        ("a, b = tf.keras.Sequential(), tf.keras.Sequential()", "", False),
        ("def m():\n    return tf.keras.Sequential()", "a, b = m(), m()", False),
        ("M = tf.keras.Sequential()\ndef m():\n    return M", "a, b = m(), m()", True),
        ("a = tf.keras.Sequential()", "b = tf.keras.Sequential([a])", None),
        ("from zoo import a", "b = tf.keras.Sequential()", None),
        ("ms = [tf.keras.Sequential() for _ in range(2)]\na = ms[0]", "b = tf.keras.Sequential()", False),
    ],
)
def test_whether_two_loops_train_one_model(first: str, second: str, same: bool | None) -> None:
    found = program(f"{HEAD}{first}\n{second}\na.fit(x, epochs=1)\nb.fit(x, epochs=1)").fact(Loops)
    one, other = found.all
    assert found.same_model(one, other) is same
