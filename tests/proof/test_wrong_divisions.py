"""The judge finds nothing in correctly divided data, and finds each fault injected into a division."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proof.harness import judge, run_converted, run_original
from support.turns import by_kind
from trainshift.proving.judging.data import judge_data

pytestmark = pytest.mark.proof

SAMPLES = Path(__file__).parent / "samples"
GOOD = ("divided_fit", "divided_index", "divided_session", "divided_tape")

SHARE = "train = train.shard(hvd.size(), hvd.rank()).take(len(train) // hvd.size())\n"
AT_LOOP = "for x, y in train:\n"
LENGTH = "decay_steps=EPOCHS * len(train)"
MINE = "mine = slice(hvd.rank() * share, (hvd.rank() + 1) * share)\n"
STEPS = "    steps = len(features) // BATCH // hvd.size() * hvd.size()\n"
INDICES = "range(hvd.rank(), steps, hvd.size())"

# A name, the sample that is changed, the ids of all resulting faults, and the changes.
WRONG = [
    ("not-divided", "divided_tape", "epoch-not-divided data-shared", (SHARE, "")),
    (
        "same-share-on-all-ranks",
        "divided_tape",
        "data-shared data-missing",
        (".shard(hvd.size(), hvd.rank()).take", ".take"),
    ),
    (
        "shares-overlap",
        "divided_tape",
        "data-shared data-missing",
        (".shard(hvd.size(), hvd.rank()).take", ".skip(hvd.rank() * 60).take"),
    ),
    (
        "shuffled-otherwise-on-each-rank-before-the-shard",
        "divided_tape",
        "data-shared data-missing",
        ("tf.random.set_seed(22)", "tf.random.set_seed(22 + hvd.rank())"),
        (SHARE, "train = train.shuffle(197)\n" + SHARE),
    ),
    (
        "shard-without-equal-counts",
        "divided_tape",
        "did-not-finish",
        (SHARE, ""),
        (AT_LOOP, "for x, y in train.shard(hvd.size(), hvd.rank()):\n"),
    ),
    (
        "share-of-an-unknown-length",
        "divided_tape",
        "did-not-finish",
        (SHARE, "train = train.filter(lambda x, y: True)\n"),
        (LENGTH, "decay_steps=39"),
        (
            AT_LOOP,
            "for x, y in train.shard(hvd.size(), hvd.rank()).take(train.cardinality() // hvd.size()):\n",
        ),
    ),
    (
        "all-steps-of-a-repeat",
        "divided_tape",
        "epoch-not-divided data-shared",
        (SHARE, "train = train.repeat().shard(hvd.size(), hvd.rank())\n"),
        (LENGTH, "decay_steps=75"),
        (AT_LOOP, "for x, y in train.take(25):\n"),
    ),
    (
        "divided-at-the-source-and-at-the-loop",
        "divided_tape",
        "steps-differ epoch-not-divided data-missing",
        (AT_LOOP, "for x, y in train.shard(hvd.size(), hvd.rank()).take(len(train) // hvd.size()):\n"),
    ),
    (
        "part-of-a-share",
        "divided_tape",
        "epoch-not-divided data-missing",
        ("len(train) // hvd.size()", "len(train) // hvd.size() - 20"),
        (LENGTH, "decay_steps=75 / hvd.size()"),
    ),
    (
        "labels-of-other-elements",
        "divided_tape",
        "data-unknown data-missing",
        (
            "from_tensor_slices((features, labels))\ntrain = ",
            "from_tensor_slices((features, tf.roll(labels, hvd.rank(), 0)))\ntrain = ",
        ),
    ),
    (
        "evaluation-divided",
        "divided_tape",
        "evaluation-divided",
        ("in test]", "in test.shard(hvd.size(), hvd.rank())]"),
    ),
    ("schedule-not-divided", "divided_tape", "schedule-not-divided", (LENGTH, "decay_steps=75")),
    ("schedule-divided-twice", "divided_tape", "rate-not-scaled", (LENGTH, LENGTH + " / hvd.size()")),
    (
        "boundaries-not-divided",
        "divided_index",
        "schedule-not-divided",
        ("[20 // hvd.size(), 40 // hvd.size()]", "[20, 40]"),
    ),
    (
        "same-batches-on-all-ranks",
        "divided_index",
        "data-shared data-missing",
        (INDICES, "range(0, steps, hvd.size())"),
    ),
    (
        "order-of-its-own-on-each-rank",
        "divided_index",
        "data-shared data-missing",
        ("order = rng.permutation", "order = np.random.permutation"),
    ),
    (
        "one-step-more-on-a-rank",
        "divided_index",
        "did-not-finish",
        (STEPS, STEPS.replace(" // hvd.size() * hvd.size()", "")),
    ),
    (
        "labels-not-divided",
        "divided_fit",
        "data-unknown data-missing",
        ("labels[mine]", "labels[: len(features[mine])]"),
    ),
    (
        "validation-divided",
        "divided_fit",
        "evaluation-divided",
        (
            "(held, held.sum(axis=1, keepdims=True))",
            "(held[: share // 2], held[: share // 2].sum(axis=1, keepdims=True))",
        ),
    ),
    (
        "features-of-a-session-whole",
        "divided_session",
        "data-unknown data-missing",
        (
            "features = features[hvd.rank() * share : (hvd.rank() + 1) * share]\n",
            "features = features[:share]\n",
        ),
    ),
]


def judged(sample: str, text: str, ranks: int) -> list[str]:
    """The faults of a sample's conversion, on a number of ranks."""
    original = run_original(SAMPLES / f"{sample}_before.py", data=True)
    runs = run_converted(text, ranks=ranks, data=True)
    return judge(original, runs) + judge_data(original, runs)


@pytest.mark.parametrize("sample", GOOD)
def test_good_division_has_no_fault(sample: str) -> None:
    assert judged(sample, (SAMPLES / f"{sample}_after.py").read_text("utf-8"), ranks=3) == []


@by_kind(WRONG, lambda case: case[2], 2, lambda case: str(case[0]))
def test_wrong_division_is_caught(case: tuple[Any, ...]) -> None:
    _, sample, faults, *changes = case
    text = (SAMPLES / f"{sample}_after.py").read_text("utf-8")
    for old, new in changes:
        assert old in text, f"the sample holds no {old!r}"
        text = text.replace(old, new)
    found = judged(sample, text, 2)
    assert {fault.partition(":")[0] for fault in found} == {*faults.split()}, "\n".join(found)
