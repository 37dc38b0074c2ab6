"""Paddle's public API, without Paddle: `paddle_api.json`, which `dev/generate_paddle_api.py` writes.

It is read once, at the first question.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PATH = Path(__file__).with_name("paddle_api.json")
LAYER = "paddle.nn.Layer"
# The names of one module's members in another module, longest first.
_MIRRORS = (
    ("paddle.tensor.", "paddle."),
    ("paddle.nn.layer.", "paddle.nn."),
    ("paddle.fluid.layers.", "paddle."),
)


class Operation(NamedTuple):
    """A function or a method of tensors: its parameters, the tensors among them, and its result.

    `returns` is "tensor", "tensors", "python" or "" if unknown; `dtype` is a dtype, "same" as the first
    argument's, or "" if it varies; `shape` is "same", "scalar" or "".
    """

    name: str
    parameters: tuple[str, ...]
    tensors: frozenset[str]
    returns: str
    dtype: str
    shape: str


@cache
def _data() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return found


def _operation(name: str, row: dict[str, Any]) -> Operation:
    return Operation(
        name.rpartition(".")[2],
        tuple(row["parameters"]),
        frozenset(row["tensors"]),
        row["returns"],
        row.get("dtype", ""),
        row.get("shape", ""),
    )


@cache
def function(full_name: str) -> Operation | None:
    """The Paddle function with a full name, if it is public."""
    if not full_name.startswith("paddle."):
        return None
    functions = _data()["functions"]
    for name in (full_name, *(new + full_name.removeprefix(old) for old, new in _MIRRORS)):
        if name in functions:
            return _operation(name, functions[name])
    if full_name.startswith("paddle.Tensor."):
        found = method(full_name.removeprefix("paddle.Tensor."))
        return found._replace(parameters=("x", *found.parameters)) if found is not None else None
    return None


@cache
def method(name: str) -> Operation | None:
    """The tensor method with a name; the tensor itself is its parameter `x`, before all others."""
    row = _data()["methods"].get(name)
    if row is None:
        return None
    found = _operation(name, row)
    own = found.parameters[:1] if found.parameters[:1] and found.parameters[0] in _SELF else ()
    return found._replace(parameters=("x", *found.parameters[len(own) :]))


_SELF = frozenset({"x", "input", "self", "a", "arr", "tensor"})


def is_layer_class(full_name: str) -> bool:
    """Return whether a library class is a layer: one of Paddle's, or one with a typical name, as in
    PaddleNLP.
    """
    return full_name in _data()["layers"] or (
        full_name.endswith((".nn.Layer", ".Layer")) and full_name.startswith("paddle")
    )


def layer_returns(full_name: str) -> str:
    """The result of calling a layer of a library's class, in the notation of `Operation.returns`."""
    row = _data()["layers"].get(full_name)
    return row["returns"] if row is not None else ""


@cache
def only_tensors() -> frozenset[str]:
    """Methods that numbers, strings, containers and layers lack."""
    return frozenset(_data()["only_tensors"])


def is_in_place(full_name: str) -> bool:
    """Return whether a function or method writes to its input tensor, by Paddle's rule for names."""
    name = full_name.rpartition(".")[2]
    return name.endswith("_") and not name.startswith("_") and not name.endswith("__")
