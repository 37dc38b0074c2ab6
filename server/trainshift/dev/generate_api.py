"""Write `libraries/tensorflow_api.json` from the installed TensorFlow 2.15.

`python -m trainshift.dev.generate_api` writes the file; with `--check` it writes nothing, prints the
differences from the committed file, and exits with status 1 if there are any.
"""

from __future__ import annotations

import argparse
import ast
import enum
import importlib
import inspect
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any

from trainshift.libraries import api

# The recorded classes are these and all their public subclasses: of the first group name, ancestors,
# constructor and methods; of the second all but the methods; of the third name and ancestors.
WITH_METHODS = (
    *api.OPTIMIZERS,
    *api.SCHEDULE,
    *api.DATASET,
    *api.MODEL,
    *api.VARIABLE,
    *api.TAPE,
    *api.PROGBAR,
    *api.CHECKPOINT,
    *api.CHECKPOINT_MANAGER,
    *api.SAVER,
    *api.SUMMARY_WRITER,
    *api.ESTIMATOR,
    *api.SESSION,
    *api.MONITORED_SESSION,
    "tensorflow.io.TFRecordWriter",
)
WITH_CONSTRUCTOR = (
    *api.CALLBACK,
    *api.SESSION_HOOK,
    *api.STRATEGY,
    "tensorflow.compat.v1.train.ChiefSessionCreator",
    "tensorflow.compat.v1.train.Scaffold",
    "tensorflow.compat.v1.train.Supervisor",
    "tensorflow.data.Options",
    "tensorflow.estimator.EstimatorSpec",
    "tensorflow.estimator.EvalSpec",
    "tensorflow.estimator.RunConfig",
    "tensorflow.estimator.TrainSpec",
    "tensorflow.io.gfile.GFile",
)
WITH_NAME = (
    *api.MODULE,
    "tensorflow.Graph",
    "tensorflow.compat.v1.ConfigProto",
    "tensorflow.compat.v1.GPUOptions",
)

# The recorded functions, by pattern of their canonical name, and the class of their result if a rule needs
# it; the longest matching pattern decides.
FUNCTIONS = {
    "tensorflow.compat.v1.*initialize*_variables": None,
    "tensorflow.compat.v1.*variables_initializer": None,
    "tensorflow.compat.v1.Print": None,
    "tensorflow.compat.v1.app.run": None,
    "tensorflow.compat.v1.data.experimental.Counter": "tensorflow.compat.v1.data.Dataset",
    "tensorflow.compat.v1.data.experimental.*_dataset": "tensorflow.compat.v1.data.Dataset",
    "tensorflow.compat.v1.data.experimental.*_from_datasets": "tensorflow.compat.v1.data.Dataset",
    "tensorflow.compat.v1.disable_*": None,
    "tensorflow.compat.v1.enable_*": None,
    "tensorflow.compat.v1.keras.backend.[gs]et_session": None,
    "tensorflow.compat.v1.set_random_seed": None,
    "tensorflow.compat.v1.keras.estimator.model_to_estimator": "tensorflow.compat.v1.estimator.Estimator",
    "tensorflow.compat.v1.saved_model.*save": None,
    "tensorflow.compat.v1.saved_model.load": None,
    "tensorflow.compat.v1.summary.*": None,
    "tensorflow.compat.v1.tables_initializer": None,
    "tensorflow.compat.v1.train.*_decay": None,
    "tensorflow.compat.v1.train.*_global_step": None,
    "tensorflow.compat.v1.train.MonitoredTrainingSession": "tensorflow.compat.v1.train.MonitoredSession",
    "tensorflow.compat.v1.train.cosine_decay_restarts": None,
    "tensorflow.compat.v1.train.import_meta_graph": "tensorflow.compat.v1.train.Saver",
    "tensorflow.compat.v1.train.piecewise_constant": None,
    "tensorflow.config.*": None,
    "tensorflow.data.experimental.Counter": "tensorflow.data.Dataset",
    "tensorflow.data.experimental.*_from_datasets": "tensorflow.data.Dataset",
    "tensorflow.data.experimental.load": "tensorflow.data.Dataset",
    "tensorflow.data.experimental.make_*_dataset": "tensorflow.data.Dataset",
    "tensorflow.data.experimental.save": None,
    "tensorflow.estimator.train_and_evaluate": None,
    "tensorflow.function": None,
    "tensorflow.init_scope": None,
    "tensorflow.io.gfile.*": None,
    "tensorflow.io.write_*": None,
    "tensorflow.keras.applications.[A-Z]*": "tensorflow.keras.Model",
    "tensorflow.keras.backend.clear_session": None,
    "tensorflow.keras.backend.[gs]et_value": None,
    "tensorflow.keras.estimator.model_to_estimator": "tensorflow.estimator.Estimator",
    "tensorflow.keras.models.clone_model": "tensorflow.keras.Model",
    "tensorflow.keras.models.load_model": "tensorflow.keras.Model",
    "tensorflow.keras.models.model_from_*": "tensorflow.keras.Model",
    "tensorflow.keras.models.save_model": None,
    "tensorflow.keras.optimizers.deserialize": "tensorflow.keras.optimizers.Optimizer",
    "tensorflow.keras.optimizers.get": "tensorflow.keras.optimizers.Optimizer",
    "tensorflow.keras.optimizers.schedules.deserialize": api.SCHEDULE[0],
    # A tuple of two datasets with `subset="both"`, a dataset otherwise.
    "tensorflow.keras.utils.*_dataset_from_*": "tensorflow.data.Dataset",
    "tensorflow.keras.utils.plot_model": None,
    "tensorflow.keras.utils.save_img": None,
    "tensorflow.keras.utils.set_random_seed": None,
    "tensorflow.print": None,
    "tensorflow.random.set_seed": None,
    "tensorflow.saved_model.load": None,
    "tensorflow.saved_model.save": None,
    "tensorflow.summary.*": None,
    "tensorflow.summary.create_*_writer": "tensorflow.summary.SummaryWriter",
    "tensorflow.train.latest_checkpoint": None,
}

# Result classes of methods, besides those of the datasets, which are annotated.
METHOD_RETURNS = {
    "tensorflow.compat.v1.data.Dataset.from_sparse_tensor_slices": "tensorflow.compat.v1.data.Dataset",
    "tensorflow.compat.v1.estimator.Estimator.train": "tensorflow.compat.v1.estimator.Estimator",
    "tensorflow.data.Dataset.options": "tensorflow.data.Options",
    "tensorflow.keras.Model.fit": "tensorflow.keras.callbacks.History",
    "tensorflow.keras.Model.fit_generator": "tensorflow.keras.callbacks.History",
    "tensorflow.keras.Model.from_config": "tensorflow.keras.Model",
    **{f"{root}.from_config": root for root in (*api.OPTIMIZERS[:2], *api.SCHEDULE)},
}

# Annotations of dataset methods that mean "a dataset".
DATASET_ANNOTATIONS = ("DatasetV2", "DatasetV1Adapter")

# Where the public modules are defined; any other module found inside them is private.
PUBLIC_MODULES = (
    "keras.api.",
    "tensorboard.summary.",
    "tensorflow._api.",
    "tensorflow.compat",
    "tensorflow_estimator.python.estimator.api.",
)


def main(arguments: list[str] | None = None) -> int:
    """Write the data file, or compare it; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m trainshift.dev.generate_api")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if the file is stale")
    check = parser.parse_args(arguments).check
    new = render()
    if not check:
        api.PATH.write_text(new, encoding="utf-8", newline="\n")
        return 0
    old = api.PATH.read_text(encoding="utf-8") if api.PATH.exists() else "{}"
    for line in differences(json.loads(old), json.loads(new)):
        print(line)
    print(f"{api.PATH.name} is {'up to date' if old == new else 'stale'}")
    return int(old != new)


def render() -> str:
    """The text of the data file; imports TensorFlow."""
    return json.dumps(collect(), indent=1, sort_keys=True) + "\n"


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """One line for each entry of two data files that is only in one (`-`, `+`) or differs (`~`)."""
    before, after = _entries(old), _entries(new)
    for entry in sorted({*before, *after}):
        if before.get(entry) != after.get(entry):
            sign = "~" if entry in before and entry in after else "+" if entry in after else "-"
            yield f"{sign} {entry}"


def collect() -> api.Data:
    """The data of the installed TensorFlow, after a check that every public spelling resolves to it."""
    package = _Package()
    classes = {
        name: value
        for name, value in package.canonical.items()
        if package.descends(value, WITH_METHODS + WITH_CONSTRUCTOR + WITH_NAME)
    }
    routines = {name: value for name, value in package.canonical.items() if inspect.isroutine(value)}
    functions = {name: value for name, value in routines.items() if _pattern(name)}
    data: api.Data = {
        "tensorflow": package.version,
        "classes": {name: package.bases(value, classes) for name, value in classes.items()},
        "constructors": {
            name: text
            for name, value in classes.items()
            if package.descends(value, WITH_METHODS + WITH_CONSTRUCTOR)
            if (text := package.constructor(value)) is not None
        },
        "functions": {name: package.signature(value) for name, value in functions.items()},
        "methods": {},
        "returns": _returns(classes, functions),
        "aliases": {},
    }
    _add_methods(data, package, classes)
    _add_aliases(data, package, {**classes, **functions})
    return data


class _Package:
    """The installed TensorFlow.

    `public` maps each spelling to its public object, `canonical` each recorded spelling to its object;
    `names` maps the object's id to the canonical spelling.
    """

    def __init__(self) -> None:
        os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
        tensorflow = importlib.import_module("tensorflow")
        tensorflow.get_logger().setLevel("ERROR")
        keras = importlib.import_module("keras")
        self.version: str = tensorflow.__version__
        self.public = {**dict(_walk(tensorflow, "tensorflow")), **dict(_walk(keras, "keras"))}
        self.canonical: dict[str, Any] = {}
        self.names: dict[int, str] = {}
        for spelling, value in sorted(self.public.items(), key=_preference):
            if id(value) not in self.names:
                self.canonical[spelling] = value
                self.names[id(value)] = spelling
        # Calling this class makes an instance of a private subclass, which is also an Optimizer.
        loss_scale = self.public["tensorflow.keras.mixed_precision.LossScaleOptimizer"]
        made = type(loss_scale(self.public["tensorflow.keras.optimizers.SGD"]()))
        self.implementations = {loss_scale: made}

    def descends(self, value: object, roots: tuple[str, ...]) -> bool:
        return inspect.isclass(value) and issubclass(value, tuple(self.public[root] for root in roots))

    def bases(self, cls: type, recorded: Mapping[str, type]) -> list[str]:
        made = self.implementations.get(cls, cls)
        names = [self.names.get(id(base), "") for base in made.__mro__ if base is not cls]
        return [name for name in names if name in recorded]

    def constructor(self, cls: type) -> str | None:
        made: Any = self.implementations.get(cls, cls)
        if made.__init__ is not object.__init__:
            return self.signature(made.__init__, bound=1)
        return self.signature(made.__new__, bound=1) if made.__new__ is not object.__new__ else None

    def methods(self, cls: type) -> dict[str, str]:
        made = self.implementations.get(cls, cls)
        names = [name for name in dir(made) if not name.startswith("_")]
        static = (staticmethod, classmethod)
        return {
            name: self.signature(value, bound=int(not isinstance(inspect.getattr_static(made, name), static)))
            for name in names
            if inspect.isroutine(value := getattr(made, name))
        }

    def signature(self, function: Callable[..., Any], bound: int = 0) -> str:
        """The text of the parameters after the first `bound`, as in a `def`."""
        parameters = []
        for parameter in list(inspect.signature(function).parameters.values())[bound:]:
            bare = parameter.replace(annotation=parameter.empty)
            if bare.default is not bare.empty:
                bare = bare.replace(default=_Text(self._source(bare.default)))
            parameters.append(bare)
        return str(inspect.Signature(parameters))[1:-1]

    def _source(self, value: object) -> str:
        if isinstance(value, float) and not math.isfinite(value):
            return f"float('{value}')"
        try:
            return ast.unparse(ast.parse(repr(ast.literal_eval(repr(value))), mode="eval"))
        except (SyntaxError, ValueError):
            pass
        if isinstance(value, enum.Enum) and id(type(value)) in self.names:
            return f"{self.names[id(type(value))]}.{value.name}"
        return self.names.get(id(value), "...")


class _Text(str):
    """Source text that `inspect.Signature` prints unchanged."""

    __repr__ = str.__str__


def _walk(module: ModuleType, path: str) -> Iterator[tuple[str, Any]]:
    for name in dir(module):
        # `compat.v1.compat.v2` and the like mirror themselves.
        if name.startswith("_") or (name == "compat" and ".compat." in path):
            continue
        value = getattr(module, name)
        if not isinstance(value, ModuleType):
            yield f"{path}.{name}", value
        elif value.__name__.startswith(PUBLIC_MODULES):
            yield from _walk(value, f"{path}.{name}")


def _preference(entry: tuple[str, Any]) -> tuple[object, ...]:
    """Sorts first the spelling that becomes canonical."""
    spelling, value = entry
    return (
        not spelling.startswith("tensorflow."),
        ".compat." in spelling,
        not spelling.startswith("tensorflow.keras."),
        ".experimental." in spelling,
        spelling.rpartition(".")[2] != getattr(value, "__name__", None),
        len(spelling),
        spelling,
    )


def _pattern(name: str) -> str | None:
    return max((pattern for pattern in FUNCTIONS if fnmatchcase(name, pattern)), key=len, default=None)


def _returns(classes: Mapping[str, type], functions: Mapping[str, Callable[..., Any]]) -> dict[str, str]:
    if unused := set(FUNCTIONS) - {_pattern(name) for name in functions}:
        raise LookupError(f"no public function matches {sorted(unused)}")
    found = {name: result for name in functions if (result := FUNCTIONS[_pattern(name) or ""])}
    for family in ("tensorflow.data.Dataset", "tensorflow.compat.v1.data.Dataset"):
        for name, value in vars(classes[family]).items():
            called = getattr(value, "__func__", value)
            if getattr(called, "__annotations__", {}).get("return") in DATASET_ANNOTATIONS:
                found[f"{family}.{name}"] = family
    for method, result in METHOD_RETURNS.items():
        owner, _, name = method.rpartition(".")
        assert callable(getattr(classes[owner], name))
        found[method] = result
    assert set(found.values()) <= set(classes)
    return found


def _add_methods(data: api.Data, package: _Package, classes: Mapping[str, type]) -> None:
    """Add the methods of ancestors first, so that inherited ones are not repeated."""
    recorded = data["methods"]
    for name in sorted(classes, key=lambda name: (len(data["classes"][name]), name)):
        if not package.descends(classes[name], WITH_METHODS):
            continue
        inherited: dict[str, str] = {}
        for base in reversed(data["classes"][name]):
            inherited |= recorded.get(base, {})
        own = {
            key: text for key, text in package.methods(classes[name]).items() if inherited.get(key) != text
        }
        if own:
            recorded[name] = own


def _add_aliases(data: api.Data, package: _Package, recorded: Mapping[str, Any]) -> None:
    """Add every public spelling that is not canonical and does not follow from the loader's mirror rules."""
    names = {id(value): name for name, value in recorded.items()}
    spellings = sorted(package.public.items(), key=_preference)
    for spelling, value in spellings:
        if id(value) in names and api.resolve(spelling, data) != names[id(value)]:
            data["aliases"][spelling] = names[id(value)]
    if wrong := [s for s, value in spellings if api.resolve(s, data) != names.get(id(value))]:
        raise LookupError(f"these spellings resolve to something they are not: {wrong}")
    mirrored = [s for s, value in spellings if id(value) in names and s not in data["aliases"]]
    if useless := [mirror for mirror, _ in api.MIRRORS if not any(s.startswith(mirror) for s in mirrored)]:
        raise LookupError(f"nothing is mirrored in {useless}")


def _entries(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, value in data.items():
        entries |= _entries(value, f"{prefix}{key} ") if isinstance(value, Mapping) else {prefix + key: value}
    return entries


if __name__ == "__main__":
    sys.exit(main())
