"""Write `training/horovod/horovod_api.json` from the installed Horovod 0.28.1.

`python -m trainshift.dev.generate_horovod_api` writes the file.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from trainshift.training.horovod import horovod_api

_DOORS = ("horovod.tensorflow", "horovod.tensorflow.keras", "horovod.keras")
# The modules whose members scripts use.
_SUBMODULES = ("callbacks", "elastic", "compression", "mpi_ops", "functions")
# Names in Horovod's modules that are not part of Horovod.
_FOREIGN = ("tensorflow", "keras", "os", "inspect", "warnings")


def render() -> str:
    """The text of the file."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    horovod = importlib.import_module("horovod")
    modules = dict(entry for name in _DOORS for entry in _modules(name))
    data = {"horovod": horovod.__version__, "modules": modules}
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def _modules(door: str) -> Iterator[tuple[str, dict[str, str | None]]]:
    module = importlib.import_module(door)
    below = {each.name: None for each in pkgutil.iter_modules(module.__path__)}
    yield door, dict(sorted((below | dict(_members(module))).items()))
    for name in _SUBMODULES:
        inner = getattr(module, name, None)
        if isinstance(inner, ModuleType):
            yield f"{door}.{name}", dict(sorted(_members(inner)))


def _members(module: ModuleType) -> Iterator[tuple[str, str | None]]:
    """Yield the names of a module, each with its parameters as text; None if it is not callable."""
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_"):
            continue
        if isinstance(value, ModuleType):
            if value.__name__.partition(".")[0] not in _FOREIGN:
                yield name, None
        else:
            yield name, _signature(value) if callable(value) else None


def _signature(value: Any) -> str | None:
    """The text of a callable's parameters, as in a `def`; None if they cannot be determined."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return None
    return str(inspect.Signature([_bare(each) for each in parameters]))[1:-1]


def _bare(parameter: inspect.Parameter) -> inspect.Parameter:
    default = parameter.default
    plain = default is parameter.empty or isinstance(default, int | float | str | type(None))
    return parameter.replace(annotation=parameter.empty, default=default if plain else ...)


def main() -> None:
    """Write the file."""
    horovod_api.PATH.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
