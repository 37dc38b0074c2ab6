"""The server's answers beyond the protocol match their types."""

from __future__ import annotations

from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from e2e.lsp.session import Session
from trainshift.lsp.transport.told import Conversion, Derivative, Outline, Rule, StaticResult

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOOP = """\
import paddle
import tensorflow as tf
optimizer = tf.keras.optimizers.Adam(1e-3)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
for step in range(10):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(tf.ones([4, 2])))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    print(step)


def square(x):
    return x * x


def halve(x):
    while x.max() > 1:
        x = x / 2
    return x
"""
MODULES = (dict, list, str, int, bool, NoneType)


def faults(answer: Any, hint: Any, where: str = "answer") -> list[str]:
    """The places at which an answer does not match a type."""
    if get_origin(hint) is list:
        (inside,) = get_args(hint)
        if not isinstance(answer, list):
            return [f"{where} is no list"]
        return [fault for n, each in enumerate(answer) for fault in faults(each, inside, f"{where}[{n}]")]
    if get_args(hint):
        ways = [faults(answer, each, where) for each in get_args(hint)]
        return min(ways, key=len)
    if hint in MODULES:
        return [] if type(answer) is hint else [f"{where} is {answer!r}, no {hint.__name__}"]
    if not hasattr(hint, "__required_keys__"):
        return [] if isinstance(answer, dict) else [f"{where} is {answer!r}"]  # A type of the protocol.
    if not isinstance(answer, dict):
        return [f"{where} is {answer!r}"]
    hints = get_type_hints(hint)
    found = [f"{where} has {key}" for key in answer.keys() - hints.keys()]
    found += [f"{where} lacks {key}" for key in hint.__required_keys__ - answer.keys()]
    for key in answer.keys() & hints.keys():
        found += faults(answer[key], hints[key], f"{where}.{key}")
    return found


async def test_each_answer_is_of_its_type(puller: Session) -> None:
    document = puller.open(LOOP)
    at = {"uri": document.uri, "apply": False}
    answers = {
        Outline: [await puller.outline(document.uri)],
        Conversion: [await puller.run("trainshift.makeDistributed", at)],
        Derivative: [
            await puller.run("trainshift.differentiate", {**at, "function": name, "mode": "reverse"})
            for name in ("square", "missing", "halve")
        ],
        StaticResult: [
            await puller.run("trainshift.makeStatic", {**at, "function": "halve"}),
            await puller.run("trainshift.expandStatic", at),
        ],
    }
    for kind, found in answers.items():
        for answer in found:
            assert faults(answer, kind) == [], kind
    assert answers[Conversion][0]["changes"]
    assert faults(await puller.request("trainshift/rules"), list[Rule]) == []
