"""The audit: correct results pass, and results with missing or repeated edits of a rule are refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from msgspec.structs import replace

from support.fixtures import SCRIPTS
from trainshift.core.program import Program
from trainshift.engine.analysis import Analysis, analyze
from trainshift.engine.audit import faults_of
from trainshift.engine.conversion import Status, carry_out
from trainshift.engine.finishing.compiling import compiles
from trainshift.python.names.script import Script, read_script
from trainshift.python.source.edit import Change, apply, merge

# Scripts that stay correct without the edits of a rule, or in which another edit has the same effect.
RIGHT_WITHOUT = {
    "HV05": {
        "keras_gan_train_step",  # `fit` broadcasts the model, which contains these networks
        "seq2seq_attention",  # the step that validates broadcasts the same networks
    },
    "HV09": {"keras_or_tape"},  # the tape's loop broadcasts the same model
    "HV10": {"keras_custom_step"},  # the optimizer only gets a name, and HV03 wraps it
    "HV13": {  # only the session's GPU is chosen, or a second session restores what the first trained
        "estimator_runconfig",
        "monitored_hooks",
        "monitored_singular",
    },
}


NAMES = [folder.name for folder in SCRIPTS]
FOLDERS = dict(zip(NAMES, SCRIPTS, strict=True))


@cache
def analysis_of(name: str) -> Analysis:
    """The analysis of a sample script."""
    analysis = analyze((FOLDERS[name] / "before.py").read_bytes().decode("utf-8-sig"))
    assert isinstance(analysis, Analysis)
    return analysis


def without(changes: tuple[Change, ...], rule: str) -> tuple[Change, ...]:
    """The changes as if a rule had missed all of its edits."""
    return tuple(each for each in changes if each.rule != rule)


def doubled(changes: tuple[Change, ...], rule: str) -> tuple[Change, ...]:
    """The changes as if a rule had made its insertions twice."""
    return tuple(
        replace(
            change,
            edits=tuple(
                replace(edit, text=edit.text * 2) if edit.start == edit.end else edit for edit in change.edits
            ),
        )
        if change.rule == rule
        else change
        for change in changes
    )


def passing(
    rule: str, spoil: Callable[[tuple[Change, ...], str], tuple[Change, ...]]
) -> tuple[set[str], int]:
    """The scripts that are converted despite a rule's spoilt changes, and the number of spoilt ones."""
    passed, spoilt = set(), 0
    for name in NAMES:
        analysis = analysis_of(name)
        changes = spoil(analysis.changes, rule)
        before = apply(analysis.scripts[0].source.text, merge(analysis.changes).edits)
        after = apply(analysis.scripts[0].source.text, merge(changes).edits)
        if after == before or not compiles(after):
            continue
        spoilt += 1
        conversion = carry_out(replace(analysis, changes=changes))
        if conversion.status is Status.CONVERTED and not conversion.doubts:
            passed.add(name)
        elif conversion.status is Status.REFUSED:
            assert conversion.text == analysis.scripts[0].source.text
            assert conversion.position is not None
    return passed, spoilt


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_right_passes(name: str) -> None:
    assert not analysis_of(name).changes or analysis_of(name).faults == ()


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["HV03", "HV04", "HV05", "HV09", "HV10", "HV12", "HV13", "HV14"])
def test_a_rule_that_misses_its_edits_is_refused(rule: str) -> None:
    passed, spoilt = passing(rule, without)
    assert spoilt > len(passed)
    assert passed <= RIGHT_WITHOUT.get(rule, set())


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["HV02", "HV03", "HV04", "HV15"])
def test_a_rule_that_makes_its_edits_twice_is_refused(rule: str) -> None:
    passed, spoilt = passing(rule, doubled)
    assert spoilt
    # There only a number of steps is multiplied, which the audit ignores.
    assert passed <= ({"yolo_like"} if rule == "HV15" else set())


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_program_that_does_not_start_horovod_is_refused(name: str) -> None:
    analysis = analysis_of(name)
    if not analysis.changes:
        return
    kept = tuple(
        replace(
            change,
            requires=tuple(edit for edit in change.requires if "hvd.init()" not in edit.text),
            edits=tuple(edit for edit in change.edits if "hvd.init()" not in edit.text),
        )
        for change in analysis.changes
    )
    started = ".init()" in analysis.scripts[0].source.text
    faults = [each.text for each in faults_of(analysis.program, kept)]
    assert started or faults == ["nothing starts Horovod"]


def test_a_fault_is_told_where_the_call_stands_in_the_script() -> None:
    analysis = analysis_of("mnist_tape")
    text = analysis.scripts[0].source.text
    (fault, *_) = faults_of(analysis.program, without(analysis.changes, "HV04"))
    assert text[fault.span.start :].partition("(")[0].endswith("apply_gradients")


HEAD = """\
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1 * hvd.size())


"""
STEP = """\
def step(x, reduce=True):
    with tf.GradientTape() as one, tf.GradientTape() as other:
        loss = tf.reduce_mean(net(x) ** 2)
        more = tf.reduce_mean(net(x + 1.0) ** 2)
    one = hvd.DistributedGradientTape(one)
    other = hvd.DistributedGradientTape(other)
    weights = net.trainable_variables
    pairs = zip(one.gradient(loss, weights), other.gradient(more, weights))
    opt.apply_gradients(zip([a + b for a, b in pairs], weights))


for x in data:
    step(x)
hvd.broadcast_variables(net.variables, root_rank=0)
"""


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", []),
        (
            "    other = hvd.DistributedGradientTape(other)\n",
            "",
            ["the gradients of this step are not averaged"],
        ),
        (
            "    other = hvd.DistributedGradientTape(other)\n",
            "    if reduce:\n        other = hvd.DistributedGradientTape(other)\n"
            "    other = hvd.DistributedGradientTape(other)\n",
            ["the gradients are averaged here a second time"],
        ),
        (
            "SGD(0.1 * hvd.size())",
            "SGD((0.5 * rate + 0.1 if warm else rate) * hvd.size())",
            ["the rate of this optimizer is scaled twice"],
        ),
        (
            "hvd.broadcast_variables(net.variables, root_rank=0)\n",
            "",
            ["nothing gives all ranks the same weights before they train"],
        ),
        (
            "    pairs = zip(one.gradient(loss, weights), other.gradient(more, weights))\n",
            "    pairs = zip(gradients(one, loss), gradients(other, more))\n",
            [],
        ),
    ],
)
def test_what_is_wrong_is_seen_in_any_text(before: str, after: str, expected: list[str]) -> None:
    rate = "rate = 0.1 * hvd.size()\nwarm = True\n"
    own = "def gradients(tape, loss):\n    return tape.gradient(loss, net.trainable_variables)\n\n\n"
    text = f"{HEAD}{STEP}".replace(before, after)
    text = text.replace("net = ", f"{rate}net = ", 1).replace("def step", f"{own}def step", 1)
    script = read_script(text)
    assert isinstance(script, Script)
    assert [each.text for each in faults_of(Program(script), ())] == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("x[rank::size], y[rank::size]", []),
        ("x, y", []),
        ("mine[rank::size], y[rank::size]", ["the data of this loop are divided twice"]),
        ("mine, y", ["this fit gets both divided and undivided data"]),
        ("data.shard(size, rank).map(f)", []),
        ("data.shard(size, rank).apply(lambda each: each.shard(hvd.size(), hvd.rank()))",
         ["the data of this loop are divided twice"]),
    ],
)  # fmt: skip
def test_data_that_are_divided_twice_or_in_part_are_seen(given: str, expected: list[str]) -> None:
    text = f"""\
import horovod.tensorflow.keras as hvd
import tensorflow as tf

hvd.init()
rank, size = hvd.rank(), hvd.size()
mine = x[rank::size]
net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
net.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1 * hvd.size())), "mse")
net.fit({given}, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
"""
    script = read_script(text)
    assert isinstance(script, Script)
    assert [each.text for each in faults_of(Program(script), ())] == expected


def test_a_name_may_hold_a_model_that_takes_its_own_steps_later() -> None:
    """Its optimizer is not wrapped, because its tape is."""
    text = """\
import tensorflow as tf


class Custom(tf.keras.Sequential):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compiled_loss(y, self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adagrad(learning_rate=0.05)
model.compile(optimizer=optimizer, loss="mse")
model.fit(data)
model = Custom([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adagrad(learning_rate=0.05)
model.compile(optimizer=optimizer, loss="mse")
model.fit(data)
"""
    analysis = analyze(text)
    assert isinstance(analysis, Analysis)
    assert analysis.changes
    assert analysis.faults == ()
