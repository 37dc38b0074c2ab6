"""Write Paddle's public functions, methods and layers as data; the server never imports Paddle.

Run in an environment of its own, which has paddlepaddle and need not have this package:

    python server/trainshift/dev/generate_paddle_api.py

The result of a function is read from its annotations. Its dtype and shape are found by calling it with small
tensors, each call in a process of its own, and recorded only if all calls agree.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[1] / "static_graphs" / "tables" / "paddle_api.json"
MODULES = (
    "paddle", "paddle.nn.functional", "paddle.linalg", "paddle.fft", "paddle.signal", "paddle.geometric",
    "paddle.vision.ops", "paddle.incubate", "paddle.incubate.nn.functional", "paddle.static",
    "paddle.static.nn", "paddle.nn.utils", "paddle.tensor", "paddle.nn.initializer", "paddle.sparse",
)  # fmt: skip
LAYERS = ("paddle.nn", "paddle.vision.ops", "paddle.vision.models", "paddle.incubate.nn", "paddle.metric")
# Their methods do not show whether a name is a tensor.
_NO_TENSORS = (int, float, complex, bool, str, bytes, list, tuple, dict, set)
_SECONDS = 5
# Functions that start devices, processes or files, or end the process.
_NEVER_RUN = re.compile(r"save|load|seed|device|cuda|init|grad|print|summary|compile|distributed|set_|batch$")


def main() -> None:
    """Write the table."""
    paddle = importlib.import_module("paddle")
    table: dict[str, Any] = {"version": paddle.__version__, "functions": {}, "methods": {}, "layers": {}}
    for module in MODULES:
        place = importlib.import_module(module)
        for name in sorted(dir(place)):
            each = getattr(place, name)
            if name.startswith("_") or inspect.isclass(each) or not callable(each):
                continue
            if not (getattr(each, "__module__", None) or "").startswith("paddle"):
                continue
            if (row := _row(each)) is not None:
                table["functions"][f"{module}.{name}"] = row | _seen(each, row)
    for name in sorted(dir(paddle.Tensor)):
        each = getattr(paddle.Tensor, name)
        if not name.startswith("_") and callable(each):
            row = _row(each) or {"parameters": [], "tensors": [], "returns": ""}
            table["methods"][name] = row | _seen(each, row)
    for module in LAYERS:
        place = importlib.import_module(module)
        for name in sorted(dir(place)):
            each = getattr(place, name)
            if inspect.isclass(each) and issubclass(each, paddle.nn.Layer):
                row = _row(vars(each).get("forward") or getattr(each, "forward", None))
                table["layers"][f"{module}.{name}"] = {"returns": row["returns"] if row else ""}
    shared = {name for each in (*_NO_TENSORS, paddle.nn.Layer) for name in dir(each)}
    table["only_tensors"] = sorted({"astype", *set(table["methods"]) - shared})
    TABLE.write_text(_written(table), encoding="utf-8")
    print(TABLE, TABLE.stat().st_size)


def _written(table: dict[str, Any]) -> str:
    """JSON with one row per line."""
    parts = []
    for key, value in table.items():
        if isinstance(value, dict):
            rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in value.items())
            parts.append(f" {json.dumps(key)}: {{\n{rows}\n }}")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _row(function: Any) -> dict[str, Any] | None:
    """The parameters of a function, the tensors among them, and its result, as far as it is annotated."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    parameters = [
        each for each in signature.parameters.values() if each.name not in ("self", "args", "kwargs")
    ]
    tensors = [each.name for each in parameters if _word(each.annotation) == "Tensor"]
    return {
        "parameters": [each.name for each in parameters],
        "tensors": tensors,
        "returns": _returned(_word(signature.return_annotation)),
    }


def _word(annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return "?"
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return re.sub(r"\b(paddle|base|pir)\.", "", text).strip("'\"")


def _returned(text: str) -> str:
    if text == "?":
        return ""
    if text == "Tensor":
        return "tensor"
    if re.fullmatch(r"(list|tuple|Sequence)\[Tensor.*\]|TopKRetType", text) and "|" not in text:
        return "tensors"
    return "" if "Tensor" in text or text in ("Any", "T", "_T") else "python"


def _seen(function: Any, row: dict[str, Any]) -> dict[str, str]:
    """The dtype and shape of the result of a function of one or two tensors, if all calls agree."""
    name = getattr(function, "__name__", "")
    if name.endswith("_") or _NEVER_RUN.search(name) or row["returns"] == "python":
        return {}
    paddle = importlib.import_module("paddle")
    results = []
    for dtype in ("float32", "float64", "int64", "bool"):
        for shape in ([2, 3], [4]):
            for number in (1, 2):
                result = _forked(lambda d=dtype, s=shape, n=number: function(*[paddle.ones(s, d)] * n))
                if result is not None:
                    results.append((dtype, shape, *result))
                    break
    tensors = [each for each in results if each[2] == "tensor"]
    if not any(each[0] == "float32" for each in results) or len(tensors) != len(results):
        kinds = {each[2] for each in results}
        return {"returns": kinds.pop()} if len(kinds) == 1 and not row["returns"] else {}
    found = {} if row["returns"] else {"returns": "tensor"}
    dtypes = {each[3] for each in tensors}
    if all(each[0] == each[3] for each in tensors) and len(dtypes) > 1:
        found["dtype"] = "same"
    elif len(dtypes) == 1 and (dtypes & {"bool", "int64", "int32"}) and len(tensors) > 1:
        found["dtype"] = dtypes.pop()
    if len({str(each[1]) for each in tensors}) > 1:
        if all(each[1] == each[4] for each in tensors):
            found["shape"] = "same"
        elif all(each[4] == [] for each in tensors):
            found["shape"] = "scalar"
    return found


def _forked(call: Any) -> tuple[Any, ...] | None:
    """The kind, dtype and shape of a call's result, run in a process of its own; None if it fails."""
    read, write = os.pipe()
    process = os.fork()
    if not process:
        signal.alarm(_SECONDS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        try:
            given = call()
            told: list[Any] = ["python"]
            if type(given).__name__ == "Tensor":
                told = ["tensor", str(given.dtype).rpartition(".")[2], list(given.shape)]
            elif (
                isinstance(given, (list, tuple))
                and given
                and all(type(e).__name__ == "Tensor" for e in given)
            ):
                told = ["tensors"]
            os.write(write, json.dumps(told).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        text = stream.read()
    os.waitpid(process, 0)
    return tuple(json.loads(text)) if text else None


if __name__ == "__main__":
    main()
