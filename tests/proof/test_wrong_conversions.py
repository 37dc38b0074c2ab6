"""The judge finds nothing in good conversions, and finds each injected fault.

It finds the same in forked processes as in separate ones.  The latter take minutes, so their verdicts are
recorded in single_runs.json, keyed by a digest of everything that decides them.  Changed ones run again, and
so do some others every time, and all with `pytest --single-runs`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from proof.harness import Run, judge, run_converted, run_original
from proof.originals import digest
from proof.single_runs import WRITTEN, SingleRuns
from support.turns import by_kind
from trainshift.proving.judging.claims import FAILS, claims
from trainshift.proving.judging.seen import Seen

pytestmark = pytest.mark.proof

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def single_runs(request: pytest.FixtureRequest) -> SingleRuns:
    """The verdicts on conversions that are not forked."""
    return SingleRuns(all_anew=bool(request.config.getoption("--single-runs")))


@dataclass(frozen=True)
class Wrong:
    """A good conversion with something changed, and the ids of all faults that this causes."""

    name: str
    sample: str
    changes: tuple[tuple[str, str], ...]
    faults: frozenset[str]


def wrong(name: str, sample: str, faults: str, *changes: tuple[str, str]) -> Wrong:
    """Create one wrong conversion."""
    return Wrong(name, sample, changes, frozenset(faults.split()))


FLAG = "if not hvd_broadcast_done:"
INIT_SCOPE = "with tf.init_scope():"
PAIRS = "z = list(zip(gradients, model.trainable_variables))"
WRAP = "    tape = hvd.DistributedGradientTape(tape)\n"

ROOT = "if hvd.rank() == 0:\n"
BROADCAST = "[hvd.callbacks.BroadcastGlobalVariablesCallback(0)]"
AVERAGE = "[hvd.callbacks.MetricAverageCallback()]"
STOPPING = "callbacks += [tf.keras.callbacks.EarlyStopping("
PLATEAU = "callbacks += [tf.keras.callbacks.ReduceLROnPlateau("
WRAP_OPTIMIZER = "optimizer = hvd.DistributedOptimizer(optimizer)\n"

WRONG = [
    wrong("no-broadcast", "gan", "not-broadcast weights-differ", (FLAG, "if False:")),
    wrong(
        "one-network-broadcast",
        "gan",
        "not-broadcast weights-differ",
        ("hvd_broadcast_done_2 = False", "hvd_broadcast_done_2 = True"),
    ),
    wrong(
        "slots-not-broadcast",
        "gan",
        "not-broadcast",
        ("            hvd.broadcast_variables(generator_optimizer.variables(), root_rank=0)\n", ""),
    ),
    # spec.md 5.4: the first trace sets the flags, the trace that runs has no broadcast.
    wrong("broadcast-traced-away", "gan", "not-broadcast weights-differ", (INIT_SCOPE, "if True:")),
    # spec.md 5.3: the iterator is read before the optimizer gets it, or after.
    wrong(
        "zip-spent-before",
        "classifier",
        "steps-differ",
        (PAIRS, "z = zip(gradients, model.trainable_variables)\n    trained = [x[1] for x in z]"),
        ("model.variables, root", "trained, root"),
    ),
    wrong(
        "zip-spent-after",
        "classifier",
        "not-broadcast weights-differ",
        (PAIRS, "z = zip(gradients, model.trainable_variables)"),
        ("model.variables, root", "[x[1] for x in z], root"),
    ),
    wrong(
        "broadcast-at-the-end",
        "classifier",
        "broadcast-late",
        (FLAG, "if step == STEPS // hvd.size() - 1:"),
    ),
    wrong(
        "broadcast-instead-of-reduction",
        "classifier",
        "not-reduced slots-differ",
        (WRAP, ""),
        (FLAG, "if True:"),
        ("        hvd.broadcast_variables(optimizer.variables(), root_rank=0)\n", ""),
        ("gradients, loss = ", "hvd.broadcast_variables(optimizer.variables(), 0)\n    gradients, loss = "),
    ),
    # spec.md 5.15: this wrap reduces nothing.
    wrong(
        "wrapped-after-the-gradient",
        "classifier",
        "not-reduced weights-differ slots-differ",
        (WRAP, ""),
        ("    return tape.gradient(loss, model.trainable_variables), loss", "    g = tape.gradient(loss, w)"),
        ("    g = tape", "    w = model.trainable_variables\n    g = tape"),
        ("loss, w)", "loss, w)\n" + WRAP + "    return g, loss"),
    ),
    wrong(
        "one-tape-of-two",
        "gan",
        "not-reduced weights-differ slots-differ",
        ("    disc_tape = hvd.DistributedGradientTape(disc_tape)\n", ""),
    ),
    wrong(
        "wrapped-twice",
        "classifier",
        "wrapped-twice did-not-finish",
        (WRAP, WRAP + WRAP),
    ),
    wrong("rate-not-scaled", "gan", "rate-not-scaled", ("Adam(1e-3 * hvd.size())", "Adam(1e-3)")),
    wrong(
        "rate-scaled-twice", "gan", "rate-not-scaled", ("0.01 * hvd.size()", "0.01 * hvd.size() * hvd.size()")
    ),
    # The run stops before the last boundary: only the samples of the schedule can show this.
    wrong("schedule-half-scaled", "classifier", "rate-not-scaled", ("0.01 * hvd.size()]", "0.01]")),
    wrong(
        "printed-everywhere",
        "gan",
        "rank1-printed",
        ('    if hvd.rank() == 0:\n        print("epoch"', '    if True:\n        print("epoch"'),
    ),
    wrong(
        "tf-print-everywhere",
        "classifier",
        "rank1-printed",
        ("step % 4 == 0 and hvd.rank() == 0", "step % 4 == 0"),
    ),
    wrong(
        "printed-nowhere",
        "classifier",
        "rank0-silent",
        ('== 0:\n    print("done")', '== 2:\n    print("done")'),
    ),
    wrong(
        "logged-everywhere",
        "classifier",
        "rank1-logged",
        ("STEPS = 12", 'STEPS = 12\nimport sys\nprint("ready", file=sys.stderr)'),
    ),
    wrong(
        "saved-everywhere",
        "gan",
        "rank1-wrote-file",
        ("    if hvd.rank() == 0:\n        checkpoint", "    if True:\n        checkpoint"),
    ),
    wrong(
        "saved-nowhere",
        "gan",
        "rank0-wrote-nothing",
        ("== 0:\n        checkpoint", "== 2:\n        checkpoint"),
    ),
    wrong(
        "summaries-everywhere",
        "classifier",
        "rank1-wrote-file",
        (" if hvd.rank() == 0 else tf.summary.create_noop_writer()", ""),
    ),
    wrong(
        "steps-divided-twice",
        "classifier",
        "steps-differ",
        ("STEPS // hvd.size()", "STEPS // hvd.size() // hvd.size()"),
    ),
    wrong(
        "trained-on-root-only",
        "gan",
        "did-not-finish",
        ("        gen_loss, disc_loss = train", "        if hvd.rank() == 0: gen_loss, disc_loss = train"),
    ),
    wrong("gpu-not-pinned", "classifier", "gpus-shared", ("if gpus:", "if not gpus:")),
    wrong(
        "gpu-pinned-late",
        "classifier",
        "did-not-finish",
        ("hvd.init()", "hvd.init()\ntf.constant(1.0)"),
    ),
    wrong(
        "gpu-choice-left",
        "classifier",
        "did-not-finish",
        ("hvd.init()", "hvd.init()\n__import__('os').environ['CUDA_VISIBLE_DEVICES'] = '0'"),
    ),
    wrong("session-not-pinned", "session", "gpus-shared", ("config=pinned", "")),
    wrong(
        "equal-ranks",
        "classifier",
        "proof-is-vacuous",
        ("rng.normal(size=(240, 6))", "np.sin(np.arange(1440)).reshape(240, 6)"),
        (".shuffle(240, seed=3)", ""),
        ("tf.keras.initializers.GlorotUniform(seed=1)", '"ones"'),
        ("Dense(2)", 'Dense(2, kernel_initializer="zeros")'),
    ),
    # Keras: compile and fit.
    wrong("keras-not-broadcast", "fit", "not-broadcast weights-differ", (BROADCAST, "[]")),
    wrong(
        "string-optimizer-left",
        "fit",
        "not-reduced weights-differ slots-differ rate-not-scaled",
        ("optimizer=optimizer", 'optimizer="adam"'),
    ),
    wrong(
        "optimizer-wrapped-twice", "fit", "wrapped-twice did-not-finish", (WRAP_OPTIMIZER, WRAP_OPTIMIZER * 2)
    ),
    wrong(
        "optimizer-wrapped-behind-compile",
        "fit",
        "not-reduced weights-differ slots-differ",
        (WRAP_OPTIMIZER, ""),
        ('    metrics=["accuracy"],\n)\n', '    metrics=["accuracy"],\n)\n' + WRAP_OPTIMIZER),
    ),
    # If a tape's gradients are applied, the wrap of an optimizer that is shared by fits averages nothing.
    wrong(
        "tape-of-a-mode-not-wrapped",
        "modes",
        "not-reduced weights-differ slots-differ",
        ("        tape = hvd.DistributedGradientTape(tape)\n", ""),
    ),
    wrong(
        "early-stopping-on-root", "fit", "did-not-finish", (STOPPING, f"if hvd.rank() == 0:\n    {STOPPING}")
    ),
    wrong(
        "plateau-on-root",
        "fit",
        "metrics-differ rate-not-scaled weights-differ",
        (PLATEAU, f"if hvd.rank() == 0:\n    {PLATEAU}"),
    ),
    wrong("metrics-not-averaged", "fit", "metrics-differ", (AVERAGE, "[]")),
    # spec.md 5.8: a literal reading appends the user's list, on rank 0.
    wrong(
        "callbacks-on-root",
        "fit",
        "did-not-finish",
        (AVERAGE, "[]"),
        (
            "    callbacks=callbacks,",
            "    callbacks=[callbacks[0], callbacks[1:]] if hvd.rank() == 0 else callbacks[:1],",
        ),
    ),
    # Keras flattens nested lists: this is not a fault.
    wrong(
        "callbacks-nested",
        "fit",
        "",
        ("    callbacks=callbacks,", "    callbacks=[callbacks[0], [callbacks[1], callbacks[2:]]],"),
    ),
    wrong(
        "checkpoint-everywhere",
        "fit",
        "rank1-wrote-file",
        (ROOT + "    callbacks", "if True:\n    callbacks"),
    ),
    wrong("verbose-everywhere", "fit", "rank1-printed", ("    verbose=1 if hvd.rank() == 0 else 0,\n", "")),
    wrong(
        "evaluate-everywhere",
        "fit",
        "rank1-printed",
        ("evaluate(features, labels, verbose=1 if hvd.rank() == 0 else 0)", "evaluate(features, labels)"),
    ),
    wrong("keras-schedule-not-scaled", "batches", "rate-not-scaled", ("0.02 * hvd.size()", "0.02")),
    wrong("batches-not-broadcast", "batches", "not-broadcast weights-differ", (FLAG, "if False:")),
    wrong(
        "train-step-wraps-the-optimizer",
        "batches",
        "not-reduced weights-differ slots-differ",
        ("        tape = hvd.DistributedGradientTape(tape)\n", ""),
        ("compile(optimizer=optimizer", "compile(optimizer=hvd_keras.DistributedOptimizer(optimizer)"),
    ),
    # TensorFlow 1: sessions and Estimators.
    wrong(
        "session-not-broadcast",
        "session",
        "not-broadcast weights-differ",
        ("    session.run(hvd.broadcast_global_variables(0))\n", ""),
    ),
    wrong("config-missing", "session", "did-not-finish", ("config=pinned", "config=config")),
    wrong("session-rate-not-scaled", "session", "rate-not-scaled", ("0.01 * hvd.size()", "0.01")),
    wrong("session-wrapped-twice", "session", "wrapped-twice", (WRAP_OPTIMIZER, WRAP_OPTIMIZER * 2)),
    wrong(
        "session-gradients-not-averaged",
        "session",
        "not-reduced weights-differ slots-differ",
        ("optimizer.minimize(loss,", "optimizer.apply_gradients(zip(tf.gradients(loss, [w, v]), [w, v]),"),
    ),
    wrong(
        "steps-divided-on-root",
        "session",
        "did-not-finish",
        ("12 // hvd.size()", "12 // (hvd.size() if hvd.rank() == 0 else 1)"),
    ),
    wrong(
        "session-broadcast-late",
        "session",
        "broadcast-late",
        (
            "    session.run(hvd.broadcast_global_variables(0))\n",
            "    broadcast = hvd.broadcast_global_variables(0)\n",
        ),
        (
            "        if step % 4",
            "        if step == 3:\n            session.run(broadcast)\n        if step % 4",
        ),
    ),
    wrong(
        "checkpoints-everywhere",
        "monitored",
        "rank1-wrote-file",
        (" if hvd.rank() == 0 else None", ""),
    ),
    wrong(
        "monitored-not-reduced",
        "monitored",
        "not-reduced weights-differ slots-differ",
        ("[hvd.allreduce(gradient) for gradient in tf.gradients(loss, [w])]", "tf.gradients(loss, [w])"),
    ),
    # list.append returns None.
    wrong(
        "hooks-appended",
        "estimator",
        "not-broadcast weights-differ",
        ("hooks=hooks)", "hooks=hooks.append(hvd.BroadcastGlobalVariablesHook(0)))"),
    ),
    wrong(
        "estimator-logs-everywhere",
        "estimator",
        "rank1-logged",
        ("if hvd.rank() == 0:\n    tf.compat.v1.logging", "if True:\n    tf.compat.v1.logging"),
    ),
    wrong(
        "model-everywhere", "estimator", "rank1-wrote-file", ('"deep" if hvd.rank() == 0 else None', '"deep"')
    ),
]


GOOD = [
    wrong(sample, sample, "")
    for sample in (
        "gan",
        "classifier",
        "fit",
        "kinds",
        "batches",
        "session",
        "monitored",
        "estimator",
        "modes",
    )
]
RUN_SINGLY = WRONG[::10]
# The claim that each fault breaks, for a person who proves a script of their own.
CLAIMS = {
    "did-not-finish": "ends",
    "metrics-differ": "ends",
    "weights-differ": "weights",
    "slots-differ": "weights",
    "not-reduced": "averaged",
    "wrapped-twice": "averaged",
    "not-broadcast": "broadcast",
    "broadcast-late": "broadcast",
    "rate-not-scaled": "rate",
    "schedule-not-divided": "rate",
    "steps-differ": "data",
    "rank1-printed": "output",
    "rank1-logged": "output",
    "rank1-wrote-file": "output",
    "rank0-silent": "output",
    "rank0-wrote-nothing": "output",
    "gpus-shared": "gpu",
}


@cache
def original(sample: str) -> Run:
    """The run of a sample before its conversion."""
    return run_original(SAMPLES / f"{sample}_before.py")


def ids(faults: Iterable[str]) -> list[str]:
    """The ids of faults, in their order."""
    return [fault.partition(":")[0] for fault in faults]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.name)
def test_good_conversion_has_no_fault(case: Wrong, single_runs: SingleRuns) -> None:
    assert_judged(case, single_runs)


@by_kind(WRONG, lambda case: " ".join(sorted(case.faults)), 2, lambda case: case.name)
def test_wrong_conversion_is_caught(case: Wrong, single_runs: SingleRuns) -> None:
    assert_judged(case, single_runs)


def assert_judged(case: Wrong, single_runs: SingleRuns) -> None:
    """Assert that the conversion has exactly its faults, whether its processes are forked or not."""
    before, text = (
        SAMPLES / f"{case.sample}_before.py",
        (SAMPLES / f"{case.sample}_after.py").read_text("utf-8"),
    )
    for old, new in case.changes:
        assert old in text, f"the sample holds no {old!r}"
        text = text.replace(old, new)
    ranks = run_converted(text)
    faults = judge(original(case.sample), ranks)
    assert set(ids(faults)) == case.faults, "\n".join(faults)
    found = claims(Seen(original(case.sample), ranks))
    expected = {CLAIMS[each] for each in case.faults if each in CLAIMS}
    failing = {each.id for each in found if each.verdict == FAILS}
    # The judge stops at a rank that did not end; the report also has the other observations.
    assert expected == failing or ("ends" in expected and expected < failing), found

    def judge_single_runs() -> list[str]:
        return ids(judge(run_original(before, single=True), run_converted(text, single=True)))

    key = digest([before.read_bytes(), text.encode()])
    assert ids(faults) == single_runs.found(case.name, key, judge_single_runs, anew=case in RUN_SINGLY)


def test_what_is_written_down_is_of_these_conversions(single_runs: SingleRuns) -> None:
    written, names = json.loads(WRITTEN.read_text("utf-8")).keys(), {case.name for case in (*GOOD, *WRONG)}
    assert written <= names
    assert written == names or single_runs.all_anew


def test_stall_is_caught() -> None:
    text = (SAMPLES / "classifier_after.py").read_text(encoding="utf-8")
    last = "    with writer.as_default():"
    assert last in text
    text = text.replace(
        last, f"    if step == 3 and hvd.rank() == 1:\n        __import__('time').sleep(3600)\n{last}"
    )
    faults = judge(original("classifier"), run_converted(text, time_limit=40))
    assert [fault.partition(":")[0] for fault in faults] == ["did-not-finish", "did-not-finish"]
    assert "in <module>" in faults[1]


def test_file_elsewhere_is_caught(tmp_path: Path) -> None:
    text = (SAMPLES / "classifier_after.py").read_text(encoding="utf-8")
    text += f"""
place = {str(tmp_path)!r} + f"/{{hvd.rank()}}"
open(place + ".txt", "w").close()
tf.io.write_file(place + ".bin", b"")
tf.train.Checkpoint(model=model).write(place + ".ckpt")
tf.summary.create_file_writer(place + "-logs")
"""
    faults = judge(original("classifier"), run_converted(text))
    assert [fault.partition(":")[0] for fault in faults] == ["rank1-wrote-file"]
    assert all(f"{tmp_path}/1{end}" in faults[0] for end in (".txt", ".bin", ".ckpt", "-logs")), faults
