"""Effects: the severity of a finding follows from its effect on the conversion."""

from __future__ import annotations

import pytest

from support.fixtures import SCRIPTS, TRANSFORM_CASES, Case
from trainshift.core.finding import Effect, Verdict
from trainshift.engine.checking import COPES, Diagnostic, check
from trainshift.engine.conversion import Status, convert
from trainshift.engine.settings import HAZARD_CODES, LETTER, Settings, Severity
from trainshift.engine.workspace import files_in_memory

LOOP = """\
import os, random
import tensorflow as tf

keras = tf.keras
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))


"""
# The data of cases are small, and the same on all ranks.
OF_SMALL_CASES = {"HZ15"}
PARTED = LOOP + "if random.random() < 0.5:\n    for x, y in data:\n        step(x, y)\n"
AGREED = LOOP + "if os.environ.get('TRAIN'):\n    for x, y in data:\n        step(x, y)\n"
BUILT = "import tensorflow as tf\n\nkeras = tf.keras\nlayers = [keras.layers.Dense(1)]\n"
STRATEGY = LOOP + (
    "strategy = tf.distribute.MirroredStrategy()\n"
    "with strategy.scope():\n    for x, y in data:\n        strategy.run(step, (x, y))\n"
)


def found(text: str, code: str, settings: Settings | None = None) -> list[Diagnostic]:
    return [each for each in check(text, settings).diagnostics if each.code == code]


def test_the_conversion_copes_with_nothing_that_it_refuses() -> None:
    loop = (
        LOOP.replace("def step", "@tf.function(jit_compile=True)\ndef step")
        + "for x, y in data:\n    step(x, y)\n"
    )
    assert convert(loop).status is Status.REFUSED
    (alias,) = found(loop, "TF03")
    assert (alias.severity, alias.effect, alias.message.endswith(COPES)) == (
        Severity.INFORMATION,
        None,
        False,
    )
    apart = files_in_memory(
        {"/p/train.py": "import steps\nfor x, y in data:\n    steps.step(x, y)\n", "/p/steps.py": loop}
    )
    report = check(loop, path="/p/steps.py", files=apart)
    assert not any(each.message.endswith(COPES) for each in report.diagnostics)


def test_what_the_conversion_copes_with_is_information_and_says_so() -> None:
    assert not convert(LOOP + "for x, y in data:\n    step(x, y)\n").doubts
    (alias,) = found(LOOP + "for x, y in data:\n    step(x, y)\n", "TF03")
    assert (alias.verdict, alias.effect) == (Verdict.VIOLATED, Effect.NONE)
    assert alias.severity is Severity.INFORMATION
    assert alias.message.endswith(COPES)


def test_what_the_conversion_doubts_is_a_warning() -> None:
    assert convert(PARTED).doubts
    (loop,) = found(PARTED, "TL05")
    assert (loop.effect, loop.severity) == (Effect.DOUBTS, Severity.WARNING)
    assert COPES not in loop.message
    assert not any(each.severity >= Severity.WARNING for each in check(AGREED).diagnostics)


@pytest.mark.parametrize("use", ["strategy.extended.colocate = True", "print(strategy)"])
def test_what_the_conversion_refuses_is_a_warning(use: str) -> None:
    text = f"{STRATEGY}{use}\n"
    assert convert(text).reason
    (loop,) = found(text, "TL02")
    assert (loop.effect, loop.severity) == (Effect.REFUSES, Severity.WARNING)


def test_a_strategy_that_cannot_go_is_told_of_once_at_its_line() -> None:
    text = STRATEGY.replace("MirroredStrategy()", "experimental.ParameterServerStrategy(None)")
    line, column = convert(text).position or (0, 0)
    (loop,) = (each for each in check(text).diagnostics if each.severity is Severity.WARNING)
    assert loop.code == "TL02"
    assert loop.span is not None
    assert text[loop.span.start :].startswith(text.splitlines()[line - 1][column - 1 :])


def test_a_strategy_that_goes_is_no_warning() -> None:
    assert not convert(STRATEGY).reason
    (loop, *_) = found(STRATEGY, "TL02")
    assert (loop.effect, loop.severity) == (Effect.NONE, Severity.INFORMATION)


def test_a_loop_that_nothing_but_a_restriction_tells_of_is_a_refusal() -> None:
    text = BUILT + "from elsewhere import run\n\nrun(tf.keras.Sequential(layers).fit)\n"
    (passed,) = found(text, "TL04")
    assert (passed.effect, passed.severity) == (Effect.REFUSES, Severity.WARNING)
    conversion = convert(text)
    assert (conversion.status, conversion.code, conversion.position) == (Status.REFUSED, "TL04", (7, 5))


def test_a_module_that_does_not_train_has_no_warnings() -> None:
    (alias,) = found(BUILT, "TF03")
    assert (alias.effect, alias.severity) == (Effect.NONE, Severity.INFORMATION)


def test_a_module_is_judged_by_the_program_that_it_is_part_of() -> None:
    train = "from loop import train\n\ntrain()\n"
    loop = PARTED.replace("if random", "def train():\n  if random").replace("\n    for", "\n      for")
    loop = loop.replace("\n        step", "\n          step")
    files = files_in_memory({"/p/train.py": train, "/p/loop.py": loop})
    diagnostics = check(loop, None, "/p/loop.py", files).diagnostics
    (parted,) = [each for each in diagnostics if each.code == "TL05"]
    assert (parted.effect, parted.severity) == (Effect.DOUBTS, Severity.WARNING)


@pytest.mark.parametrize(("programs", "effect"), [(4, Effect.NONE), (5, None)])
def test_of_more_programs_than_are_searched_nothing_is_known(programs: int, effect: Effect | None) -> None:
    start = "from sklearn import svm\nfrom built import layers\n\nsvm.SVC().fit([[0], [1]], [0, 1])\n"
    starts = {f"/p/start_{number}.py": start for number in range(programs)}
    diagnostics = check(
        BUILT, None, "/p/built.py", files_in_memory({"/p/built.py": BUILT, **starts})
    ).diagnostics
    (alias,) = [each for each in diagnostics if each.code == "TF03"]
    assert alias.effect is effect


def test_by_the_letter_the_conversion_is_not_asked() -> None:
    settings = Settings(restrictions=LETTER)
    (alias,) = found(LOOP, "TF03", settings)
    assert (alias.effect, alias.severity) == (None, Severity.WARNING)
    assert COPES not in alias.message


def test_what_somebody_chose_decides() -> None:
    settings = Settings(severity={"TF03": {Verdict.VIOLATED: Severity.ERROR}})
    (alias,) = found(LOOP, "TF03", settings)
    assert alias.severity is Severity.ERROR


BY_KEY = (
    LOOP.replace("optimizer.apply", "{'sgd': optimizer}[key].apply") + "for x, y in data:\n    step(x, y)\n"
)


def test_a_refusal_is_a_warning_at_its_line() -> None:
    conversion = convert(BY_KEY)
    assert conversion.status is Status.REFUSED
    report = check(BY_KEY)
    (told,) = [each for each in report.diagnostics if each.code == "TS06"]
    assert told.severity is Severity.WARNING
    assert (told.region.line, told.region.column) == conversion.position
    assert told.message == f"`convert` refuses this program: {conversion.reason}."
    assert report.forecast == "1 loop; `convert` refuses it"
    assert not any(each.message.endswith(COPES) for each in report.diagnostics)


def test_a_comment_silences_a_refusal() -> None:
    line = convert(BY_KEY).position[0]  # type: ignore[index]
    lines = BY_KEY.splitlines()
    lines[line - 1] += "  # trainshift: ignore[TS06]"
    report = check("\n".join(lines) + "\n")
    assert report.suppressed == 1
    assert not any(each.code in ("TS01", "TS06") for each in report.diagnostics)


def test_a_refusal_that_a_restriction_tells_is_told_once() -> None:
    text = "import tensorflow as tf\nw = tf.Variable(1.0)\nfor x in range(9):\n"
    text += "    with tf.GradientTape() as tape:\n        loss = w * x\n"
    text += "    w.assign_sub(tape.gradient(loss, w))\n"
    assert convert(text).status is Status.REFUSED
    assert not found(text, "TS06")
    assert found(text, "TL02")


def test_a_refusal_in_another_file_is_told_where_the_program_starts_too() -> None:
    texts = {"/p/train.py": "import steps\n\nsteps.train()\n"}
    head, loop = BY_KEY.split("for x")
    texts["/p/steps.py"] = f"{head}def train():\n    for x{loop.replace('    step', '        step')}"
    files = files_in_memory(texts)
    (there,) = [
        each
        for each in check(texts["/p/steps.py"], path="/p/steps.py", files=files).diagnostics
        if each.code == "TS06"
    ]
    report = check(texts["/p/train.py"], path="/p/train.py", files=files)
    (told,) = [each for each in report.diagnostics if each.code == "TS06"]
    assert told.region.line == 1
    assert f"steps.py:{there.region.line}:{there.region.column}: HV05" in told.message
    assert report.forecast == "1 loop; `convert` refuses it"


def test_what_is_withheld_is_a_warning_and_the_rest_converts() -> None:
    text = LOOP.replace("0.1)", "f'{tf.Variable(0.1)}')") + "for x, y in data:\n    step(x, y)\n"
    withheld = convert(text).withheld
    assert [each.line for each in withheld] == [each.region.line for each in found(text, "TS06")]


def test_a_file_that_cannot_be_read_is_told() -> None:
    text = "import broken\n" + LOOP + "for x, y in data:\n    step(x, y)\n"
    files = files_in_memory({"/p/train.py": text, "/p/broken.py": "x = (\n"})
    report = check(text, path="/p/train.py", files=files)
    assert report.forecast == "1 loop; `convert` refuses it"
    (told,) = [each for each in report.diagnostics if each.code == "TS06"]
    assert told.message.startswith("`convert` refuses this program: broken.py: not Python: ")


def test_what_is_done_is_told_of_a_script_that_converts() -> None:
    text = LOOP + "for x, y in data:\n    step(x, y)\n"
    assert check(text).forecast == "1 loop; `convert` distributes it"
    done = convert(text).text
    assert check(done).forecast == "1 loop, distributed already"
    begun = done.replace("hvd.DistributedGradientTape(tape)", "tape")
    assert check(begun).forecast == "1 loop, distributed in part; `convert` distributes the rest"
    assert check(BUILT).forecast == ""


@pytest.mark.slow
@pytest.mark.parametrize("folder", SCRIPTS, ids=lambda folder: folder.name)
def test_a_script_that_is_converted_without_a_doubt_has_no_warning(folder) -> None:  # type: ignore[no-untyped-def]
    text = (folder / "before.py").read_bytes().decode("utf-8-sig")
    conversion = convert(text)
    # Mistakes of a script with Horovod are warnings by themselves, even if the conversion fixes them.
    found = [each for each in check(text).diagnostics if each.code not in HAZARD_CODES]
    loud = [each for each in found if each.severity >= Severity.WARNING]
    if not conversion.doubts and not conversion.withheld and not conversion.reason:
        assert not loud
    assert all(each.effect for each in loud if each.code.startswith("T") and each.code < "TS")


@pytest.mark.slow
@pytest.mark.parametrize("case", TRANSFORM_CASES[::6], ids=lambda case: case.name)
def test_what_still_warns_after_a_conversion_is_told_in_its_report(case: Case) -> None:
    """No warning is new: each is a withheld change, a doubt, or a possible wait of ranks.

    Hazards of the original are listed.
    """
    conversion = convert(case.text)
    if conversion.status is Status.CONVERTED:
        found = {
            each.code for each in check(conversion.text).diagnostics if each.severity >= Severity.WARNING
        }
        left = found - OF_SMALL_CASES - {each.rule for each in conversion.hazards}
        waits = any("may wait forever" in each.text for each in conversion.decisions)
        left -= {"HZ13"} if waits else set()
        assert not left or conversion.withheld or conversion.doubts


def test_a_test_that_ranks_decide_alone_is_one_doubt() -> None:
    text = LOOP + (
        "import gym\n\nenv = gym.make('x')\nstate, done, rows = env.reset(), False, []\n\n\n"
        "def train(rows):\n    for x, y in rows:\n        step(x, y)\n\n\n"
        "while not done:\n    state, reward, done, _ = env.step(0)\n    rows.append(state)\n"
        "    if len(rows) > 3 or done:\n        train(rows)\n"
    )
    (loop,) = found(text, "TL05")
    assert loop.effect is Effect.DOUBTS
    (told,) = [each for each in convert(text).doubts if "len(rows) > 3" in each.text]
    assert told.rule == "HV19"


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow.compat.v1 as tf\nfrom graphs import op\n\nwith tf.Session() as s: s.run(op)\n",
        "import tensorflow as tf\nimport tf_slim as slim\n\nslim.learning.train(op, 'logs')\n",
        "import tflearn\n\nmodel = tflearn.DNN(net)\nmodel.fit(x, y, n_epoch=2)\n",
        "import ktrain\n\nlearner = ktrain.get_learner(model, train_data=(x, y))\nlearner.fit(1e-3)\n",
    ],
)
def test_a_refusal_without_a_loop_of_its_own_is_a_warning(text: str) -> None:
    refused = convert(text)
    assert refused.status is Status.REFUSED
    assert refused.position is not None
    (told,) = [each for each in check(text).diagnostics if each.severity is Severity.WARNING]
    assert (told.code, told.region.line) == ("TS06", refused.position[0])
    assert refused.reason in told.message
