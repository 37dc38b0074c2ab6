"""Steps that a script takes by hand, without an optimizer: they are observed and judged."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy
import pytest

from proof.made_up import RANKS, STEPS, record, run
from proof.proving import failing, proven, verdicts
from trainshift.proving.judging.by_hand import measured
from trainshift.proving.judging.claims import claims
from trainshift.proving.judging.seen import Seen

OWN = [numpy.array([1.0, 2.0, 3.0]), numpy.array([3.0, 1.0, 0.0])]
MEAN = (OWN[0] + OWN[1]) / 2
CLIPPED = [0.2, 0.15, 0.1, 0.13, 0.11, 0.2]
# The loss, by the number of the rank and of the step.
LOWERED = {
    "the mean": lambda rank, step: 0.2 * MEAN,
    "a rate that falls": lambda rank, step: 0.2 * 0.8**step * MEAN,
    "the mean, clipped": lambda rank, step: CLIPPED[step] * MEAN,
    "the sum": lambda rank, step: 0.4 * MEAN,
    "the mean at the original's rate": lambda rank, step: 0.1 * MEAN,
    "their own": lambda rank, step: 0.2 * OWN[rank],
    "their own at first": lambda rank, step: 0.2 * (MEAN if step else OWN[rank]),
    "the mean at rates of their own": lambda rank, step: (0.2 + 0.1 * rank) * MEAN,
    "something else": lambda rank, step: 0.2 * MEAN + [step, -step, 0.0],
    "something else on each rank": lambda rank, step: 0.2 * OWN[rank] + [step + rank, -step, 0.0],
}


def steps(rank: int, lowered: Any) -> dict[str, Any]:
    """The samples of a rank's steps."""
    return {
        f"1/{kind}/{step}": numpy.asarray(array).astype("f4")
        for step in range(STEPS)
        for kind, array in (("local", OWN[rank]), ("gradients", lowered(rank, step)))
    }


def found(what: str, reduced: str, collectives: str) -> tuple[dict[str, str], Seen]:
    """The verdicts, and the observations."""
    lowered, unknown = LOWERED[what], [math.nan] * STEPS
    arrays = [steps(rank, lowered) for rank in range(RANKS)]
    ranks = [
        run(
            record(
                rank,
                by_hand=True,
                rates=unknown,
                gradients=[f"{rank} {step}" for step in range(STEPS)],
                weights=[f"{rank}", *map(str, range(1, STEPS))],
                reduced=reduced.split(),
                collectives=collectives.split(),
            )
        )
        for rank in range(RANKS)
    ]
    alone = steps(0, lambda rank, step: 0.1 * (0.8**step if "falls" in what else 1) * OWN[0])
    before = run(record(0, by_hand=True, rates=unknown, gpus=["0"]))
    seen = measured(Seen(before, ranks, arrays=arrays, limit=STEPS, samples=alone))
    return {claim.id: claim.verdict for claim in claims(seen)}, seen


@pytest.mark.parametrize(
    ("what", "reduced", "collectives", "averaged", "rate"),
    [
        ("the mean", "average", "allreduce", "holds", "holds"),
        ("the mean", "sum", "allreduce", "holds", "holds"),
        ("the mean", "", "broadcast", "not seen", "holds"),
        ("a rate that falls", "average", "allreduce", "holds", "holds"),
        ("the mean, clipped", "average", "allreduce", "holds", "not seen"),
        ("the mean, clipped", "sum", "allreduce", "not seen", "not seen"),
        ("the sum", "sum", "allreduce", "fails", "holds"),
        ("the sum", "average", "allreduce", "holds", "fails"),
        ("the mean at the original's rate", "average", "allreduce", "holds", "fails"),
        ("their own", "average", "allreduce", "fails", "holds"),
        ("their own at first", "average", "allreduce", "holds", "holds"),
        ("the mean at rates of their own", "average", "allreduce", "holds", "fails"),
        ("something else", "average", "allreduce", "not seen", "not seen"),
        ("something else on each rank", "average", "allreduce", "not seen", "not seen"),
        ("something else on each rank", "", "broadcast", "fails", "not seen"),
    ],
)
def test_what_steps_make_of_gradients(
    what: str, reduced: str, collectives: str, averaged: str, rate: str
) -> None:
    verdict, seen = found(what, reduced, collectives)
    assert (verdict["averaged"], verdict["rate"]) == (averaged, rate)
    assert {verdict["weights"], verdict["broadcast"]} == {"holds"}
    if what == "the mean":
        assert [each.optimizers[0].rates for each in (seen.before, *seen.records)] == [
            [rate] * STEPS for rate in (0.1, 0.2, 0.2)
        ]


SCRIPT = """import numpy as np
import tensorflow as tf
import horovod.tensorflow as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
x = np.random.RandomState(3).rand(960, 5).astype("float32")
y = x.sum(axis=1, keepdims=True)
data = tf.data.Dataset.from_tensor_slices((x, y)).shard(size, rank).batch(8)
kernel, bias = tf.Variable(tf.random.normal([5, 1])), tf.Variable([0.0])
mean = tf.Variable(tf.zeros([5, 1]))
hvd.broadcast_variables([kernel, bias], root_rank=0)
rate = 0.01 * size


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(x @ kernel + bias - y))
    found = tape.gradient(loss, [kernel, bias])
    kernel.assign_sub(rate * hvd.allreduce(found[0]))
    mean.assign(0.9 * mean + 0.1 * kernel)
    bias.assign(bias - rate * hvd.allreduce(found[1]))


steps = step, tf.function(step)
for number, (rows, sums) in enumerate(data):
    steps[number % 2](rows, sums)
    if rank == 0:
        print(number, float(bias[0]))
"""


@pytest.mark.proof
def test_steps_by_hand_are_seen(tmp_path: Path) -> None:
    result = proven(tmp_path, SCRIPT, steps=6)
    seen = verdicts(result)
    assert failing(result) == {"gpu"}, result["claims"]
    assert {seen[name] for name in ("ends", "weights", "averaged", "broadcast", "rate", "data")} == {"holds"}
    assert (result["steps"], result["stopped"], {*result["runs"][1]["rates"]}) == (6, True, {0.02})
