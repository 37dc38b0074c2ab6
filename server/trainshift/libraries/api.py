"""TensorFlow's public classes, functions and signatures, without TensorFlow.

The data is `tensorflow_api.json`, written by `python -m trainshift.dev.generate_api` from the installed
TensorFlow 2.15, and `keras3_api.json`, the additions and differences of Keras 3, by
`trainshift.dev.generate_keras3_api`. This module reads both once, on first use.  Arguments may have any
spelling to which a script may resolve (`keras.optimizers.Adam`, `tensorflow.train.AdamOptimizer`); results
have the canonical one.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, TypedDict

from msgspec import Struct

from trainshift.libraries.entries import Project, entry, project

PATH = Path(__file__).with_name("tensorflow_api.json")
KERAS_3_PATH = Path(__file__).with_name("keras3_api.json")

# The families of classes that rules ask about: `is_subclass(name, *DATASET)`.  A family has as many roots
# as TensorFlow has unrelated base classes for the same idea.
TF1_OPTIMIZER = ("tensorflow.compat.v1.train.Optimizer",)
OPTIMIZERS = (
    "tensorflow.keras.optimizers.Optimizer",
    "tensorflow.keras.optimizers.legacy.Optimizer",
    *TF1_OPTIMIZER,
    "tensorflow.keras.mixed_precision.LossScaleOptimizer",
)
# The functions that make optimizers from a name or a configuration.
OPTIMIZER_MAKERS = ("tensorflow.keras.optimizers.get", "tensorflow.keras.optimizers.deserialize")
SCHEDULE = ("tensorflow.keras.optimizers.schedules.LearningRateSchedule",)
DATASET = ("tensorflow.data.Dataset",)
MODEL = ("tensorflow.keras.Model",)
LAYER = ("tensorflow.keras.layers.Layer",)
METRIC = ("tensorflow.keras.metrics.Metric",)
MODULE = ("tensorflow.Module",)
VARIABLE = ("tensorflow.Variable",)
TAPE = ("tensorflow.GradientTape",)
CALLBACK = ("tensorflow.keras.callbacks.Callback",)
PROGBAR = ("tensorflow.keras.utils.Progbar",)
CHECKPOINT = ("tensorflow.train.Checkpoint", "tensorflow.compat.v1.train.Checkpoint")
CHECKPOINT_MANAGER = ("tensorflow.train.CheckpointManager",)
SAVER = ("tensorflow.compat.v1.train.Saver",)
SUMMARY_WRITER = ("tensorflow.summary.SummaryWriter", "tensorflow.compat.v1.summary.FileWriter")
ESTIMATOR = ("tensorflow.compat.v1.estimator.Estimator",)
SESSION = ("tensorflow.compat.v1.Session", "tensorflow.compat.v1.InteractiveSession")
MONITORED_SESSION = (
    "tensorflow.compat.v1.train.MonitoredSession",
    "tensorflow.compat.v1.train.SingularMonitoredSession",
)
SESSION_HOOK = ("tensorflow.estimator.SessionRunHook",)
STRATEGY = ("tensorflow.distribute.Strategy", "tensorflow.compat.v1.distribute.Strategy")

# A module that only mirrors another one, and that other one, in the order of attempts.
MIRRORS = (
    ("keras.", "tensorflow.keras."),
    ("tensorflow.compat.v2.", "tensorflow."),
    ("tensorflow.compat.v1.", "tensorflow."),
    ("tensorflow.metrics.", "tensorflow.keras.metrics."),
    ("tensorflow.optimizers.", "tensorflow.keras.optimizers."),
    ("tensorflow.keras.optimizers.experimental.", "tensorflow.keras.optimizers."),
    ("tensorflow.keras.dtensor.experimental.optimizers.", "tensorflow.keras.optimizers."),
    ("tensorflow.keras.layers.experimental.preprocessing.", "tensorflow.keras.layers."),
)

_KERAS_SOURCE = "keras.src."

# The meaning of a plain module's name in TensorFlow 1; it is tried last.
TENSORFLOW_1 = ("tensorflow.", "tensorflow.compat.v1.")

_RATES = {
    "tensorflow.keras.optimizers.schedules.CosineDecay": ("initial_learning_rate", "warmup_target"),
    "tensorflow.keras.optimizers.schedules.CosineDecayRestarts": ("initial_learning_rate",),
    "tensorflow.keras.optimizers.schedules.ExponentialDecay": ("initial_learning_rate",),
    "tensorflow.keras.optimizers.schedules.InverseTimeDecay": ("initial_learning_rate",),
    "tensorflow.keras.optimizers.schedules.PiecewiseConstantDecay": ("values",),
    "tensorflow.keras.optimizers.schedules.PolynomialDecay": ("initial_learning_rate", "end_learning_rate"),
    "tensorflow.compat.v1.train.cosine_decay": ("learning_rate",),
    "tensorflow.compat.v1.train.cosine_decay_restarts": ("learning_rate",),
    "tensorflow.compat.v1.train.exponential_decay": ("learning_rate",),
    "tensorflow.compat.v1.train.inverse_time_decay": ("learning_rate",),
    "tensorflow.compat.v1.train.linear_cosine_decay": ("learning_rate",),
    "tensorflow.compat.v1.train.natural_exp_decay": ("learning_rate",),
    "tensorflow.compat.v1.train.noisy_linear_cosine_decay": ("learning_rate",),
    "tensorflow.compat.v1.train.piecewise_constant": ("values",),
    "tensorflow.compat.v1.train.polynomial_decay": ("learning_rate", "end_learning_rate"),
}
# The schedules whose rates are known.
SCHEDULES = tuple(_RATES)


class Parameter(Struct, frozen=True):
    """One parameter: `default` is Python source text, None when the parameter is required.

    A default that has no source text (a private sentinel object) is the text `...`.
    """

    name: str
    kind: Literal["positional", "keyword", "args", "kwargs"]
    default: str | None


class Signature(Struct, frozen=True):
    """The parameters of a callable in order, without `self` and `cls`."""

    parameters: tuple[Parameter, ...]

    def position(self, name: str) -> int | None:
        """The 0-based position of the parameter; None if it is keyword-only."""
        positional = [parameter.name for parameter in self.parameters if parameter.kind == "positional"]
        return positional.index(name) if name in positional else None

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of this name, None if there is none."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)


def canonical(name: str) -> str | None:
    """The canonical name under which the class or function `name` is recorded, None if it is unknown."""
    return _canonical(name, project())


@cache
def _canonical(name: str, project: Project | None) -> str | None:
    return resolve(name, _data()) or (name if _base(name) else None)


def _base(name: str) -> str:
    """The TensorFlow class that a class of another library inherits from; "" for any other name."""
    known = entry(name)
    return known.base if known is not None and known.package != "tensorflow" else ""


def is_class(name: str) -> bool:
    """Return whether `name`, in any spelling, is a known class."""
    return canonical(name) in _data()["classes"] or bool(_base(name))


def is_module(name: str) -> bool:
    """Return whether `name`, in any spelling, is a module with known members."""
    return any(spelling.rstrip(".") in _modules() for spelling in _spellings(f"{name}."))


def is_new_member(name: str) -> bool:
    """Return whether a script that sets `name` adds a member to a module that has no such one."""
    return is_module(name.rpartition(".")[0]) and canonical(name) is None and not is_module(name)


def ancestors(name: str) -> tuple[str, ...]:
    """The class and its recorded ancestors, canonical, in method resolution order; () if unknown."""
    known = canonical(name)
    bases = _data()["classes"].get(known) if known else None
    if known and bases is None and (base := _base(known)):
        bases = [base, *_data()["classes"][base]]
    return (known, *bases) if known and bases is not None else ()


def is_subclass(name: str, *families: str) -> bool:
    """Return whether the class `name` is, or inherits from, one of `families` (all in any spelling)."""
    return _is_subclass(name, families, project())


@cache
def _is_subclass(name: str, families: tuple[str, ...], project: Project | None) -> bool:
    return not {canonical(family) for family in families}.isdisjoint(ancestors(name))


def last_names(*names: str) -> frozenset[str]:
    """The last parts of the names, in every spelling, and of those of their subclasses."""
    return _last_names(names, project())


@cache
def _last_names(names: tuple[str, ...], project: Project | None) -> frozenset[str]:
    meant = {*names, *(canonical(name) or name for name in names)}
    meant.update(cls for cls in _data()["classes"] if is_subclass(cls, *names))
    meant.update([spelling for spelling, known in _data()["aliases"].items() if known in meant])
    return frozenset(name.rpartition(".")[2] for name in meant)


def constructor(name: str, *, keras3: bool = False) -> Signature | None:
    """The signature of the class `name`'s constructor; None if the class or its signature is unknown.

    With `keras3`, Keras 3 is called.  Classes that only Keras 3 has always use its signatures.
    """
    known = canonical(name) or ""
    if (other := entry(known)) is not None and other.signature is not None:
        return read_signature(other.signature)
    kinds = (_newer(), _data()) if keras3 else (_data(), _newer())
    return read_signature(
        next((each["constructors"][known] for each in kinds if known in each["constructors"]), None)
    )


def function(name: str) -> Signature | None:
    """The signature of the function `name`; None if it is unknown."""
    return read_signature(_data()["functions"].get(canonical(name) or ""))


def method(class_name: str, method_name: str) -> Signature | None:
    """The signature of a method of the class, its own or inherited; None if it is unknown."""
    methods = _data()["methods"]
    owners = (methods.get(owner, {}) for owner in ancestors(class_name))
    return read_signature(next((owner[method_name] for owner in owners if method_name in owner), None))


def returns(name: str) -> str | None:
    """The canonical class of the result of a function or `Class.method`, if recorded."""
    return _returns(name, project())


@cache
def _returns(name: str, project: Project | None) -> str | None:
    if (other := entry(name)) is not None and other.gives:
        return other.gives
    owner, _, called = name.rpartition(".")
    names = (canonical(name) or "", *(f"{base}.{called}" for base in ancestors(owner)))
    return next((_data()["returns"][known] for known in names if known in _data()["returns"]), None)


@cache
def keras_optimizer(name: str) -> str | None:
    """The class that Keras creates for an optimizer's name, in any case; None if there is none (spec.md
    5.10).
    """
    for cls in _data()["classes"]:
        module, _, last = cls.rpartition(".")
        if module == "tensorflow.keras.optimizers" and last.lower() == name.lower() != "optimizer":
            return cls
    return None


def rate_parameters(name: str) -> tuple[str, ...]:
    """The parameters of a schedule (class or TF1 decay function) that are learning rates themselves.

    These are what must be multiplied to scale the schedule; `values` stands for each of its elements, and one
    whose argument is None stays None.  Empty for an unknown schedule.
    """
    known = canonical(name) or ""
    other = None if known in _RATES else entry(known)
    return other.listed("rates") if other is not None else _RATES.get(known, ())


class Data(TypedDict):
    """The committed file.  Signatures are the text between the parentheses of a `def`."""

    tensorflow: str
    classes: dict[str, list[str]]
    constructors: dict[str, str]
    functions: dict[str, str]
    methods: dict[str, dict[str, str]]
    returns: dict[str, str]
    aliases: dict[str, str]


def resolve(name: str, data: Data) -> str | None:
    """Like `canonical`, by the given data."""
    for spelling in _spellings(name):
        if spelling in data["classes"] or spelling in data["functions"]:
            return spelling
        if spelling in data["aliases"]:
            return data["aliases"][spelling]
    return None


def _spellings(name: str) -> Iterator[str]:
    yield name
    if name.startswith(_KERAS_SOURCE):
        # Its modules are below the public ones: keras.src.optimizers.adam.Adam.
        *modules, last = name.removeprefix(_KERAS_SOURCE).split(".")
        for depth in range(len(modules), -1, -1):
            yield ".".join(["tensorflow.keras", *modules[:depth], last])
        return
    for mirror, module in (*MIRRORS, TENSORFLOW_1):
        if name.startswith(mirror):
            name = module + name[len(mirror) :]
            yield name


@cache
def _data() -> Data:
    data: Data = json.loads(PATH.read_text(encoding="utf-8"))
    data["classes"].update(_newer()["classes"])
    return data


@cache
def _newer() -> Data:
    newer: Data = json.loads(KERAS_3_PATH.read_text(encoding="utf-8"))
    return newer


@cache
def _modules() -> frozenset[str]:
    """The modules of all recorded names."""
    data = _data()
    found: set[str] = set()
    for name in (*data["classes"], *data["functions"], *data["aliases"]):
        module = name.rpartition(".")[0]
        while module and module not in found:
            found.add(module)
            module = module.rpartition(".")[0]
    return frozenset(found.difference(data["classes"]))


@cache
def read_signature(text: str | None) -> Signature | None:
    """Parse a signature from the text between the parentheses of a `def`."""
    if text is None:
        return None
    expression = ast.parse(f"lambda {text}: 0", mode="eval").body
    assert isinstance(expression, ast.Lambda)
    return Signature(tuple(_parameters(expression.args)))


def _parameters(arguments: ast.arguments) -> Iterator[Parameter]:
    positional = arguments.posonlyargs + arguments.args
    required = len(positional) - len(arguments.defaults)
    for argument, default in zip(positional, [*[None] * required, *arguments.defaults], strict=True):
        yield Parameter(argument.arg, "positional", _text(default))
    if arguments.vararg:
        yield Parameter(arguments.vararg.arg, "args", None)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield Parameter(argument.arg, "keyword", _text(default))
    if arguments.kwarg:
        yield Parameter(arguments.kwarg.arg, "kwargs", None)


def _text(default: ast.expr | None) -> str | None:
    return None if default is None else ast.unparse(default)
