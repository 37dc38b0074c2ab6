"""Import Paddle, and run one snippet after the other, each in a process forked from here.

    python observer.py

A request is a line of JSON on standard input, its answer one on standard output; `proof.paddle.real_paddle`
is at the other end.  Paddle's runtime must not start here: it would be broken in forks.
"""

from __future__ import annotations

import ast
import builtins
import gc
import importlib
import importlib.util
import inspect
import io
import json
import os
import resource
import signal
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import paddle

# Modules that Paddle loads when it first makes a function static: half of the time of a small snippet.
LATE = (
    "numpy.testing",
    "asyncio",
    "concurrent.futures.process",
    "multiprocessing.queues",
    "paddle.jit.sot.translate",
)
ORIGINAL, SAVE = paddle.jit.to_static, paddle.jit.save
PADDLE = os.path.dirname(paddle.__file__)
Value = Any
"""A result as JSON: a number or array is ``{"array": nested lists, "shape": [...]}``."""


def main() -> None:
    """Import, then answer requests until the end."""
    for module in LATE:
        importlib.import_module(module)
    importlib.import_module("paddle.jit.dy2static.convert_call_func").is_unsupported(main)
    importlib.import_module("paddle.jit.sot.utils.utils").get_numpy_ufuncs()
    keep_builtins()
    gc.collect()
    gc.disable()  # A forked process ends before it would pay off.
    gc.freeze()
    assert len(os.listdir("/proc/self/task")) == 1, "threads run where all shall be forked from"
    answers = os.fdopen(os.dup(1), "w")
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryDirectory() as directory:
            for path, text in request["files"].items():
                (Path(directory) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(directory) / path).write_text(text, encoding="utf-8")
            print(json.dumps(answered(request, directory)), file=answers, flush=True)


def keep_builtins() -> None:
    """List Python's own names once: SOT does so for every callee, in a quarter of its time."""
    listed, members = inspect.getmembers, inspect.getmembers(builtins)

    def kept(thing: Any, *wanted: Any) -> list[tuple[str, Any]]:
        return members if thing is builtins and not wanted else listed(thing, *wanted)

    inspect.getmembers = kept  # type: ignore[assignment]


def answered(request: dict[str, Any], directory: str) -> dict[str, dict[str, Any]]:
    """The end of the snippet by mode: its values, or its failure; each mode has a process of its own.

    Paddle crashes in about one of 500 graphs with a loop over rows, so only two crashes count as one.
    """
    told: dict[str, dict[str, Any]] = {}
    for mode in request["modes"]:
        told[mode] = ended(request, mode, directory)
        if told[mode].get("ended") == "dies":
            told[mode] = ended(request, mode, directory)
    return told


def ended(request: dict[str, Any], mode: str, directory: str) -> dict[str, Any]:
    """The end of the snippet in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        os.chdir(directory)
        observe(request, mode, writer)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    how = "hangs" if -status in (signal.SIGALRM, signal.SIGXCPU) else "dies"
    told: dict[str, Any] = json.loads(answer) if answer else {"ended": how, "why": f"exit status {status}"}
    return told


def observe(request: dict[str, Any], mode: str, writer: int) -> None:
    """Run the snippet in one mode in a forked process, and record its end."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Processor time, so that other load does not matter; waiting has ten times as much.
    resource.setrlimit(resource.RLIMIT_CPU, (request["limit"], resource.RLIM_INFINITY))
    signal.alarm(10 * request["limit"])
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    warnings.simplefilter("ignore")
    sys.path.insert(0, os.getcwd())
    try:
        told: dict[str, Any] = {"values": WAYS[request["way"]](request, mode)}
    except BaseException as error:
        told = {"ended": "fails", "why": f"{type(error).__name__}: {error}"[-600:]}
    os.write(writer, json.dumps(told).encode())
    os._exit(0)


def statements(request: dict[str, Any], mode: str) -> list[Value]:
    """Run statements after a snippet; returns the value of each that is an expression.

    They know the snippet's names, ``static(layer)``, which makes a layer static if the mode requires it, and
    ``printed()``, the output of Python so far.
    """
    out = io.StringIO()
    with redirect_stdout(out):
        paddle.seed(7)
        make_static = choose(mode)
        module = loaded(mode)
        module.__dict__.update(
            static=make_static,
            printed=out.getvalue,
            np=np,
            paddle=paddle,
        )
        values = []
        for node in ast.parse(request["run"]).body:
            code = ast.unparse(node)
            if isinstance(node, ast.Expr):
                values.append(plain(eval(code, module.__dict__)))
            else:
                exec(code, module.__dict__)
    return values


def choose(mode: str) -> Callable[..., Any]:
    """Make every ``to_static`` of the code loaded next use this mode; returns it.

    In full and sot it is Paddle's with that `full_graph`; in dygraph and where a program is built by hand
    it does nothing; otherwise it is Paddle's, as it always is for Paddle itself.  Models are saved where they
    are static in full.
    """
    paddles = ORIGINAL

    def forced(function: Any = None, **options: Any) -> Any:
        if sys._getframe(1).f_code.co_filename.startswith(PADDLE):
            return paddles(function, **options)
        if mode not in ("full", "sot"):
            return function or (lambda each: each)
        return paddles(function, **{**options, "full_graph": mode == "full"})

    chosen = paddles if mode == "written" else forced
    paddle.jit.to_static = paddle.jit.api.to_static = chosen
    if mode in ("dygraph", "sot"):
        paddle.jit.save = lambda *args, **options: None
    else:
        paddle.jit.save = SAVE
    return chosen


def loaded(name: str) -> types.ModuleType:
    """The snippet as a new module."""
    spec = importlib.util.spec_from_file_location(f"main_{name}", "main.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def plain(value: Any) -> Value:
    """A value as JSON; numbers and tensors alike are arrays."""
    if isinstance(value, dict):
        return {"dict": {str(key): plain(each) for key, each in value.items()}}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, paddle.Tensor | bool | int | float | np.ndarray | np.generic):
        array = np.asarray(value.numpy() if isinstance(value, paddle.Tensor) else value)
        return {"array": array.tolist(), "shape": list(array.shape)}
    return {"type": type(value).__name__}


def calls(request: dict[str, Any], mode: str) -> list[Value]:
    """Call functions that a snippet defines, with arrays or Python values as arguments.

    Return for each call its result, the gradient of its floats' sum by each array, if the mode has one, and
    the final arrays.
    """
    choose(mode)
    # Once: SOT would confuse the functions of a second copy with those of the first.
    defined = loaded(mode).__dict__
    told = []
    for node in ast.parse(request["run"]).body:
        assert isinstance(node, ast.Expr), "one call a line"
        assert isinstance(node.value, ast.Call), "one call a line"
        rows = np.arange(12, dtype="float32").reshape(4, 3)
        names = {"np": np, "array": lambda values: np.array(values, "float32"), "ROWS": rows}
        given = [eval(ast.unparse(each), names) for each in node.value.args]
        run = in_program if mode in ("program", "unknown") else in_dygraph
        copies = [np.copy(each) if is_array(each) else each for each in given]
        told.append(run(partial(eval, ast.unparse(node.value.func), defined), copies, mode))
    return told


def is_array(value: Any) -> bool:
    """Return whether an argument becomes a tensor."""
    return isinstance(value, np.ndarray)


def in_dygraph(called: Callable[[], Any], given: list[Any], mode: str) -> Value:
    """Call the result of `called` with tensors; its decorators make it static."""
    paddle.seed(7)
    arguments = [paddle.to_tensor(each) if is_array(each) else each for each in given]
    tensors = [each for each in arguments if isinstance(each, paddle.Tensor)]
    for tensor in tensors:
        tensor.stop_gradient = mode != "dygraph" or tensor.dtype != paddle.float32
    result = called()(*arguments)
    after = plain(result)
    if mode != "dygraph":  # In a graph gradients are Paddle's (PD27).
        return {"result": after, "gradients": [], "given": [plain(each) for each in tensors]}
    floats = [each for each in flat(result) if isinstance(each, paddle.Tensor) and not each.stop_gradient]
    if floats:
        sum(each.astype("float32").sum() for each in floats).backward()
    gradients = [plain(None if each.grad is None else each.grad) for each in tensors]
    return {"result": after, "gradients": gradients, "given": [plain(each) for each in tensors]}


def in_program(called: Callable[[], Any], given: list[Any], mode: str) -> Value:
    """Call it while a program is built, and run that; in mode "unknown", the program knows no input sizes."""
    paddle.enable_static()
    program, start = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(program, start):
        paddle.seed(7)
        arguments, feed = [], {}
        for number, each in enumerate(given):
            if is_array(each):
                feed[f"given{number}"] = each
                shape = [-1] * each.ndim if mode == "unknown" else list(each.shape)
                each = paddle.static.data(f"given{number}", shape, str(each.dtype))
            arguments.append(each)
        result = called()(*arguments)
        executor = paddle.static.Executor(paddle.CPUPlace())
        executor.run(start)
        wanted = [each for each in flat(result) if paddle.is_tensor(each)]
        fetched = iter(executor.run(program, feed=feed, fetch_list=wanted) if wanted else ())
    paddle.disable_static()
    kept = [plain(each) for each in given if is_array(each)]
    return {"result": plain(replaced(result, fetched)), "gradients": [], "given": kept}


def flat(value: Any) -> list[Any]:
    """The elements of nested containers, in order."""
    if isinstance(value, dict):
        return flat([*value.values()])
    if isinstance(value, list | tuple):
        return [found for each in value for found in flat(each)]
    return [value]


def replaced(value: Any, fetched: Iterator[Any]) -> Any:
    """A result with each tensor of a program replaced by the fetched value, in the order of `flat`."""
    if isinstance(value, dict):
        return {key: replaced(each, fetched) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [replaced(each, fetched) for each in value]
    return next(fetched) if paddle.is_tensor(value) else value


WAYS = {"statements": statements, "calls": calls}

if __name__ == "__main__":
    main()
