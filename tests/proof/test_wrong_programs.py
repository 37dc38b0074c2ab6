"""The judge finds each fault injected into one file of a program's good conversion."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from proof.code import Code
from proof.harness import prove
from support.fixtures import PROGRAMS
from support.turns import by_kind

pytestmark = pytest.mark.proof

FOLDERS = {program.name: program for program in PROGRAMS}


@dataclass(frozen=True)
class Wrong:
    """A program's good conversion with one file changed, and the ids of all faults that this causes."""

    name: str
    program: str
    path: str
    faults: frozenset[str]
    changes: tuple[tuple[str, str], ...]


def wrong(name: str, program: str, path: str, faults: str, *changes: tuple[str, str]) -> Wrong:
    """Create one wrong conversion."""
    return Wrong(name, program, path, frozenset(faults.split()), changes)


APART = "not-reduced weights-differ slots-differ"
SETUP = """\
hvd.init()
gpus = tf.config.experimental.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.experimental.set_visible_devices(
        gpus[hvd.local_rank() % len(gpus)], "GPU"
    )
"""

WRONG = [
    wrong(
        "rate-of-a-factory",
        "optimizer_factory",
        "optimizers.py",
        "rate-not-scaled",
        ("learning_rate=config.LEARNING_RATE * hvd.size()", "learning_rate=config.LEARNING_RATE"),
    ),
    wrong(
        "rate-scaled-where-it-is-given-too",
        "package_trainer",
        "vision/train.py",
        "rate-not-scaled",
        ("OptimConfig(lr=args.lr)", "OptimConfig(lr=args.lr * hvd.size())"),
    ),
    wrong(
        "schedule-class-of-a-module",
        "transformer_schedule",
        "utils.py",
        "schedule-not-divided",  # a warm-up over twice as many steps is the same as twice a warm-up
        ("tf.math.minimum(arg1, arg2) * hvd.size()", "tf.math.minimum(arg1, arg2)"),
    ),
    wrong(
        "optimizer-of-a-module-left",
        "keras_three_files",
        "compiling.py",
        APART,
        (
            "hvd.DistributedOptimizer(Adam(learning_rate=lr * hvd.size()))",
            "Adam(learning_rate=lr * hvd.size())",
        ),
    ),
    wrong(
        "tape-of-a-step-of-another-file-left",
        "module_level_optimizer",
        "steps.py",
        APART,
        ("    tape = hvd.DistributedGradientTape(tape)\n", ""),
    ),
    wrong(
        "tape-of-a-train-step-left",
        "custom_train_step",
        "siamese/model.py",
        APART,
        ("        tape = hvd.DistributedGradientTape(tape)\n", ""),
    ),
    wrong(
        "helper-prints-everywhere",
        "optimizer_factory",
        "utils.py",
        "rank1-printed",
        ("    if hvd.rank() == 0:\n        print(", "    if True:\n        print("),
    ),
    wrong(
        "helper-writes-everywhere",
        "gan_package",
        "gan/sampling.py",
        "rank1-wrote-file",
        ("    if hvd.rank() == 0:\n        np.save", "    if True:\n        np.save"),
    ),
    wrong(
        "method-writes-everywhere",
        "package_trainer",
        "vision/trainer.py",
        "rank1-wrote-file",
        (
            "        if hvd.rank() == 0:\n            with open(",
            "        if True:\n            with open(",
        ),
    ),
    wrong(
        "set-up-after-a-module-touched-the-device",
        "module_level_optimizer",
        "train.py",
        "did-not-finish",
        (SETUP, ""),
        ("parser = argparse", f"{SETUP}\nparser = argparse"),
    ),
    wrong(
        "gpu-of-a-module-left",
        "vae_experiment",
        "vae/hardware.py",
        "gpus-shared",
        ("if _gpus:\n", 'if _gpus:\n    tf.config.set_visible_devices(_gpus[0], "GPU")\n'),
    ),
    wrong(
        "callbacks-of-a-helper-without-the-broadcast",
        "keras_three_files",
        "train.py",
        "not-broadcast weights-differ",
        ("            hvd.callbacks.BroadcastGlobalVariablesCallback(0),\n", ""),
    ),
    wrong(
        "callbacks-of-a-helper-write-everywhere",
        "keras_three_files",
        "callbacks.py",
        "rank1-wrote-file",
        (
            '*([kc.CSVLogger(os.path.join(output, "log.csv"))] if hvd.rank() == 0 else [])',
            'kc.CSVLogger(os.path.join(output, "log.csv"))',
        ),
    ),
    wrong(
        "inherited-step-without-a-broadcast",
        "inherited_step",
        "core/base.py",
        "not-broadcast weights-differ",
        ("if self.optimizer not in hvd_broadcast_done:", "if False:"),
    ),
    wrong(
        "optimizer-of-a-model-fn-left",
        "estimator_modules",
        "model_fn.py",
        APART,
        ("    optimizer = hvd.DistributedOptimizer(optimizer)\n", ""),
    ),
    wrong(
        "optimizer-of-a-graph-left",
        "session_graph",
        "graph.py",
        "not-reduced weights-differ",
        ("    optimizer = hvd.DistributedOptimizer(optimizer)\n", ""),
    ),
    wrong(
        "session-without-a-broadcast",
        "session_graph",
        "run_training.py",
        "not-broadcast weights-differ",
        ("        sess.run(hvd.broadcast_global_variables(0))\n", ""),
    ),
    wrong(
        "hooks-of-a-helper-without-the-broadcast",
        "monitored_graph",
        "train.py",
        "not-broadcast weights-differ",
        ("hvd.BroadcastGlobalVariablesHook(0), ", ""),
    ),
]


@by_kind(WRONG, lambda case: " ".join(sorted(case.faults)), 2, lambda case: case.name)
def test_wrong_conversion_of_a_program_is_caught(case: Wrong) -> None:
    program = FOLDERS[case.program]
    text = program.converted[case.path].decode()
    for old, new in case.changes:
        assert old in text, f"{case.path} holds no {old!r}"
        text = text.replace(old, new)
    command = program.train[0]
    faults = prove(
        Code(program.before, command), Code(program.converted | {case.path: text.encode()}, command)
    )
    assert {fault.partition(":")[0] for fault in faults} == case.faults, "\n".join(faults)
