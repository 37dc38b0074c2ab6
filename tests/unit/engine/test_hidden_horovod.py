"""Hidden Horovod: a script that hands on what Horovod gives is refused; its text hides where that is used."""

from __future__ import annotations

import pytest

from trainshift.engine.conversion import Status, convert

SCRIPT = """import functools
import operator
import types
import numpy as np
import tensorflow as tf
import horovod.tensorflow.keras as hvd

hvd.init()
HEAD
x, y = np.load("x.npy"), np.load("y.npy")
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1 * SIZE)), "mse")
model.fit(x, y, epochs=2, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
"""
CONTEXT = "class Context:\n    pass\n\n\ncontext = Context()\n"
HIDDEN = {
    "a name that a loop gives": (
        f'{CONTEXT}for name in ("rank", "size"):\n    setattr(context, name, getattr(hvd, name))',
        "context.size()",
    ),
    "a constant name": ('size = getattr(hvd, "size")', "size()"),
    "a function that reads": (
        'def part(module, name):\n    return getattr(module, name)\n\n\nsize = part(hvd, "size")',
        "size()",
    ),
    "all members": ("globals().update(vars(hvd))", "size()"),
    "another reader": ('size = operator.attrgetter("size")(hvd)', "size()"),
    "an attribute": (f'{CONTEXT}setattr(context, "size", hvd.size())', "context.size"),
    "attributes": (f"{CONTEXT}context.__dict__.update(size=hvd.size())", "context.size"),
    "one of the attributes": (f'{CONTEXT}context.__dict__["size"] = hvd.size()', "context.size"),
    "a part of a call": ("size = functools.partial(hvd.size)", "size()"),
    "a method": ("class Context:\n    size = staticmethod(hvd.size)\n", "Context.size()"),
    "a list of parts": ("(size,) = map(lambda part: part(), [hvd.size])", "size"),
    "attributes of an object": (
        'context = types.SimpleNamespace(**{n: getattr(hvd, n) for n in ["size"]})',
        "context.size()",
    ),
}
SHOWN = {
    "a rate": (
        'opt = tf.keras.optimizers.SGD(0.1)\nsetattr(opt, "learning_rate", 0.1 * hvd.size())',
        "hvd.size() / hvd.size()",
    ),
    "a look": ('print(hvd, hasattr(hvd, "size"), getattr(hvd, "__version__", ""))', "hvd.size()"),
    "a logger": ('import logging\n\nlogging.info("%s", hvd.size)', "hvd.size()"),
    "a rank": (f'{CONTEXT}setattr(context, "rank", hvd.rank())', "hvd.size()"),
    "a dictionary": ('numbers = {}\nnumbers.update(size=hvd.size())\nprint("a")', "hvd.size()"),
    "a function of the script": ("def call(part):\n    return part()\n\n\nsize = call(hvd.size)", "size"),
}


@pytest.mark.parametrize(("head", "size"), HIDDEN.values(), ids=HIDDEN)
def test_a_script_that_hides_horovod_is_refused(head: str, size: str) -> None:
    found = convert(SCRIPT.replace("HEAD", head).replace("SIZE", size))
    assert found.status is Status.REFUSED, found.text
    assert " hides " in found.reason
    assert "by name, as in" in found.reason


@pytest.mark.parametrize(("head", "size"), SHOWN.values(), ids=SHOWN)
def test_a_script_that_shows_where_it_uses_horovod_is_not(head: str, size: str) -> None:
    found = convert(SCRIPT.replace("HEAD", head).replace("SIZE", size))
    assert " hides " not in found.reason
