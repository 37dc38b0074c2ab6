"""Invariants for every script under `fixtures`: the check terminates, and so do its fixes."""

from __future__ import annotations

import pytest

from support.finding_fixtures import FINDING_CASES
from support.fixtures import SCRIPTS, TRANSFORM_CASES
from support.turns import Turns
from trainshift.engine.finishing.compiling import compiles
from trainshift.engine.fixing import fix
from trainshift.engine.own_codes import INTERNAL_ERROR
from trainshift.engine.settings import Settings, Severity

TEXTS = [case.script for case in FINDING_CASES]
TEXTS += [case.text for case in TRANSFORM_CASES]
TEXTS += [(folder / "before.py").read_bytes().decode("utf-8-sig") for folder in SCRIPTS]


@pytest.mark.parametrize(("newline", "every"), [("\n", 1), ("\r\n", 3), ("\r", 4)])
def test_fixes_come_to_an_end_and_leave_a_script(newline: str, every: int, quick: bool, turns: Turns) -> None:
    for text in TEXTS[::60] if quick else turns.of(TEXTS[::every], 2):
        script = text.replace("\r\n", "\n").replace("\n", newline)
        fixed = fix(script, least=Severity.HINT)
        assert not [each for each in fixed.report.diagnostics if each.code == INTERNAL_ERROR.code], script
        assert not [each for each in fixed.report.diagnostics if each.fix and not each.asks], script
        assert compiles(fixed.text) or not compiles(script)
        if newline != "\n":
            assert "\n" not in fixed.text.replace(newline, ""), script


def test_only_warnings_are_mended_unless_more_is_asked_for() -> None:
    script = (
        "import tensorflow as tf\nrelu = tf.nn.relu\nAdam = tf.keras.optimizers.Adam\nx = relu(Adam(0.1))\n"
    )
    assert "relu = tf.nn.relu" in fix(script).text
    assert "Adam = " not in fix(script).text
    assert "relu = " not in fix(script, least=Severity.HINT).text


BY_HAND = """\
import tensorflow as tf
import horovod.tensorflow as hvd

hvd.init()
optimizer = tf.keras.optimizers.SGD(0.1 * hvd.size())
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
data = tf.data.Dataset.from_tensor_slices((tf.zeros((8, 3)), tf.zeros((8, 1)))).batch(2)
for x, y in data:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
model.save_weights("w.h5"); model.save("model.h5")
"""


@pytest.mark.parametrize(
    ("code", "added"),
    [
        ("HZ20", ["if hvd.rank() == 0:", '    model.save_weights("w.h5")', '    model.save("model.h5")']),
        ("HZ08", ["    tape = hvd.DistributedGradientTape(tape)"]),
    ],
)
def test_a_fix_of_a_hazard_brings_nothing_else(code: str, added: list[str]) -> None:
    fixed = fix(BY_HAND, Settings(select=(code,)))
    before = BY_HAND.splitlines()
    assert [line for line in fixed.text.splitlines() if line not in before] == added


def test_a_fix_brings_the_flag_that_it_names() -> None:
    fixed = fix(BY_HAND, Settings(select=("HZ10",))).text
    assert fixed.count("hvd_broadcast_done") == 3
    assert "gpus" not in fixed


def test_a_fix_breaks_the_line_that_it_makes_too_long() -> None:
    long = BY_HAND.replace('model.save("model.h5")', f'model.save("{"m" * 60}.h5", save_format="h5")')
    long = long.replace("model.save_weights", "    model.save_weights").replace(
        "\n    model.save_w", "\nif x:\n    model.save_w"
    )
    fixed = fix(long, Settings(select=("HZ20",))).text
    assert max(map(len, fixed.splitlines())) <= max(map(len, long.splitlines()))
