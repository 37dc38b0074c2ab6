"""Data that programs share are divided as all of them need it, or at the training only."""

from __future__ import annotations

import pytest

from support.programs import changed, converted
from trainshift.core.program import Program
from trainshift.engine.conversion import Status, convert
from trainshift.python.names.occurrence import of_call
from trainshift.python.names.script import Script, read_script
from trainshift.training.uniformity.chosen_rows import ChosenRows

DATA = """\
import tensorflow as tf


def load(x, y):
    return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(100).batch(10)


train = load([1.0] * 40, [1.0] * 40)
"""
TRAIN = """\
import tensorflow as tf

from data import train

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(train, epochs={epochs})
"""
EVALUATED = "model.evaluate(train)\n"
LENGTH = ".apply(lambda ds: ds.shard(hvd.size(), hvd.rank()).take(len(ds) // hvd.size()))"


def program(**files: str) -> dict[str, str]:
    return {f"{name}.py": text for name, text in files.items()}


def test_programs_that_agree_divide_a_shared_file() -> None:
    files = program(data=DATA, one=TRAIN.format(epochs=1), other=TRAIN.format(epochs=2))
    conversion = converted(files, "one.py")
    assert conversion.status is Status.CONVERTED, conversion.reason
    assert LENGTH in changed(conversion)["data.py"]
    assert conversion.withheld == ()


def test_a_program_that_another_one_disagrees_with_leaves_the_data_whole() -> None:
    """The other program evaluates on the data, so they cannot be divided at their creation."""
    files = program(data=DATA, one=TRAIN.format(epochs=1), other=TRAIN.format(epochs=2) + EVALUATED)
    conversion = converted(files, "one.py")
    assert conversion.status is Status.CONVERTED, conversion.reason
    assert not any("shard" in text for text in changed(conversion).values())
    assert [each.rule for each in conversion.withheld] == ["HV15"]
    again = converted(files | changed(conversion), "one.py")
    assert again.status is Status.ALREADY_DISTRIBUTED
    other = changed(converted(files, "other.py"))
    assert ["shard" in other[name] for name in ("other.py", "data.py")] == [True, False]
    assert converted(files | other, "one.py").status is Status.CONVERTED


def test_the_shape_of_shuffled_data_holds_none_of_its_rows() -> None:
    code = "import numpy as np\nx = np.load('x.npy')\nnp.random.shuffle(x)\nuse(x.shape[1:])\nuse(x[:9])\n"
    script = read_script(code)
    assert isinstance(script, Script)
    program = Program(script)
    shape, rows = (of_call(each).part(each.node.args[0]) for each in script.sites_named("use"))
    draws = program.fact(ChosenRows).draws
    assert not draws(shape)
    assert draws(rows)


@pytest.mark.parametrize(
    ("size", "whole"),
    [
        ("n", True),
        ("len(x)", True),
        ("x.shape[0]", True),
        ("32", False),
        ("n // 2", False),
        ("len(b)", False),
        ("len(b[:9])", False),
    ],
)
def test_rows_that_all_are_one_batch_in_order_stay_together(size: str, whole: bool) -> None:
    code = (
        "import numpy as np\nimport tensorflow as tf\n\n"
        "x, a, b = np.load('x.npy'), np.load('a.npy'), np.load('b.npy')\n"
        "n = x.shape[0]\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        f"model.compile('sgd', 'mse')\nmodel.fit([x, a, b[:9]], x, batch_size={size}, shuffle=False)\n"
    )
    result = convert(code)
    assert result.status is Status.CONVERTED
    assert ("hvd.size()]" not in result.text) is whole
    assert any("each batch has all rows" in str(each) for each in result.decisions) is whole


MADE = """\
import numpy as np
import tensorflow as tf


def make(x, y):
    return tf.data.Dataset.from_tensor_slices((x, y))


x, y = np.random.rand(100, 3), np.random.rand(100)
train = make(x[:-10], y[:-10])
train = train.shuffle(8).batch(4)
valid = make(x[-10:], y[-10:]).batch(4)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(train, validation_data=valid, epochs=2)
"""


def test_a_share_that_a_name_gets_directly_is_not_divided_again() -> None:
    first = convert(MADE)
    assert first.text.count(".shard(") == 1
    assert convert(first.text).status is Status.ALREADY_DISTRIBUTED
