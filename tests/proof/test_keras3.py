"""The newer line: TensorFlow 2.21 with Keras 3, and with Keras 2 by `tf_keras`, on two real ranks.

`make test` runs a sample, by name; with `--every-keras3`, as in `make proof-keras3`, all run.  The usual
judge must pass each script of fixtures/keras3, and fail each mistake in a conversion.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from proof.code import Code
from proof.harness import Place, prove, run_converted
from proof.odd import runs
from proof.proving import failing, proven, verdicts
from support.fixtures import PROGRAMS, ProgramFolder, start_of
from support.fixtures import SCRIPTS as KERAS2_SCRIPTS
from support.keras3 import SCRIPTS, converted, wrong
from support.programs import changed, encoded, texts
from support.programs import converted as of_program
from trainshift.core.choices import KERAS_3, KERAS_LEGACY, Choices
from trainshift.core.program import Program
from trainshift.engine.conversion import Status, convert
from trainshift.proving.interpreter import Interpreter, ask
from trainshift.proving.observed.kerases import FLAG
from trainshift.python.names.script import Script, read_script
from trainshift.training.keras_version.for_keras2 import ForKeras2

pytestmark = [pytest.mark.proof, pytest.mark.keras3]

PYTHON = Path(__file__).parents[2] / ".venv-keras3" / "bin" / "python"
KERAS3 = Place(str(PYTHON))
LEGACY = Place(str(PYTHON), {FLAG: "1"})
# One of each pattern, for `make test`.
SAMPLE = (
    "fit_callbacks",
    "gan_train_on_batch",
    "mixed_compiled_twice",
    "monitored_session",
    "traced_gan",
    "train_step_apply",
)
PROGRAM_SAMPLE = ("keras_three_files",)
LEGACY_SAMPLE = ("keras_mnist_callbacks", "mnist_tape", "monitored_hooks")
WRONG_SAMPLE = ("fit_callbacks left to XLA", "traced_gan Boolean flag")
# The claims by which each mistake is found, or the error that ends a rank.
FOUND_BY = {
    "not averaged": {"not-reduced"},
    "not averaged in a graph": {"not-reduced"},
    "averaged twice": {"averaged-twice"},
    "not broadcast": {"not-broadcast", "weights-differ"},
    "broadcast of nothing": {"not-broadcast", "weights-differ"},
    "broadcast before build": {"not-broadcast", "weights-differ"},
    "broadcast that is not run": {"not-broadcast", "weights-differ"},
    "flag that a trace sets": {"not-broadcast", "weights-differ"},
    "Boolean flag": {"not-broadcast", "weights-differ", "did-not-finish"},
    "left to XLA": {"did-not-finish"},
}


# Names that Keras 3 does not accept for files of weights.
OLD_NAMES = re.compile(rb"""(?:(?<!\.weights)\.h5|\.ckpt)(["'])""")
# Spellings that change on the newer line, with `tf_keras` or without, before the scripts run there at all.
SPELLED = {
    "keras_on_batch_gan": (
        ("\nimport keras\n", "\nfrom tensorflow import keras\n"),
        ("from keras.", "from tensorflow.keras."),
    ),
    "monitored_hooks": (("tf.estimator.", "tf.compat.v1.train."),),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test its scripts: a sample, or all, created on demand."""
    every = bool(metafunc.config.getoption("--every-keras3"))
    kinds: dict[str, tuple[Callable[[], Iterable[str]], tuple[str, ...]]] = {
        "script": (lambda: (path.stem for path in SCRIPTS), SAMPLE),
        "program": (programs, PROGRAM_SAMPLE),
        "legacy": (legacy_runs, LEGACY_SAMPLE),
        "mistake": (mistakes, WRONG_SAMPLE),
        "blunder": (lambda: (f"fit_schedule {each}" for each in CLAIMS), ("fit_schedule left to XLA",)),
    }
    for argument, (names, sample) in kinds.items():
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, [*names()] if every else [*sample])


@cache
def programs() -> dict[str, tuple[ProgramFolder, tuple[str, ...]]]:
    """The programs of several files with the first command of each, by name; Estimators are refused."""
    return {each.name: (each, each.train[0]) for each in PROGRAMS if not each.name.startswith("estimator")}


@cache
def legacy_runs() -> dict[str, tuple[Path, list[str]]]:
    """The folders of scripts for Keras 2 with the arguments of each run, by name; Estimators are refused."""
    return {
        " ".join((folder.name, *each)): (folder, each)
        for folder in KERAS2_SCRIPTS
        if not folder.name.startswith("estimator")
        for each in runs(folder)
    }


@cache
def mistakes() -> dict[str, tuple[Path, str, str]]:
    """Wrong conversions, by the names of script and mistake: the script, the mistake, the text."""
    return {
        f"{path.stem} {mistake}": (path, mistake, text)
        for path in SCRIPTS
        for mistake, text in wrong(converted(path).text)
    }


def ids(faults: list[str]) -> set[str]:
    """The ids of faults."""
    return {fault.partition(":")[0] for fault in faults}


def test_a_conversion_for_keras_3_is_true(script: str) -> None:
    path = next(path for path in SCRIPTS if path.stem == script)
    faults = prove(path, converted(path).text, place=KERAS3)
    assert not faults, "\n".join([f"{script}:", *faults])


def test_a_program_for_keras_3_is_true(program: str) -> None:
    folder, command = programs()[program]
    before = {path: OLD_NAMES.sub(rb".weights.h5\1", data) for path, data in folder.before.items()}
    conversion = of_program(texts(before), start_of(command), choices=Choices(keras=KERAS_3))
    assert conversion.status is Status.CONVERTED, conversion.reason
    after = before | {path: encoded(text, before[path]) for path, text in changed(conversion).items()}
    faults = prove(Code(before, command), Code(after, command), place=KERAS3)
    assert not faults, "\n".join([f"{program}:", *faults])


def test_a_mistake_for_keras_3_is_found(mistake: str) -> None:
    path, kind, text = mistakes()[mistake]
    faults = prove(path, text, place=KERAS3)
    assert ids(faults) & FOUND_BY[kind], "\n".join([f"{mistake}:", *faults])


def test_a_conversion_for_tf_keras_is_true(legacy: str) -> None:
    folder, arguments = legacy_runs()[legacy]
    before = (folder / "before.py").read_bytes().decode("utf-8-sig")
    for old, new in SPELLED.get(folder.name, ()):
        assert old in before
        before = before.replace(old, new)
    result = convert(before, choices=Choices(keras=KERAS_LEGACY))
    assert result.status in (Status.CONVERTED, Status.ALREADY_DISTRIBUTED), result.reason
    faults = prove(before, result.text, arguments, place=LEGACY)
    assert not faults, "\n".join([f"{legacy}:", *faults])


@cache
def interpreter() -> Interpreter:
    """The Python of the newer line, inspected once."""
    found = ask(str(PYTHON))
    assert found.lacks == ""
    return found


# Horovod's optimizer silently averages nothing on Keras 3.
BY_HAND = """import horovod.tensorflow.keras as hvd
import keras
import numpy as np

hvd.init()
x = np.random.RandomState(hvd.rank()).normal(size=(64, 4)).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.01 * hvd.size())), "mse", jit_compile=False)
model.fit(x, x.sum(axis=1), batch_size=8, epochs=2, verbose=0)
"""
# Each Horovod function for Keras 2 on its own: the error that it raises, or whether the weights are equal.
TRIED = """import horovod.tensorflow as hvd_tf
import horovod.tensorflow.keras as hvd
import keras
import numpy as np
import tensorflow as tf

hvd.init()
x = np.random.RandomState(hvd.rank()).normal(size=(64, 4)).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer="ones")])


def fit(optimizer="sgd", *callbacks):
    model.compile(optimizer, "mse", jit_compile=False)
    model.fit(x, x.sum(axis=1) * 2, epochs=1, verbose=0, callbacks=callbacks)
    every = hvd_tf.allgather(tf.constant(model.get_weights()[0]))
    return "alike" if np.ptp(np.reshape(every, (2, -1)), axis=0).max() == 0 else "apart"


def gradient():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    hvd_tf.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)


named = hvd.callbacks
TRIALS = {
    "DistributedOptimizer": lambda: fit(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1))),
    "BroadcastGlobalVariablesCallback": lambda: fit("sgd", named.BroadcastGlobalVariablesCallback(0)),
    "MetricAverageCallback": lambda: fit("sgd", named.MetricAverageCallback()),
    "LearningRateWarmupCallback": lambda: fit("sgd", named.LearningRateWarmupCallback(0.1)),
    "LearningRateScheduleCallback": lambda: fit("sgd", named.LearningRateScheduleCallback(0.1, 1.0)),
    "SyncBatchNormalization": lambda: hvd_tf.SyncBatchNormalization(),
    "KerasState": lambda: hvd.elastic.KerasState(model, keras.optimizers.SGD()).sync(),
    "TensorFlowKerasState": lambda: hvd_tf.elastic.TensorFlowKerasState(model, keras.optimizers.SGD()).sync(),
    "DistributedGradientTape": gradient,
    "broadcast_variables": lambda: hvd_tf.broadcast_variables(model.variables, root_rank=0),
    "BroadcastGlobalVariablesHook": lambda: hvd_tf.BroadcastGlobalVariablesHook(0),
}
for name, trial in TRIALS.items():
    try:
        print(name, trial(), sep=": ")
    except Exception as error:
        text = str(error).strip().rpartition("Error: ")[2].partition(" passed")[0]
        print(name, type(error).__name__, text, sep=": ")
"""
CORE = ("ends", "weights", "averaged", "broadcast", "rate")
# The claim that fails for each mistake, in the words of the report.
CLAIMS = {
    "not averaged": "averaged",
    "averaged twice": "averaged",
    "not broadcast": "broadcast",
    "left to XLA": "ends",
}


@pytest.mark.parametrize("generator", ["generate_keras3_api", "generate_keras_signs"])
def test_the_committed_data_are_what_keras_3_says(generator: str) -> None:
    command = [str(PYTHON), "-m", f"trainshift.dev.{generator}", "--check"]
    server = Path(__file__).parents[2] / "server"
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(server)})
    assert done.returncode == 0, "run make api"


def test_prove_sees_a_conversion_hold(tmp_path: Path) -> None:
    path = next(path for path in SCRIPTS if path.stem == "fit_schedule")
    seen = verdicts(proven(tmp_path, path.read_text(), converted(path).text, interpreter(), steps=8))
    assert {each: seen[each] for each in CORE} == dict.fromkeys(CORE, "holds")


def test_prove_sees_what_horovod_does_not_average(tmp_path: Path) -> None:
    result = proven(tmp_path, BY_HAND, interpreter=interpreter(), steps=4)
    assert {"weights", "averaged", "broadcast"} <= failing(result)
    (claim,) = (each for each in result["claims"] if each["id"] == "averaged")
    assert "hvd.allreduce" in claim["do"]


def test_what_horovod_has_for_keras_2_ends_as_is_told() -> None:
    runs = run_converted(Code({"train.py": TRIED.encode()}, ("train.py",)), place=KERAS3)
    seen = {line for run in runs for line in run.stdout.splitlines() if ": " in line}
    script = read_script(TRIED)
    assert isinstance(script, Script)
    program = Program(script, choices=Choices(keras=KERAS_3))
    told = {f"{each.name}: {each.error}" for each in program.fact(ForKeras2).failing}
    assert seen == {"DistributedOptimizer: apart", *told}
    assert {site.name for site in program.fact(ForKeras2).silent} == {"DistributedOptimizer"}


def test_prove_names_the_claim_that_a_mistake_breaks(blunder: str, tmp_path: Path) -> None:
    path, kind, text = mistakes()[blunder]
    result = proven(tmp_path, path.read_text(), text, interpreter(), steps=8)
    assert CLAIMS[kind] in failing(result)
