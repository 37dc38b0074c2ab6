"""The Keras that a project requires, the reason, and the problems with requirements."""

from __future__ import annotations

import pytest

from trainshift.core.choices import CHOICES, Choices
from trainshift.engine.cells import Plain
from trainshift.engine.checking import check
from trainshift.engine.conversion import Status, convert
from trainshift.engine.fixing import fixed
from trainshift.engine.settings import Settings
from trainshift.engine.versions.demands import demand_for, read_demands
from trainshift.engine.versions.runtime import Runtime, installed, judge, settled

SCRIPT = """import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.Adam(1e-3), "mse")
model.fit(x, y, callbacks=[tf.keras.callbacks.EarlyStopping(monitor="loss")])
"""


def _asked(requirements: str) -> Runtime:
    runtime = judge(read_demands("requirements.txt", requirements).demands)
    assert runtime is not None
    return runtime


@pytest.mark.parametrize(
    ("requirements", "told"),
    [
        ("tensorflow==two", "tensorflow two, which cannot be read"),
        ("tensorflow===two", "tensorflow two, which no version is"),
        ("tensorflow==2.17; python_version >", "tensorflow 2.17, which cannot be read"),
        ("tensorflow=2.17", "tensorflow =2.17, which cannot be read"),
        ("tensorflow==", "tensorflow ==, which cannot be read"),
        ("tensorflow>=2.17,<2.0", "tensorflow >=2.17,<2.0, which no version is"),
        (
            "tensorflow==2.15\nkeras>=3",
            "tensorflow 2.15, and requirements.txt:2 for keras >=3: they conflict",
        ),
        (
            "keras<3\ntensorflow>=2.16",
            "tensorflow >=2.16, and requirements.txt:1 for keras <3: they conflict",
        ),
        ("tensorflow>=2.22", "tensorflow >=2.22, and TensorFlow 2.22 and later are untested"),
        ("tensorflow>=2.16\ntf-keras\nkeras<3", ""),
        ("tensorflow>=2.16,<2.23", ""),
        ("tensorflow==2.16.2", ""),
        ("tensorflow==2.16.0rc0", ""),
        ("tf-nightly", "tf-nightly, and TensorFlow 2.22 and later are untested"),
        ("tf-nightly==2.18.0.dev20240801", ""),
        (
            "tensorflow==2.18\ntensorflow==2.15",
            "tensorflow 2.15, and requirements.txt:1 for tensorflow 2.18: they conflict",
        ),
        (
            "tensorflow==2.15; python_version < '3.12'\ntensorflow==2.18; python_version >= '3.12'",
            "tensorflow 2.15, and requirements.txt:2 for tensorflow 2.18: they conflict",
        ),
    ],
)
def test_what_is_wrong_with_demands_is_told(requirements: str, told: str) -> None:
    runtime = _asked(requirements)
    assert (runtime.problem.told if runtime.problem else "").partition(" asks for ")[2] == told
    doubts = [each.text for each in convert(SCRIPT, runtime=runtime).doubts if each.rule == "HV01"]
    assert doubts == ([runtime.problem.told] if runtime.problem else [])


@pytest.mark.parametrize(
    ("requirements", "keras", "why"),
    [
        ("tf-keras", "tf_keras", "requirements.txt:1 asks for tf-keras"),
        ("tensorflow\ntf_keras", "tf_keras", "requirements.txt:2 asks for tf-keras"),
        ("tensorflow>=2.16\ntf-keras", "tf_keras", "requirements.txt:2 asks for tf-keras"),
        ("tensorflow==2.15\ntf-keras", "2", "requirements.txt:1 asks for tensorflow 2.15"),
        ("tensorflow<2.16", "2", "requirements.txt:1 asks for tensorflow <2.16"),
        ("tensorflow~=2.18.0", "3", "requirements.txt:1 asks for tensorflow ~=2.18.0"),
    ],
)
def test_which_keras_and_why(requirements: str, keras: str, why: str) -> None:
    runtime = _asked(requirements)
    assert (runtime.keras, runtime.why) == (keras, why)


@pytest.mark.parametrize(
    ("chosen", "requirements", "written", "doubt"),
    [
        ({"tensorflow": "2.21"}, "", "for Keras 3, because tensorflow 2.21 was chosen", ""),
        ({"tensorflow": ">=2.16"}, "numpy", "for Keras 3, because tensorflow >=2.16 was chosen", ""),
        ({"tensorflow": "2.15.1"}, "", "", ""),
        (
            {"tensorflow": "2.17"},
            "tf-keras",
            "for Keras 2 by tf_keras, because tensorflow 2.17 was chosen",
            "",
        ),
        (
            {"tensorflow": "2.22"},
            "",
            "for Keras 3, because tensorflow 2.22 was chosen",
            "tensorflow 2.22 was chosen, and TensorFlow 2.22 and later are untested",
        ),
        (
            {"tensorflow": "2.21"},
            "tensorflow<2.16",
            "for Keras 3, because tensorflow 2.21 was chosen",
            "tensorflow 2.21 was chosen, but requirements.txt:1 asks for tensorflow <2.16",
        ),
        (
            {"keras": "3"},
            "tensorflow<2.16",
            "",
            "Keras 3 was chosen, but requirements.txt:1 asks for tensorflow <2.16",
        ),
        (
            {"keras": "3", "tensorflow": "2.21"},
            "tensorflow<2.16",
            "",
            "Keras 3 was chosen, but requirements.txt:1 asks for tensorflow <2.16",
        ),
    ],
)
def test_what_a_person_chooses_decides(
    chosen: dict[str, str], requirements: str, written: str, doubt: str
) -> None:
    runtime = judge(read_demands("requirements.txt", requirements).demands)
    result = convert(SCRIPT, runtime=runtime, choices=Choices(**chosen))  # type: ignore[arg-type]
    assert [each.text for each in result.decisions if each.rule == "HV01"] == [f"written {written}"] * bool(
        written
    )
    assert [each.text for each in result.doubts if each.rule == "HV01"] == [doubt] * bool(doubt)
    is_of_3 = "hvd_distribute(model)" in result.text
    assert is_of_3 == (chosen.get("keras") == "3" or "Keras 3" in written)


@pytest.mark.parametrize(
    ("keras", "tensorflow", "has"),
    [("2", "2.21", "Keras 3"), ("3", "2.15", "Keras 2"), ("tf_keras", "2.15", "Keras 2")],
)
def test_a_keras_and_a_tensorflow_that_do_not_go_together_are_refused(
    keras: str, tensorflow: str, has: str
) -> None:
    """Code for Keras 2 would silently diverge on Keras 3."""
    result = convert(SCRIPT, choices=Choices(keras=keras, tensorflow=tensorflow))
    assert (result.status, result.code) == (Status.REFUSED, "TS04")
    assert result.reason.endswith(
        f" and tensorflow {tensorflow} were both chosen, but that TensorFlow has {has}; choose one of the two"
    )


@pytest.mark.parametrize("tensorflow", ["", "2.21", "2.21.0", ">=2.16", "~=2.16, <2.20", "==2.18.*"])
def test_versions_that_can_be_chosen(tensorflow: str) -> None:
    assert CHOICES["tensorflow"].problem(tensorflow) == ""


@pytest.mark.parametrize("tensorflow", ["2", "two", ">= two", "2.21; x", 2.21, True])
def test_versions_that_cannot_be_chosen(tensorflow: object) -> None:
    expected = f'must be a version such as "2.21" or ">=2.16", not {tensorflow!r}.'
    assert CHOICES["tensorflow"].problem(tensorflow) == expected


def test_a_script_of_keras_3_for_a_project_of_keras_2_is_told() -> None:
    result = convert(f"import keras\n{SCRIPT}print(keras.ops.ones(3))\n", runtime=_asked("tensorflow==2.15"))
    told = [each.text for each in result.doubts if each.rule == "HV01"]
    assert told == ["written for Keras 2, but line 6 uses keras.ops.ones"]


def test_a_backend_of_a_script_tells_its_keras_where_none_is_installed() -> None:
    """Scripts for older Kerases of several backends set it too."""
    text = f'import os\nos.environ["KERAS_BACKEND"] = "tensorflow"\n{SCRIPT}'
    assert "hvd_distribute(model)" in convert(text).text
    assert "hvd_distribute(model)" in convert(text, choices=settled(Choices(), None)).text
    result = convert(text, runtime=installed(demand_for("tensorflow", "2.15.1", "/there/env")))
    assert "hvd.DistributedOptimizer(" in result.text
    (told,) = (each.text for each in result.doubts if each.rule == "HV01")
    assert told == "written for Keras 2, but line 2 uses KERAS_BACKEND"


@pytest.mark.parametrize(
    "setting",
    [
        'keras.config.set_backend("torch")',
        'os.environ["KERAS_BACKEND"] = "torch"',
        'os.environ.setdefault("KERAS_BACKEND", "torch")',
        'os.environ.update(KERAS_BACKEND="torch")',
        'os.environ.update({"A": "b", "KERAS_BACKEND": "torch"})',
        'os.environ["KERAS_BACKEND"] = CHOSEN',
    ],
)
def test_a_backend_that_a_script_sets_is_refused(setting: str) -> None:
    result = convert(f'import os, keras; CHOSEN = "torch"\n{setting}\n{SCRIPT}')
    assert (result.status, result.position) == (Status.REFUSED, (2, 1))
    assert result.reason.startswith("Keras runs on torch here, and Horovod needs TensorFlow")


@pytest.mark.parametrize(
    ("path", "text", "requirements", "reason"),
    [
        (".env", "KERAS_BACKEND=jax", "", "Keras runs on jax here"),
        (".env", "A=1\nexport KERAS_BACKEND='torch'", "tensorflow>=2.16", "Keras runs on torch here"),
        ("environment.yml", "variables:\n  KERAS_BACKEND: jax", "keras>=3", "Keras runs on jax here"),
        (".env", "KERAS_BACKEND=tensorflow", "tensorflow>=2.16", ""),
        (".env", "KERAS_BACKEND=jax", "tensorflow==2.15", ""),  # There it says nothing.
    ],
)
def test_a_backend_that_a_project_sets_is_refused(
    path: str, text: str, requirements: str, reason: str
) -> None:
    demands = read_demands(path, text).demands + read_demands("requirements.txt", requirements).demands
    result = convert(SCRIPT, runtime=judge(demands))
    assert (result.status is Status.REFUSED) == bool(reason)
    line = text.count("\n") + 1
    assert not reason or result.reason.endswith(f"({path}:{line} sets KERAS_BACKEND)")
    assert result.reason.startswith(reason)


def test_a_backend_that_a_project_sets_tells_the_keras() -> None:
    result = convert(SCRIPT, runtime=judge(read_demands(".env", "KERAS_BACKEND=tensorflow").demands))
    assert "written for Keras 3, because .env:1 sets KERAS_BACKEND" in [
        each.text for each in result.decisions
    ]
    own = f'import os\nos.environ["KERAS_BACKEND"] = "tensorflow"\n{SCRIPT}'
    assert convert(own, runtime=judge(read_demands(".env", "KERAS_BACKEND=jax").demands)).reason == ""


FLAG = 'os.environ["TF_USE_LEGACY_KERAS"] = "1"'


@pytest.mark.parametrize(
    ("script", "requirements"),
    [
        (SCRIPT, "tensorflow>=2.16\ntf-keras"),
        (
            SCRIPT.replace("import tensorflow as tf", "import tensorflow as tf\nimport tf_keras"),
            "tensorflow>=2.16",
        ),
        (f"import os\n{FLAG}\n{SCRIPT}", "tensorflow>=2.16"),
        (f"# run with TF_USE_LEGACY_KERAS=1\n{SCRIPT}", ""),
    ],
)
def test_a_script_for_tf_keras(script: str, requirements: str) -> None:
    result = convert(script, runtime=_asked(requirements) if requirements else None)
    assert result.status is Status.CONVERTED
    lines = result.text.splitlines()
    assert lines.count(FLAG) == 1
    assert lines.index(FLAG) < lines.index("import tensorflow as tf")
    assert lines[lines.index("hvd.init()") + 1] == "hvd.callbacks.K = tf.keras.backend"
    assert "hvd.DistributedOptimizer(" in result.text
    assert convert(result.text).status is Status.ALREADY_DISTRIBUTED


def test_what_imports_tf_keras_alone_is_read() -> None:
    text = SCRIPT.replace("import tensorflow as tf", "import tf_keras as keras").replace("tf.keras", "keras")
    result = convert(text)
    assert result.status is Status.CONVERTED
    assert "hvd.DistributedOptimizer(keras.optimizers.Adam(1e-3 * hvd.size()))" in result.text


def test_keras_by_itself_is_keras_3() -> None:
    legacy = _asked("tensorflow>=2.16\ntf-keras")
    alone = SCRIPT.replace("import tensorflow as tf", "import keras").replace("tf.keras", "keras")
    result = convert(alone, runtime=legacy)
    assert "written for Keras 3, because line 1 uses keras" in [each.text for each in result.decisions]
    both = convert(f"import keras\n{SCRIPT}", runtime=legacy)
    assert (both.status, both.reason) == (
        Status.REFUSED,
        "line 1 imports keras, which is Keras 3 beside tf_keras; import it from tensorflow or tf_keras",
    )


def test_an_estimator_is_refused_there() -> None:
    text = """import tensorflow as tf
estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn)
"""
    for requirements in ("tensorflow>=2.16", "tensorflow>=2.16\ntf-keras"):
        result = convert(text, runtime=_asked(requirements))
        assert (
            result.reason
            == "tf.estimator was removed after TensorFlow 2.15; use that version, or a Keras model"
        )


TAPE = """import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(1e-3)
for x, y in data:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
"""
_OPEN = "for Keras 2, as no version was found; for TensorFlow 2.16 or later set `keras` to 3"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (SCRIPT, _OPEN),
        (f"{SCRIPT}model.save('net.keras')\n", "for Keras 3, because line 5 uses net.keras"),
        (
            f"{SCRIPT}model.save_weights('net.weights.h5')\n",
            "for Keras 3, because line 5 uses net.weights.h5",
        ),
        (f"{SCRIPT}model.save('net.keras')\nmodel.save('net.h5')\n", ""),
        (f"{SCRIPT}model.save('net.keras')\nmodel.reset_states()\n", ""),
        (TAPE, _OPEN),
        (TAPE.replace("optimizers.Adam", "optimizers.legacy.Adam"), ""),
        (f"{TAPE}optimizer.lr = 0.1\n", ""),
        (f"{TAPE}model.save('net.keras')\n", "for Keras 3, because line 9 uses net.keras"),
        (f"{TAPE}tf.keras.export.ExportArchive()\n", _OPEN),  # Both Keras versions have it.
        (
            f"{TAPE}optimizer.apply(grads, model.trainable_variables)\n",
            "for Keras 3, because line 9 uses .apply()",
        ),
        (f"{SCRIPT}model.fit_generator(data)\n", ""),
        (f"{SCRIPT}model.stateless_call(a, b, x)\n", "for Keras 3, because line 5 uses .stateless_call()"),
        (
            f"{SCRIPT}tf.keras.config.set_floatx('float32')\n",
            "for Keras 3, because line 5 uses tf.keras.config.set_floatx",
        ),
        (
            f"{SCRIPT}from tensorflow.keras import Layer\n",
            "for Keras 3, because line 5 uses tensorflow.keras.Layer",
        ),
        (
            f"{SCRIPT}class Rows(tf.keras.utils.PyDataset):\n    pass\n",
            "for Keras 3, because line 5 uses tf.keras.utils.PyDataset",
        ),
        (
            SCRIPT.replace("(1e-3)", "(1e-3, gradient_accumulation_steps=2)"),
            "for Keras 3, because line 3 uses gradient_accumulation_steps=",
        ),
        (
            SCRIPT.replace("Dense(1)]", "LeakyReLU(negative_slope=0.1)]"),
            "for Keras 3, because line 2 uses negative_slope=",
        ),
        (f"{SCRIPT}tf.keras.layers.LocallyConnected1D(1, 1)\n", ""),
        (f"{SCRIPT}tf.random.uniform([2])\n", _OPEN),
        # The name of a module is not the name of a file.
        (f"{SCRIPT}framework('tf.keras')\n", _OPEN),
        (f"{SCRIPT}framework('tensorflow.python.keras')\n", _OPEN),
        (f"{SCRIPT}model.save('tf-net.keras')\n", "for Keras 3, because line 5 uses tf-net.keras"),
        (f"import segmentation_models as sm\n{SCRIPT}model.save('net.keras')\n", ""),
        (f"import tensorflow_addons as tfa\n{SCRIPT}model.save('net.keras')\n", ""),
    ],
)
def test_an_open_version(text: str, written: str) -> None:
    """Signs decide; without any it is Keras 2, which is reported."""
    choices = settled(Choices(), None)
    assert choices.is_open
    result = convert(text, choices=choices)
    told = [each.text for each in result.decisions if each.rule == "HV01"]
    assert told == [f"written {written}"] * bool(written)
    assert ("hvd.allreduce" in result.text) == ("Keras 3" in written)
    assert convert(result.text, choices=choices).status is Status.ALREADY_DISTRIBUTED


@pytest.mark.parametrize(
    ("version", "text", "told", "doubt"),
    [
        ("2.21.0", SCRIPT, "written for Keras 3, because the Python of env has tensorflow 2.21.0", ""),
        ("2.15.1", f"{SCRIPT}model.save('net.keras')\n", "", ""),
        (
            "2.15.1",
            SCRIPT.replace("x, y, ", "keras.ops.ones(3), y, ").replace("import t", "import keras\nimport t"),
            "written for Keras 3, because line 5 uses keras.ops.ones",
            "written for Keras 3, but the Python of env has tensorflow 2.15.1",
        ),
    ],
)
def test_what_is_installed_decides_where_nothing_is_declared(
    version: str, text: str, told: str, doubt: str
) -> None:
    result = convert(text, runtime=installed(demand_for("tensorflow", version, "/there/env")))
    assert [each.text for each in result.decisions if each.rule == "HV01"] == [told] * bool(told)
    assert [each.text for each in result.doubts if each.rule == "HV01"] == [doubt] * bool(doubt)
    python = installed(demand_for("tensorflow", version, "/there/env"))
    chosen = convert(text, runtime=python, choices=Choices(keras="2"))
    assert (chosen.status, "hvd.DistributedOptimizer" in chosen.text) == (Status.CONVERTED, True)
    doubts = [each.text for each in chosen.doubts if each.rule == "HV01"]
    contrary = f"Keras 2 was chosen, but the Python of env has tensorflow {version}"
    assert (contrary in doubts) == (version == "2.21.0")


def test_what_keras_3_wants_otherwise_anyway_is_told_and_left() -> None:
    text = SCRIPT.replace('"mse")', '"mse", ["mae"])\nprint(model.optimizer.lr, arguments.lr)')
    text += "model.save_weights('net.h5')\nmodel.reset_states()\nmodel.save_weights('a.weights.h5')\n"
    result = convert(text, choices=Choices(keras="3"))
    told = [(each.line, each.text) for each in result.decisions if each.rule == "HV01"]
    assert told == [
        (3, "the third argument of compile() is loss_weights in Keras 3; pass metrics= by name"),
        (4, "in Keras 3 this is learning_rate; change it by hand"),
        (6, "Keras 3 saves weights only under a name that ends in .weights.h5; change it by hand"),
        (7, "in Keras 3 this is reset_state(); change it by hand"),
    ]
    assert "reset_states()" in result.text
    assert not [each for each in convert(text).decisions if each.rule == "HV01"]


BY_HAND = """import horovod.tensorflow.keras as hvd
import keras
import numpy as np

hvd.init()
noise = np.random.default_rng(hvd.rank())
x, y = noise.normal(size=(64, 8)), noise.normal(size=(64, 1))
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile({optimizer}, "mse")
model.fit(x, y, epochs=8 // hvd.size() + 1, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
"""
WRAPPED = BY_HAND.format(optimizer="hvd.DistributedOptimizer(keras.optimizers.Adam(1e-3 * hvd.size()))")
PLAIN = BY_HAND.format(optimizer="keras.optimizers.Adam(1e-3 * hvd.size())")
HAZARDS = Settings(select=("HZ07", "HZ23"))


def _hazards(text: str, runtime: Runtime | None, settings: Settings = HAZARDS) -> dict[str, str]:
    found = check(text, settings, demanded=lambda: runtime).diagnostics
    return {each.code: each.verdict.value for each in found}


@pytest.mark.parametrize(
    ("requirements", "hazards"),
    [
        ("tensorflow==2.18", {"HZ07": "violated", "HZ23": "violated"}),
        ("keras>=3", {"HZ07": "violated", "HZ23": "violated"}),
        ("tensorflow==2.15", {}),
        ("tensorflow", {}),
    ],
)
def test_hazards_are_those_of_the_keras_that_a_project_asks_for(
    requirements: str, hazards: dict[str, str]
) -> None:
    assert _hazards(WRAPPED, judge(read_demands("requirements.txt", requirements).demands)) == hazards


OWN_CLASS = """class Averaging(keras.optimizers.SGD):
    def apply(self, grads, trainable_variables=None):
        return super().apply([hvd.allreduce(each) for each in grads], trainable_variables)
optimizer = Averaging(0.1 * hvd.size())
"""
OWN_APPLY = """optimizer = keras.optimizers.SGD(0.1 * hvd.size())
apply = optimizer.apply
optimizer.apply = lambda grads, of=None: apply([hvd.allreduce(each) for each in grads], of)
"""


@pytest.mark.parametrize(
    ("made", "compiled", "hazards"),
    [
        (OWN_CLASS, "optimizer", {}),
        (OWN_APPLY, "optimizer", {}),
        (OWN_APPLY, "keras.optimizers.SGD(0.1 * hvd.size())", {"HZ07": "violated"}),
        (OWN_CLASS.replace("hvd.allreduce(each)", "each"), "optimizer", {"HZ07": "violated"}),
    ],
)
def test_an_optimizer_that_averages_what_it_applies(
    made: str, compiled: str, hazards: dict[str, str]
) -> None:
    text = PLAIN.replace("model.compile(", f"{made}model.compile(", 1)
    text = text.replace("keras.optimizers.Adam(1e-3 * hvd.size())", compiled)
    text = text.replace(", callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)]", "")
    assert _hazards(text, _asked("tensorflow==2.18")) == hazards


def test_what_is_only_installed_makes_a_hazard_unknown() -> None:
    runtime = installed(demand_for("tensorflow", "2.21"))
    assert _hazards(WRAPPED, runtime) == {"HZ07": "unknown", "HZ23": "unknown"}
    assert _hazards(WRAPPED, None) == {}


def test_the_settings_tell_the_keras_of_hazards() -> None:
    settings = Settings(select=("HZ07", "HZ23"), chosen={"keras": "3"})
    found = check(WRAPPED, settings).diagnostics
    assert {each.code: each.verdict.value for each in found} == {"HZ07": "violated", "HZ23": "violated"}
    assert "(for Keras 3, as was chosen)" in found[0].message


@pytest.mark.parametrize(
    ("requirements", "written"),
    [("tensorflow==2.18", "model.optimizer.apply ="), ("tensorflow==2.15", "hvd.DistributedOptimizer(")],
)
def test_a_fix_is_written_for_the_keras_that_a_project_asks_for(requirements: str, written: str) -> None:
    runtime = _asked(requirements)
    text = PLAIN.replace(", callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)]", "")
    result = fixed(Plain(text), Settings(select=("HZ",)), demanded=lambda: runtime)
    assert written in result.text


def test_a_rate_is_set_by_the_backend_that_a_star_import_may_give() -> None:
    code = (
        "from keras.callbacks import *\nfrom keras.layers import *\nimport tensorflow as tf\n\n\n"
        "class Rate(Callback):\n    def on_epoch_begin(self, epoch, logs=None):\n"
        "        K.set_value(self.model.optimizer.lr, 0.1 / (1 + epoch))\n\n\n"
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "model.compile(tf.keras.optimizers.SGD(0.1), 'mse')\n"
        "model.fit(tf.ones((64, 3)), tf.ones((64, 1)), callbacks=[Rate()])\n"
    )
    assert "K.set_value(self.model.optimizer.lr, 0.1 / (1 + epoch) * hvd.size())" in convert(code).text
