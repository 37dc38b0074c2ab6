"""Write `libraries/keras_signs.json`: the names that only one of Keras 2 and Keras 3 has.

`python -m trainshift.dev.generate_keras_signs` compares the `keras` and the `tf_keras` that are installed
beside TensorFlow 2.16 or later; with `--check` it writes nothing and exits with status 1 if the file would
differ.  Names are those below `keras.`; one that ends with a dot is a module.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from trainshift.libraries import api, keras_signs

# Arguments of Keras 2's base layer that are missing from its signature.
_OF_LAYERS = {
    "activity_regularizer",
    "autocast",
    "batch_input_shape",
    "batch_size",
    "dtype",
    "dynamic",
    "experimental_autocast",
    "implementation",
    "input_dim",
    "input_shape",
    "name",
    "trainable",
    "weights",
}
# Attributes that a Keras 2 model has only after it is compiled.
_OF_COMPILED = {"loss"}
# Names that exist in Keras 3, but only raise an error.
_FAILING_ON_3 = ["optimizers.legacy."]
# Internal and legacy modules of the package, not part of the public API.
_PRIVATE = ("src", "api", "legacy", "protobuf")


def main(arguments: list[str] | None = None) -> int:
    """Write the data file, or compare it; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m trainshift.dev.generate_keras_signs")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if the file is stale")
    check = parser.parse_args(arguments).check
    new = json.dumps(collect(), indent=1, sort_keys=True) + "\n"
    if check:
        return int(keras_signs.PATH.read_text(encoding="utf-8") != new)
    keras_signs.PATH.write_text(new, encoding="utf-8", newline="\n")
    return 0


def collect() -> dict[str, Any]:
    """The names, parameters and methods that only one of the two has, by its version number."""
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3", KERAS_BACKEND="tensorflow")
    newer, older = importlib.import_module("keras"), importlib.import_module("tf_keras")
    recorded: api.Data = json.loads(api.PATH.read_text(encoding="utf-8"))
    of_3 = dict(_public(newer))
    # The contents of `tf.keras` on TensorFlow 2.16 and later: Keras 3, and its names for old scripts.
    kept = {**dict(_public(importlib.import_module("keras._tf_keras.keras"))), **of_3}
    of_2 = dict(_public(older))
    shared = {
        name: (of_2[name], of_3[name])
        for name in sorted({*of_2} & {*of_3})
        if callable(of_2[name]) and not _is_made_elsewhere(of_2[name])
    }
    return {
        "versions": {"2": older.__version__, "3": newer.__version__},
        "names": {
            "2": sorted([*_alone(of_2, kept.__contains__), *_FAILING_ON_3]),
            "3": _alone(
                of_3, lambda name: name in of_2 or bool(api.resolve(f"tensorflow.keras.{name}", recorded))
            ),
        },
        "parameters": {
            "2": _by_name(
                shared,
                lambda two, three: set() if _takes_any(three) else _parameters(two) - _parameters(three),
            ),
            "3": _by_name(shared, lambda two, three: _parameters(three) - _parameters(two)),
        },
        "methods": {
            "2": _inherited(_by_name(shared, lambda two, three: _methods(two) - _members(three))),
            "3": _inherited(
                _by_name(shared, lambda two, three: _methods(three) - _members(two) - _OF_COMPILED)
            ),
        },
    }


def _public(module: ModuleType, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the public names below a module, and their objects."""
    for name, value in sorted(vars(module).items()):
        if name.startswith("_") or name in _PRIVATE:
            continue
        if not inspect.ismodule(value):
            yield prefix + name, value
        elif value.__name__.startswith(module.__name__):
            yield f"{prefix}{name}.", value
            yield from _public(value, f"{prefix}{name}.")


def _alone(names: Iterable[str], is_shared: Callable[[str], bool]) -> list[str]:
    """The names that are not shared; for an unshared module, only the module."""
    alone = {name for name in names if not is_shared(name)}
    modules = tuple(name for name in alone if name.endswith("."))
    return sorted(
        name for name in alone if not any(name != each and name.startswith(each) for each in modules)
    )


def _by_name(
    shared: dict[str, tuple[Any, Any]], differing: Callable[[Any, Any], set[str]]
) -> dict[str, list[str]]:
    """The differences, by the recorded name of each class or function."""
    found: dict[str, list[str]] = {}
    for name, (older, newer) in shared.items():
        known = api.canonical(f"tensorflow.keras.{name}")
        if known and (alone := differing(older, newer)):
            found[known] = sorted(alone)
    return found


def _inherited(methods: dict[str, list[str]]) -> dict[str, list[str]]:
    """The methods of each class, without those of a listed base class."""
    above = {
        name: {method for each in api.ancestors(name)[1:] for method in methods.get(each, ())}
        for name in methods
    }
    return {
        name: kept
        for name in methods
        if (kept := [each for each in methods[name] if each not in above[name]])
    }


def _parameters(owner: Any) -> set[str]:
    """The parameter names of a call; also those of base classes if the rest is passed on."""
    owners = [each for each in owner.__mro__ if "__init__" in vars(each)] if inspect.isclass(owner) else []
    found: set[str] = set()
    for called in [vars(each)["__init__"] for each in owners] or [owner]:
        parameters = _signature(called)
        found |= {each.name for each in parameters if each.kind is not each.VAR_KEYWORD}
        if not any(each.kind is each.VAR_KEYWORD for each in parameters):
            break
    return found - {"self", "args"} - _OF_LAYERS


def _takes_any(owner: Any) -> bool:
    called = owner.__init__ if inspect.isclass(owner) else owner
    return any(each.kind is each.VAR_KEYWORD for each in _signature(called))


def _is_made_elsewhere(owner: Any) -> bool:
    """Return whether a class or function accepts any argument: it returns an object of a hidden class."""
    called = owner.__init__ if inspect.isclass(owner) else owner
    return any(each.kind is each.VAR_POSITIONAL for each in _signature(called))


def _signature(called: Any) -> list[inspect.Parameter]:
    try:
        return [*inspect.signature(called).parameters.values()]
    except (TypeError, ValueError):
        return []


def _methods(owner: Any) -> set[str]:
    """The public methods of a class; none for other objects."""
    members = [(name, getattr(owner, name, None)) for name in dir(owner)] if inspect.isclass(owner) else []
    return {name for name, value in members if not name.startswith("_") and inspect.isroutine(value)}


def _members(owner: Any) -> set[str]:
    """The attribute names of an object of a class, or of the class itself if it needs arguments."""
    try:
        return {*dir(owner() if inspect.isclass(owner) else owner)}
    except Exception:
        return {*dir(owner)}


if __name__ == "__main__":
    sys.exit(main())
