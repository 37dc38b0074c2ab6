"""Scripts distributed by hand are proven, and a mistake fails only the claim that it breaks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from proof.proving import failing, proven, verdicts
from trainshift.dev.docgen import PAGES
from trainshift.proving.prove import marked

pytestmark = pytest.mark.proof

# As in the examples of Horovod's documentation.
TAPE = """import os
import numpy as np
import tensorflow as tf
import horovod.tensorflow as hvd

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

rng = np.random.RandomState(3)
x = rng.rand(800, 6).astype("float32")
y = x.sum(axis=1, keepdims=True)
data = tf.data.Dataset.from_tensor_slices((x, y)).shard(hvd.size(), hvd.rank()).batch(8)

model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(0.001 * hvd.size())
loss_of = tf.keras.losses.MeanSquaredError()


@tf.function
def train_step(x, y, first):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for step, (features, labels) in enumerate(data):
    loss = train_step(features, labels, step == 0)
    if step == 0:
        hvd.broadcast_variables(model.variables, root_rank=0)
        hvd.broadcast_variables(optimizer.variables, root_rank=0)
    if step % 10 == 0 and hvd.rank() == 0:
        print(step, float(loss))
if hvd.rank() == 0:
    model.save_weights("weights.h5")
"""
FIT = """import numpy as np
import tensorflow as tf
import horovod.tensorflow.keras as hvd

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

rng = np.random.RandomState(3)
x = rng.rand(640, 6).astype("float32")
y = x.sum(axis=1, keepdims=True)
x, y = x[hvd.rank()::hvd.size()], y[hvd.rank()::hvd.size()]

model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01 * hvd.size()))
model.compile(optimizer, "mse")
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
]
if hvd.rank() == 0:
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("model.h5", save_weights_only=True))
model.fit(x, y, batch_size=16, epochs=4, callbacks=callbacks, verbose=2 if hvd.rank() == 0 else 0)
"""

# All ranks read the new file that rank 0 has written over an older one, after waiting for it.
READ = """hvd.broadcast(0, root_rank=0)
model.load_weights("weights.h5")
"""

BROADCAST = """        hvd.broadcast_variables(model.variables, root_rank=0)
        hvd.broadcast_variables(optimizer.variables, root_rank=0)
"""
ROOT = "if hvd.rank() == 0:\n    "
FIRST = "    if step == 0:\n"
SAVE = 'model.save_weights("weights.h5")'
PINNING = 'tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")'
APPLY = "    optimizer.apply"
TWICE = "    gradients = [hvd.allreduce(each, op=hvd.Sum) / hvd.size() ** 2 for each in gradients]\n"
LOOP = "for step, (features"
AGAIN = """    global done
    if not done:
        hvd.broadcast_variables(model.variables, root_rank=0)
        done = True
    return loss
"""
LATE = """hvd.broadcast_variables(model.variables, root_rank=0)
if hvd.rank() == 0:
    tf.keras.models.clone_model(model).save_weights("start.h5")
    model.load_weights("start.h5")
"""
BY_NUMBER = "rows = iter(data)\nfor step in range(50):\n    features, labels = next(rows)\n"
LEAVE = "    if step == 5 and hvd.rank() == 1:\n        os.kill(os.getpid(), 9)\n"
PERMUTED = "order = np.random.permutation(len(x))\nx, y = x[order], y[order]\n"
OWN_RATE = "    optimizer.learning_rate = 0.001 * hvd.size() / (1 + float(loss))\n"
Mistake = tuple[str, str, str, str, list[tuple[str, str]]]
# The mistake, the script, the claims that fail, parts of the reported lines, and the changes.
MISTAKES: list[Mistake] = [
    (
        "no-broadcast, shuffled-before-shared",
        TAPE,
        "weights broadcast data",
        "apply_gradients",
        [(BROADCAST, "        pass\n"), ("rand(800", "rand(160"), (".shard(", ".shuffle(160).shard(")],
    ),
    (
        "broadcast-while-traced, rate-by-own-losses",
        TAPE,
        "weights broadcast rate",
        "apply_gradients Adam",
        [
            (BROADCAST, "        pass\n"),
            ("@tf.function", "done = False\n\n\n@tf.function"),
            ("    return loss\n", AGAIN),
            ("    if step % 10", f"{OWN_RATE}    if step % 10"),
        ],
    ),
    (
        "loaded-after-the-broadcast",
        TAPE,
        "weights broadcast",
        "apply_gradients",
        [
            (BROADCAST, "        pass\n"),
            ('activation="relu")', 'activation="relu", input_shape=(6,))'),
            (LOOP, LATE + LOOP),
        ],
    ),
    ("divided-to-nothing", FIT, "data", "", [("epochs=4", "epochs=1 // hvd.size()")]),
    (
        "not-averaged",
        TAPE,
        "averaged weights",
        "apply_gradients",
        [("hvd.DistributedGradientTape(tape)", "tape")],
    ),
    ("wrapped-twice", TAPE, "averaged ends", "", [("Tape(tape)", "Tape(hvd.DistributedGradientTape(tape))")]),
    (
        "no-slots-broadcast, rate-unscaled, writes-everywhere, part-by-a-function",
        TAPE,
        "broadcast rate output data",
        "Adam( save_weights",
        [
            (BROADCAST.splitlines(True)[1], ""),
            ("0.001 * hvd.size()", "0.001"),
            (ROOT + "model", "if True:\n    model"),
            (".shard(hvd.size(), hvd.rank())", ".shard(2, 0 if hvd.rank == 0 else 1)"),
            ("for step, (features, labels) in enumerate(data):\n", BY_NUMBER),
        ],
    ),
    (
        "summed, same-data, one-gpu",
        TAPE,
        "averaged data gpu",
        "apply_gradients",
        [
            ("Tape(tape)", "Tape(tape, op=hvd.Sum)"),
            (".shard(hvd.size(), hvd.rank())", ""),
            ("gpus[hvd.local_rank()]", "gpus[0]"),
        ],
    ),
    (
        "reduced-twice, prints-everywhere, all-gpus",
        TAPE,
        "averaged output gpu",
        "apply_gradients print(",
        [(APPLY, TWICE + APPLY), (" and hvd.rank() == 0:", ":"), (PINNING, "pass")],
    ),
    ("one-rank-is-killed", TAPE, "ends", "", [(FIRST, LEAVE + FIRST)]),
    (
        "fit-unwrapped, parts-of-orders-of-their-own",
        FIT,
        "averaged weights data",
        "model.fit",
        [("hvd.DistributedOptimizer(", "("), ("x, y = x[", PERMUTED + "x, y = x[")],
    ),
    (
        "fit-no-broadcast, checkpoints-everywhere",
        FIT,
        "broadcast weights output",
        "model.fit",
        [
            ("    hvd.callbacks.BroadcastGlobalVariablesCallback(0),\n", ""),
            (ROOT + "callb", "if True:\n    callb"),
        ],
    ),
]


def changed(text: str, changes: list[tuple[str, str]]) -> str:
    """A script with changes."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("script", [TAPE + READ, FIT], ids=["tape", "fit"])
def test_what_is_right_holds(script: str, tmp_path: Path) -> None:
    (tmp_path / "weights.h5").write_text("of another training")
    result = proven(tmp_path, script)
    seen = verdicts(result)
    del seen["worth"]
    assert set(seen.values()) == {"holds"}, result["claims"]
    assert (result["verdict"], result["stopped"], result["steps"]) == ("holds", True, 20)
    keys = {*result, *result["claims"][0], *result["runs"][0], *result["timeline"]}
    assert keys <= set(re.findall(r"`(\w+)`", (PAGES.parent / "proving.md").read_text(encoding="utf-8")))
    assert "run to its end" in result["claims"][0]["says"]
    assert not any(result["differences"][1:])
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "weights.h5"}
    assert (tmp_path / "weights.h5").read_text() == "of another training"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake[0])
def test_each_mistake_fails_at_its_claim(mistake: Mistake, tmp_path: Path) -> None:
    _, script, expected, line, changes = mistake
    result = proven(tmp_path, changed(script, changes))
    assert failing(result) == set(expected.split()), result["claims"]
    assert result["verdict"] == "fails"
    # A process that ended because of a rank's end was not stopped.
    assert not (result["stopped"] and "killed" in mistake[0])
    for claim in result["claims"]:
        if claim["verdict"] == "fails":
            assert claim["says"]
            assert claim["do"]
            places = [
                place for place in claim["places"] if any(part in place["text"] for part in line.split())
            ]
            assert places or not line or claim["id"] not in ("averaged", "rate", "output", "weights"), claim
            assert all(place["path"] == "train.py" for place in claim["places"])
            assert not any("hvd.init" in place["text"] for place in claim["places"])


# Every script runs to its end, whatever else it does, and leaves nothing behind.
UNRULY = """
import signal, subprocess, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, signal.SIG_IGN)
subprocess.Popen(["sleep", "3600"], start_new_session=True)
if not os.fork():
    os._exit(0)
print("x" * 3_000_000) if hvd.rank() == 0 else None
assert sys.stdin.read() == ""
table = np.load("data/table.npy")
assert table.shape == (300, 300) and os.path.islink("data/table.npy")
if hvd.rank() == 0:
    np.save("data/table.npy", table + 1)
    open(os.environ["ELSEWHERE"], "w").close()
    os.makedirs("out", exist_ok=True)
    os.chdir("out")
"""


def test_an_unruly_script_is_seen_through_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, scratch = tmp_path / "project", tmp_path / "scratch"
    (project / "data").mkdir(parents=True)
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setenv("ELSEWHERE", str(tmp_path / "elsewhere"))
    numpy = pytest.importorskip("numpy")
    table = numpy.zeros((300, 300))
    numpy.save(project / "data" / "table.npy", table)
    # Its steps are eager, and its tape records a traced function.
    eager = [("@tf.function\ndef", "forward = tf.function(model)\n\n\ndef"), ("model(x, t", "forward(x, t")]
    script = changed(TAPE, [("\nrng =", f"{UNRULY}\nrng ="), *eager])
    result = proven(project, script + "    os._exit(0)\n")
    assert failing(result) == set(), result["claims"]
    assert (result["verdict"], verdicts(result)["data"]) == ("holds", "holds"), result["claims"]
    assert {each["path"] for each in result["written_elsewhere"]} == {str(tmp_path / "elsewhere")}
    assert result["changed"] == []
    assert (numpy.load(project / "data" / "table.npy") == table).all()
    assert {path.name for path in project.rglob("*")} == {"data", "table.npy", "train.py"}
    assert [*scratch.iterdir()] == []
    assert marked(f"TRAINSHIFT_PROVE_SCRATCH={scratch}") == []


def test_ranks_that_wait_for_each_other_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainshift.proving.prove.IDLE_LIMIT", 15.0)
    skip = "    if step == 4 and hvd.rank() == 1:\n        __import__('time').sleep(3600)\n"
    result = proven(tmp_path, changed(TAPE, [(FIRST, skip + FIRST)]))
    assert failing(result) == {"ends"}
    (ends,) = (claim for claim in result["claims"] if claim["id"] == "ends")
    assert "nothing has moved" in ends["says"]
    assert "sleep(3600)" in " ".join(place["text"] for place in ends["places"])


@pytest.mark.parametrize("steps", [0, 1])
def test_a_script_that_ends_too_early_proves_nothing(steps: int, tmp_path: Path) -> None:
    short = [("enumerate(data)", f"enumerate(data.take({steps}))"), (SAVE, "print('done')")]
    result = proven(tmp_path, changed(TAPE, short))
    seen = verdicts(result)
    assert result["verdict"] == "not seen"
    assert {seen[name] for name in ("weights", "averaged", "broadcast", "rate", "data", "worth")} == {
        "not seen"
    }


def test_a_disk_that_fills_proves_nothing(tmp_path: Path) -> None:
    full = "__import__('resource').setrlimit(__import__('resource').RLIMIT_FSIZE, (2048, 2048))"
    result = proven(tmp_path, changed(TAPE, [("\nrng =", f"\n{full} if hvd.rank() else None\nrng =")]))
    assert result["verdict"] == "fails"
    assert failing(result) == {"ends"}, result["claims"]
    assert "holds" not in {verdicts(result)[name] for name in ("weights", "averaged", "broadcast", "rate")}


def test_an_original_that_does_not_run_is_no_verdict(tmp_path: Path) -> None:
    result = proven(tmp_path, "import tensorflow\nraise ValueError('no data')\n", TAPE)
    assert (result["verdict"], result["claims"]) == ("error", [])
    assert "ValueError: no data" in result["problem"]
    assert [each["run"] for each in result["runs"]] == ["original"]


def test_the_readme_shows_what_is_said_of_a_script_that_fails(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    script = shutil.copy(root / "fixtures" / "readme" / "by_hand.py", tmp_path)
    (shown,) = re.findall(
        r"\$ trainshift prove by_hand.py\n((?: {4}.*\n)+)", (root / "README.md").read_text(encoding="utf-8")
    )
    said = subprocess.run(
        [sys.executable, "-m", "trainshift", "prove", "--yes", "--badge", "b.svg", Path(script).name],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 1, said.stderr
    assert "For a README: ![Trainshift: 6 of 9 claims proven on 2 ranks](b.svg)" in said.stderr
    assert "6 of 9 claims" in (tmp_path / "b.svg").read_text(encoding="utf-8")
    lines = {line.strip() for line in said.stdout.splitlines()}
    assert {line.strip() for line in shown.splitlines()} - {"..."} <= lines
