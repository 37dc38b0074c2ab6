"""The recorded TensorFlow: names, hierarchy, signatures; without TensorFlow."""

from __future__ import annotations

import json

import pytest

from trainshift.dev import generate_api
from trainshift.libraries import api

DATA: api.Data = json.loads(api.PATH.read_text(encoding="utf-8"))
SCHEDULES = "tensorflow.keras.optimizers.schedules."
FAMILIES = {
    name: value
    for name, value in vars(api).items()
    if name.isupper()
    and not name.startswith("_")
    and name not in {"PATH", "KERAS_3_PATH", "MIRRORS", "TENSORFLOW_1"}
}


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("tensorflow.keras.optimizers.Adam", "tensorflow.keras.optimizers.Adam"),
        ("tensorflow.optimizers.Adam", "tensorflow.keras.optimizers.Adam"),
        ("tensorflow.keras.optimizers.experimental.Adam", "tensorflow.keras.optimizers.Adam"),
        ("tensorflow.compat.v2.keras.optimizers.Adam", "tensorflow.keras.optimizers.Adam"),
        ("tensorflow.compat.v2.optimizers.Adam", "tensorflow.keras.optimizers.Adam"),
        ("keras.optimizers.Adam", "tensorflow.keras.optimizers.Adam"),
        ("tensorflow.keras.optimizers.legacy.Adam", "tensorflow.keras.optimizers.legacy.Adam"),
        ("tensorflow.optimizers.legacy.Adam", "tensorflow.keras.optimizers.legacy.Adam"),
        ("keras.optimizers.legacy.Adam", "tensorflow.keras.optimizers.legacy.Adam"),
        ("tensorflow.compat.v1.keras.optimizers.Adam", "tensorflow.keras.optimizers.legacy.Adam"),
        ("tensorflow.compat.v1.train.AdamOptimizer", "tensorflow.compat.v1.train.AdamOptimizer"),
        ("tensorflow.train.AdamOptimizer", "tensorflow.compat.v1.train.AdamOptimizer"),
        ("tensorflow.compat.v2.compat.v1.train.AdamOptimizer", "tensorflow.compat.v1.train.AdamOptimizer"),
        ("tensorflow.keras.Model", "tensorflow.keras.Model"),
        ("tensorflow.keras.models.Model", "tensorflow.keras.Model"),
        ("tensorflow.keras.models.Sequential", "tensorflow.keras.Sequential"),
        ("tensorflow.compat.v1.keras.models.Sequential", "tensorflow.keras.Sequential"),
        ("keras.Sequential", "tensorflow.keras.Sequential"),
        ("tensorflow.optimizers.schedules.ExponentialDecay", SCHEDULES + "ExponentialDecay"),
        ("tensorflow.keras.experimental.CosineDecay", SCHEDULES + "CosineDecay"),
        ("tensorflow.train.exponential_decay", "tensorflow.compat.v1.train.exponential_decay"),
        ("tensorflow.train.piecewise_constant_decay", "tensorflow.compat.v1.train.piecewise_constant"),
        ("tensorflow.train.Checkpoint", "tensorflow.train.Checkpoint"),
        ("tensorflow.compat.v1.train.Checkpoint", "tensorflow.compat.v1.train.Checkpoint"),
        ("tensorflow.data.Dataset", "tensorflow.data.Dataset"),
        ("tensorflow.compat.v1.data.Dataset", "tensorflow.compat.v1.data.Dataset"),
        ("tensorflow.Session", "tensorflow.compat.v1.Session"),
        ("tensorflow.layers.Dense", "tensorflow.compat.v1.layers.Dense"),
        ("tensorflow.metrics.Mean", "tensorflow.keras.metrics.Mean"),
        ("tensorflow.train.SessionRunHook", "tensorflow.estimator.SessionRunHook"),
        ("tensorflow.autodiff.GradientTape", "tensorflow.GradientTape"),
        ("tensorflow.config.experimental.set_visible_devices", "tensorflow.config.set_visible_devices"),
        ("keras.applications.resnet50.ResNet50", "tensorflow.keras.applications.ResNet50"),
        ("keras.src.optimizers.Adam", "tensorflow.keras.optimizers.Adam"),
        ("keras.src.optimizers.adam.Adam", "tensorflow.keras.optimizers.Adam"),
        ("keras.src.layers.core.dense.Dense", "tensorflow.keras.layers.Dense"),
        ("keras.src.optimizers.schedules.learning_rate_schedule.CosineDecay", SCHEDULES + "CosineDecay"),
        ("keras.src.backend.common.Nothing", None),
        ("tensorflow.keras.layers.MaxPool2D", "tensorflow.keras.layers.MaxPooling2D"),
        ("tensorflow.contrib.opt.AdamWOptimizer", None),
        ("tensorflow.contrib", None),
        ("tensorflow.compat.v1.metrics.mean", None),
        ("tensorflow.float32", None),
        ("tensorflow.", None),
        ("os.path.join", None),
        ("", None),
    ],
)
def test_canonical(spelling: str, name: str | None) -> None:
    assert api.canonical(spelling) == name


def test_tables_hold_only_canonical_names() -> None:
    names = {name for family in FAMILIES.values() for name in family}
    for name in names | set(api._RATES) | set(DATA["aliases"].values()) | set(DATA["returns"].values()):
        assert api.canonical(name) == name
    assert {base for bases in DATA["classes"].values() for base in bases} <= set(DATA["classes"])


@pytest.mark.parametrize(
    ("name", "family", "yes"),
    [
        ("tensorflow.keras.optimizers.SGD", "OPTIMIZERS", True),
        ("tensorflow.keras.optimizers.legacy.SGD", "OPTIMIZERS", True),
        ("tensorflow.train.MomentumOptimizer", "OPTIMIZERS", True),
        ("tensorflow.keras.mixed_precision.LossScaleOptimizer", "OPTIMIZERS", True),
        ("tensorflow.keras.optimizers.schedules.PolynomialDecay", "OPTIMIZERS", False),
        ("tensorflow.keras.optimizers.schedules.PolynomialDecay", "SCHEDULE", True),
        ("tensorflow.compat.v1.data.TFRecordDataset", "DATASET", True),
        ("tensorflow.data.TextLineDataset", "DATASET", True),
        ("tensorflow.data.Options", "DATASET", False),
        ("keras.Sequential", "MODEL", True),
        ("keras.layers.Dense", "MODEL", False),
        ("keras.layers.Dense", "LAYER", True),
        ("keras.Sequential", "MODULE", True),
        ("tensorflow.keras.metrics.Mean", "METRIC", True),
        ("tensorflow.compat.v1.Variable", "VARIABLE", True),
        ("tensorflow.GradientTape", "TAPE", True),
        ("keras.callbacks.EarlyStopping", "CALLBACK", True),
        ("tensorflow.compat.v1.train.Checkpoint", "CHECKPOINT", True),
        ("tensorflow.train.CheckpointManager", "CHECKPOINT", False),
        ("tensorflow.train.CheckpointManager", "CHECKPOINT_MANAGER", True),
        ("tensorflow.estimator.DNNClassifier", "ESTIMATOR", True),
        ("tensorflow.InteractiveSession", "SESSION", True),
        ("tensorflow.train.MonitoredSession", "MONITORED_SESSION", True),
        ("tensorflow.train.StopAtStepHook", "SESSION_HOOK", True),
        ("tensorflow.distribute.MirroredStrategy", "STRATEGY", True),
        ("tensorflow.contrib.estimator.Estimator", "ESTIMATOR", False),
    ],
)
def test_is_subclass(name: str, family: str, yes: bool) -> None:
    assert api.is_subclass(name, *FAMILIES[family]) is yes


def test_is_subclass_takes_families_in_any_spelling() -> None:
    assert api.is_subclass("keras.Sequential", "keras.models.Model")
    assert not api.is_subclass("keras.Sequential")
    assert not api.is_subclass("unknown", "unknown")


def test_ancestors() -> None:
    layer_and_module = ("tensorflow.keras.layers.Layer", "tensorflow.Module")
    assert api.ancestors("keras.Sequential") == (
        "tensorflow.keras.Sequential",
        "tensorflow.keras.Model",
        *layer_and_module,
    )
    assert api.ancestors("tensorflow.function") == ()
    assert api.ancestors("unknown") == ()
    assert api.is_class("keras.Sequential")
    assert not api.is_class("tensorflow.function")
    assert not api.is_class("unknown")


@pytest.mark.parametrize(
    ("name", "parameter", "position", "default"),
    [
        ("tensorflow.keras.optimizers.Adam", "learning_rate", 0, "0.001"),
        ("tensorflow.keras.optimizers.SGD", "learning_rate", 0, "0.01"),
        ("tensorflow.keras.optimizers.legacy.SGD", "learning_rate", 0, "0.01"),
        ("tensorflow.keras.optimizers.legacy.Adam", "beta_2", 2, "0.999"),
        ("tensorflow.train.GradientDescentOptimizer", "learning_rate", 0, None),
        ("tensorflow.train.AdamOptimizer", "learning_rate", 0, "0.001"),
        ("tensorflow.keras.mixed_precision.LossScaleOptimizer", "inner_optimizer", 0, None),
        (SCHEDULES + "PiecewiseConstantDecay", "values", 1, None),
        (SCHEDULES + "PolynomialDecay", "end_learning_rate", 2, "0.0001"),
        (SCHEDULES + "CosineDecay", "warmup_target", 4, "None"),
        ("keras.Sequential", "name", 1, "None"),
        ("tensorflow.train.CheckpointManager", "directory", 1, None),
        ("tensorflow.Variable", "synchronization", 9, "tensorflow.VariableSynchronization.AUTO"),
        ("tensorflow.experimental.dtensor.DTensorDataset", "mesh", None, None),
        ("keras.callbacks.ModelCheckpoint", "kwargs", None, None),
        ("tensorflow.estimator.TrainSpec", "max_steps", 1, "None"),
        ("tensorflow.estimator.RunConfig", "save_checkpoints_steps", 3, "..."),
    ],
)
def test_constructor(name: str, parameter: str, position: int | None, default: str | None) -> None:
    signature = api.constructor(name)
    assert signature is not None
    assert signature.position(parameter) == position
    found = signature.parameter(parameter)
    assert found is not None
    assert found.default == default


def test_kinds() -> None:
    dataset = api.constructor("tensorflow.experimental.dtensor.DTensorDataset")
    printed = api.function("tensorflow.print")
    assert dataset is not None
    assert printed is not None
    assert [parameter.kind for parameter in dataset.parameters[:2]] == ["positional", "keyword"]
    assert [parameter.kind for parameter in printed.parameters] == ["args", "kwargs"]


def test_unknown_signatures() -> None:
    assert api.constructor("unknown") is None
    assert api.constructor("keras.layers.Dense") is None
    assert api.constructor("tensorflow.function") is None
    assert api.function("keras.Model") is None
    assert api.function("unknown") is None
    assert api.method("keras.Model", "unknown") is None
    assert api.method("unknown", "fit") is None
    adam = api.constructor("keras.optimizers.Adam")
    assert adam is not None
    assert adam.position("unknown") is None
    assert adam.parameter("unknown") is None


@pytest.mark.parametrize(
    ("name", "parameter", "position"),
    [
        ("tensorflow.train.exponential_decay", "learning_rate", 0),
        ("tensorflow.train.piecewise_constant", "values", 2),
        ("tensorflow.train.MonitoredTrainingSession", "hooks", 4),
        ("tensorflow.summary.create_file_writer", "logdir", 0),
        ("keras.backend.set_value", "value", 1),
        ("tensorflow.config.set_visible_devices", "devices", 0),
        ("tensorflow.saved_model.save", "export_dir", 1),
        ("keras.models.save_model", "filepath", 1),
        ("keras.utils.plot_model", "to_file", 1),
        ("tensorflow.io.write_file", "filename", 0),
        ("tensorflow.function", "input_signature", 1),
    ],
)
def test_function(name: str, parameter: str, position: int) -> None:
    signature = api.function(name)
    assert signature is not None
    assert signature.position(parameter) == position


@pytest.mark.parametrize(
    ("owner", "name", "parameter", "position"),
    [
        ("keras.Model", "fit", "x", 0),
        ("keras.Sequential", "fit", "callbacks", 5),
        ("keras.Sequential", "compile", "optimizer", 0),
        ("keras.Model", "fit_generator", "steps_per_epoch", 1),
        ("keras.Model", "evaluate", "verbose", 3),
        ("keras.Model", "predict", "verbose", 2),
        ("keras.Model", "save_weights", "filepath", 0),
        ("tensorflow.data.TextLineDataset", "take", "count", 0),
        ("tensorflow.compat.v1.data.Dataset", "batch", "batch_size", 0),
        ("keras.optimizers.Adam", "apply_gradients", "grads_and_vars", 0),
        ("keras.optimizers.Adam", "minimize", "var_list", 1),
        ("keras.optimizers.legacy.Adam", "apply_gradients", "experimental_aggregate_gradients", 2),
        ("tensorflow.train.AdamOptimizer", "minimize", "global_step", 1),
        ("keras.mixed_precision.LossScaleOptimizer", "get_unscaled_gradients", "grads", 0),
        ("tensorflow.GradientTape", "gradient", "sources", 1),
        ("tensorflow.GradientTape", "jacobian", "sources", 1),
        ("tensorflow.GradientTape", "batch_jacobian", "source", 1),
        ("tensorflow.train.Checkpoint", "save", "file_prefix", 0),
        ("tensorflow.train.CheckpointManager", "save", "checkpoint_number", 0),
        ("keras.utils.Progbar", "update", "current", 0),
        ("tensorflow.estimator.DNNClassifier", "train", "hooks", 1),
    ],
)
def test_method(owner: str, name: str, parameter: str, position: int) -> None:
    signature = api.method(owner, name)
    assert signature is not None
    assert signature.position(parameter) == position


@pytest.mark.parametrize(
    ("called", "cls"),
    [
        ("tensorflow.data.Dataset.from_tensor_slices", "tensorflow.data.Dataset"),
        ("tensorflow.data.TextLineDataset.map", "tensorflow.data.Dataset"),
        ("tensorflow.compat.v1.data.TextLineDataset.map", "tensorflow.compat.v1.data.Dataset"),
        ("tensorflow.data.Dataset.options", "tensorflow.data.Options"),
        ("tensorflow.data.Dataset.reduce", None),
        ("tensorflow.data.Dataset.as_numpy_iterator", None),
        ("keras.preprocessing.image_dataset_from_directory", "tensorflow.data.Dataset"),
        ("keras.applications.VGG16", "tensorflow.keras.Model"),
        ("keras.models.load_model", "tensorflow.keras.Model"),
        ("keras.Sequential.fit", "tensorflow.keras.callbacks.History"),
        ("tensorflow.optimizers.get", "tensorflow.keras.optimizers.Optimizer"),
        ("tensorflow.summary.create_noop_writer", "tensorflow.summary.SummaryWriter"),
        ("tensorflow.train.MonitoredTrainingSession", "tensorflow.compat.v1.train.MonitoredSession"),
        ("tensorflow.function", None),
        ("keras.Model", None),
        ("unknown", None),
    ],
)
def test_returns(called: str, cls: str | None) -> None:
    assert api.returns(called) == cls


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("keras.optimizers.schedules.PiecewiseConstantDecay", ("values",)),
        ("keras.experimental.CosineDecay", ("initial_learning_rate", "warmup_target")),
        ("tensorflow.train.polynomial_decay", ("learning_rate", "end_learning_rate")),
        ("keras.optimizers.Adam", ()),
        ("unknown", ()),
    ],
)
def test_rate_parameters(name: str, parameters: tuple[str, ...]) -> None:
    assert api.rate_parameters(name) == parameters


def test_every_schedule_has_rate_parameters_that_exist() -> None:
    decays = {name for name in DATA["functions"] if ".train." in name and "decay" in name}
    schedules = {name for name in DATA["classes"] if api.is_subclass(name, *api.SCHEDULE)}
    piecewise = {"tensorflow.compat.v1.train.piecewise_constant"}
    assert decays | schedules | piecewise == set(api._RATES) | set(api.SCHEDULE)
    for name, rates in api._RATES.items():
        signature = api.constructor(name) or api.function(name)
        assert signature is not None
        assert all(signature.parameter(rate) for rate in rates)


def test_every_signature_can_be_read() -> None:
    assert all(api.constructor(name) for name in DATA["constructors"])
    assert all(api.function(name) for name in DATA["functions"])
    assert all(api.method(owner, name) for owner, methods in DATA["methods"].items() for name in methods)


def test_differences() -> None:
    old = {"functions": {"a": "x", "b": "x"}, "methods": {"C": {"m": "x"}}}
    new = {"functions": {"b": "y", "c": "x"}, "methods": {"C": {"m": "x"}}}
    assert list(generate_api.differences(old, new)) == ["- functions a", "~ functions b", "+ functions c"]


def test_what_keras_3_has_beside_the_keras_of_tensorflow_2_15() -> None:
    assert api.keras_optimizer("muon") == "tensorflow.keras.optimizers.Muon"
    assert api.is_subclass("keras.optimizers.Lamb", *api.OPTIMIZERS)
    assert api.is_subclass("keras.callbacks.SwapEMAWeights", *api.CALLBACK)
    signature = api.constructor("keras.optimizers.ScheduleFreeAdamW")
    assert signature is not None
    assert [each.default for each in signature.parameters if each.name == "learning_rate"] == ["0.0025"]


def test_what_keras_3_takes_otherwise() -> None:
    lion = "keras.optimizers.Lion"
    rates = [api.constructor(lion, keras3=each).parameter("learning_rate").default for each in (False, True)]  # type: ignore[union-attr]
    assert rates == ["0.0001", "0.001"]
    assert api.constructor("keras.optimizers.Adam", keras3=True).position("loss_scale_factor") == 12  # type: ignore[union-attr]
    assert api.constructor("keras.optimizers.Muon") == api.constructor("keras.optimizers.Muon", keras3=True)
    assert api.constructor("tensorflow.train.AdamOptimizer", keras3=True) is not None
