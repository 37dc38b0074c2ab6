"""Lists of callbacks get a name, as in Horovod's own examples, unless that changes what is evaluated when."""

from __future__ import annotations

import pytest

from trainshift.engine.conversion import convert

SCRIPT = """\
import tensorflow as tf
from tensorflow.keras.callbacks import CSVLogger, EarlyStopping, ModelCheckpoint

(x, y), _ = tf.keras.datasets.mnist.load_data()
model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
"""
FIRST = "hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()"


def _converted(code: str) -> str:
    """The end of a converted script, without breaks between arguments."""
    text = convert(SCRIPT + code).text.rpartition('"mse")\n')[2]
    return (
        " ".join(text.split()).replace("( ", "(").replace("[ ", "[").replace(", ]", "]").replace(", )", ")")
    )


@pytest.mark.parametrize(
    ("code", "begins", "given"),
    [
        pytest.param(
            "model.fit(x, y, verbose=0, callbacks=[CSVLogger('a'), EarlyStopping(), ModelCheckpoint('b')])",
            f"callbacks = [{FIRST}] if hvd.rank() == 0: callbacks.append(CSVLogger('a')) "
            "callbacks.append(EarlyStopping()) if hvd.rank() == 0: callbacks.append(ModelCheckpoint('b'))",
            "callbacks=callbacks",
            id="in order",
        ),
        pytest.param(
            "callbacks = 3\nmodel.fit(x, y, verbose=0, callbacks=[CSVLogger('a')])",
            f"callbacks = 3 fit_callbacks = [{FIRST}] if hvd.rank() == 0: fit_callbacks.append",
            "callbacks=fit_callbacks",
            id="the name is taken",
        ),
        pytest.param(
            "made = [EarlyStopping()]\nmodel.fit(x, y, verbose=0, callbacks=made)",
            f"made = [{FIRST}, EarlyStopping()] model.fit(",
            "callbacks=made",
            id="into a list with a name",
        ),
        pytest.param(
            "model.fit(next(iter([x])), y, verbose=0, callbacks=[CSVLogger('a')])",
            "model.fit(",
            f"callbacks=[{FIRST}, *([CSVLogger('a')] if hvd.rank() == 0 else [])]",
            id="a call comes first",
        ),
        pytest.param(
            "made = [EarlyStopping()]\nfor _ in range(3):\n    model.fit(x, y, verbose=0, callbacks=made)",
            "made = [EarlyStopping()] for _ in range(3): model.fit(",
            f"callbacks=[{FIRST}, *made]",
            id="one list for several fits in a loop",
        ),
        pytest.param(
            "made = [EarlyStopping()]\nprint(len(made))\nmodel.fit(x, y, verbose=0, callbacks=made)",
            "made = [EarlyStopping()] if hvd.rank() == 0: print(len(made)) model.fit(",
            f"callbacks=[{FIRST}, *made]",
            id="a list that something else reads",
        ),
    ],
)
def test_a_list_of_callbacks_reads_as_in_horovods_examples(code: str, begins: str, given: str) -> None:
    text = _converted(code)
    assert text.startswith(begins)
    assert given in text
