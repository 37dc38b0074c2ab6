"""Two ranks compute the same as a strategy on two devices: the same weights from the same batches and rate.

A strategy sums the gradients of its replicas, each of a loss divided by the global batch; Horovod averages
the gradients of a loss divided by the rank's own batch.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.harness import run_converted, run_original
from trainshift.engine.conversion import Status, convert

pytestmark = pytest.mark.proof

LOOP = Path(__file__).parents[2] / "fixtures" / "scripts" / "strategy_loop" / "before.py"
MADE = "strategy = tf.distribute.MirroredStrategy()\n"
TWO = """\
devices = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(devices[0], [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
"""
# The proof offsets all seeds by rank, so the initial values of two replicas have to be computed.
DRAWN = "rng.rand(192, 8, 8)"
SAME = "np.abs(np.sin(np.arange(192 * 64))).reshape(192, 8, 8)"
BUILT = "    model = create_model()\n"
ALIKE = f"""{BUILT}\
    model.set_weights([
        np.cos(np.arange(w.size)).reshape(w.shape) / 4 for w in model.get_weights()])
"""
SHOWN = 'print("weights", [round(float(v), 4) for w in model.get_weights() for v in w.flatten()])\n'


@pytest.fixture(scope="module")
def script() -> str:
    """The custom loop on two devices, which prints its final weights."""
    text = LOOP.read_text(encoding="utf-8")
    for old, new in ((MADE, TWO), (DRAWN, SAME), (BUILT, ALIKE)):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text + SHOWN


def test_two_ranks_end_with_the_weights_of_two_replicas(script: str) -> None:
    conversion = convert(script)
    assert conversion.status is Status.CONVERTED
    weights = _weights(run_original(script).stdout)
    assert _weights(run_converted(conversion.text)[0].stdout) == weights
    # The ranks would not agree if the loss is divided by the batch of all ranks, which Horovod averages.
    loss = "global_batch_size=GLOBAL_BATCH_SIZE"
    wrong = conversion.text.replace(loss, f"{loss} * hvd.size()")
    assert wrong != conversion.text
    assert _weights(run_converted(wrong)[0].stdout) != weights


def _weights(printed: str) -> str:
    """The line that prints the weights."""
    (line,) = [each for each in printed.splitlines() if each.startswith("weights")]
    return line
