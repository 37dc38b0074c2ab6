"""Write `libraries/keras3_api.json`: the classes of Keras 3 that the Keras of TensorFlow 2.15 lacks, or that
differ.

`python -m trainshift.dev.generate_keras3_api` writes the file from the installed TensorFlow, which must be
2.16 or later; with `--check` it writes nothing and exits with status 1 if the file would differ.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from trainshift.libraries import api

MODULES = ("callbacks", "layers", "losses", "metrics", "optimizers", "optimizers.schedules", "utils")
# The constructors of these classes are recorded too, because rules inspect their arguments.
CONSTRUCTED = ("callbacks", "optimizers", "optimizers.schedules")


def main(arguments: list[str] | None = None) -> int:
    """Write the data file, or compare it; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m trainshift.dev.generate_keras3_api")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if the file is stale")
    check = parser.parse_args(arguments).check
    new = json.dumps(collect(), indent=1, sort_keys=True) + "\n"
    if check:
        return int(api.KERAS_3_PATH.read_text(encoding="utf-8") != new)
    api.KERAS_3_PATH.write_text(new, encoding="utf-8", newline="\n")
    return 0


def collect() -> dict[str, Any]:
    """The classes of the installed Keras that TensorFlow 2.15 lacks, with their bases and constructors.

    Constructors are also listed for shared classes whose parameters differ.
    """
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3", KERAS_BACKEND="tensorflow")
    older = json.loads(api.PATH.read_text(encoding="utf-8"))
    known = older["classes"]
    keras = importlib.import_module("keras")
    named = {value: name for name, value in _classes(keras)}
    data: dict[str, Any] = {"keras": keras.__version__, "classes": {}, "constructors": {}}
    for cls, name in named.items():
        bases = [named[base] for base in cls.__mro__[1:] if base in named]
        if name not in known:
            if not bases:
                continue
            above = [each for base in bases for each in known.get(base, ())]
            data["classes"][name] = list(dict.fromkeys((*bases, *above)))
        if name.rpartition(".")[0].removeprefix("tensorflow.keras.") in CONSTRUCTED and "__init__" in vars(
            cls
        ):
            parameters = list(inspect.signature(vars(cls)["__init__"]).parameters.values())[1:]
            bare = [each.replace(annotation=each.empty) for each in parameters]
            signature = str(inspect.Signature(bare))[1:-1]
            if signature != older["constructors"].get(name):
                data["constructors"][name] = signature
    return data


def _classes(keras: ModuleType) -> Iterator[tuple[str, type]]:
    """The public classes, each under the last of its spellings, which is recorded."""
    for module in MODULES:
        found: Any = keras
        for part in module.split("."):
            found = getattr(found, part)
        for name, value in sorted(vars(found).items()):
            if inspect.isclass(value) and not name.startswith("_"):
                yield f"tensorflow.keras.{module}.{name}", value


if __name__ == "__main__":
    sys.exit(main())
