"""Code that only rank 0 reaches, because the others have left: the check and the conversion must agree."""

from __future__ import annotations

import pytest

from trainshift.engine.checking import check
from trainshift.engine.conversion import convert

SCRIPT = """\
import contextlib
import os
import sys
import tensorflow as tf
import horovod.tensorflow as hvd


class Span:
    def exit(self):
        self.open = False

    def close(self):
        sys.exit()


class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        return True


class Loud:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.closed = True


@contextlib.contextmanager
def handled():
    try:
        yield
    except ValueError:
        pass


@contextlib.contextmanager
def timed():
    yield


def leave():
    print_nothing()
    sys.exit(0)


def leave_too():
    leave()


def fail():
    raise RuntimeError("not here")


def leave_perhaps(early):
    if early:
        sys.exit()


def exit(code=0):
    return code


def spin():
    while True:
        wait()


def spin_until(event):
    while True:
        if event.is_set():
            break


def generate():
    sys.exit()
    yield


async def later():
    sys.exit()


hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1 * hvd.size())
first = True
span = Span()
for step in range(10):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(tf.ones((4, 2))) ** 2)
    tape = hvd.DistributedGradientTape(tape)
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    if first:
        hvd.broadcast_variables(model.variables, root_rank=0)
        hvd.broadcast_variables(opt.variables(), root_rank=0)
        first = False


def finish(values, mode, event):
BODY

finish([1], "a", None)
"""
WRITE = 'model.save_weights("weights.h5")'
# Run by rank 0 alone: the code at `WRITE`, because the other ranks have left before.
ALONE = {
    "return": "if hvd.rank() != 0:\n    return\nWRITE",
    "break": "for value in values:\n    if hvd.rank() != 0:\n        break\n    WRITE",
    "continue": "for value in values:\n    if hvd.rank() != 0:\n        continue\n    WRITE",
    "raise": "if hvd.rank() != 0:\n    raise ValueError\nWRITE",
    "sys.exit": "if hvd.rank() != 0:\n    sys.exit()\nWRITE",
    "os._exit": "if hvd.rank() != 0:\n    os._exit(0)\nWRITE",
    "quit": "if hvd.rank() != 0:\n    quit()\nWRITE",
    "raise SystemExit": "if hvd.rank() != 0:\n    raise SystemExit\nWRITE",
    "raise SystemExit(0)": "if hvd.rank() != 0:\n    raise SystemExit(0)\nWRITE",
    "a function that always exits": "if hvd.rank() != 0:\n    leave()\nWRITE",
    "a function that calls one that always exits": "if hvd.rank() != 0:\n    leave_too()\nWRITE",
    "a function that always raises": "if hvd.rank() != 0:\n    fail()\nWRITE",
    "a method that always exits": "if hvd.rank() != 0:\n    span.close()\nWRITE",
    "a function without end": "if hvd.rank() != 0:\n    spin()\nWRITE",
    "more is done before": "if hvd.rank() != 0:\n    wait()\n    return\nWRITE",
    "dead code behind": "if hvd.rank() != 0:\n    return\n    wait()\nWRITE",
    "both branches leave": (
        "if hvd.rank() != 0:\n    if mode:\n        return\n    else:\n        sys.exit()\nWRITE"
    ),
    "the other branch is rank 0's": "if hvd.rank() == 0:\n    wait()\nelse:\n    return\nWRITE",
    "in a with": "with timed():\n    if hvd.rank() != 0:\n        return\nWRITE",
    "in a manager of the script": "with Loud():\n    if hvd.rank() != 0:\n        return\nWRITE",
    "through a finally": "try:\n    if hvd.rank() != 0:\n        return\nfinally:\n    wait()\nWRITE",
    "in a finally": "if hvd.rank() != 0:\n    try:\n        wait()\n    finally:\n        return\nWRITE",
    "a try that leaves by all ways": (
        "if hvd.rank() != 0:\n    try:\n        return wait()\n    except ValueError:\n        return\nWRITE"
    ),
    "while True without break": "if hvd.rank() != 0:\n    while True:\n        wait()\nWRITE",
    "an else of a loop": (
        "if hvd.rank() != 0:\n    for value in values:\n        wait()\n    else:\n        return\nWRITE"
    ),
    "a match with all cases": (
        "if hvd.rank() != 0:\n    match mode:\n        case 'a':\n            return\n        case _:\n"
        "            raise ValueError\nWRITE"
    ),
    "out of a loop": "for value in values:\n    if hvd.rank() != 0:\n        return\n    WRITE",
    "in an inner block": (
        "for value in values:\n    if hvd.rank() != 0:\n        break\n    if value:\n        WRITE"
    ),
    "an assertion": "assert hvd.rank() == 0\nWRITE",
    "a loop of rank 0": "while hvd.rank() == 0:\n    WRITE\n    break",
    "two ways, each with a test": (
        "if mode:\n    if hvd.rank() != 0:\n        return\nelse:\n    if hvd.rank() > 0:\n"
        "        return\nWRITE"
    ),
}
# Run by every rank: the others only seem to have left.
ALL = {
    "a method of the script's own": "if hvd.rank() != 0:\n    span.exit()\nWRITE",
    "a function of the script's own": "if hvd.rank() != 0:\n    exit(1)\nWRITE",
    "a parameter": "if hvd.rank() != 0:\n    event.exit()\nWRITE",
    "a function that may exit": "if hvd.rank() != 0:\n    leave_perhaps(mode)\nWRITE",
    "a function that is not called": "if hvd.rank() != 0:\n    atexit = leave\nWRITE",
    "a generator is not run": "if hvd.rank() != 0:\n    generate()\nWRITE",
    "a coroutine is not run": "if hvd.rank() != 0:\n    task = later()\nWRITE",
    "a loop that ends": "if hvd.rank() != 0:\n    spin_until(event)\nWRITE",
    "an exit that may be": "if hvd.rank() != 0:\n    mode or sys.exit()\nWRITE",
    "an exit in a lambda": "if hvd.rank() != 0:\n    stop = lambda: sys.exit()\nWRITE",
    "a break of an inner loop": "if hvd.rank() != 0:\n    for value in values:\n        break\nWRITE",
    "a break that ends a loop without end": "if hvd.rank() != 0:\n    while True:\n        break\nWRITE",
    "an exception that is handled": (
        "if hvd.rank() != 0:\n    try:\n        raise ValueError\n    except ValueError:\n        pass\nWRITE"
    ),
    "an exit that is handled": (
        "if hvd.rank() != 0:\n    try:\n        sys.exit()\n    except SystemExit:\n        pass\nWRITE"
    ),
    "a manager that suppresses": (
        "if hvd.rank() != 0:\n    with contextlib.suppress(ValueError):\n        raise ValueError\nWRITE"
    ),
    "a manager of the script that suppresses": (
        "if hvd.rank() != 0:\n    with Quiet():\n        fail()\nWRITE"
    ),
    "a generator that suppresses": "if hvd.rank() != 0:\n    with handled():\n        return wait()\nWRITE",
    "a match that may fail": (
        "if hvd.rank() != 0:\n    match mode:\n        case 'a':\n            return\nWRITE"
    ),
    "an else that a break passes by": (
        "if hvd.rank() != 0:\n    for value in values:\n        if value:\n            break\n"
        "    else:\n        return\nWRITE"
    ),
    "behind the loop": "for value in values:\n    if hvd.rank() != 0:\n        break\nWRITE",
    "a break in an else": (
        "for value in values:\n    while value:\n        wait()\n    else:\n        if hvd.rank() != 0:\n"
        "            break\nWRITE"
    ),
    "a test of something else": "if mode != 0:\n    return\nWRITE",
    "rank 0 leaves": "if hvd.rank() == 0:\n    wait()\nWRITE",
}


def placed(body: str) -> str:
    lines = body.replace("WRITE", WRITE).split("\n")
    return SCRIPT.replace("BODY", "\n".join("    " + line for line in lines))


def reported(text: str) -> int:
    return sum(each.code == "HZ20" for each in check(text).diagnostics)


def is_guarded(text: str) -> bool:
    """Return whether a conversion keeps the write to rank 0."""
    lines = convert(text).text.split("\n")
    (at,) = (number for number, line in enumerate(lines) if line.strip() == WRITE)
    # Adjacent statements that only rank 0 runs share a guard.
    indents = [len(line) - len(line.lstrip()) for line in lines]
    above = next(number for number in range(at, -1, -1) if indents[number] < indents[at])
    return lines[above].strip() == "if hvd.rank() == 0:"


@pytest.mark.parametrize("case", ALONE)
def test_what_rank_0_alone_comes_to_is_left_alone(case: str) -> None:
    text = placed(ALONE[case])
    assert (reported(text), is_guarded(text)) == (0, False)


@pytest.mark.parametrize("case", ALL)
def test_what_every_rank_comes_to_is_reported_and_guarded(case: str) -> None:
    text = placed(ALL[case])
    assert (reported(text), is_guarded(text)) == (1, True)


def test_what_rank_0_alone_comes_to_in_some_modes_is_guarded_and_no_hazard() -> None:
    text = placed("if mode:\n    if hvd.rank() != 0:\n        return\nWRITE")
    assert (reported(text), is_guarded(text)) == (0, True)


@pytest.mark.parametrize("length", [3, 12, 45])
def test_a_rank_is_known_behind_a_chain_of_names(length: int) -> None:
    names = [f"a{number}" for number in range(length)]
    chain = "\n".join(f"{new} = {old}" for new, old in zip(names, ["hvd.rank()", *names], strict=False))
    text = placed(f"{chain}\nif {names[-1]} != 0:\n    return\nWRITE")
    assert (reported(text), is_guarded(text)) == (0, False)
