"""The observer records the values that a script measures itself; a mistake in the observer is noticed.

Each script records, without hooks, the gradients that it applies and the resulting weights; each of two ranks
records its own values.  The mistakes are made in a copy of the package.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest

from proof.forks import forked
from proof.harness import ENVIRONMENT
from proof.proving import begin, here
from proof.zygote import PACKAGE
from trainshift.proving.judging.runs import read_run
from trainshift.proving.launch import PACKAGE as OURS
from trainshift.proving.launch import Launch, wait
from trainshift.proving.observed.data import VARIABLE as DATA
from trainshift.proving.observed.details import Details
from trainshift.proving.observed.digests import digest
from trainshift.proving.observed.main import SETTINGS
from trainshift.proving.project import Project

pytestmark = pytest.mark.proof

STEPS = 6
TAPE = """import os

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

hvd.init()
x = np.arange(96, dtype="float32").reshape(48, 2) / 96
rates = tf.keras.optimizers.schedules.ExponentialDecay(0.5, 1, 0.9)
optimizer = tf.keras.optimizers.SGD(rates, momentum=0.5)
weights = tf.Variable(tf.random.normal([2, 3]), name="weights")
gradients, values = [], []


@tf.function
def train_step(rows):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(rows @ tf.gather(weights, [0, 1]) - 1))
    tape = hvd.DistributedGradientTape(tape, sparse_as_dense=True)
    found = tape.gradient(loss, [weights])
    optimizer.apply_gradients(zip(found, [weights]))
    return found[0]


for rows in tf.data.Dataset.from_tensor_slices(x).batch(8):
    gradients.append(train_step(rows).numpy())
    values.append(weights.numpy())
    if len(values) == 1:
        hvd.broadcast_variables([weights], root_rank=0)
print("trained")
open(os.environ["ELSEWHERE"], "w").close()
np.savez("own.npz", gradients=gradients, values=values, lengths=[48])
"""
SESSION = """import os

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import horovod.tensorflow as hvd

hvd.init()
x = np.arange(96, dtype="float32").reshape(48, 2) / 96
rows = tf.placeholder(tf.float32, [None, 2])
weights = tf.get_variable("weights", [2, 3])
loss = tf.reduce_mean(tf.square(rows @ weights - 1))
step = tf.train.get_or_create_global_step()
optimizer = tf.train.MomentumOptimizer(tf.train.exponential_decay(0.5, step, 1, 0.9), 0.5)
(pair,) = hvd.DistributedOptimizer(optimizer).compute_gradients(loss, [weights])
train = optimizer.apply_gradients([pair], global_step=step)
gradients, values = [], []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(hvd.broadcast_global_variables(0))
    for begin in range(0, 48, 8):
        gradients.append(session.run([pair[0], train], {rows: x[begin : begin + 8]})[0])
        values.append(session.run(weights))
print("trained")
open(os.environ["ELSEWHERE"], "w").close()
np.savez("own.npz", gradients=gradients, values=values, lengths=[])
"""
SCRIPTS = {"tape": TAPE, "session": SESSION}
AFTER = """            result = take()
            self.observe(after_update, state())
"""
BEFORE = """            self.observe(after_update, state())
            result = take()
"""
# A mistake, the script that shows it, and the change: a file, a text in it, and the replacement.
MISTAKES = {
    "no-optimizer": ("tape", "observer", "observer.hook_optimizers(", "(lambda: 0)("),
    "no-tape": ("tape", "observer", "    observer.hook_tape()\n", ""),
    "no-horovod": ("tape", "observer", "observer.hook_horovod(", "(lambda _: 0)("),
    "no-reductions": ("tape", "distribution", "        self.hook_reductions(hvd)\n", ""),
    "no-files": ("tape", "main", "    observer.hook_files(directory.parent)\n", ""),
    "no-rows": ("tape", "data", "max(sizes, key=sizes.count) if sizes else 0", "0"),
    "no-broadcast-noted": ("tape", "distribution", "self.broadcast.update(numbers)", "pass"),
    "before-the-step": ("tape", "steps", AFTER, BEFORE),
    "next-rate": ("tape", "values", "(optimizer.iterations) - 1", "(optimizer.iterations)"),
    "a-step-less": (
        "tape",
        "steps",
        "if not watch.loss_scaled:\n                watch.record.rates.append(float(rate))",
        f"watch.record.rates[:] = [*watch.record.rates, float(rate)][:{STEPS - 1}]",
    ),
    "other-digests": ("tape", "digests", "hashlib.blake2b(digest_size=8)", "hashlib.blake2b(digest_size=4)"),
    "no-local-sample": ("tape", "details", "self.local.append((self.taken, ", "print(("),
    "no-sparse-gradients": ("tape", "values", "<= MOST_DENSE", "< 0"),
    "broadcast-before-it-is-known": ("tape", "steps", "watch.record.given &=", "True or"),
    "no-lengths": ("tape", "steps", "self.record.lengths.append(len(first))", "pass"),
    "no-sessions": ("session", "observer", "    observer.hook_sessions()\n", ""),
    "no-graph-gradients": ("session", "observer", "    observer.hook_compute_gradients()\n", ""),
    "read-before-the-run": (
        "session",
        "steps",
        "            values = session.run(reads)\n",
        "            values = {number: self.session_values.get(number, 0) for number in reads}"
        " | self.session_values | dict.fromkeys(set(reads) - set(self.session_values), self.np.zeros(1))\n",
    ),
}  # fmt: skip


# Its loss is known from the number of its rank, and so are the gradients of the first step.
RANKS = """import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

hvd.init()
weight = tf.Variable([1.0])
optimizer = tf.keras.optimizers.SGD(0.01)
for step in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(weight * (hvd.rank() + 1))
    tape = hvd.DistributedGradientTape(tape)
    optimizer.apply_gradients(zip(tape.gradient(loss, [weight]), [weight]))
print("rank", hvd.rank())
open(f"{hvd.rank()}.txt", "w").close()
"""
# Code that confuses ranks: a file, a text in it, and the replacement.
SWAPS = {
    "as-they-are-started": ("prove", "= directories[rank]", "= directories[len(directories) - 1 - rank]"),
    "as-they-write": (
        "observed/main",
        "return directory, int(rank)",
        'return directory.parents[1] / f"rank{1 - int(rank)}" / "record", int(rank)',
    ),
    "as-they-are-read": (
        "judging/main",
        'zip(each["directories"]',
        'zip(each["directories"][::-1]',
    ),
}


def differences(folder: Path, script: str, package: Path = OURS) -> list[str]:
    """The script's own measurements that were not recorded."""
    record = folder / "record"
    for name in ("work", "record", "tmp"):
        (folder / name).mkdir(parents=True)
    (folder / "work" / "train.py").write_text(script, encoding="utf-8")
    elsewhere = str(folder.parent / "elsewhere")
    environment = {
        **os.environ,
        **ENVIRONMENT,
        DATA: "1",
        SETTINGS: json.dumps({"limit": 0, "start": "work"}),
        "ELSEWHERE": elsewhere,
        "TMPDIR": str(folder / "tmp"),
        PACKAGE: str(package),
    }
    launch = Launch(
        [str(record), "0", "train.py"],
        folder / "work",
        {name: value for name, value in environment.items() if not name.startswith("PYTHON")},
        record / "stdout.txt",
        record / "native.txt",
    )
    process = forked(launch, 0)
    wait([process], 120)
    run = read_run(folder, process.poll() or 0, {}, ("work",))
    assert run.exit_code == 0, run.record
    assert run.record
    with numpy.load(folder / "work" / "own.npz") as archive:
        own = dict(archive)
    return compared(run.record, own, dict(numpy.load(record / "details.npz")), elsewhere)


def compared(record: Any, own: dict[str, Any], samples: dict[str, Any], elsewhere: str) -> list[str]:
    """The names of values that were recorded differently from the script's measurements."""
    if len(record.optimizers) != 1:
        return ["optimizers"]
    (optimizer,) = record.optimizers
    gradients = [each.astype("f4").ravel() for each in own["gradients"]]

    def sampled(kind: str) -> bool:
        found = [samples.get(f"{optimizer.number}/{kind}/{step}") for step in range(STEPS)]
        return all(
            each is not None and (each == own).all() for each, own in zip(found, gradients, strict=True)
        )

    wanted: dict[str, Callable[[], bool]] = {
        "rates": lambda: numpy.allclose(optimizer.rates, [0.5 * 0.9**step for step in range(STEPS)]),
        "gradients": lambda: optimizer.gradients == [digest([each]) for each in own["gradients"]],
        "weights": lambda: optimizer.weights == [digest([each]) for each in own["values"]],
        "final": lambda: optimizer.final == [digest([own["values"][-1]])],
        "broadcast": lambda: len(record.broadcasts) == 1 and not optimizer.unbroadcast_variables,
        # One script broadcasts after its first step; for a session's graph it is unknown.
        "given": lambda: not optimizer.given,
        "wraps": lambda: record.wraps > 0,
        "reduced": lambda: record.reduced == ["average"],
        "local": lambda: sampled("local"),
        "reached": lambda: sampled("gradients"),
        "rows": lambda: record.rows == [8] * STEPS,
        "data": lambda: len(record.data) == STEPS,
        "lengths": lambda: record.lengths == [*own["lengths"]],
        "elsewhere": lambda: record.written_elsewhere == [elsewhere],
        "printed": lambda: [*record.printed_at.values()] == ["trained"],
    }
    shapes = len(optimizer.rates) == len(optimizer.weights) == STEPS
    return [name for name, holds in wanted.items() if not (shapes and holds())]


def test_what_is_kept_of_what_was_computed_before_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Details, "hook_horovod", lambda _: None)
    details = Details(numpy, [], tmp_path / "progress")
    for value in (1.0, 2.0, 4.0):
        details.note_local(None, [numpy.array([value])])
        details.note_local(None, [numpy.array([[value]])])
    details.note_step(1, 0, [numpy.array([7.0])])
    details.note_step(2, 0, [numpy.array([0.0])])
    details.note_local(None, [numpy.array([8.0])])
    details.note_step(1, 1, [numpy.array([8.0])])
    local = {name: float(value[0]) for name, value in details.arrays.items() if "/local/" in name}
    before = {"": 4.0, "/1": 2.0, "/2": 1.0, "/sum": 7.0}
    expected = {f"{number}/local/0{kind}": value for number in (1, 2) for kind, value in before.items()}
    assert local == {**expected, "1/local/1": 8.0}


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_written_down_is_what_the_script_measures(name: str, tmp_path: Path) -> None:
    assert differences(tmp_path / "run", SCRIPTS[name]) == []


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_the_observer_is_noticed(name: str, tmp_path: Path) -> None:
    script, module, old, new = MISTAKES[name]
    package = changed_package(tmp_path, f"observed/{module}", old, new)
    assert differences(tmp_path / "run", SCRIPTS[script], package) != []


def changed_package(folder: Path, module: str, old: str, new: str) -> Path:
    """A copy of the package with a changed module."""
    package = folder / "package"
    shutil.copytree(OURS / "proving", package / "proving", ignore=shutil.ignore_patterns("__pycache__"))
    path = package / "proving" / f"{module}.py"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return package


def module_of(package: Path, name: str) -> ModuleType:
    """A module of a copy of the package, next to ours."""
    spec = importlib.util.spec_from_file_location(
        f"changed_{Path(name).name}", package / "proving" / f"{name}.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def ranks_taken_for_others(folder: Path, package: Path) -> list[str]:
    """The observations about one rank that belong to the other, of two that a package runs and judges."""
    (folder / "project").mkdir(parents=True)
    script = folder / "project" / "train.py"
    script.write_text(RANKS, encoding="utf-8")
    project = Project(str(script.parent), str(script.parent), (str(script),))
    proving, judging = module_of(package, "prove"), module_of(package, "judging/main")
    means = proving.Means(
        folder,
        lambda *_: None,
        lambda launch, python: begin(
            launch._replace(environment={**launch.environment, PACKAGE: str(package)}), python
        ),
        proving.Interrupts(),
    )
    request = proving.Request(project, project, here(), steps=0)
    done = proving.run(request, means, proving.Copier(project, str(folder)), "ranks", 2, 0, "1")
    assert done.statuses == [0, 0]
    one, two = ({**vars(done), "directories": done.directories[:count]} for count in (1, 2))
    plan = {
        "size": 2,
        "limit": 0,
        "converted": False,
        "gpus": 0,
        "hosts": ["", ""],
        "tops": ("work", "tmp"),
        "changed": [],
    }
    result = judging.judged(folder, {**plan, "runs": [{**one, "name": "original"}, two]})
    (output,) = (claim for claim in result["claims"] if claim["id"] == "output")
    found = {
        f"losses of {each['rank']}" for each in result["runs"][1:] if each["losses"][0] != each["rank"] + 1
    }
    if "rank 0" in output["says"] or "0.txt" in output["says"]:
        found.add("output")
    for rank in range(2):
        with numpy.load(folder / "ranks" / f"rank{rank}" / "record" / "details.npz") as samples:
            (first,) = (key for key in samples if key.endswith("/local/0"))
            if samples[first][0] != rank + 1:
                found.add(f"gradients of {rank}")
    return sorted(found)


def test_ranks_are_not_taken_for_one_another(tmp_path: Path) -> None:
    assert ranks_taken_for_others(tmp_path / "run", OURS) == []


@pytest.mark.parametrize("name", SWAPS)
def test_ranks_that_are_taken_for_one_another_are_noticed(name: str, tmp_path: Path) -> None:
    package = changed_package(tmp_path, *SWAPS[name])
    assert ranks_taken_for_others(tmp_path / "run", package) != []
