"""Hazards over whole programs: false alarms, reading across files, and fixes."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from support.finding_fixtures import FINDING_CASES, FindingCase, program_of
from support.fixtures import ROOT, SCRIPTS, TRANSFORM_CASES
from trainshift.core.finding import Verdict
from trainshift.dev.examples import read_examples
from trainshift.engine.checking import check
from trainshift.engine.findings import find
from trainshift.engine.settings import HAZARD_CODES, Settings, Severity
from trainshift.engine.workspace import files_in_memory
from trainshift.python.source.edit import apply, merge
from trainshift.restrictions import HAZARDS

RIGHT = {each.heading: each.blocks["python"] for each in read_examples(ROOT / "hazards" / "right.md")}
CASES = [case for case in FINDING_CASES if case.code in HAZARD_CODES]
CONVERTED = {folder.name: (folder / "after.py").read_text(encoding="utf-8-sig") for folder in SCRIPTS}
CONVERTED |= {case.name: case.expected.get("python after", "") for case in TRANSFORM_CASES}
# The data of some fixtures are so small, or made so, that all ranks read the same (HZ15).
OF_DATA = {"HZ15"}
# Hazards that rules leave alone, or that are in the originals as well; their reports name each one.
LEFT = {
    "session_convnet": {"HZ17"},
    "hv02_scale_learning_rate: one of several optimizers": {"HZ05"},
    "hv02_scale_learning_rate: a rate that Horovod's wrap stops": {"HZ05"},
    "hv02_scale_learning_rate: a rate that is halved, and set where it is scaled already": {"HZ12"},
    "hv06_divide_steps: episodes of other lengths on each rank": {"HZ13"},
    "hv06_divide_steps: left by a rank's own values": {"HZ13"},
    "hv08_write_on_root: a block that writes": {"HZ20"},
    "hv08_write_on_root: a file that a dataset reads": {"HZ17"},
    "hv08_write_on_root: a file that is read and written at once": {"HZ20"},
    "hv08_write_on_root: a file that is written and read again": {"HZ20"},
    "hv08_write_on_root: a path that is bound": {"HZ20"},
    "hv08_write_on_root: a run that is tracked": {"HZ20"},
    "hv08_write_on_root: an object that writes": {"HZ20"},
    "hv09_fit_callbacks: bound where it is listed": {"HZ20"},
    "hv09_fit_callbacks: one that may be nothing": {"HZ20"},
    "hv09_fit_callbacks: one that writes or not": {"HZ20"},
    "hv11_drop_visible_devices: a limit of memory before the last import": {"HZ17"},
    "hv15_divide_data: a list that each epoch shuffles": {"HZ17"},
    "hv15_divide_data: a comprehension gives an array for each input": {"HZ17"},
    "hv15_divide_data: arrays divided by hand": {"HZ14"},
    "hv15_divide_data: arrays that are shuffled": {"HZ17"},
    "hv15_divide_data: batches that are shuffled after the first epoch": {"HZ17"},
    "hv15_divide_data: divided by hand": {"HZ14"},
    "hv15_divide_data: what a generator reads is shuffled": {"HZ17"},
    "hv08_write_on_root: every rank enters the block of a writer": {"HZ20"},
    "hv19_agree_on_values: a graph computes with numbers that are drawn once": {"HZ13"},
    "hv19_agree_on_values: a helper that returns early": {"HZ13"},
    "hv19_agree_on_values: batches until the time is over": {"HZ13"},
    "hv19_agree_on_values: weights that are taken over after a step": {"HZ13"},
    "hv19_agree_on_values: a sample of a space of hyperopt": {"HZ13"},
    "hv19_agree_on_values: rows of datasets that are shuffled and selected": {"HZ13", "HZ16"},
    "hv19_agree_on_values: a limit of gradients that is drawn, and noise": {"HZ13"},
    "hv19_agree_on_values: numbers of rows and of batches": {"HZ13"},
    "hv19_agree_on_values: objects that are drawn": {"HZ13"},
    "hv08_write_on_root: a file that is written, then read through the same object": {"HZ20"},
    "hv08_write_on_root: what the code that loads the data writes and reads": {"HZ20"},
    "hv19_agree_on_values: splits that nothing makes alike": {"HZ13", "HZ17"},
    "hv19_agree_on_values: a choice from a shuffled list, and layers added by draws": {"HZ13"},
    "hv19_agree_on_values: what a field of a class is made of": {"HZ13"},
    "hv19_agree_on_values: what a launcher and a service tell": {"HZ13"},
    "hv19_agree_on_values: datasets that are mixed until one is empty": {"HZ13"},
    "hv19_agree_on_values: clusters are targets": {"HZ13", "HZ17"},
    "hv19_agree_on_values: the task of an inner training is drawn in its function": {"HZ13"},
}


def violated(text: str, others: dict[str, str] | None = None) -> Counter[str]:
    """The number of violations of each hazard in a script."""
    judgement = find(program_of(text, others or {}), HAZARD_CODES)
    assert judgement.defects == ()
    return Counter(each.code for each in judgement.found if each.verdict is Verdict.VIOLATED)


@pytest.mark.parametrize("heading", RIGHT)
def test_nothing_is_said_of_a_right_script(heading: str) -> None:
    # It is not a mistake that every rank shows the progress of a `fit`.
    assert violated(RIGHT[heading]) - Counter({"HZ21": 9}) == Counter()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_mistake_is_told_as_one(case: FindingCase) -> None:
    # Ranks whose gradients are not averaged may also start apart.
    averages_nothing = {"HZ10"} if case.code in ("HZ07", "HZ08") else set[str]()
    beside = set(violated(case.script, case.others)) - {case.code, "HZ05", "HZ21", *averages_nothing}
    assert beside == set()


@pytest.mark.slow
def test_a_conversion_brings_no_hazard_that_its_original_has_not() -> None:
    found = {name: set(violated(text)) - OF_DATA for name, text in CONVERTED.items() if text}
    assert {name: codes for name, codes in found.items() if codes} == LEFT


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.sampled
def test_a_fix_removes_its_finding_and_adds_none(case: FindingCase) -> None:
    if case.others:
        return
    settings = Settings(select=("HZ",))
    before = [each for each in check(case.script, settings).diagnostics if each.verdict is Verdict.VIOLATED]
    had = Counter(each.code for each in before)
    for each in before:
        if each.fix is not None:
            after = apply(case.script, merge([each.fix]).edits)
            compile(after, "<fixed>", "exec", dont_inherit=True)
            now = violated(after)
            assert now[each.code] < had[each.code], each.fix.title
            assert not now - had, each.fix.title


TRAIN = """import horovod.tensorflow.keras as hvd
from network import compiled
from data import rows

hvd.init()
model = compiled()
x, y = rows()
model.fit(x, y, epochs=8 // hvd.size() + 1, verbose=0)
"""
NETWORK = """import horovod.tensorflow.keras as hvd
import tensorflow as tf


def compiled():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    opt = tf.keras.optimizers.SGD(0.1)
    model.compile({optimizer}, "mse")
    return model
"""
DATA = "import numpy as np\n\n\ndef rows():\n    return np.load('x.npy'), np.load('y.npy')\n"


@pytest.mark.parametrize(
    ("optimizer", "codes"), [("hvd.DistributedOptimizer(opt)", {"HZ05"}), ("opt", {"HZ05", "HZ07"})]
)
def test_a_hazard_is_told_in_the_file_that_it_stands_in(optimizer: str, codes: set[str]) -> None:
    """All problems are reported at once, and not only after others are fixed."""
    network = NETWORK.format(optimizer=optimizer)
    files = files_in_memory({"/p/train.py": TRAIN, "/p/network.py": network, "/p/data.py": DATA})
    settings = Settings(select=("HZ",))
    found = check(network, settings, "/p/network.py", files).diagnostics
    assert {each.code for each in found if each.verdict is Verdict.VIOLATED} == codes
    own = {each.code for each in check(TRAIN, settings, "/p/train.py", files).diagnostics}
    # Nothing broadcasts, which is reported at the `fit`.
    assert codes.isdisjoint(own)
    assert "HZ10" in own


def test_all_that_a_loop_lacks_is_told_at_once() -> None:
    text = """import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1)
for x, y in tf.data.Dataset.from_tensor_slices((a, b)).shard(hvd.size(), hvd.rank()).batch(4).take(8):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
"""
    assert violated(text) == Counter(("HZ05", "HZ08", "HZ10"))
    tape = "    tape = hvd.DistributedGradientTape(tape)\n"
    assert violated(text.replace("    opt.", f"{tape}    opt.")) == Counter(("HZ05", "HZ10"))


def test_a_file_without_horovod_is_judged_with_the_one_that_uses_it() -> None:
    split = "def share(rows, rank, size):\n    return rows[rank::size]\n"
    start = TRAIN.replace("from data import rows", "from data import rows\nfrom split import share").replace(
        "x, y = rows()", "x, y = (share(each, hvd.rank(), hvd.size()) for each in rows())"
    )
    network = NETWORK.format(optimizer="opt").replace("import horovod.tensorflow.keras as hvd\n", "")
    paths = {"/p/train.py": start, "/p/network.py": network, "/p/data.py": DATA, "/p/split.py": split}
    files = files_in_memory(paths)
    settings = Settings(select=("HZ",))
    told = {
        path: [each.code for each in check(text, settings, path, files).diagnostics]
        for path, text in paths.items()
    }
    assert told["/p/network.py"] == ["HZ05", "HZ07"]
    assert told["/p/data.py"] == []
    plain = files_in_memory(paths | {"/p/train.py": start.replace("horovod.tensorflow.keras", "other")})
    assert check(network, settings, "/p/network.py", plain).diagnostics == ()


def test_a_rank_is_known_through_any_number_of_names() -> None:
    def codes(names: int) -> list[str]:
        chain = "".join(f"rank{number} = rank{number - 1}\n" for number in range(1, names))
        tested = f"rank0 = hvd.rank()\n{chain}if rank{names - 1} == 0:\n    hvd.allreduce([1.0])\n"
        return [each.code for each in check(TRAIN + tested, Settings(select=("HZ",))).diagnostics]

    assert "HZ12" in codes(2)
    assert codes(200) == codes(2)


def test_nothing_of_hazards_is_loaded_without_horovod() -> None:
    ask = (
        "import sys\nfrom trainshift.engine.checking import check\n"
        "check('import tensorflow as tf\\nmodel = tf.keras.Sequential()\\nmodel.fit(x, y)\\n')\n"
        "print([name for name in sys.modules if '.restrictions.hz' in name or '.ranks.together' in name])"
    )
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_waste_is_information_and_all_else_a_warning() -> None:
    settings = Settings()
    for rule in HAZARDS:
        loud = settings.severity_of(rule.code, Verdict.VIOLATED)
        assert loud is (Severity.WARNING if rule.is_serious else Severity.INFORMATION), rule.code
        assert settings.severity_of(rule.code, Verdict.UNKNOWN) is Severity.INFORMATION


def test_hazards_can_be_silenced_like_any_code() -> None:
    text = (
        "import horovod.tensorflow as hvd\nhvd.init()\nif hvd.rank == 0:  # trainshift: ignore[HZ25]\n    "
        "pass\n"
    )
    assert check(text, Settings(select=("HZ",))).diagnostics == ()
    assert check(text.replace("# trainshift", "# not"), Settings(select=("HZ",))).diagnostics != ()
    assert check(text.replace("# trainshift", "# not"), Settings(ignore=("HZ25",))).diagnostics == ()


def test_a_line_tells_how_a_program_was_distributed() -> None:
    assert check(RIGHT["steps that are divided"]).by_hand == (
        "already distributed: 1 model.fit loop, averaged, broadcast, work divided; no hazards"
    )
    (case,) = (each for each in CASES if each.name == "HZ10: a loop without a broadcast")
    assert check(case.script).by_hand == (
        "already distributed: 1 GradientTape loop, averaged, not broadcast, work divided; 1 hazard"
    )
    assert check("import tensorflow as tf\nmodel = tf.keras.Sequential()\nmodel.fit(x)\n").by_hand == ""
